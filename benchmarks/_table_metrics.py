"""Figures of the tabular study, from frames and the model alone.

Nothing here comes from contrafact or from DiCE: both are measured by the same independent code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from _common import Array
from _tables import Table


@dataclass(frozen=True)
class Answers:
    """What a method gave for a batch of rows, all of it claimed to be valid.

    Parameters
    ----------
    frame : DataFrame
        One row per counterfactual.
    source : array of int
        The request that each belongs to.
    seconds : array of float
        Processor time of each request.
    setup : float
        Processor time of the preparation.
    failures : dict of int to str
        Why a request got no answer.
    """

    frame: pd.DataFrame
    source: Array
    seconds: Array
    setup: float
    failures: dict[int, str] = field(default_factory=dict)


def compare(table: Table, before: pd.DataFrame, after: pd.DataFrame) -> tuple[Array, Array]:
    """Return which values differ and by how much, both (rows, columns).

    A number differs by its difference over the column's scale, everything else by 1: another
    category, a value that was missing, a value that went missing.
    """
    scales = table.scales
    distance = np.zeros(before.shape)
    for j, name in enumerate(before.columns):
        old, new = before[name], after[name]
        gone = old.isna().to_numpy() != new.isna().to_numpy()
        both = old.notna().to_numpy() & new.notna().to_numpy()
        if name in scales:
            pairs = (column.to_numpy(float, na_value=np.nan) for column in (old, new))
            difference = np.abs(np.subtract(*pairs)) / scales[name]
            # Below this, the difference is the rounding of float32.
            difference[difference <= 1e-5] = 0
            distance[:, j] = np.where(both, difference, gone)
        else:
            different = old.astype(str).to_numpy() != new.astype(str).to_numpy()
            distance[:, j] = np.where(both, different, gone)
    return distance > 0, distance


def broken_values(table: Table, before: pd.DataFrame, after: pd.DataFrame) -> dict[str, Array]:
    """Return which rows have each kind of fault; values that are kept are never wrong."""
    changed, _ = compare(table, before, after)
    faults = {
        name: np.zeros(len(after), dtype=bool)
        for name in ("category", "integer", "missing", "frozen")
    }
    for j, (name, kind) in enumerate(table.kinds.items()):
        new = after[name]
        moved = changed[:, j]
        faults["missing"] |= moved & new.isna().to_numpy()
        given = moved & new.notna().to_numpy()
        if kind == "integer":
            values = new.to_numpy(float, na_value=np.nan)
            faults["integer"] |= given & (values != np.round(values))
        elif kind in ("category", "boolean"):
            known = table.X_train[name].dropna().astype(str).unique()
            faults["category"] |= given & ~new.astype(str).isin(known).to_numpy()
        if name in table.frozen:
            faults["frozen"] |= moved
    return faults


def typed(table: Table, frame: pd.DataFrame) -> pd.DataFrame:
    """Give a frame the dtypes of the table, so that the model can be asked.

    An integer that is none is rounded and an unknown category is missing: `broken_values` counts
    them before.
    """
    columns = {}
    for name, dtype in table.X_train.dtypes.items():
        column = frame[name]
        if isinstance(dtype, pd.CategoricalDtype):
            columns[name] = pd.Categorical(column.astype(object), dtype=dtype)
        elif pd.api.types.is_integer_dtype(dtype):
            rounded = np.round(column.to_numpy(float, na_value=np.nan))
            columns[name] = pd.array(rounded, dtype="Int64").astype(dtype)
        else:
            columns[name] = column.to_numpy().astype(dtype)
    return pd.DataFrame(columns)


def feature_set_diversity(changed: Array) -> tuple[float, float]:
    """Return the share of pairs of answers that change different columns, and their mean distance.

    The distance is Jaccard's: 1 - columns in both / columns in one or both.
    """
    pairs = list(combinations(changed, 2))
    if not pairs:
        return np.nan, np.nan
    jaccard = [1 - (a & b).sum() / max((a | b).sum(), 1) for a, b in pairs]
    return float(np.mean(np.asarray(jaccard) > 0)), float(np.mean(jaccard))


def measure(
    table: Table, model: Any, X: pd.DataFrame, target: Array, k: int, answers: Answers
) -> pd.DataFrame:
    """Return one record per request.

    Equal answers to one request count once. Distances, changed columns and diversity are those of
    the answers that the model, asked again, puts into the target class.
    """
    frame = answers.frame.reset_index(drop=True)
    source = answers.source
    before = X.iloc[source].reset_index(drop=True)
    valid = np.zeros(len(frame), dtype=bool)
    if len(frame):
        valid = model.predict_proba(typed(table, frame)).argmax(1) == target[source]
    changed, distance = compare(table, before, frame)
    faults = broken_values(table, before, frame)
    repeated = frame.astype(str).assign(source=source).duplicated().to_numpy()
    records = []
    for i in range(len(X)):
        given = (source == i) & ~repeated
        good = given & valid
        n_changed = changed[good].sum(1)
        l1 = distance[good].sum(1)
        different, jaccard = feature_set_diversity(changed[good])
        records.append(
            {
                "row": i,
                "given": int(given.sum()),
                "valid": int(good.sum()),
                "fewest": n_changed.min() if good.any() else np.nan,
                "changed": n_changed.mean() if good.any() else np.nan,
                "nearest": l1.min() if good.any() else np.nan,
                "l1": l1.mean() if good.any() else np.nan,
                "different": different,
                "jaccard": jaccard,
                "seconds": answers.seconds[i],
                "failure": answers.failures.get(i, ""),
                **{f"broken_{name}": int(fault[given].sum()) for name, fault in faults.items()},
            }
        )
    return pd.DataFrame(records)
