"""Instances and labels to train on, as users pass them."""

from __future__ import annotations

from typing import Any

from ..data.cleaning import AXES, Array, as_float, describe_nonfinite
from ..data.dataset import as_labels


def read(X: Any, y: Any, X_name: str, y_name: str) -> tuple[Array, Array]:
    """Convert instances and labels to NumPy arrays that can be trained on.

    Parameters
    ----------
    X : array-like of shape (n, ...)
        Instances, finite, of 2 to 4 dimensions.
    y : array-like of shape (n,)
        Labels.
    X_name, y_name : str
        What error messages call them.

    Returns
    -------
    tuple of arrays
        Instances in floating point, and labels.

    Raises
    ------
    ValueError
        If the data cannot be used.
    """
    X = read_instances(X, X_name)
    return X, as_labels(y, y_name, len(X))


def read_instances(X: Any, name: str) -> Array:
    """Convert instances to a float array.

    Parameters
    ----------
    X : array-like of shape (n, ...)
        Instances, finite, of 2 to 4 dimensions.
    name : str
        What error messages call it.

    Returns
    -------
    array of floats of the same shape
    """
    array = as_float(X, name)
    if array.ndim not in AXES or array.size == 0:
        raise ValueError(
            f"{name} has shape {array.shape}. Accepted: 2 to 4 dimensions, the first of instances."
        )
    problem = describe_nonfinite(array, name)
    if problem:
        raise ValueError(problem)
    return array
