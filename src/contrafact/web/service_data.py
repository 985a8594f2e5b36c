"""Instances as they travel: JSON to the arrays that model and methods take, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..engine import Counterfactuals
from ..engine.instances import Instances, read_instances
from ..engine.result import as_numpy
from ..models.classifier import Array
from ..tables import Table
from ..validation import brief

#: what a cell of a row may hold
_SCALARS = (str, int, float, bool, type(None))


class ArrayData:
    """Read and write series, images and rows that travel as nested lists of numbers.

    Parameters
    ----------
    reference : array of shape (n, ...)
        Instances of the shape that the model takes.
    modality : str
        Kind of data.
    """

    def __init__(self, reference: Array, modality: str) -> None:
        self.modality = modality
        self.shape = tuple(reference.shape[1:])
        self.example = reference[0].tolist()
        self._dtype = reference.dtype if reference.dtype.kind == "f" else np.dtype(np.float64)

    def describe(self) -> dict[str, Any]:
        """Say what an instance looks like."""
        return {"kind": self.modality, "shape": list(self.shape), "columns": None}

    def read(self, instances: Sequence[Any]) -> Array:
        """Convert nested lists to an array, (n, *shape).

        Raises
        ------
        ValueError
            If they hold anything but finite numbers, or have another shape.
        """
        try:
            values = np.asarray(instances)
        except ValueError:
            raise ValueError("instances must be lists of equal lengths.") from None
        if values.dtype.kind not in "fiu":
            raise ValueError(
                f"instances must hold numbers in the shape {self._shape_words()}, got "
                f"{brief(instances)}."
            )
        return self.read_array(values)

    def read_array(self, values: Array) -> Array:
        """Check an array of numbers; a single channel may be left out, or given too."""
        n = len(values) if values.ndim else 0
        without_ones = tuple(size for size in self.shape if size != 1)
        if tuple(size for size in values.shape[1:] if size != 1) != without_ones or n == 0:
            raise ValueError(f"instances have shape {values.shape}, not {self._shape_words()}.")
        with np.errstate(over="ignore"):
            values = values.reshape(n, *self.shape).astype(self._dtype)
        if not np.isfinite(values).all():
            raise ValueError("instances must hold finite numbers.")
        return values

    def _shape_words(self) -> str:
        return f"({', '.join(['n', *map(str, self.shape)])})"

    def as_input(self, x: Array) -> Any:
        """Return instances as methods take them."""
        return x

    def write_result(self, result: Counterfactuals) -> list[Any]:
        """Return counterfactuals as nested lists."""
        return finite_lists(as_numpy(result.X_cf))


class TableData:
    """Read and write rows of a table, which travel as objects: column name to value.

    Parameters
    ----------
    reference : data frame
        Rows like those that travel.
    instances : Instances
        The reference as it was read.
    """

    modality = "row"

    def __init__(self, reference: Any, instances: Instances) -> None:
        assert instances.space is not None and instances.table is not None
        self._space = instances.space
        self._table: Table = instances.space.table
        self.names: list[str] = list(self._table.schema.names)
        self.shape = (len(self.names),)
        dtypes = [getattr(reference[label], "dtype", None) for label in reference.columns]
        first = instances.table.take(np.arange(1)).frame_without_index()
        self.example = {
            name: plain(first[label].to_list()[0])
            for name, label in zip(self.names, first.columns, strict=True)
        }
        self._is_date = [getattr(dtype, "kind", "") == "M" for dtype in dtypes]

    def describe(self) -> dict[str, Any]:
        """Say which columns there are, and what they hold."""
        columns = [
            {
                "name": column.name,
                "kind": column.kind,
                "levels": [plain(level) for level in column.levels] or None,
                "missing": column.missing,
            }
            for column in self._table.schema
        ]
        return {"kind": "table", "shape": list(self.shape), "columns": columns}

    def read(self, instances: Sequence[Any]) -> Array:
        """Convert rows to the numbers that a `Table` holds, (n, columns).

        Parameters
        ----------
        instances : sequence of dict or of list
            Rows by column name, or as lists in the order of the columns.

        Raises
        ------
        ValueError
            If a row is of no such form, or holds a value that its column does not take.
        """
        rows = [self._read_row(number, row) for number, row in enumerate(instances)]
        if not rows:
            raise ValueError("instances holds no row.")
        return self.read_columns(list(zip(*rows, strict=True)))

    def read_columns(self, columns: Sequence[Sequence[Any]]) -> Array:
        """Convert the values of every column, in the order of the table."""
        parts = zip(self._table.schema, columns, self._is_date, strict=True)
        frame = pd.DataFrame(
            {column.name: _cells(column, values, date) for column, values, date in parts}
        )
        read = read_instances(frame, "instances", "row", space=self._space)
        assert read.table is not None
        return read.table.codes

    def _read_row(self, number: int, row: Any) -> list[Any]:
        if isinstance(row, dict):
            unknown = [name for name in row if name not in self.names]
            if unknown:
                raise ValueError(
                    f"instances[{number}] has a column {unknown[0]!r:.80}. "
                    f"Columns: {', '.join(self.names[:20])}."
                )
            row = [row.get(name) for name in self.names]
        if not isinstance(row, list) or len(row) != len(self.names):
            raise ValueError(
                f"instances[{number}] must be an object by column name, or a list of "
                f"{len(self.names)} values."
            )
        return row

    def as_input(self, x: Array) -> Any:
        """Return rows as methods take them: a frame like the reference."""
        return self._table.with_codes(x).frame_without_index()

    def write_result(self, result: Counterfactuals) -> list[Any]:
        """Return counterfactuals as objects by column name."""
        columns = self.write_columns(result)
        return [dict(zip(self.names, row, strict=True)) for row in zip(*columns, strict=True)]

    def write_columns(self, result: Counterfactuals) -> list[list[Any]]:
        """Return counterfactuals as plain values, column by column."""
        frame = result.table_cf.frame_without_index()
        return [[plain(value) for value in frame[label].to_list()] for label in frame.columns]


def _cells(column: Any, values: Sequence[Any], is_date: bool) -> Any:
    """Bring the values of a column into a type that tables are read from."""
    for row, value in enumerate(values):
        if not isinstance(value, _SCALARS):
            raise ValueError(
                f"column {column.name!r} of instances holds {brief(value)} in row {row}. "
                "Accepted: a text, a number, true, false or null."
            )
    if is_date:
        try:
            return pd.to_datetime(pd.Series(values), utc=False)
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"column {column.name!r} of instances: {error}") from None
    if not column.is_numeric:
        cells = np.empty(len(values), dtype=object)
        cells[:] = values
        return pd.Series(cells)
    return np.array([_number(column.name, row, value) for row, value in enumerate(values)])


def _number(name: str, row: int, value: Any) -> float:
    """Read a cell of a column of numbers; NaN where it is missing."""
    if value is None:
        return math.nan
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # A whole number may be too large for a float.
    if not is_number or abs(value) > np.finfo(np.float64).max or value != value:
        raise ValueError(
            f"column {name!r} of instances holds {brief(value)} in row {row}. "
            "Accepted: a finite number, or null where one is missing."
        )
    return float(value)


def plain(value: Any) -> Any:
    """Convert a label or a cell to what JSON holds; None where it is missing."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, str | int | float | bool):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def finite_lists(values: Array) -> list[Any]:
    """Convert an array to nested lists, with None for NaN and infinite numbers."""
    if np.isfinite(values).all():
        listed: list[Any] = values.tolist()
        return listed
    objects = values.astype(object)
    objects[~np.isfinite(values)] = None
    return list(objects.tolist())
