"""Equal lengths and finite values: what every model and explainer needs of its input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..validation import Integer, Nothing, OneOf, Real, brief, check_parameters
from .arrays import Array as Array
from .arrays import as_real

#: Names of the axes of one instance, by the number of dimensions of the whole array.
AXES = {2: ("feature",), 3: ("channel", "time"), 4: ("channel", "row", "column")}

_PAD_RULES = {
    "length": Integer(at_least=1, at_most=10**9) | Nothing(),
    "value": OneOf("edge") | Real(finite=False),
}
_IMPUTATION = OneOf("linear", "mean") | Real()


def as_float(X: ArrayLike, name: str) -> Array:
    """Convert instances to a float array.

    Parameters
    ----------
    X : array of real numbers
        The instances; see `as_real`.
    name : str
        What the user calls X, for error messages.

    Returns
    -------
    array of floats of the same shape

    Raises
    ------
    ValueError, TypeError
        If X is ragged or holds anything but real numbers.
    """
    return as_real(X, name, f"Series can be padded with contrafact.data.pad({name}).")


def describe_nonfinite(
    X: ArrayLike,
    name: str,
    remedy: str | None = None,
) -> str | None:
    """Describe where the first NaN or infinity is and what helps.

    Parameters
    ----------
    X : array of shape (n, features), (n, channels, length) or (n, channels, height, width)
        The data to look at.
    name : str
        What the user calls X.
    remedy : str, optional
        What to suggest against NaN, before `fill_missing`.

    Returns
    -------
    str or None
        The message; None if every value is finite.

    Examples
    --------
    >>> describe_nonfinite([[[1.0, 2.0, float("nan")]]], "X")
    'X[0] contains NaN at channel 0, time 2. Impute it, e.g. contrafact.data.fill_missing(X).'
    """
    array = as_float(X, name)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(array.sum()):  # then all of them are; it needs no memory
            return None
    finite = np.isfinite(array)
    if finite.all():
        return None
    first = np.unravel_index(finite.argmin(), array.shape)
    if array.ndim not in AXES:
        return f"{name}[{', '.join(map(str, first))}] is {array[first]}. Accepted: finite numbers."
    instance, *position = (int(i) for i in first)
    axes = zip(AXES[array.ndim], position, strict=True)
    where = ", ".join(f"{axis} {i}" for axis, i in axes)
    if np.isinf(array[first]):
        return f"{name}[{instance}] contains inf at {where}. Replace it with a finite number."
    # "linear", the default, is for series only.
    arguments = "X" if array.ndim == 3 else 'X, "mean"'
    remedies = f"contrafact.data.fill_missing({arguments})"
    if remedy:
        remedies = f"{remedy} or {remedies}"
    return f"{name}[{instance}] contains NaN at {where}. Impute it, e.g. {remedies}."


def pad(
    X: Sequence[ArrayLike] | Array,
    length: int | None = None,
    value: Literal["edge"] | float = "edge",
) -> Array:
    """Give series of unequal length one length, by extending each at its end.

    Parameters
    ----------
    X : sequence of arrays of shape (channels, length_i), or (length_i,) for one channel
        The series, at least one; all with the same number of channels.
    length : int, optional
        The common length, in time steps; default: that of the longest series. Series are never cut.
    value : "edge" or float, default="edge"
        What to append: the last value of each channel, or a constant.

    Returns
    -------
    array of floats of shape (n, channels, length)
        A new array.

    Raises
    ------
    ValueError
        If the numbers of channels differ, a series is empty, or `length` is too small.

    Examples
    --------
    >>> pad([[1.0, 2.0, 3.0], [5.0]]).tolist()
    [[[1.0, 2.0, 3.0]], [[5.0, 5.0, 5.0]]]
    """
    check_parameters("pad", _PAD_RULES, {"length": length, "value": value})
    is_array = isinstance(X, np.ndarray) and X.ndim > 0
    is_sequence = isinstance(X, Sequence) and not isinstance(X, str | bytes)
    if not is_array and not is_sequence:
        raise TypeError(f"X must be a sequence of series, got {brief(X)}.")
    series = [_channels_first(x, f"X[{i}]") for i, x in enumerate(X)]
    channels = _count_channels(series)
    longest = max(x.shape[1] for x in series)
    if length is None:
        length = longest
    if length < longest:
        raise ValueError(
            f"length {length} would cut a series of length {longest}. Accepted: {longest} or more."
        )

    shape = (len(series), channels, length)
    dtype = np.result_type(*{x.dtype for x in series})
    padded = np.empty(shape, dtype)
    for row, x in zip(padded, series, strict=True):
        end = x.shape[1]
        row[:, :end] = x
        row[:, end:] = x[:, -1:] if isinstance(value, str) else value
    return padded


def _count_channels(series: list[Array]) -> int:
    """Return the number of channels that all the series have."""
    if not series:
        raise ValueError("X is empty. Accepted: at least one series.")
    channels: int = series[0].shape[0]
    for i, x in enumerate(series):
        if x.shape[0] != channels:
            raise ValueError(
                f"X[{i}] has {x.shape[0]} channels but X[0] has {channels}. "
                "Accepted: the same number for all series."
            )
    return channels


def _channels_first(x: ArrayLike, name: str) -> Array:
    """Convert one series to floats of shape (channels, length)."""
    array = as_float(x, name)
    if array.ndim == 1:
        array = array[None]
    if array.ndim != 2 or array.size == 0:
        raise ValueError(
            f"{name} has shape {np.shape(x)}. Accepted: (channels, length) or (length,), not empty."
        )
    return array


def fill_missing(
    X: ArrayLike,
    how: Literal["linear", "mean"] | float = "linear",
) -> Array:
    """Replace NaN, leaving every observed value as it is.

    Parameters
    ----------
    X : array of shape (n, channels, length), (n, channels, height, width) or (n, features)
        Series, images or rows; not empty, and without infinite values.
    how : "linear", "mean" or float, default="linear"
        "linear" interpolates in time and extends the first and last observation (series only);
        "mean" takes the mean of the instance's channel, or of the column for rows;
        a number is used as it is.

    Returns
    -------
    array of floats of the same shape
        A new array.

    Raises
    ------
    ValueError
        If a channel or column has no observed value to go by, or an argument is not accepted.

    Examples
    --------
    >>> nan = float("nan")
    >>> fill_missing([[[nan, 1.0, nan, 3.0]]]).tolist()
    [[[1.0, 1.0, 2.0, 3.0]]]
    >>> fill_missing([[1.0, nan], [3.0, 4.0]], "mean").tolist()
    [[1.0, 4.0], [3.0, 4.0]]
    """
    check_parameters("fill_missing", {"how": _IMPUTATION}, {"how": how})
    filled = as_float(X, "X").copy()
    _check_fillable(filled, how)
    constant = _constant(how)
    missing = np.isnan(filled)
    # An infinity would spread into its neighbors' interpolation or mean.
    problem = describe_nonfinite(np.where(missing, 0, filled), "X")
    if problem:
        raise ValueError(problem)

    if constant is not None:
        filled[missing] = constant
        return filled
    # One line per unit that is imputed on its own: a channel of an instance, or a column of rows.
    # Lines are views of `filled`.
    if filled.ndim == 2:
        lines = filled.T
    else:
        n_lines = filled.shape[0] * filled.shape[1]
        lines = filled.reshape(n_lines, -1)
    _fill_lines(lines, filled.shape, how)
    return filled


def _check_fillable(X: Array, how: str | float) -> None:
    """Check that the shape of X is one that `how` applies to."""
    if X.ndim not in AXES or X.size == 0:
        raise ValueError(
            f"X has shape {X.shape}. "
            "Accepted: 2 (rows), 3 (series) or 4 (images) dimensions, not empty."
        )
    if how == "linear" and X.ndim != 3:
        kind = "rows; lift series of one channel with X[:, None]" if X.ndim == 2 else "images"
        raise ValueError(
            f"how 'linear' needs a time axis, but X of shape {X.shape} is read as {kind}."
        )


def _fill_lines(lines: Array, shape: tuple[int, ...], how: str | float) -> None:
    """Impute the lines that have holes, in place."""
    holes = np.isnan(lines)
    _refuse_empty_lines(holes, shape, how)
    touched = holes.any(axis=1)
    given = lines[touched]
    missing = holes[touched]
    impute = _line_through if how == "linear" else _mean_of
    lines[touched] = np.where(missing, impute(given, ~missing), given)


def _constant(how: str | float) -> float | None:
    """Return the number to impute; None if `how` is the name of a method."""
    return None if isinstance(how, str) else float(how)


def _refuse_empty_lines(
    holes: Array,
    shape: tuple[int, ...],
    how: str | float,
) -> None:
    """Raise an error that names the first line without any observation."""
    empty = np.all(holes, axis=1)
    if not empty.any():
        return
    line = int(empty.argmax())
    if len(shape) == 2:
        where = f"X is entirely NaN in feature {line}"
    else:
        instance, channel = divmod(line, shape[1])
        where = f"X[{instance}] is entirely NaN in channel {channel}"
    raise ValueError(
        f"{where}, so {how!r} has nothing to go by. "
        "Drop it, or give a number: fill_missing(X, 0.0)."
    )


def _mean_of(lines: Array, seen: Array) -> Array:
    """Compute the mean of the observed values of every line, of shape (lines, 1)."""
    mean = np.mean(
        lines,
        axis=1,
        keepdims=True,
        where=seen,
        dtype=np.float64,
    )
    return np.asarray(mean)


def _line_through(lines: Array, seen: Array) -> Array:
    """Interpolate between the nearest observations on both sides of every point."""
    time = np.arange(lines.shape[1])
    # Positions of the last observation up to every point, and of the first one from there on.
    seen_before = np.where(seen, time, -1)
    before = np.maximum.accumulate(seen_before, axis=1)
    seen_after = np.where(seen, time, time.size)
    after = np.minimum.accumulate(seen_after[:, ::-1], axis=1)[:, ::-1]
    # Outside the first and last observation there is one neighbor only: it stands for both.
    left = np.where(before < 0, after, before)
    right = np.where(after == time.size, before, after)
    gap = right - left
    weight = np.where(gap > 0, (time - left) / np.maximum(gap, 1), 0.0)
    exact = lines.astype(np.float64)
    start = np.take_along_axis(exact, left, axis=1)
    end = np.take_along_axis(exact, right, axis=1)
    return np.asarray(start + weight * (end - start))
