"""Data frames of pandas and polars: their columns as plain values."""

from __future__ import annotations

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
