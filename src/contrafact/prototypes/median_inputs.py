"""What Median LVQ searches with: dissimilarities, samples to start from, and the cost."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.arrays import read_array
from ..validation import brief
from .user_data import Array, check_spread

if TYPE_CHECKING:
    from .median import MedianLVQ
    from .swap_columns import Columns
    from .swap_costs import Cost

#: T of "rslvq", in units of the mean d⁺ at the start
START_SOFTNESS = 0.3
#: least root mean square of μ at the start that counts: a start that hardly tells classes apart
#: would make β far too large
LEAST_START = 0.05


def search_columns(model: MedianLVQ, X: Array, kept: Array, order: Array) -> Columns:
    """Return the dissimilarities of all pairs of samples, as the swap search takes them.

    Parameters
    ----------
    model : MedianLVQ
        The model, which knows its metric.
    X : array of shape (n, features)
        The samples that are kept.
    kept : bool array of shape (rows,)
        Which rows of the user's X the samples are.
    order : int array of shape (n,)
        The samples sorted by class.

    Returns
    -------
    Columns
        The dissimilarities, in that order.
    """
    from .swap_columns import EuclideanColumns, MatrixColumns

    columns: Columns
    if model.metric == "euclidean":
        with np.errstate(over="ignore", invalid="ignore"):
            check_spread(float(X.var(axis=0).mean()), X)
        columns = EuclideanColumns(X[order])
    else:
        columns = MatrixColumns(_square_matrix(model, X, kept), order)
    if not math.isfinite(columns.unit):
        raise ValueError(
            f"X holds values up to {np.abs(X).max():.3g}, whose dissimilarities are too large "
            "for floats. Accepted: values of a smaller scale."
        )
    return columns


def _square_matrix(model: MedianLVQ, X: Array, kept: Array) -> Array:
    """Return D[i, j] for all pairs of the samples that are kept."""
    if model.metric != "precomputed":
        D = model._dissimilarities(X)
    elif model.n_features_in_ == len(kept):
        D = X if kept.all() else X[:, kept]
    else:
        shape = (len(kept), model.n_features_in_)
        raise ValueError(
            f"metric='precomputed' needs a square matrix of dissimilarities, got shape {shape}."
        )
    if not D.min() >= 0:
        raise ValueError(
            f"Negative values in data: dissimilarities must be at least 0, got {D.min()}."
        )
    return D


def given_samples(model: MedianLVQ, given: Any, X: Array, t: Array, kept: Array) -> Array:
    """Read the argument `initial_prototypes` of `MedianLVQ.fit`.

    Parameters
    ----------
    model : MedianLVQ
        The model, which knows its classes and its metric.
    given : int array of shape (K,), or tuple of two arrays
        Rows of the user's X, or prototypes and their labels, which stand for the nearest sample of
        their class.
    X : array of shape (n, features)
        The samples that are kept.
    t : int array of shape (n,)
        Class of each, as a column.
    kept : bool array of shape (rows,)
        Which rows of the user's X the samples are.

    Returns
    -------
    int array of shape (K,)
        Positions of different samples, at least one of every class.
    """
    is_pair = isinstance(given, tuple | list) and len(given) == 2 and np.ndim(given[0]) > 0
    chosen = _nearest(model, given, X, t) if is_pair else _rows(given, kept)
    different = np.unique(chosen)
    present = np.unique(t[chosen])
    if len(present) < len(model.classes_) or len(different) < len(chosen):
        raise ValueError(
            "initial_prototypes must be different samples, at least one of every class "
            f"{model.classes_.tolist()}; got {len(different)} different ones of the classes "
            f"{model.classes_[present].tolist()}."
        )
    return chosen


def _rows(given: Any, kept: Array) -> Array:
    """Return the positions, among the samples kept, of rows of X."""
    rows = read_array(given, "initial_prototypes")
    if rows.dtype.kind not in "iu" or rows.ndim != 1:
        raise ValueError(
            "initial_prototypes must be rows of X, whole numbers of shape (K,), or a pair of "
            f"prototypes and labels; got {brief(given)}."
        )
    inside = (rows >= 0) & (rows < len(kept))
    if not inside.all() or not kept[rows].all():
        raise ValueError(
            f"initial_prototypes must be rows of X from 0 to {len(kept) - 1} whose weight is above "
            f"0; got {brief(given)}."
        )
    return np.asarray(np.cumsum(kept)[rows] - 1)


def _nearest(model: MedianLVQ, given: Any, X: Array, t: Array) -> Array:
    """Return the sample of its class that is nearest to each of some prototypes."""
    if model.metric == "precomputed":
        raise ValueError(
            "initial_prototypes must be rows of X, of shape (K,), with metric='precomputed'."
        )
    points, owner = model._check_pair(given, "initial_prototypes")
    d = model._dissimilarities(X, points)
    return np.asarray(np.where(t[:, None] == owner, d, np.inf).argmin(0))


def read_dissimilarity(d: Any) -> float:
    """Check what a user's metric returned for two instances.

    Parameters
    ----------
    d : object
        What it returned.

    Returns
    -------
    float
        At least 0.
    """
    try:
        number = float(d)
    except (TypeError, ValueError):
        raise TypeError(f"metric must return one number, got {brief(d)}.") from None
    if not 0 <= number < math.inf:
        raise ValueError(f"metric must return a finite number of at least 0, got {number}.")
    return number


def search_cost(
    model: MedianLVQ,
    columns: Columns,
    labels: Array,
    weights: Array,
    start: Array,
) -> Cost:
    """Return the cost of the objective; defaults of β and T are in units of what the start gives.

    Parameters
    ----------
    model : MedianLVQ
        The model, which names the objective.
    columns : Columns
        Dissimilarities of the samples, which are sorted by class.
    labels : int array of shape (n,)
        Class of each sample.
    weights : array of shape (n,)
        Weight of each sample.
    start : int array of shape (K,)
        Positions of the samples to start from.

    Returns
    -------
    Cost
        What to minimize.
    """
    from .swap_costs import GLVQCost, RSLVQCost, SigmoidCost
    from .swap_start import nearest_starts

    if model.objective == "glvq":
        return GLVQCost(weights, model.margin)
    own, other = nearest_starts(columns, labels, start)
    if model.objective == "rslvq":
        temperature = model.temperature
        if temperature is None:
            temperature = START_SOFTNESS * float(np.average(own, weights=weights)) or 1.0
        return RSLVQCost(weights, temperature)
    beta = model.beta
    if beta is None:
        total = np.maximum(own + other, np.finfo(float).tiny)
        mean_square = np.average(((own - other) / total) ** 2, weights=weights)
        beta = model.steepness / max(float(np.sqrt(mean_square)), LEAST_START)
    return SigmoidCost(weights, float(beta), model.margin)
