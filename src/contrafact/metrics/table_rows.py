"""Rows of a table as metrics see them: coordinates without units, and the size of every change."""

from __future__ import annotations

import numpy as np
import torch

from ..engine.result import Counterfactuals, as_numpy
from ..models.classifier import Array
from ..tables import Table, TableSpace


def table_coordinates(table: Table, codes: Array) -> Array:
    """Convert rows of a table to coordinates in which distances are measured.

    Parameters
    ----------
    table : Table
        The table; only its schema and form are used.
    codes : array of float64, shape (n, columns)
        The rows.

    Returns
    -------
    array of float64, shape (n, d)
        Those of `TableSpace`, without the fixed columns: finite numbers.
    """
    space = TableSpace(table)
    is_free = ~torch.isin(space.column, space.fixed_columns)
    return space.embed(torch.from_numpy(codes))[:, is_free].numpy()


def part_changes(result: Counterfactuals) -> Array:
    """Measure the change of every column of a table in the units of its schema.

    Parameters
    ----------
    result : Counterfactuals
        The result of a table.

    Returns
    -------
    array of float64, shape (n, parts)
        |after - before| / scale of numbers and of ranks of ordered levels; 1 for another category,
        another level of a one-hot group, and a missing value that was filled; times the cost.
    """
    table = result.table_cf
    x, x_cf = as_numpy(result.X), as_numpy(result.X_cf)
    changed = result.changed_parts
    size = changed.astype(np.float64)
    for part, members in enumerate(table.schema.parts.values()):
        column = table.schema.columns[members[0]]
        if column.group is None and (column.is_numeric or column.kind == "ordered"):
            before, after = x[:, members[0]], x_cf[:, members[0]]
            moved = np.abs(after - before) / column.scale
            size[:, part] = np.where(np.isnan(moved), size[:, part], moved)
        size[:, part] *= column.cost
    return size


def noisy_rows(table: Table, codes: Array, noise: Array) -> Array:
    """Move the numbers of rows by some noise, to the nearest rows that the schema allows.

    Parameters
    ----------
    table : Table
        The table.
    codes : array of float64, shape (n, columns)
        The rows.
    noise : array of float64, shape (n, count, columns)
        In units of each column; categories, missing values and fixed ones stay.

    Returns
    -------
    array of float64, shape (n, count, columns)
        The rows; values that were not moved to another one are as they were.
    """
    space = TableSpace(table)
    moves = [column.is_numeric and column.group is None for column in table.schema]
    many = codes[:, None] + np.where(moves, noise, 0.0)
    flat = torch.from_numpy(many.reshape(-1, many.shape[-1]))
    nearest = space.codes(space.embed(flat)).numpy().reshape(many.shape)
    return np.where(moves, nearest, codes[:, None])
