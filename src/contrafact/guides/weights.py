"""Weights of the values of an instance: given as an array, or learned by a prototype model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..data.arrays import Array, as_real
from ..prototypes.estimator import PrototypeClassifier
from ..validation import Instance, Nothing, Satisfies


def _is_weighting(value: Any) -> bool:
    """Return whether a value is an array of finite numbers of at least 0, not all of them 0."""
    try:
        weights = as_real(value, "weights")
    except (ValueError, TypeError):
        return False
    if weights.size == 0:
        return False
    return bool(np.isfinite(weights).all() and (weights >= 0).all() and (weights > 0).any())


WEIGHTS_RULE = (
    Nothing()
    | Instance(PrototypeClassifier, "a fitted LVQ model with relevances_")
    | Satisfies(_is_weighting, "an array of finite numbers at least 0, not all 0")
)


def weights_of(weights: ArrayLike | PrototypeClassifier, shape: tuple[int, ...]) -> Array:
    """Return one weight per value of an instance.

    Parameters
    ----------
    weights : array or fitted LVQ model
        Numbers that broadcast against an instance, or a model with one relevance per value.
    shape : tuple of int
        Shape of one instance.

    Returns
    -------
    float64 array of that shape

    Raises
    ------
    ValueError
        If they do not fit an instance, or the model has learned no relevances.
    """
    if isinstance(weights, PrototypeClassifier):
        return _relevances(weights, shape)
    given = as_real(weights, "weights").astype(np.float64)
    try:
        return np.broadcast_to(given, shape).copy()
    except ValueError as error:
        raise ValueError(
            f"weights have shape {given.shape}. Accepted: what broadcasts against an instance "
            f"of shape {shape}."
        ) from error


def _relevances(model: PrototypeClassifier, shape: tuple[int, ...]) -> Array:
    """Return the relevances of a fitted model, in the shape of an instance."""
    name = type(model).__name__
    relevances = getattr(model, "relevances_", None)
    if relevances is None:
        raise ValueError(
            f"weights: {name} has no relevances_. Accepted: a fitted model that learns them, such "
            "as GRLVQ or GMLVQ."
        )
    if relevances.shape != (np.prod(shape),):
        raise ValueError(
            f"weights: the relevances of {name} have shape {relevances.shape}. Accepted: one for "
            f"each value of an instance of shape {shape}."
        )
    return np.asarray(relevances, dtype=np.float64).reshape(shape)
