"""Words for the values of a table: yes and no, categories, numbers with their decimals."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np

from ..engine.result import Counterfactuals, as_numpy
from ..models.classifier import Array
from ..tables import Table
from .grammar import one_line
from .words import different_texts, number_text

#: stands for a missing value
UNKNOWN = "not known"
#: what a one-hot group is called of which no column is 1
NONE = "none"


def value_text(table: Table, part: str, codes: Array, limit: int = 40) -> str:
    """Write the value of a column, or the level of a one-hot group.

    Parameters
    ----------
    table : Table
        The table.
    part : str
        Name of the column or group.
    codes : array of shape (columns,)
        A row of the table.
    limit : int, default=40
        The largest number of characters.

    Returns
    -------
    str
        As in "27.1", "yes", "surgery", "2026-03-14" or "not known".
    """
    members = table.schema.parts[part]
    column = table.schema.columns[members[0]]
    code = float(codes[members[0]])
    if column.group is not None:
        own = codes[list(members)]
        level = table.schema.names[members[int(own.argmax())]].removeprefix(f"{part}_")
        return one_line(level, limit) if own.any() else NONE
    if np.isnan(code):
        return UNKNOWN
    if column.kind == "fixed":
        return _plain_text(table.fixed.values[column.name][int(code)], limit)
    if column.levels:
        return _plain_text(_level(column.kind, column.levels[int(code)]), limit)
    if table.form.is_date(members[0]):
        moment = np.datetime64(round(code * 86_400_000), "ms").item()
        return _plain_text(moment, limit)
    if column.decimals is None:
        return number_text(code)
    return f"{code:.{column.decimals}f}"


def values_apart(table: Table, part: str, before: Array, after: Array) -> tuple[str, str]:
    """Write two values of a column that differ, so that their texts differ.

    Parameters
    ----------
    table : Table
        The table.
    part : str
        Name of the column or group.
    before, after : array of shape (columns,)
        Two rows of the table.

    Returns
    -------
    tuple of two str
        As `value_text` gives them, with more digits where it takes more to tell them apart.
    """
    texts = (value_text(table, part, before), value_text(table, part, after))
    first = table.schema.parts[part][0]
    is_number = table.schema.columns[first].is_numeric and not table.form.is_date(first)
    if texts[0] == texts[1] and is_number:
        return different_texts(float(before[first]), float(after[first]))
    return texts


def change_phrase(table: Table, part: str, before: Array, after: Array) -> str:
    """Say what would have to be instead of what is, in one column.

    Parameters
    ----------
    table : Table
        The table.
    part : str
        Name of the column or group.
    before, after : array of shape (columns,)
        The row before and after.

    Returns
    -------
    str
        As in "smokes: no instead of yes" or "bmi 27.1 instead of 31.4".
    """
    column = table.schema.columns[table.schema.parts[part][0]]
    colon = "" if column.is_numeric and column.group is None else ":"
    old, new = values_apart(table, part, before, after)
    return f"{one_line(part, 40)}{colon} {new} instead of {old}"


def rows_of(result: Counterfactuals, i: int) -> tuple[Table, Array, Array]:
    """Return the table of a result and its row i before and after.

    Parameters
    ----------
    result : Counterfactuals
        The result of a table.
    i : int
        Row of the result.

    Returns
    -------
    table : Table
        The table.
    before, after : array of float64, shape (columns,)
        The row, as the table holds it.
    """
    return result.table_cf, as_numpy(result.X)[i], as_numpy(result.X_cf)[i]


def _level(kind: str, level: Any) -> Any:
    """Return yes and no for the levels of a boolean column; texts stay as they are."""
    if kind == "boolean" and not isinstance(level, str) and level in (0, 1):
        return "yes" if level else "no"
    return level


def _plain_text(value: Any, limit: int) -> str:
    """Write a category or a value that never changes; a date without its midnight."""
    if isinstance(value, datetime) and (value.hour, value.minute, value.second) == (0, 0, 0):
        value = value.date()
    return one_line(value, limit)
