"""Data frames of pandas and polars: columns as plain values, and frames made of such values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timezone
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..validation import brief

Array = NDArray[Any]
#: what the values of a column are, whatever the library calls their type
Family = Literal["boolean", "integer", "float", "level", "ordered level", "text", "date", "other"]

#: whole numbers above it are not held exactly by the numbers that searches use
LARGEST_WHOLE = 2**53
MICROSECONDS_PER_DAY = 86_400_000_000


def is_frame(X: Any) -> bool:
    """Return whether X is a data frame of pandas or polars.

    Parameters
    ----------
    X : object
        Anything.

    Returns
    -------
    bool
        False for series, lazy frames and frames of other libraries.

    Examples
    --------
    >>> is_frame([[1, 2]])
    False
    """
    return bool(nw.dependencies.is_pandas_dataframe(X) or nw.dependencies.is_polars_dataframe(X))


def join_frames(first: Any, second: Any) -> Any:
    """Put the rows of two frames of one form below each other.

    Parameters
    ----------
    first, second : pandas.DataFrame or polars.DataFrame
        Frames with the same columns.

    Returns
    -------
    pandas.DataFrame or polars.DataFrame
        All rows.

    Raises
    ------
    ValueError
        If the columns or their types differ.
    """
    for name, frame in (("first", first), ("second", second)):
        if not is_frame(frame):
            raise TypeError(f"{name} must be a data frame of pandas or polars, got {brief(frame)}.")
    if list(first.columns) != list(second.columns) or type(first) is not type(second):
        raise ValueError("X_cf must be a frame with the columns of X.")
    parts = [nw.from_native(frame, eager_only=True) for frame in (first, second)]
    return nw.concat(parts).to_native()


@dataclass(frozen=True)
class RawColumn:
    """The values of a column in a neutral form.

    Parameters
    ----------
    name : str
        Name of the column.
    family : str
        What the values are.
    values : array of shape (n,)
        Numbers in float64 with NaN where missing (boolean, integer, float), else objects with None
        where missing.
    categories : tuple or None
        The categories in their order, where the type of the column gives them one.
    """

    name: str
    family: Family
    values: Array
    categories: tuple[Any, ...] | None = None

    @property
    def is_missing(self) -> Array:
        """Mask of the missing values."""
        if self.values.dtype == object:
            return np.array([value is None for value in self.values], dtype=bool)
        return np.asarray(np.isnan(self.values))

    def days(self) -> Array:
        """Return the dates of a column of dates in days since 1970, with NaN where missing."""
        plain = [_without_zone(value) for value in self.values]
        moments = np.array(plain, dtype="datetime64[us]")
        days = moments.astype(np.int64) / MICROSECONDS_PER_DAY
        return np.where(np.isnat(moments), np.nan, days)


def _in_utc(moments: Array) -> Array:
    """Return moments in UTC: in another time zone, two of them may have one name."""
    found = moments.copy()
    for row, moment in enumerate(moments):
        if getattr(moment, "tzinfo", None) is not None:
            found[row] = moment.astimezone(timezone.utc)
    return found


def _without_zone(moment: Any) -> Any:
    """Return a moment in UTC, without its time zone; dates have none."""
    if getattr(moment, "tzinfo", None) is None:
        return moment
    return moment.astimezone(timezone.utc).replace(tzinfo=None)


def read_columns(frame: Any, argument: str) -> list[RawColumn]:
    """Read the columns of a frame.

    Parameters
    ----------
    frame : pandas.DataFrame or polars.DataFrame
        The frame.
    argument : str
        What the user calls it, for messages.

    Returns
    -------
    list of RawColumn
        In the order of the frame.

    Raises
    ------
    ValueError
        If two columns have one name, or a column holds what no table does, such as lists.
    """
    labels = [str(label) for label in frame.columns]
    repeated = [label for label in dict.fromkeys(labels) if labels.count(label) > 1]
    if repeated:
        raise ValueError(
            f"{argument} has more than one column called {repeated[0]!r}. "
            "Accepted: columns of different names."
        )
    if nw.dependencies.is_pandas_dataframe(frame):
        frame = frame.set_axis(labels, axis=1)
    table = nw.from_native(frame, eager_only=True)
    return [_read_column(table[label], argument) for label in labels]


def _read_column(series: Any, argument: str) -> RawColumn:
    """Read one column."""
    dtype = series.dtype
    name = series.name
    if dtype == nw.Boolean:
        return RawColumn(name, "boolean", _numbers(series))
    if dtype.is_integer():
        return _read_integers(series)
    if dtype.is_numeric():
        return RawColumn(name, "float", _finite(_numbers(series), name, argument))
    if dtype in (nw.Categorical, nw.Enum):
        categories = _ordered_categories(series)
        family: Family = "level" if categories is None else "ordered level"
        return RawColumn(name, family, _objects(series), categories)
    values = _objects(series)
    # narwhals does not know moments of pandas in seconds with a time zone.
    if dtype in (nw.Date, nw.Datetime) or getattr(series.to_native().dtype, "kind", "") == "M":
        return RawColumn(name, "date", _in_utc(values))
    _check_hashable(values, name, argument)
    if dtype in (nw.String, nw.Object):
        return _read_objects(name, values, argument)
    return RawColumn(name, "other", values)


def _check_hashable(values: Array, name: str, argument: str) -> None:
    """Refuse values that cannot be told apart, such as lists."""
    for row, value in enumerate(values):
        try:
            hash(value)
        except TypeError:
            raise ValueError(
                f"column {name!r} of {argument} holds {brief(value)} in row {row}. Accepted: "
                "numbers, booleans, categories, texts and dates."
            ) from None


def _ordered_categories(series: Any) -> tuple[Any, ...] | None:
    """Return the categories of a column in their order; None where its type gives them none."""
    dtype = series.to_native().dtype
    has_order = dtype.ordered if hasattr(dtype, "ordered") else series.dtype == nw.Enum
    return tuple(dtype.categories.to_list()) if has_order else None


def _read_integers(series: Any) -> RawColumn:
    """Read whole numbers; those that floats do not hold are kept as objects."""
    values = _numbers(series)
    known = values[~np.isnan(values)]
    if len(known) and np.abs(known).max() > LARGEST_WHOLE:
        return RawColumn(series.name, "text", _objects(series))
    return RawColumn(series.name, "integer", values)


def _numbers(series: Any) -> Array:
    """Return a column of numbers in float64, NaN where missing."""
    values = series.cast(nw.Float64).to_numpy()
    return np.array(values, dtype=np.float64)


def _objects(series: Any) -> Array:
    """Return a column as objects, None where missing."""
    found = np.empty(len(series), dtype=object)
    found[:] = [None if _is_nothing(value) else value for value in series.to_list()]
    return found


def _is_nothing(value: Any) -> bool:
    """Return whether a value stands for a missing one: None, NaN, NA or NaT."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return type(value).__name__ in ("NAType", "NaTType")


def _finite(values: Array, name: str, argument: str) -> Array:
    """Refuse infinite numbers."""
    infinite = np.isinf(values)
    if infinite.any():
        row = int(infinite.argmax())
        raise ValueError(
            f"column {name!r} of {argument} is {values[row]} in row {row}. Accepted: finite "
            "numbers, or missing values."
        )
    return values


def _read_objects(name: str, values: Array, argument: str) -> RawColumn:
    """Read a column of Python objects: booleans, numbers and dates by their values, else texts."""
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, date) for value in known):
        return RawColumn(name, "date", values)
    is_boolean = bool(known) and all(isinstance(value, (bool, np.bool_)) for value in known)
    is_number = bool(known) and all(
        isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_))
        for value in known
    )
    if not is_boolean and not is_number:
        return RawColumn(name, "text", values)
    numbers = np.array([np.nan if value is None else float(value) for value in values])
    family: Family = "boolean" if is_boolean else "float"
    return RawColumn(name, family, _finite(numbers, name, argument))


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
        if self.label_names:
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


@dataclass(frozen=True)
class Chosen:
    """Values of a column that are chosen from a list.

    Parameters
    ----------
    values : list
        What there is to choose from.
    positions : array of int, shape (n,)
        Which value stands in each row; -1 where it is missing.
    """

    values: list[Any]
    positions: Array


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
        values = pd.Series(
            [*column.values, gap] if is_missing.any() else column.values, dtype=object
        )
        return pd.Series(values.astype(dtype).array.take(column.positions), dtype=dtype)
    if dtype.kind == "M":
        moments = pd.DatetimeIndex(_moments(column))
        is_zoned = getattr(dtype, "tz", None) is not None
        return pd.Series((moments.tz_localize("UTC") if is_zoned else moments).astype(dtype))
    if dtype.kind == "O":
        return pd.Series(_as_objects(column, gap), dtype=object)
    whole = np.rint(column) if dtype.kind in "iub" else column
    if isinstance(dtype, np.dtype):
        return whole.astype(dtype)
    nullable = pd.Series(pd.array(whole, dtype="Int64" if dtype.kind in "iub" else "Float64"))
    return nullable.astype(dtype)


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
