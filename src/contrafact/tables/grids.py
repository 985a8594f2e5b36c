"""Grids on which the numbers of a table lie: steps, decimal places, or a very fine one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .columns import Column
from .table import Table

#: numbers that are not rounded to decimal places lie on a grid this much finer than their unit
FINE_GRID = 2.0**-26
#: and their size: what is left for errors of rounding
FLOAT_GRID = 2.0**-50


@dataclass(frozen=True, eq=False)
class Grid:
    """Round the numbers of some columns to values that the columns can have.

    Parameters
    ----------
    center : Tensor of float64, shape (columns,)
        A value from which steps are counted.
    step : Tensor of float64, shape (columns,)
        Width of the grid; 0 where the column has no steps.
    factor : Tensor of float64, shape (columns,)
        10 to the power of the decimal places; 0 where the column is not rounded to them.
    fine : Tensor of float64, shape (columns,)
        Width of the grid of columns without steps, a power of 2.
    single : Tensor of bool, shape (columns,)
        Which columns hold numbers of single precision.
    """

    center: Tensor
    step: Tensor
    factor: Tensor
    fine: Tensor
    single: Tensor

    @classmethod
    def of(cls, table: Table, positions: list[int]) -> Grid:
        """Make the grid of some columns of a table.

        Parameters
        ----------
        table : Table
            The table; only its schema and form are used.
        positions : list of int
            The columns: numbers and booleans.

        Returns
        -------
        Grid
            In the order of the positions.
        """
        columns = [table.schema.columns[i] for i in positions]
        single = [table.form.is_single(i) for i in positions]
        return cls(
            _numbers([column.center for column in columns]),
            _numbers([_step(column) for column in columns]),
            _numbers([_decimal_factor(table, i) for i in positions]),
            _numbers([_fine_grid(column) for column in columns]),
            torch.tensor(single, dtype=torch.bool),
        )

    def nearest(self, value: Tensor) -> Tensor:
        """Round numbers.

        Parameters
        ----------
        value : Tensor of float64, shape (n, columns)
            Any numbers.

        Returns
        -------
        Tensor of float64, shape (n, columns)
            Values on the grid; infinite ones stay.
        """
        fine = (value / self.fine).round() * self.fine
        stepped = self.center + self.step * _nearest((value - self.center) / self.step)
        value = torch.where(self.step > 0, stepped, fine)
        rounded = _nearest(value * self.factor) / self.factor
        value = torch.where(self.factor > 0, rounded, value)
        return torch.where(self.single, value.float().double(), value)

    def inward(self, bounds: Tensor, *, up: bool) -> Tensor:
        """Round bounds to the nearest values within them.

        Parameters
        ----------
        bounds : Tensor of float64, shape (n, columns)
            Bounds; infinite ones stay.
        up : bool
            Whether they are rounded up, as lower bounds are.

        Returns
        -------
        Tensor of float64, shape (n, columns)
            Values on the grid.
        """
        sign = 1.0 if up else -1.0
        width = torch.where(self.factor > 0, 1 / self.factor, self.fine)
        width = torch.where(self.step > 0, self.step, width)
        nearest = self.nearest(bounds)
        # Steps of single precision may be wider than those of the grid.
        wide = torch.where(self.single, torch.maximum(width, bounds.abs() * 2.0**-22), width)
        is_outside = sign * (bounds - nearest) > 1e-9 * width
        return torch.where(is_outside, self.nearest(nearest + sign * wide), nearest)


def _step(column: Column) -> float:
    """Return the width of a column's grid; 0 where it has none."""
    return 1.0 if column.levels else column.step or 0.0


def _decimal_factor(table: Table, i: int) -> float:
    """Return 10 to the power of the decimal places of a column; 0 where it is not rounded."""
    decimals = table.schema.columns[i].decimals
    if table.form.is_integer(i):
        return 1.0
    return 0.0 if decimals is None else 10.0**decimals


def _nearest(steps: Tensor) -> Tensor:
    """Round to whole numbers; what lies in the middle goes up, errors of rounding apart.

    The middle between two values of a grid is met often, in bisections. By `round` it would depend
    on the unit and the origin of the grid which of them is taken.
    """
    return (steps + (0.5 + 1e-9)).floor()


def _fine_grid(column: Column) -> float:
    """Return the width of the grid of numbers that are not rounded otherwise, a power of 2."""
    bounds = [abs(bound) for bound in (column.lower, column.upper) if math.isfinite(bound)]
    largest = max([abs(column.center), *bounds])
    width = max(FINE_GRID * column.scale, FLOAT_GRID * largest)
    return 2.0 ** math.floor(math.log2(width))


def _numbers(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)
