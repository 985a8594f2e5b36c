"""Equal lengths and finite values: what every model and explainer needs of its input."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[Any]

# How a position inside one instance is spoken of, by the number of dimensions of the whole array.
AXES = {2: ("feature",), 3: ("channel", "time"), 4: ("channel", "row", "column")}


def as_float(X: ArrayLike, name: str) -> Array:
    """Floats stay as they are; whole numbers become floats wide enough to hold them, not rescaled."""
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise ValueError(
            f"{name} holds instances of unequal shape. Series can be padded with contrafact.data.pad({name})."
        ) from error
    if array.dtype.kind == "f":
        return array
    if array.dtype.kind in "iub":
        return array.astype(np.result_type(array.dtype, np.float32))
    raise ValueError(f"{name} has dtype {array.dtype}. Accepted: real numbers.")


def describe_nonfinite(X: ArrayLike, name: str, remedy: str | None = None) -> str | None:
    """Say where the first NaN or infinity is and what helps; None if every value is finite.

    Parameters
    ----------
    X : array of shape (n, features), (n, channels, length) or (n, channels, height, width)
    name : what the user calls X.
    remedy : what to suggest against NaN ahead of `fill_missing`.

    Examples
    --------
    >>> describe_nonfinite([[[1.0, 2.0, float("nan")]]], "X")
    'X[0] contains NaN at channel 0, time 2. Impute it, e.g. contrafact.data.fill_missing(X).'
    """
    array = np.asarray(X)
    finite = np.isfinite(array)
    if finite.all():
        return None
    instance, *position = (int(i) for i in np.unravel_index(finite.argmin(), array.shape))
    where = ", ".join(f"{axis} {i}" for axis, i in zip(AXES[array.ndim], position, strict=True))
    if np.isinf(array[(instance, *position)]):
        return f"{name}[{instance}] contains inf at {where}. Replace it with a finite number."
    first = f"{remedy} or " if remedy else ""
    how = "" if array.ndim == 3 else ', "mean"'
    return (
        f"{name}[{instance}] contains NaN at {where}. "
        f"Impute it, e.g. {first}contrafact.data.fill_missing(X{how})."
    )


def pad(
    X: Sequence[ArrayLike] | Array,
    length: int | None = None,
    value: Literal["edge"] | float = "edge",
) -> Array:
    """Give series of unequal length one length, by extending each at its end.

    Parameters
    ----------
    X : sequence of arrays of shape (channels, length_i), or (length_i,) for one channel
    length : int, default=None
        The common length; None takes the longest series. Nothing is ever cut off.
    value : "edge" or float, default="edge"
        What to append: the last value of each channel, or a constant.

    Returns
    -------
    array of shape (n, channels, length)

    Examples
    --------
    >>> pad([[1.0, 2.0, 3.0], [5.0]]).tolist()
    [[[1.0, 2.0, 3.0]], [[5.0, 5.0, 5.0]]]
    """
    if value != "edge" and not isinstance(value, Real):
        raise ValueError(f"value {value!r} is not a way to pad. Accepted: 'edge' or a number.")
    series = [_channels_first(x, f"X[{i}]") for i, x in enumerate(X)]
    if not series:
        raise ValueError("X is empty. Accepted: at least one series.")
    channels = series[0].shape[0]
    for i, x in enumerate(series):
        if x.shape[0] != channels:
            raise ValueError(
                f"X[{i}] has {x.shape[0]} channels but X[0] has {channels}. Accepted: one number."
            )
    longest = max(x.shape[1] for x in series)
    length = longest if length is None else length
    if length < longest:
        raise ValueError(
            f"length {length} would cut a series of length {longest}. Accepted: {longest} or more."
        )

    padded = np.empty((len(series), channels, length), np.result_type(*{x.dtype for x in series}))
    for row, x in zip(padded, series, strict=True):
        row[:, : x.shape[1]] = x
        row[:, x.shape[1] :] = x[:, -1:] if isinstance(value, str) else value
    return padded


def _channels_first(x: ArrayLike, name: str) -> Array:
    array = as_float(x, name)
    array = array[None] if array.ndim == 1 else array
    if array.ndim != 2 or array.size == 0:
        raise ValueError(
            f"{name} has shape {np.shape(x)}. Accepted: (channels, length) or (length,), not empty."
        )
    return array


def fill_missing(X: ArrayLike, how: Literal["linear", "mean"] | float = "linear") -> Array:
    """Replace NaN, leaving every observed value as it is.

    Parameters
    ----------
    X : array of shape (n, channels, length), (n, channels, height, width) or (n, features)
    how : "linear", "mean" or float, default="linear"
        "linear" interpolates in time and extends the first and last observation (series only);
        "mean" takes the mean of the instance's channel, or of the column for rows;
        a number is used as it is.

    Returns
    -------
    a new array of the same shape

    Examples
    --------
    >>> nan = float("nan")
    >>> fill_missing([[[nan, 1.0, nan, 3.0]]]).tolist()
    [[[1.0, 1.0, 2.0, 3.0]]]
    >>> fill_missing([[1.0, nan], [3.0, 4.0]], "mean").tolist()
    [[1.0, 4.0], [3.0, 4.0]]
    """
    filled = as_float(X, "X").copy()
    if filled.ndim not in AXES or filled.size == 0:
        raise ValueError(
            f"X has shape {filled.shape}. Accepted: 2 (rows), 3 (series) or 4 (images) dimensions, not empty."
        )
    if how == "linear" and filled.ndim != 3:
        kind = "rows; lift series of one channel with X[:, None]" if filled.ndim == 2 else "images"
        raise ValueError(
            f"how 'linear' needs a time axis, but X of shape {filled.shape} is read as {kind}."
        )
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
    lines = filled.T if filled.ndim == 2 else filled.reshape(filled.shape[0] * filled.shape[1], -1)
    holes = np.isnan(lines)
    touched = holes.any(axis=1)
    _refuse_empty_lines(holes, filled.shape, how)
    fill = _line_through if how == "linear" else _mean_of
    lines[touched] = np.where(holes[touched], fill(lines[touched], ~holes[touched]), lines[touched])
    return filled


def _constant(how: str | float) -> float | None:
    if how in ("linear", "mean"):
        return None
    if not isinstance(how, Real) or not np.isfinite(how):
        raise ValueError(
            f"how {how!r} is not a way to impute. Accepted: 'linear', 'mean' or a finite number."
        )
    return float(how)


def _refuse_empty_lines(holes: Array, shape: tuple[int, ...], how: str | float) -> None:
    empty = np.all(holes, axis=1)
    if not empty.any():
        return
    line = int(empty.argmax())
    if len(shape) == 2:
        where = f"X is entirely NaN in feature {line}"
    else:
        where = f"X[{line // shape[1]}] is entirely NaN in channel {line % shape[1]}"
    raise ValueError(
        f"{where}, so {how!r} has nothing to go by. Drop it, or give a number: fill_missing(X, 0.0)."
    )


def _mean_of(lines: Array, seen: Array) -> Array:
    return np.asarray(np.mean(lines, axis=1, keepdims=True, where=seen, dtype=np.float64))


def _line_through(lines: Array, seen: Array) -> Array:
    """The straight line between the nearest observations on both sides of every point."""
    time = np.arange(lines.shape[1])
    before = np.maximum.accumulate(np.where(seen, time, -1), axis=1)
    after = np.minimum.accumulate(np.where(seen, time, time.size)[:, ::-1], axis=1)[:, ::-1]
    # Outside the first and last observation there is one neighbor only: it stands for both.
    left, right = np.where(before < 0, after, before), np.where(after == time.size, before, after)
    gap = right - left
    weight = np.where(gap > 0, (time - left) / np.maximum(gap, 1), 0.0)
    exact = lines.astype(np.float64)
    start, end = np.take_along_axis(exact, left, axis=1), np.take_along_axis(exact, right, axis=1)
    return np.asarray(start + weight * (end - start))
