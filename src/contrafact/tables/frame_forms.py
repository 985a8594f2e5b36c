"""Forms of data frames: make frames of pandas and polars like a given one, of plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import narwhals as nw
import numpy as np

from .columns import Column
from .frames import MICROSECONDS_PER_DAY, Array


@dataclass(frozen=True)
class Chosen:
    """Values of a column that are chosen from a list.

    Parameters
    ----------
    values : sequence
        What there is to choose from. A tuple is taken for the levels of a column, which frames are
        made of again and again: what they are converted to is kept.
    positions : array of int, shape (n,)
        Which value stands in each row; -1 where it is missing.
    """

    values: Sequence[Any]
    positions: Array

    def numbers(self) -> Array | None:
        """Return the values as numbers, NaN where missing; None where some are no numbers."""
        if not all(isinstance(value, (int, float, np.number)) for value in self.values):
            return None
        values = np.array([*map(float, self.values), np.nan])
        return np.asarray(values[self.positions])


@dataclass(frozen=True)
class FrameForm:
    """How to make frames like a given one.

    Parameters
    ----------
    library : {"pandas", "polars"}
        Where the frame comes from.
    labels : tuple
        Labels of the columns, as the frame has them.
    dtypes : tuple
        Their types, as the library names them.
    label_names : tuple, default=()
        Names of the labels themselves, for pandas.
    gaps : tuple, default=()
        What stands for a missing value in each column, where its type leaves a choice.
    """

    library: Literal["pandas", "polars"]
    labels: tuple[Any, ...]
    dtypes: tuple[Any, ...]
    label_names: tuple[Any, ...] = ()
    gaps: tuple[Any, ...] = ()

    @classmethod
    def of(cls, frame: Any) -> FrameForm:
        """Return the form of a frame."""
        labels, dtypes = tuple(frame.columns), tuple(frame.dtypes)
        if nw.dependencies.is_polars_dataframe(frame):
            return cls("polars", labels, dtypes, gaps=tuple(map(_polars_gap, frame)))
        series = [frame.iloc[:, position] for position in range(len(labels))]
        gaps = tuple(map(_pandas_gap, series))
        return cls("pandas", labels, dtypes, tuple(frame.columns.names), gaps)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, as text."""
        return tuple(str(label) for label in self.labels)

    def is_single(self, column: int) -> bool:
        """Return whether a column holds floats of single precision or less."""
        name = str(self.dtypes[column]).lower()
        return name.startswith(("float32", "float16"))

    def is_integer(self, column: int) -> bool:
        """Return whether a column holds whole numbers by its type."""
        return str(self.dtypes[column]).lower().startswith(("int", "uint"))

    def is_date(self, column: int) -> bool:
        """Return whether a column holds dates or moments by its type."""
        return str(self.dtypes[column]).lower().startswith(("date", "timestamp"))

    def holding(self, columns: Sequence[Column]) -> FrameForm:
        """Return the form with all levels of the columns among the categories of their types."""
        dtypes = [
            _holding(dtype, column) for dtype, column in zip(self.dtypes, columns, strict=True)
        ]
        return replace(self, dtypes=tuple(dtypes))

    def check_numbers(self, codes: Array, column: int, argument: str) -> None:
        """Refuse numbers that the type of a column cannot hold, so that they would be changed.

        Parameters
        ----------
        codes : array of float64, shape (n,)
            The numbers; NaN where missing.
        column : int
            Position of the column.
        argument : str
            What the user calls the frame, for the message.
        """
        try:
            dtype = np.dtype(str(self.dtypes[column]).lower())
        except (TypeError, ValueError):  # no type of numbers
            return
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            fits = (codes == np.rint(codes)) & (codes >= limits.min) & (codes <= limits.max)
            accepted = f"whole numbers from {limits.min} to {limits.max}"
        elif dtype.kind == "f":
            limit = float(np.finfo(dtype).max)
            fits = np.abs(codes) <= limit
            accepted = f"numbers up to {limit:g}"
        else:
            return
        wrong = ~(fits | np.isnan(codes))
        if wrong.any():
            row = int(wrong.argmax())
            raise ValueError(
                f"column {self.names[column]!r} of {argument} holds {codes[row]:.15g} in row "
                f"{row}; it was {self.dtypes[column]} before, so {accepted} are accepted. "
                "Round it, or pass floats to fit."
            )

    def build(self, columns: Sequence[Array | Chosen], index: Any = None) -> Any:
        """Make a frame.

        Parameters
        ----------
        columns : sequence of array of shape (n,), or Chosen
            In the order of the labels: numbers with NaN where missing (dates in days), or values
            that are chosen from a list.
        index : array of shape (n,), optional
            Labels of the rows, for pandas.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            With the labels and types of the form.
        """
        if self.library == "polars":
            return _polars_frame(self, columns)
        import pandas as pd

        gaps = self.gaps or (None,) * len(self.labels)
        values = [
            _pandas_values(column, dtype, gap)
            for column, dtype, gap in zip(columns, self.dtypes, gaps, strict=True)
        ]
        frame = pd.DataFrame(dict(enumerate(values)))
        frame.columns = pd.Index(self.labels)
        if self.label_names and tuple(frame.columns.names) != self.label_names:
            frame.columns.names = list(self.label_names)
        if index is not None:
            frame.index = index
        return frame


def _pandas_gap(series: Any) -> Any:
    """Return what stands for a missing value in a column of pandas that holds Python objects."""
    if series.dtype != object:
        return None
    missing = series[series.isna()]
    return missing.iloc[0] if len(missing) else np.nan


def _polars_gap(series: Any) -> float | None:
    """Return NaN for a column of polars in which numbers are NaN and none is null."""
    has_nan = series.dtype.is_float() and bool(series.is_nan().any())
    return np.nan if has_nan and series.null_count() == 0 else None


def _holding(dtype: Any, column: Column) -> Any:
    """Return a type of categories with all levels of a column; any other type as it is."""
    categories = getattr(dtype, "categories", None)
    if categories is None or not column.levels:
        return dtype
    known = list(categories)
    if set(column.levels) <= set(known):
        return dtype
    if set(known) <= set(column.levels):
        wanted = list(column.levels)  # in their order
    else:
        wanted = [*known, *(level for level in column.levels if level not in known)]
    if hasattr(dtype, "ordered"):
        return type(dtype)(wanted, dtype.ordered)
    return type(dtype)(wanted)


def _pandas_values(column: Array | Chosen, dtype: Any, gap: Any) -> Any:
    """Convert a column to a type of pandas."""
    import pandas as pd

    is_missing = column.positions < 0 if isinstance(column, Chosen) else np.isnan(column)
    if is_missing.any() and isinstance(dtype, np.dtype) and dtype.kind in "iub":
        # These types have no missing values; pandas itself uses others then.
        dtype = np.dtype(object if dtype.kind == "b" else np.float64)
        gap = np.nan
    if isinstance(column, Chosen):
        # The few values are converted, then repeated: that keeps any type, and is fast.
        has_gap = bool(is_missing.any())
        if isinstance(column.values, tuple):
            values = _levels_of_type(column.values, dtype, gap, has_gap)
        else:
            values = _values_of_type(column.values, dtype, gap, has_gap)
        repeated = values.take(column.positions)
        return pd.Series(repeated, dtype=dtype) if np.dtype(object) == dtype else repeated
    if dtype.kind == "M":
        moments = pd.DatetimeIndex(_moments(column))
        is_zoned = getattr(dtype, "tz", None) is not None
        return (moments.tz_localize("UTC") if is_zoned else moments).astype(dtype).array
    if dtype.kind == "O":
        return pd.Series(_as_objects(column, gap), dtype=object)
    whole = np.rint(column) if dtype.kind in "iub" else column
    if isinstance(dtype, np.dtype):
        return whole.astype(dtype)
    nullable = pd.array(whole, dtype="Int64" if dtype.kind in "iub" else "Float64")
    return nullable if nullable.dtype == dtype else nullable.astype(dtype)


def _values_of_type(values: Sequence[Any], dtype: Any, gap: Any, has_gap: bool) -> Any:
    """Convert values to a type of pandas, the gap after them where one is needed."""
    import pandas as pd

    return pd.Series([*values, gap] if has_gap else list(values), dtype=object).astype(dtype).array


#: What levels were converted to: the levels, the type and the gap themselves, and the array. They
#: are held here so that what has the same address is the same; equal ones may differ, as 1 and
#: True do.
_CONVERTED: dict[tuple[int, int, int, bool], tuple[Any, Any, Any, Any]] = {}
_MOST_CONVERTED = 1000


def _levels_of_type(levels: tuple[Any, ...], dtype: Any, gap: Any, has_gap: bool) -> Any:
    """Convert levels as `_values_of_type` does, once."""
    key = id(levels), id(dtype), id(gap), has_gap
    kept = _CONVERTED.get(key)
    if kept is None:
        if len(_CONVERTED) >= _MOST_CONVERTED:
            _CONVERTED.clear()
        kept = levels, dtype, gap, _values_of_type(levels, dtype, gap, has_gap)
        _CONVERTED[key] = kept
    return kept[-1]


def _as_objects(column: Array, gap: Any) -> Array:
    """Return numbers as Python objects; dates of a column of objects are not changed."""
    values = column.astype(object)
    values[np.isnan(column)] = gap
    return values


def _polars_frame(form: FrameForm, columns: Sequence[Array | Chosen]) -> Any:
    """Make a frame of polars."""
    import polars as pl

    gaps = form.gaps or (None,) * len(form.labels)
    series = []
    for label, dtype, gap, column in zip(form.labels, form.dtypes, gaps, columns, strict=True):
        if isinstance(column, Chosen):
            values = pl.Series(label, [*column.values, gap], dtype=_universal(dtype), strict=False)
            positions = np.where(column.positions < 0, len(column.values), column.positions)
            series.append(values.gather(positions).cast(dtype))
        elif dtype.is_temporal():
            moments = pl.Series(label, _moments(column)).cast(_universal(dtype))
            series.append(moments.cast(dtype))
        else:
            numbers = pl.Series(label, column, nan_to_null=gap is None)
            series.append((numbers.round() if dtype.is_integer() else numbers).cast(dtype))
    return pl.DataFrame(series)


def _universal(dtype: Any) -> Any:
    """Return the type of moments in UTC for that of moments in a time zone; others stay."""
    if getattr(dtype, "time_zone", None) is None:
        return dtype
    return type(dtype)(dtype.time_unit, "UTC")


def _moments(days: Array) -> Array:
    """Convert days since 1970 to moments, to the microsecond."""
    microseconds = np.rint(np.nan_to_num(days) * MICROSECONDS_PER_DAY).astype(np.int64)
    moments: Array = microseconds.astype("datetime64[us]")
    moments[np.isnan(days)] = np.datetime64("NaT")
    return moments
