"""Coordinates in which the rows of a table are searched."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from .columns import Column
from .frame_forms import Chosen
from .frames import Array
from .grids import Grid
from .table import Table, decode_column

#: distance of two categories is 1: one coordinate falls by this much, another rises by it
CATEGORY = 0.5**0.5
#: unit of fixed columns, a power of 2 that is lost in every distance
FIXED_UNIT = 2.0**-500


class TableSpace:
    """Convert rows of a table to coordinates without units, and coordinates back to rows.

    A number v has the coordinate (v - center) / scale. A level of rank r in an order has r
    coordinates 1 / scale and 0 in the others, one for each step of the order. A category has one
    coordinate per level, and so has a one-hot group per column. A column that
    may be missing has one more coordinate g, 1 where it is missing, and its number is
    u / (1 - g): so on the way from a missing value to a number, the number is the one at the end
    and never a mixture. `codes` brings any point to the nearest row that the schema allows. Every
    number lies on a grid (whole numbers, decimal places, or a very fine one of powers of 2), so
    that rows on the grid come back from their coordinates to the last bit.

    Parameters
    ----------
    table : Table
        The table; only its schema and form are used.

    Attributes
    ----------
    n_coordinates : int
        Coordinates of a row.
    part : Tensor of int, shape (coordinates,)
        The part each belongs to: what can be changed on its own, a column or a one-hot group.
    column : Tensor of int, shape (coordinates,)
        The column each belongs to.
    part_names : list of str
        Names of the parts.
    part_of_column : Tensor of int, shape (columns,)
        The part of each column.

    Examples
    --------
    >>> import pandas as pd
    >>> table = Table.read(pd.DataFrame({"age": [44.0, 61.0, 50.0], "ward": ["B", "A", "B"]}))
    >>> space = TableSpace(table)
    >>> space.part.tolist()
    [0, 1, 1]
    >>> space.codes(space.embed(torch.tensor(table.codes))).tolist() == table.codes.tolist()
    True
    """

    def __init__(self, table: Table) -> None:
        self.table = table.with_codes(table.codes[:0])
        self.schema = table.schema
        self._name_parts()
        self._place_lines()
        self._place_choices()
        fixed = [i for i, column in enumerate(self.schema) if column.kind == "fixed"]
        self.fixed_columns = torch.tensor(fixed, dtype=torch.long)
        self._fixed_places = self._first[self.fixed_columns]

    # --- layout

    def _name_parts(self) -> None:
        """Assign numbers to parts and coordinates."""
        self.part_names: list[str] = []
        part_of_column = []
        first = []
        part: list[int] = []
        owner: list[int] = []
        for i, column in enumerate(self.schema):
            name = column.group or column.name
            if name not in self.part_names:
                self.part_names.append(name)
            number = self.part_names.index(name)
            part_of_column.append(number)
            first.append(len(part))
            part += [number] * _width(column)
            owner += [i] * _width(column)
        self.part_of_column = torch.tensor(part_of_column)
        self.part = torch.tensor(part)
        self.column = torch.tensor(owner)
        self.n_coordinates = len(part)
        self._first = torch.tensor(first)

    def _place_lines(self) -> None:
        """Collect the columns that have one coordinate, for their number or boolean."""
        lines = [i for i, column in enumerate(self.schema) if _is_line(column)]
        columns = [self.schema.columns[i] for i in lines]
        self._lines = torch.tensor(lines, dtype=torch.long)
        self._line_places = self._first[self._lines]
        self._center = _numbers([column.center for column in columns])
        self._unit = _numbers([column.scale / column.cost for column in columns])
        self._grid = Grid.of(self.table, lines)
        self._is_boolean = torch.tensor([bool(column.levels) for column in columns])
        gaps = [place for place, column in enumerate(columns) if column.missing]
        self._gap_lines = torch.tensor(gaps, dtype=torch.long)
        self._gap_places = self._line_places[self._gap_lines] + 1
        self._gap_unit = _numbers([columns[place].cost for place in gaps])

    def _place_choices(self) -> None:
        """Collect the categories, levels in an order, and one-hot groups."""
        self._choices: list[tuple[int, slice, bool, float]] = []
        for i, column in enumerate(self.schema):
            if column.kind == "categorical":
                start = int(self._first[i])
                where = slice(start, start + _width(column))
                self._choices.append((i, where, column.missing, CATEGORY * column.cost))
        self._ladders: list[tuple[int, slice, bool, float]] = []
        for i, column in enumerate(self.schema):
            if column.kind == "ordered":
                start = int(self._first[i])
                where = slice(start, start + len(column.levels) - 1)
                unit = column.cost / column.scale
                self._ladders.append((i, where, column.missing, unit))
        self._groups = []
        for name, members in self.schema.groups.items():
            unit = CATEGORY * self.schema.columns[members[0]].cost
            is_open = name in self.schema.open_groups
            columns = torch.tensor(members)
            self._groups.append((columns, self._first[columns], is_open, unit))

    @property
    def is_fixed(self) -> Tensor:
        """Mask of the coordinates of columns that are never changed, (coordinates,)."""
        mask = torch.zeros(self.n_coordinates, dtype=torch.bool)
        mask[self._fixed_places] = True
        return mask

    @property
    def group_columns(self) -> list[Tensor]:
        """The columns of each one-hot group."""
        return [columns for columns, _, _, _ in self._groups]

    def any_by_part(self, mask: Tensor) -> Tensor:
        """Return which parts have a column in a mask.

        Parameters
        ----------
        mask : Tensor of bool, shape (n, columns)
            Some values.

        Returns
        -------
        Tensor of bool, shape (n, parts)
            True where any column of the part is in the mask.
        """
        count = torch.zeros(len(mask), len(self.part_names), dtype=torch.long)
        return count.index_add_(1, self.part_of_column, mask.long()) > 0

    # --- conversions

    def embed(self, codes: Tensor) -> Tensor:
        """Convert rows to coordinates.

        Parameters
        ----------
        codes : Tensor of float64, shape (n, columns)
            Rows as a Table holds them.

        Returns
        -------
        Tensor of float64, shape (n, coordinates)
            Finite numbers.
        """
        x = codes.new_zeros(len(codes), self.n_coordinates)
        values = codes[:, self._lines]
        x[:, self._line_places] = ((values - self._center) / self._unit).nan_to_num(0.0)
        gaps = values[:, self._gap_lines].isnan()
        x[:, self._gap_places] = gaps * self._gap_unit
        for column, where, has_gap, unit in self._choices:
            level = codes[:, column]
            last = where.stop - where.start - 1
            chosen = level.nan_to_num(float(last) if has_gap else 0.0).long()
            x[:, where] = unit * torch.nn.functional.one_hot(chosen, last + 1)
        for column, where, has_gap, unit in self._ladders:
            rank = codes[:, column]
            rungs = torch.arange(where.stop - where.start)
            x[:, where] = unit * (rungs < rank[:, None])
            if has_gap:
                x[:, where.stop] = unit * rank.isnan()
        for columns, places, _, unit in self._groups:
            x[:, places] = unit * codes[:, columns]
        fixed = codes[:, self.fixed_columns]
        x[:, self._fixed_places] = FIXED_UNIT * fixed.nan_to_num(-1.0)
        return x

    @property
    def is_line(self) -> Tensor:
        """Mask of the coordinates of numbers, which can be moved continuously, (coordinates,)."""
        mask = torch.zeros(self.n_coordinates, dtype=torch.bool)
        mask[self._line_places] = ~self._is_boolean
        return mask

    @property
    def graded(self) -> Tensor:
        """Mask of the parts with values in between: numbers, levels in an order; (parts,)."""
        mask = torch.zeros(len(self.part_names), dtype=torch.bool)
        for column, part in zip(self.schema, self.part_of_column.tolist(), strict=True):
            is_single = column.group is None
            mask[part] = is_single and (column.is_numeric or column.kind == "ordered")
        return mask

    def any_coordinate(self, mask: Tensor) -> Tensor:
        """Return which parts have a coordinate in a mask.

        Parameters
        ----------
        mask : Tensor of bool, shape (n, coordinates)
            Some coordinates.

        Returns
        -------
        Tensor of bool, shape (n, parts)
            True where any coordinate of the part is in the mask.
        """
        count = torch.zeros(len(mask), len(self.part_names), dtype=torch.long)
        return count.index_add_(1, self.part, mask.long()) > 0

    def on_lines(self, codes: Tensor, x: Tensor) -> Tensor:
        """Replace the coordinates of numbers.

        Parameters
        ----------
        codes : Tensor of float64, shape (n, columns)
            Where the numbers come from; infinite ones are accepted.
        x : Tensor of float64, shape (n, coordinates)
            Where all other coordinates come from.

        Returns
        -------
        Tensor of float64, shape (n, coordinates)
            A new tensor.
        """
        moved = x.clone()
        moved[:, self._line_places] = (codes[:, self._lines] - self._center) / self._unit
        return torch.where(self.is_line, moved, x)

    def codes(self, x: Tensor) -> Tensor:
        """Convert coordinates to the nearest rows of the schema.

        Parameters
        ----------
        x : Tensor of float64, shape (n, coordinates)
            Any points.

        Returns
        -------
        Tensor of float64, shape (n, columns)
            Rows: categories are whole, numbers rounded; ranges are not looked at.
        """
        codes = x.new_zeros(len(x), len(self.schema))
        codes[:, self._lines] = self._line_codes(x)
        for column, where, has_gap, _ in self._choices:
            level = x[:, where].argmax(1).double()
            is_gap = level == where.stop - where.start - 1
            codes[:, column] = level.masked_fill(is_gap, torch.nan) if has_gap else level
        for column, where, has_gap, unit in self._ladders:
            gap = x[:, where.stop] / unit if has_gap else torch.zeros(len(x), dtype=x.dtype)
            rank = (x[:, where].sum(1) / unit / (1 - gap).clamp_min(0.5)).round()
            rank = rank.clamp(0, where.stop - where.start)
            codes[:, column] = rank.masked_fill(gap >= 0.5, torch.nan)
        for columns, places, is_open, unit in self._groups:
            members = x[:, places]
            chosen = torch.nn.functional.one_hot(members.argmax(1), len(columns)).to(x)
            if is_open:
                chosen = chosen * (members.amax(1, keepdim=True) >= unit / 2)
            codes[:, columns] = chosen
        fixed = (x[:, self._fixed_places] / FIXED_UNIT).round()
        fixed = torch.minimum(fixed, self._last_fixed())  # whatever noise was added to it
        codes[:, self.fixed_columns] = fixed.masked_fill(fixed < 0, torch.nan)
        return codes

    def _last_fixed(self) -> Tensor:
        """Return the largest number of a value that each fixed column has, (fixed columns,)."""
        names = [self.schema.names[i] for i in self.fixed_columns.tolist()]
        return _numbers([len(self.table.fixed.values.get(name, ())) - 1.0 for name in names])

    def _line_codes(self, x: Tensor) -> Tensor:
        """Return numbers and booleans, rounded to their grids; NaN where missing."""
        u = x[:, self._line_places]
        gap = torch.zeros_like(u)
        gap[:, self._gap_lines] = x[:, self._gap_places] / self._gap_unit
        value = self._grid.nearest(u / (1 - gap).clamp_min(0.5) * self._unit + self._center)
        value = torch.where(self._is_boolean, value.clamp(0, 1), value)
        return value.masked_fill(gap >= 0.5, torch.nan)

    def inward(self, bounds: Tensor, *, up: bool) -> Tensor:
        """Round bounds to values that their columns can have.

        Parameters
        ----------
        bounds : Tensor of float64, shape (n, columns)
            Bounds of numbers; levels stay as they are, and so do infinite ones.
        up : bool
            Whether they are rounded up, as lower bounds are.

        Returns
        -------
        Tensor of float64, shape (n, columns)
            The nearest values within the bounds.
        """
        found = bounds.clone()
        found[:, self._lines] = self._grid.inward(bounds[:, self._lines], up=up)
        return found

    def single_moves(self, base: Tensor) -> Tensor:
        """Return rows that differ from a row in one way each: together they span all changes.

        Parameters
        ----------
        base : Tensor of shape (coordinates,)
            The row.

        Returns
        -------
        Tensor of shape (moves, coordinates)
            One step of every number, every other level, and every value missing.
        """
        own = self.codes(base[None])[0]
        moved = []
        for i, column in enumerate(self.schema):
            if column.kind != "fixed" and column.group is None:
                for value in _other_values(column, float(own[i])):
                    row = own.clone()
                    row[i] = value
                    moved.append(row)
        for columns, _, is_open, _ in self._groups:
            choices = torch.eye(len(columns), dtype=own.dtype)
            if is_open:
                choices = torch.cat([choices, torch.zeros_like(choices[:1])])
            for choice in choices:
                row = own.clone()
                row[columns] = choice
                moved.append(row)
        codes = torch.stack(moved) if moved else own[None][:0]
        return self.embed(codes)

    def frame(self, x: Tensor) -> Any:
        """Make the frame of the rows nearest to some points, as the model takes it."""
        return self.table.with_codes(self.codes(x).numpy()).frame_without_index()

    def numbers(self, codes: Tensor) -> Array | None:
        """Return rows as numbers, for models of arrays; None where a column holds no numbers."""
        columns = []
        for values, column in zip(codes.numpy().T, self.schema, strict=True):
            decoded = decode_column(values, column, self.table.fixed)
            numbers = decoded.numbers() if isinstance(decoded, Chosen) else decoded
            if numbers is None:
                return None
            columns.append(numbers)
        return np.stack(columns, axis=1)


def _other_values(column: Column, own: float) -> list[float]:
    """Return values of a column besides its own: two numbers, or every level; and a missing one."""
    if column.levels:
        values = [float(code) for code in range(len(column.levels))]
    else:
        step = column.step or column.scale
        start = column.center if np.isnan(own) else own
        values = [start, start + step]
    if column.missing:
        values.append(float("nan"))
    return values


def _is_line(column: Column) -> bool:
    """Return whether a column has one coordinate, for its number or boolean."""
    return column.kind not in ("categorical", "ordered", "fixed") and column.group is None


def _width(column: Column) -> int:
    """Return how many coordinates a column has."""
    if column.kind == "categorical":
        return len(column.levels) + column.missing
    if column.kind == "ordered":
        return len(column.levels) - 1 + column.missing
    return 1 + (column.missing and column.kind != "fixed")


def _numbers(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)
