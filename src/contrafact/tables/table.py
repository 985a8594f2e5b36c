"""Table: the rows of a frame as numbers, and frames made of such numbers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

import numpy as np

from ..validation import brief
from .columns import Column
from .frame_forms import Chosen, FrameForm
from .frames import Array, RawColumn, is_frame, read_columns
from .schema import Schema

#: whole numbers above it are not exact as floats
LARGEST = 2**53


class FixedValues:
    """The values of columns that are never changed, numbered as they come; shared by tables."""

    def __init__(self) -> None:
        self.values: dict[str, list[Hashable]] = {}
        self._numbers: dict[str, dict[Hashable, int]] = {}
        self._lock = Lock()

    def translate(self, name: str, codes: Array, other: FixedValues) -> Array:
        """Return the numbers that values have here which have these numbers in another one."""
        chosen = other.look_up(name, codes)
        values = np.empty(len(chosen.values) + 1, dtype=object)
        values[:-1] = chosen.values  # the last, None, is what the position -1 of gaps leads to
        return self.number(name, values[chosen.positions])

    def number(self, name: str, values: Array) -> Array:
        """Return the number of each value of a column, NaN where missing; new ones are added."""
        with self._lock:
            known = self._numbers.setdefault(name, {})
            listed = self.values.setdefault(name, [])
            codes = np.full(len(values), np.nan)
            for row, value in enumerate(values.tolist()):
                if value is None or value != value:
                    continue
                if value not in known:
                    known[value] = len(listed)
                    listed.append(value)
                codes[row] = known[value]
        return codes

    def __getstate__(self) -> dict[str, Any]:
        # A lock cannot be pickled or copied.
        return {"values": self.values, "_numbers": self._numbers}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = {**state, "_lock": Lock()}

    def look_up(self, name: str, codes: Array) -> Chosen:
        """Return the values with these numbers; a number beyond them stands for the last."""
        positions = _positions(np.minimum(codes, len(self.values[name]) - 1))
        used, place = np.unique(positions[positions >= 0], return_inverse=True)
        positions[positions >= 0] = place
        return Chosen([self.values[name][number] for number in used.tolist()], positions)


@dataclass(frozen=True)
class Table:
    """Hold rows of a frame as numbers.

    Numbers stand for themselves, levels for their position among the levels of their column, dates
    for days since 1970 where they may be changed, and what is fixed for its number among the
    values seen. NaN stands for a missing value.

    Parameters
    ----------
    schema : Schema
        What the columns hold.
    form : FrameForm
        How to make frames.
    codes : array of float64, shape (n, columns)
        The rows.
    index : array of shape (n,), optional
        Labels of the rows.
    fixed : FixedValues
        The values that fixed columns refer to.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [44, 61], "ward": ["B", "A"]}, index=["p7", "p8"])
    >>> table = Table.read(frame)
    >>> table.codes.tolist()
    [[44.0, 1.0], [61.0, 0.0]]
    >>> table.frame().equals(frame)
    True
    """

    schema: Schema
    form: FrameForm
    codes: Array
    index: Any = None
    fixed: FixedValues = field(default_factory=FixedValues)

    @classmethod
    def read(
        cls,
        frame: Any,
        schema: Schema | None = None,
        *,
        like: Table | None = None,
        argument: str = "X",
    ) -> Table:
        """Read a frame.

        Parameters
        ----------
        frame : pandas.DataFrame or polars.DataFrame
            The rows.
        schema : Schema, optional
            What the columns hold; default: that of `like`, else it is inferred.
        like : Table, optional
            A table that was read before, whose form and fixed values are shared.
        argument : str, default="X"
            What the user calls the frame, for messages.

        Returns
        -------
        Table
            The rows as numbers.

        Raises
        ------
        ValueError
            If the columns are not those of the schema, or hold a value that it does not allow; the
            message names the column.
        """
        if not is_frame(frame):
            raise TypeError(
                f"{argument} must be a data frame of pandas or polars, got {brief(frame)}."
            )
        if schema is not None and not isinstance(schema, Schema):
            raise TypeError(f"schema must be a Schema, got {brief(schema)}.")
        raw = read_columns(frame, argument)
        if schema is None:
            schema = Schema.of_columns(raw, argument) if like is None else like.schema
        source = "the schema" if like is None else "fit"
        check_columns([column.name for column in raw], schema.names, source, argument)
        fixed = FixedValues() if like is None else like.fixed
        codes = [
            encode_column(column, description, fixed, argument)
            for column, description in zip(raw, schema, strict=True)
        ]
        form = FrameForm.of(frame).holding(schema.columns) if like is None else like.form
        for position, column in enumerate(schema):
            if column.kind != "fixed" and not column.levels:
                form.check_numbers(codes[position], position, argument)
        rows = np.stack(codes, axis=1) if len(frame) else np.zeros((0, len(schema)))
        check_groups(rows, schema, argument)
        return cls(schema, form, rows, getattr(frame, "index", None), fixed)

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: Array) -> Table:
        """Return some of the rows, in the order given."""
        index = None if self.index is None else self.index[rows]
        return replace(self, codes=self.codes[rows], index=index)

    def with_codes(self, codes: Array) -> Table:
        """Return a table with other numbers in the same form."""
        return replace(self, codes=codes)

    def frame(self) -> Any:
        """Make the frame of the rows, in the library, types and labels of the one that was read."""
        columns = [
            decode_column(codes, description, self.fixed)
            for codes, description in zip(self.codes.T, self.schema, strict=True)
        ]
        return self.form.build(columns, self.index)

    def values_by_part(self) -> dict[str, list[Any]]:
        """Return the values of every column as the frame has them, row by row.

        Returns
        -------
        dict of str to list
            By name. A one-hot group is one entry, with the name of its level in each row; None
            where none of its columns is 1.
        """
        frame = self.frame_without_index()
        listed = {}
        for name, members in self.schema.parts.items():
            if self.schema.columns[members[0]].group is not None:
                levels = [self.schema.names[member].removeprefix(f"{name}_") for member in members]
                chosen = self.codes[:, list(members)]
                listed[name] = [
                    levels[place] if row[place] else None
                    for place, row in zip(chosen.argmax(1).tolist(), chosen.tolist(), strict=True)
                ]
                continue
            listed[name] = frame[self.form.labels[members[0]]].to_list()
        return listed

    def frame_without_index(self) -> Any:
        """Make the frame with its rows numbered from 0, as for a model."""
        return replace(self, index=None).frame()


def check_columns(
    given: Sequence[str],
    wanted: Sequence[str],
    source: str,
    argument: str = "X",
) -> None:
    """Refuse columns that are not those wanted, in their order.

    Parameters
    ----------
    given, wanted : sequence of str
        Names of columns.
    source : str
        What they are expected by, for the message.
    argument : str, default="X"
        What the user calls the frame, for the message.

    Raises
    ------
    ValueError
        If the names differ, or their order.
    """
    if list(given) == list(wanted):
        return
    if sorted(given) == sorted(wanted):
        raise ValueError(
            f"{argument} has the columns of {source} in another order: {_some(given)} instead of "
            f"{_some(wanted)}. Reorder them, e.g. {argument}[{list(wanted[:3])!r} ...]."
        )
    missing = [name for name in wanted if name not in given]
    extra = [name for name in given if name not in wanted]
    raise ValueError(
        f"The columns of {argument} are not those of {source}: missing {_some(missing)}; "
        f"not expected {_some(extra)}."
    )


def check_groups(codes: Array, schema: Schema, argument: str) -> None:
    """Refuse rows in which a one-hot group does not have one 1.

    Parameters
    ----------
    codes : array of float64, shape (n, columns)
        The rows; NaN where missing.
    schema : Schema
        What the columns hold.
    argument : str
        What the user calls the frame, for the message.

    Raises
    ------
    ValueError
        If a member is not 0 or 1, or another number of them is 1 than the schema says.
    """
    for name, members in schema.parts.items():
        if schema.columns[members[0]].group is None:
            continue
        chosen = codes[:, list(members)]
        count = chosen.sum(1)
        least = 0 if name in schema.open_groups else 1
        is_whole = ((chosen == 0) | (chosen == 1)).all(1) & (count >= least) & (count <= 1)
        wrong = ~is_whole & ~np.isnan(count)
        if wrong.any():
            row = int(wrong.argmax())
            wanted = "at most one" if least == 0 else "exactly one"
            names = _some([schema.names[member] for member in members])
            raise ValueError(
                f"columns {names} of {argument} are a one-hot group, of which {wanted} is 1 and "
                f"the others are 0; row {row} holds {', '.join(f'{x:g}' for x in chosen[row])}."
            )


def _some(names: Sequence[str], most: int = 5) -> str:
    """List the first few names."""
    listed = ", ".join(repr(name) for name in names[:most]) or "none"
    return f"{listed}, ..." if len(names) > most else listed


def encode_column(raw: RawColumn, column: Column, fixed: FixedValues, argument: str) -> Array:
    """Convert the values of a column to numbers.

    Parameters
    ----------
    raw : RawColumn
        The values.
    column : Column
        What they are.
    fixed : FixedValues
        Numbers the values of fixed columns.
    argument : str
        What the user calls the frame, for messages.

    Returns
    -------
    array of float64, shape (n,)
        NaN where missing.
    """
    if column.kind == "fixed":
        return fixed.number(column.name, raw.values)
    missing = raw.is_missing
    if missing.any() and not column.missing:
        raise ValueError(
            f"column {column.name!r} of {argument} has no value in row {int(missing.argmax())}, "
            "and the schema says that none is missing. Fill it, or allow it: "
            f"schema.edit({column.name!r}, missing=True)."
        )
    if column.levels:
        return _encode_levels(raw, column, argument)
    values = raw.days() if raw.family == "date" else raw.values
    if values.dtype == object:
        row = next((row for row, value in enumerate(values) if not _is_number(value)), 0)
        raise ValueError(
            f"column {column.name!r} of {argument} holds {brief(values[row])} in row {row}; the "
            f"schema says {column.kind!r}, so numbers are accepted."
        )
    return np.asarray(values, dtype=np.float64)


def _is_number(value: Any) -> bool:
    """Return whether a value of a mixed column is missing, or a number that floats hold exactly."""
    if value is None:
        return True
    return isinstance(value, int | float | np.number) and not abs(float(value)) > LARGEST


def _encode_levels(raw: RawColumn, column: Column, argument: str) -> Array:
    """Replace levels by their positions."""
    place = {level: float(code) for code, level in enumerate(column.levels)}
    codes = np.full(len(raw.values), np.nan)
    for row, value in enumerate(raw.values.tolist()):
        if value is None or value != value:
            continue
        if value not in place:
            levels = ", ".join(repr(level) for level in column.levels[:8])
            raise ValueError(
                f"column {column.name!r} of {argument} holds {brief(value)} in row {row}, which is "
                f"not among its levels: {levels}. Add it with schema.edit({column.name!r}, "
                "levels=[...])."
            )
        codes[row] = place[value]
    return codes


def decode_column(codes: Array, column: Column, fixed: FixedValues) -> Array | Chosen:
    """Convert numbers back to values.

    Parameters
    ----------
    codes : array of float64, shape (n,)
        The numbers.
    column : Column
        What they stand for.
    fixed : FixedValues
        The values of fixed columns.

    Returns
    -------
    array of float64, or Chosen
        Numbers, or levels and fixed values by their position.
    """
    if column.kind == "fixed":
        return fixed.look_up(column.name, codes)
    if column.levels:
        return Chosen(column.levels, _positions(codes))
    return codes


def _positions(codes: Array) -> Array:
    """Convert numbers to positions in a list; -1 where they are NaN."""
    return np.where(np.isnan(codes), -1, codes).astype(np.int64)
