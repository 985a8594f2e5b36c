"""DiCE (dice-ml) on the tables of this project, with the best settings it accepts.

DiCE takes no missing values and knows numbers and text only. So

- categories and booleans are given as text; a missing category is a name of its own, which is
  permitted only for rows that have it;
- a missing number is given as the median, and is missing again when the model is asked: DiCE
  searches with the true model;
- numbers come first, because DiCE 0.12 takes the decimals of a column from its place among the
  numbers;
- decimals are given: those of the values, but no step finer than a hundredth of the column's
  scale, because DiCE takes up to 10,000 such steps to make an answer sparse.

Everything else is left at DiCE's defaults, with its post-hoc sparsity.
"""

from __future__ import annotations

import contextlib
import io
import random
import time
import warnings
from collections.abc import Iterator
from typing import Any

import dice_ml
import numpy as np
import pandas as pd
from raiutils.exceptions import UserConfigValidationException

from _common import Array, OutOfTime, time_limit
from _table_metrics import Answers, typed
from _tables import Table

MISSING = "(missing)"
OUTCOME = "outcome"


class DiceModel:
    """A model as DiCE asks it: text and numbers in, probabilities out."""

    def __init__(self, table: Table, model: Any) -> None:
        self.model = model
        self.table = table
        self.kinds = table.kinds
        self.decimals = table.decimals
        medians = {
            name: table.X_train[name].astype(float).median()
            for name in table.columns("number", "integer")
        }
        self.medians = {name: self._round(name, value) for name, value in medians.items()}
        self.missing: list[str] = []

    def _round(self, name: str, values: Any) -> Any:
        return np.round(values, self.decimals.get(name, 0))

    def to_dice(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a frame of numbers without gaps, and text."""
        columns = {}
        for name, median in self.medians.items():
            filled = frame[name].astype(float).fillna(median)
            columns[name] = filled.astype(int) if self.kinds[name] == "integer" else filled
        for name in self.kinds:
            if name not in self.medians:
                texts = frame[name].astype(object).where(frame[name].notna(), MISSING)
                columns[name] = texts.astype(str)
        return pd.DataFrame(columns)

    def from_dice(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the values DiCE gave, with gaps where the row has them, in object columns."""
        columns: dict[str, Any] = {}
        for name, kind in self.kinds.items():
            values = frame[name].to_numpy()
            if name in self.medians:
                # Half a unit of float32 is no change of the value.
                numbers = values.astype(float)
                close = self._round(name, numbers)
                numbers = np.where(np.isclose(numbers, close, rtol=1e-6, atol=1e-6), close, numbers)
                if name in self.missing:
                    numbers = np.where(numbers == self.medians[name], np.nan, numbers)
                columns[name] = numbers
            else:
                texts = values.astype(str)
                columns[name] = texts == "True" if kind == "boolean" else text_or_none(texts)
        return pd.DataFrame(columns)

    def predict_proba(self, frame: pd.DataFrame) -> Array:
        return self.model.predict_proba(typed(self.table, self.from_dice(frame)))

    def predict(self, frame: pd.DataFrame) -> Array:
        return self.predict_proba(frame).argmax(1)


def text_or_none(texts: Array) -> Array:
    return np.where(texts == MISSING, None, texts.astype(object))


def explain_with_dice(
    table: Table,
    model: Any,
    X: pd.DataFrame,
    target: Array,
    k: int,
    *,
    method: str,
    seconds: float,
) -> Answers:
    """Ask DiCE for k counterfactuals of every row.

    Parameters
    ----------
    table : Table
    model : object
        Answers `predict_proba(frame)`.
    X : DataFrame
        The rows.
    target : array of int
        The place of the target class among the columns of the probabilities.
    k : int
    method : "random", "genetic" or "kdtree"
    seconds : float
        Processor time that one row may take.
    """
    wrapped = DiceModel(table, model)
    rows = wrapped.to_dice(X)
    reference = wrapped.to_dice(table.X_train)
    classes = np.unique(table.y_train)
    reference[OUTCOME] = np.searchsorted(classes.astype(str), table.y_train.astype(str))
    start = time.process_time()
    data = dice_ml.Data(
        dataframe=reference,
        continuous_features=list(wrapped.medians),
        outcome_name=OUTCOME,
        continuous_features_precision={
            name: dice_decimals(table, name) for name in wrapped.medians
        },
    )
    names = [name for name in table.X_train if name not in table.frozen]
    with silence():
        dice = dice_ml.Dice(data, dice_ml.Model(model=wrapped, backend="sklearn"), method=method)
    setup = time.process_time() - start

    frames, sources, times = [], [], []
    failures: dict[int, str] = {}
    for i in range(len(X)):
        wrapped.missing = [name for name in wrapped.medians if pd.isna(X[name].iloc[i])]
        row = rows.iloc[[i]]
        seed_global_generators(i)
        start = time.process_time()
        try:
            with silence(), time_limit(seconds):
                found = dice.generate_counterfactuals(
                    row,
                    total_CFs=k,
                    desired_class=int(target[i]),
                    features_to_vary=names,
                    permitted_range=permitted_categories(reference, row),
                    **({"random_seed": None} if method == "random" else {}),
                ).cf_examples_list[0]
            answer = found.final_cfs_df_sparse
            answer = found.final_cfs_df if answer is None else answer
            frames.append(wrapped.from_dice(answer))
            sources += [i] * len(answer)
        except OutOfTime:
            failures[i] = "out of time"
        except UserConfigValidationException as error:
            failures[i] = str(error).partition("!")[0]
        except Exception as error:  # one row must not lose the others
            failures[i] = f"{type(error).__name__}: {error}"
        times.append(time.process_time() - start)
    empty = wrapped.from_dice(rows.iloc[:0])
    frame = pd.concat(frames, ignore_index=True) if frames else empty
    return Answers(frame, np.asarray(sources, dtype=int), np.asarray(times), setup, failures)


def dice_decimals(table: Table, name: str) -> int:
    """Return the decimals of a column, of steps of at least a hundredth of its scale."""
    enough = max(0, int(np.ceil(2 - np.log10(table.scales[name]))))
    return min(table.decimals.get(name, 0), enough)


def permitted_categories(reference: pd.DataFrame, row: pd.DataFrame) -> dict[str, list[str]]:
    """Permit the missing category only to rows that have it."""
    permitted = {}
    for name in reference.columns.drop(OUTCOME):
        if pd.api.types.is_numeric_dtype(reference[name]):
            continue
        names = reference[name].unique().tolist()
        if MISSING in names and row[name].iloc[0] != MISSING:
            permitted[name] = [value for value in names if value != MISSING]
    return permitted


def seed_global_generators(seed: int) -> None:
    """Seed what DiCE draws from: its own random_seed gives every column the same numbers."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """DiCE prints progress bars and warnings for every row."""
    sink = io.StringIO()
    with (
        contextlib.redirect_stdout(sink),
        contextlib.redirect_stderr(sink),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield
