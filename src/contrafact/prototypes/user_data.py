"""Instances, labels and weights as users pass them to prototype models."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import as_real, read_array
from ..validation import brief

Array = NDArray[Any]


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Put the name of an argument before what scikit-learn says of it."""
    try:
        yield
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}: {error}") from error


def flatten_instances(X: Any) -> tuple[Any, tuple[int, ...]]:
    """Flatten series and images to rows, and return the shape of one instance.

    Tables stay as they are, so that scikit-learn sees the names of their columns.
    """
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return X, tuple(X.shape[1:])
    array = read_array(X, "X")
    # scikit-learn would read text and dates as numbers.
    if array.dtype.kind in "USmMV":
        raise ValueError(f"X has dtype {array.dtype}. Accepted: real numbers.")
    shape = array.shape
    if len(shape) > 2:
        array = array.reshape(shape[0], math.prod(shape[1:]))
    return array, shape[1:]


def check_spread(spread: float, X: Array) -> None:
    """Refuse instances whose squares are too large, or too small, for floats.

    Parameters
    ----------
    spread : float
        Their spread or variance, as computed.
    X : array of shape (n, features)
        The instances.
    """
    if not math.isfinite(spread) or (spread == 0 and bool(np.ptp(X, axis=0).any())):
        size = "large" if spread else "small"
        raise ValueError(
            f"X holds values up to {np.abs(X).max():.3g}, whose differences are too {size} to be "
            f"squared as floats. Accepted: values of a {'smaller' if spread else 'larger'} scale."
        )


def read_labels(y: Any, name: str, n: int) -> Array:
    """Check that there is one label for each of n instances.

    Parameters
    ----------
    y : array of shape (n,)
        Labels of any type.
    name : str
        What the user calls it, for error messages.
    n : int
        Number of instances.

    Returns
    -------
    array of shape (n,)
        The labels.
    """
    labels = read_array(y, name)
    if labels.dtype.kind == "V":
        raise ValueError(f"{name} has dtype {labels.dtype}. Accepted: text, numbers or booleans.")
    if labels.shape != (n,):
        raise ValueError(
            f"{name} has shape {labels.shape}. Accepted: one label per instance of X, ({n},)."
        )
    return labels


def read_pair(pair: Any, name: str) -> tuple[Any, Any]:
    """Check that instances come together with their labels.

    Parameters
    ----------
    pair : tuple of two arrays
        Instances and labels.
    name : str
        What the user calls it, for error messages.

    Returns
    -------
    X, y : object
        The two, not checked.
    """
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ValueError(f"{name} must be a pair (X, y), got {brief(pair)}.")
    X, y = pair
    return X, y


def check_weights(sample_weight: Any, X: Array) -> Array:
    """Check that there is one weight of at least 0 per row, and that not all are 0.

    Parameters
    ----------
    sample_weight : array of shape (n,)
        Weights.
    X : array of shape (n, ...)
        The rows they belong to.

    Returns
    -------
    float array of shape (n,)
        The weights.
    """
    weight = as_real(sample_weight, "sample_weight").astype(np.float64, copy=False)
    if weight.shape != (len(X),):
        raise ValueError(
            f"sample_weight has shape {weight.shape}. Accepted: one number per row, ({len(X)},)."
        )
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not np.isfinite(total) or weight.min() < 0 or weight.max() == 0:
        raise ValueError(
            "sample_weight must be one finite number of at least 0 per row, not all zero weights; "
            f"got values from {weight.min()} to {weight.max()}."
        )
    return weight
