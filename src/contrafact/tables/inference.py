"""What the values of a column tell about it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .columns import LEVEL_KINDS, Column, Kind
from .frames import Array, RawColumn

#: texts of more different values than this that hardly repeat are not categories
MANY_LEVELS = 20
#: decimal places up to which numbers count as rounded
MOST_DECIMALS = 6
#: different whole numbers that a grid wider than 1 is inferred from
MANY_STEPS = 10
#: the median absolute deviation of a normal distribution is 1 / 1.4826 of its standard deviation
NORMAL = 1.4826


def infer_column(raw: RawColumn, kind: Kind | None = None) -> Column:
    """Infer what a column holds.

    Parameters
    ----------
    raw : RawColumn
        Its values.
    kind : str, optional
        The kind, where it is known better.

    Returns
    -------
    Column
        With range, levels and units of the values.
    """
    kind = kind or _kind_of(raw)
    missing = bool(raw.is_missing.any())
    if kind == "fixed":
        return Column(raw.name, "fixed", missing=missing)
    if kind in LEVEL_KINDS:
        return _level_column(raw, kind, missing)
    return _number_column(raw, kind, missing)


def _kind_of(raw: RawColumn) -> Kind:
    """Choose the kind of a column by its family and values."""
    known = raw.values[~raw.is_missing]
    if len(known) == 0 or raw.family in ("date", "other"):
        return "fixed"
    if raw.family == "boolean":
        return "boolean"
    if raw.family == "ordered level":
        return "ordered"
    if raw.family == "level":
        return "categorical"
    if raw.family == "text":
        n_levels = len(set(known.tolist()))
        is_free = n_levels > MANY_LEVELS and 2 * n_levels > len(known)
        return "fixed" if is_free else "categorical"
    values = np.unique(known)
    if np.array_equal(values, [0.0, 1.0]):
        return "boolean"
    if not (values == np.rint(values)).all():
        return "continuous"
    return "step" if _grid(values) > 1 else "integer"


def _grid(values: Array) -> float:
    """Return the widest grid that whole numbers lie on; 1 where they are few."""
    if len(values) < MANY_STEPS or np.abs(values).max() > 2**53:
        return 1.0
    steps = np.diff(values).astype(np.int64)
    return float(np.gcd.reduce(steps))


def _level_column(raw: RawColumn, kind: Kind, missing: bool) -> Column:
    """Describe a column of levels: those that occur, in the order of their type or sorted."""
    levels = observed_levels(raw)
    if kind == "boolean" and len(levels) > 2:
        raise ValueError(f"column {raw.name!r} has {len(levels)} values; 'boolean' has two.")
    if kind == "boolean" and raw.family == "boolean":
        levels = (False, True)
    if kind != "ordered":
        return Column(raw.name, kind, levels, missing=missing)
    place = {level: rank for rank, level in enumerate(levels)}
    ranks = np.array([place[value] for value in raw.values.tolist() if value in place])
    scale = _unit(ranks.astype(np.float64))
    return Column(raw.name, kind, levels, scale=scale, missing=missing)


def observed_levels(raw: RawColumn) -> tuple[Any, ...]:
    """Return the values that occur in a column: in the order of its type, else sorted.

    Parameters
    ----------
    raw : RawColumn
        The column.

    Returns
    -------
    tuple
        Booleans for a column of booleans; whole numbers as int.
    """
    known = set(raw.values[~raw.is_missing].tolist())
    if raw.family == "boolean":
        return tuple(bool(value) for value in sorted(known))
    if raw.family == "integer":
        return tuple(int(value) for value in sorted(known))
    if raw.categories is not None:
        return tuple(level for level in raw.categories if level in known)
    try:
        return tuple(sorted(known))
    except TypeError:  # texts and numbers in one column
        return tuple(sorted(known, key=lambda level: (type(level).__name__, str(level))))


def _number_column(raw: RawColumn, kind: Kind, missing: bool) -> Column:
    """Describe a column of numbers."""
    values = raw.days() if raw.family == "date" else raw.values
    if values.dtype == object:
        raise ValueError(f"column {raw.name!r} holds texts; {kind!r} needs numbers.")
    known = values[~np.isnan(values)]
    if len(known) == 0:
        return Column(raw.name, kind, missing=missing)
    lower = float(known.min())
    center = float(np.median(known))
    step = None
    if kind in ("integer", "step"):
        step = _grid(np.unique(known)) if kind == "step" else 1.0
    decimals = _decimals(known)
    grid = step or (None if decimals is None else 10.0**-decimals)
    if grid is not None:
        # On the grid; of two values in the middle the upper one, whatever the unit.
        steps = math.floor((center - lower) / grid + 0.5 + 1e-9)
        center = round(lower + grid * steps, 15 if decimals is None else decimals)
    return Column(
        raw.name,
        kind,
        lower=lower,
        upper=float(known.max()),
        step=step,
        decimals=decimals,
        scale=_unit(known),
        center=center,
        missing=missing,
    )


def _decimals(known: Array) -> int | None:
    """Return how many decimal places numbers have; None where they are not rounded."""
    if np.abs(known).max() >= 1e9:
        return None
    for decimals in range(MOST_DECIMALS + 1):
        if (np.round(known, decimals) == known).all():
            return decimals
    return None


def _unit(known: Array) -> float:
    """Return the unit of distances: the median absolute deviation, or the standard deviation."""
    spread = NORMAL * float(np.median(np.abs(known - np.median(known))))
    return spread or float(known.std()) or 1.0


def infer_groups(
    raw: Sequence[RawColumn],
    columns: Sequence[Column],
    known_better: set[str],
) -> tuple[list[Column], frozenset[str]]:
    """Find one-hot groups: neighbors called prefix_level, of which at most one is 1 in a row.

    Parameters
    ----------
    raw : sequence of RawColumn
        The values.
    columns : sequence of Column
        What was inferred for each alone.
    known_better : set of str
        Columns whose kind was given.

    Returns
    -------
    columns : list of Column
        With `group` set for the members.
    open_groups : frozenset of str
        Groups of which all columns are 0 in some row.
    """
    found = list(columns)
    open_groups = set()
    flags = [_is_flag(*pair, known_better) for pair in zip(raw, columns, strict=True)]
    names = [column.name for column in columns]
    start = 0
    while start < len(names):
        prefix, end = _longest_group(raw, names, flags, start)
        for i in range(start, end):
            found[i] = replace(
                columns[i], kind="integer", levels=(), lower=0.0, upper=1.0, group=prefix
            )
        if end > start and _total(raw, start, end).min() < 1:
            open_groups.add(prefix)
        start = max(end, start + 1)
    return found, frozenset(open_groups)


def _longest_group(
    raw: Sequence[RawColumn],
    names: Sequence[str],
    flags: Sequence[bool],
    start: int,
) -> tuple[str, int]:
    """Return the prefix and the end of the longest group that begins at a column."""
    pieces = names[start].split("_")
    for length in range(1, len(pieces)):
        prefix = "_".join(pieces[:length])
        end = start
        while end < len(names) and flags[end] and names[end].startswith(f"{prefix}_"):
            end += 1
        if end - start < 2:
            continue
        total = _total(raw, start, end)
        # Two flags that exclude each other may do so by coincidence.
        if total.max() == 1 and (end - start > 2 or total.min() == 1):
            return _common_prefix(names[start:end]), end
    return "", start


def _common_prefix(names: Sequence[str]) -> str:
    """Return what all names begin with, up to an underscore: marital_status, not marital."""
    shared = []
    for pieces in zip(*(name.split("_")[:-1] for name in names), strict=False):
        if len(set(pieces)) > 1:
            break
        shared.append(pieces[0])
    return "_".join(shared)


def _total(raw: Sequence[RawColumn], start: int, end: int) -> Array:
    """Return how many of some columns are 1, row by row."""
    return np.asarray(sum(column.values for column in raw[start:end]))


def _is_flag(raw: RawColumn, column: Column, known_better: set[str]) -> bool:
    """Return whether a column may belong to a one-hot group: 0 or 1, never missing."""
    if column.name in known_better or column.missing or raw.values.dtype == object:
        return False
    return bool(np.isin(raw.values, [0.0, 1.0]).all())
