"""Random limits on counterfactuals of tables, and a check of them from frames alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator

from _common import Array
from _table_metrics import broken_values, compare
from _tables import Table

#: relations that hold in every row of the generated tables
RELATIONS = {
    "adult": ("age >= years_employed + 16", "capital_gain + capital_loss <= 99999"),
    "german": ("credit_amount >= 5 * duration", "age >= 18 + residence_since / 4"),
    "hospital": ("systolic >= 2 * bmi", "age >= prior_admissions"),
    "iris": ("sepal_length >= petal_length",),
    "wine": ("total_phenols >= nonflavanoid_phenols",),
    "breast cancer": ("worst_radius >= mean_radius", "worst_area >= mean_area"),
}


@dataclass(frozen=True)
class Limits:
    """What counterfactuals of a table have to keep.

    Parameters
    ----------
    frozen, increasing, decreasing : list of str
        Columns that may not change, not fall, not rise.
    bounds : dict of str to (float, float)
        Lowest and highest value of a column.
    max_changed : int, optional
        Most columns that may change; a one-hot group counts once.
    relations : list of str
        Comparisons of columns.
    forbidden : dict of str to list of (from, to)
        Moves of a category that are not allowed.
    """

    frozen: list[str] = field(default_factory=list)
    increasing: list[str] = field(default_factory=list)
    decreasing: list[str] = field(default_factory=list)
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)
    max_changed: int | None = None
    relations: list[str] = field(default_factory=list)
    forbidden: dict[str, list[tuple[str, str]]] = field(default_factory=dict)


def draw_limits(rng: Generator, table: Table) -> Limits:
    """Draw limits of every kind, each with a chance, on different columns."""
    members = {column for group in table.groups.values() for column in group}
    names = [name for name in table.X_train if name not in members]
    frozen = pick(rng, [*names, *table.groups], 0.25)
    free = [name for name in names if name not in frozen]
    ranked = [name for name in free if is_ranked(table, name)]
    increasing = pick(rng, ranked, 0.15)
    decreasing = pick(rng, [name for name in ranked if name not in increasing], 0.15)
    numbers = [name for name in free if name in table.columns("number", "integer")]
    relations = RELATIONS.get(table.name.partition(",")[0], ())
    nominal = [name for name in free if table.kinds[name] == "category"]
    return Limits(
        frozen=frozen,
        increasing=increasing,
        decreasing=decreasing,
        bounds={name: draw_bounds(rng, table.X_train[name]) for name in pick(rng, numbers, 0.2)},
        max_changed=int(rng.integers(1, 6)) if rng.random() < 0.4 else None,
        relations=pick(rng, list(relations), 0.4),
        forbidden={name: draw_moves(rng, table.X_train[name]) for name in pick(rng, nominal, 0.2)},
    )


def pick(rng: Generator, names: list[str], share: float) -> list[str]:
    """Choose some of the names; half of the time none."""
    if rng.random() < 0.5:
        return []
    return [name for name in names if rng.random() < share]


def is_ranked(table: Table, name: str) -> bool:
    """Return whether the values of a column have an order."""
    dtype = table.X_train[name].dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return dtype.ordered
    return table.kinds[name] != "boolean"


def draw_bounds(rng: Generator, column: pd.Series) -> tuple[float, float]:
    """Draw two values of a column, wide enough to hold most of it."""
    values = column.dropna().to_numpy(float)
    low, high = np.quantile(values, [rng.uniform(0, 0.25), rng.uniform(0.75, 1)])
    return float(np.floor(low)), float(np.ceil(high))


def draw_moves(rng: Generator, column: pd.Series) -> list[tuple[str, str]]:
    """Draw pairs of different categories."""
    levels = list(column.cat.categories)
    pairs = [(a, b) for a in levels for b in levels if a != b]
    chosen = rng.permutation(len(pairs))[: max(1, len(pairs) // 3)]
    return [pairs[i] for i in chosen]


# --- checks --------------------------------------------------------------------------------------


def kept(
    table: Table, limits: Limits, before: pd.DataFrame, after: pd.DataFrame
) -> dict[str, Array]:
    """Return which rows keep each kind of limit.

    A missing value has no order, so that "increasing", "decreasing" and relations say nothing
    about it. Bounds hold for values that were changed.
    """
    changed, _ = compare(table, before, after)
    moved = pd.DataFrame(changed, columns=list(before.columns))
    everything = np.ones(len(after), dtype=bool)
    found = {
        name: everything.copy()
        for name in ("frozen", "increasing", "decreasing", "bounds", "relations", "forbidden")
    }
    for name in limits.frozen:
        found["frozen"] &= ~moved[table.groups.get(name, [name])].to_numpy().any(1)
    for name in limits.increasing:
        found["increasing"] &= ~(difference(before, after, name) < 0)
    for name in limits.decreasing:
        found["decreasing"] &= ~(difference(before, after, name) > 0)
    for name, (low, high) in limits.bounds.items():
        values = numbers(after[name])
        found["bounds"] &= ~moved[name].to_numpy() | ~((values < low) | (values > high))
    for relation in limits.relations:
        found["relations"] &= holds(relation, after)
    for name, moves in limits.forbidden.items():
        old, new = before[name].astype(str), after[name].astype(str)
        for start, end in moves:
            found["forbidden"] &= ~((old == start) & (new == end)).to_numpy()
    if limits.max_changed is not None:
        found["max_changed"] = count_changed(table, moved) <= limits.max_changed
    return found


def count_changed(table: Table, moved: pd.DataFrame) -> Array:
    """Count changed columns; a one-hot group counts once."""
    members = [column for group in table.groups.values() for column in group]
    count = moved.drop(columns=members).to_numpy().sum(1)
    return count + sum(moved[group].to_numpy().any(1) for group in table.groups.values())


def one_hot_kept(table: Table, before: pd.DataFrame, after: pd.DataFrame) -> Array:
    """Return which rows have one 1 in every one-hot group; none only where training rows do."""
    good = np.ones(len(after), dtype=bool)
    for group in table.groups.values():
        values = after[group].to_numpy(float)
        lowest = 0 if (table.X_train[group].sum(axis=1) == 0).any() else 1
        total = values.sum(1)
        good &= np.isin(values, (0, 1)).all(1) & (total >= lowest) & (total <= 1)
    return good


def numbers(column: pd.Series) -> Array:
    """Return a column as numbers, ordered categories by their rank; NaN where missing."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return np.where(column.isna(), np.nan, column.cat.codes)
    return column.to_numpy(float, na_value=np.nan)


def difference(before: pd.DataFrame, after: pd.DataFrame, name: str) -> Array:
    """Return how far a column went up, NaN where a value is missing."""
    change = numbers(after[name]) - numbers(before[name])
    return np.where(np.abs(change) < 1e-9, 0, change)


def holds(relation: str, frame: pd.DataFrame) -> Array:
    """Evaluate a relation with pandas; rows with a missing value keep it."""
    names = [name for name in frame if name in relation.split()]
    values = pd.DataFrame({name: numbers(frame[name]) for name in names})
    return values.eval(relation).to_numpy(bool) | values.isna().to_numpy().any(1)


# --- is there an answer? -------------------------------------------------------------------------


def reference_answers(
    table: Table, limits: Limits, model: Any, row: pd.DataFrame, target: int, labels: Array
) -> int:
    """Count training rows of the target class that keep all limits for one row.

    A value may not go missing, so a training row without a value that the row has does not count.
    `labels` are the classes that the model gives the training rows, by place.
    """
    rows = table.X_train[labels == target].reset_index(drop=True)
    before = row.iloc[np.zeros(len(rows), dtype=int)].reset_index(drop=True)
    good = ~broken_values(table, before, rows)["missing"]
    for kind in kept(table, limits, before, rows).values():
        good &= kind
    return int(good.sum())
