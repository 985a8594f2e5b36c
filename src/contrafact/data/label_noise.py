"""Rows whose neighbors disagree with their label, and how many labels that makes doubtful."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..validation import Integer, check_parameters
from .cleaning import AXES, Array, as_float, describe_nonfinite
from .dataset import as_labels


@dataclass(frozen=True, eq=False)
class DisagreeingRows:
    """Hold which rows disagree with their neighbors, and an estimate of wrong labels.

    Parameters
    ----------
    mask : array of bool, shape (n,)
        True where another label is more frequent among the neighbors than that of the row.
    agreement : array of float, shape (n,)
        Share of the neighbors with the label of the row.
    noise : float
        Estimated share of wrong labels.
    """

    mask: Array
    agreement: Array
    noise: float


def disagreeing_rows(X: ArrayLike, y: ArrayLike, k: int = 5) -> DisagreeingRows:
    """Find rows whose k nearest neighbors disagree with their label.

    Neighbors are the k other rows nearest in Euclidean distance, all values of an instance alike;
    scale the columns of rows first if their units differ. They disagree where another label has
    more votes among them than that of the row. Such a row is mislabeled, or lies where classes
    overlap: either way a poor example of its class.

    The estimate `noise` follows from the mean agreement a of all rows. If labels are wrong with
    probability e, independently and to any of the C - 1 other classes alike, and neighbors are
    truly of one class, two of them agree if both are right or both wrong in the same way:

        a = (1 - e)^2 + e^2 / (C - 1)

    solved for the smaller e. Where classes overlap, neighbors are not truly of one class and
    `noise` counts that too: it is then too large.

    Parameters
    ----------
    X : array of shape (n, features), (n, channels, length) or (n, channels, height, width)
        Instances, finite.
    y : array of shape (n,)
        Their labels.
    k : int, default=5
        Number of neighbors, less than n.

    Returns
    -------
    DisagreeingRows
        With `mask`, `agreement` and `noise`.

    Raises
    ------
    ValueError
        If shapes, values or k do not fit.

    References
    ----------
    Wilson: Asymptotic properties of nearest neighbor rules using edited data. IEEE Transactions on
    Systems, Man, and Cybernetics 2, 1972. https://doi.org/10.1109/TSMC.1972.4309137

    Examples
    --------
    >>> X = [[0.0], [0.1], [0.2], [0.3], [5.0], [5.1], [5.2], [5.3]]
    >>> y = ["a", "a", "b", "a", "b", "b", "b", "b"]
    >>> found = disagreeing_rows(X, y, k=3)
    >>> found.mask.nonzero()[0].tolist()
    [2]
    """
    check_parameters("disagreeing_rows", {"k": Integer(at_least=1)}, {"k": k})
    rows = _flat_rows(X)
    labels = as_labels(y, "y", len(rows))
    if k >= len(rows):
        raise ValueError(f"k = {k}, X has {len(rows)} rows. Accepted: fewer neighbors than rows.")
    neighbors = _nearest_others(rows, k)
    classes, label = np.unique(labels, return_inverse=True)
    votes = np.zeros((len(rows), len(classes)), dtype=int)
    np.add.at(votes, (np.arange(len(rows))[:, None], label[neighbors]), 1)
    own_votes = votes[np.arange(len(rows)), label]
    agreement = own_votes / k
    noise = _noise(float(agreement.mean()), len(classes))
    return DisagreeingRows(votes.max(axis=1) > own_votes, agreement, noise)


def _flat_rows(X: ArrayLike) -> Array:
    """Return the instances as checked rows (n, values) of float64."""
    array = as_float(X, "X")
    if array.ndim not in AXES or array.size == 0:
        raise ValueError(
            f"X has shape {array.shape}. "
            "Accepted: 2 (rows), 3 (series) or 4 (images) dimensions, not empty."
        )
    problem = describe_nonfinite(array, "X")
    if problem:
        raise ValueError(problem)
    return array.reshape(len(array), -1).astype(np.float64)


def _nearest_others(rows: Array, k: int) -> Array:
    """Return the positions of the k nearest other rows, (n, k)."""
    from sklearn.neighbors import NearestNeighbors

    # scikit-learn compares by matrix products, block by block; centered, they cancel less.
    centered = rows - rows.mean(axis=0)
    search: Any = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(centered)
    neighbors: Array = search.kneighbors(return_distance=False)  # a row is not its own neighbor
    return neighbors


def _noise(agreement: float, n_classes: int) -> float:
    """Solve a = (1 - e)^2 + e^2 / (C - 1) for the smaller e."""
    if n_classes == 1:
        return 0.0
    curvature = n_classes / (n_classes - 1)  # a = 1 - 2 e + curvature e^2
    # Labels without any relation to X agree in 1 of C cases; less than that is chance.
    discriminant = max(0.0, 1 - curvature * (1 - agreement))
    return (1 - math.sqrt(discriminant)) / curvature
