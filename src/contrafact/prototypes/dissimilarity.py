"""Elastic dissimilarities of series."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..process_state import keeping_threads

Array = NDArray[Any]
ELASTIC = ("dtw", "soft_dtw")


@keeping_threads()
def elastic_distances(
    X: Array,
    Y: Array,
    metric: str,
    window: float | None = None,
) -> Array:
    """Compute the elastic dissimilarities between two sets of series.

    Parameters
    ----------
    X : array of shape (n, channels, length)
        Series.
    Y : array of shape (m, channels, length)
        Series to compare with.
    metric : {"dtw", "soft_dtw"}
        Dynamic time warping by aeon, or the divergence s(x, y) − ½s(x, x) − ½s(y, y) of soft DTW
        with γ = 1, which is 0 for equal series.
    window : float, optional
        Sakoe-Chiba band, as a fraction of the length; default: no band.

    Returns
    -------
    array of shape (n, m)
        Dissimilarities, at least 0.

    References
    ----------
    Blondel, Mensch, Vert: Differentiable divergences between time series. AISTATS 2021.
    """
    X = np.ascontiguousarray(X, dtype=np.float64)
    Y = np.ascontiguousarray(Y, dtype=np.float64)
    if metric == "dtw":
        from aeon.distances import pairwise_distance

        distances = pairwise_distance(X, Y, method=metric, window=window)
        return np.asarray(distances)
    own_x = soft_dtw(X, X, window)  # (n,)
    own_y = soft_dtw(Y, Y, window)  # (m,)
    between = soft_dtw(X[:, None], Y, window)  # (n, m)
    divergence = between - own_x[:, None] / 2 - own_y / 2
    return np.maximum(divergence, 0.0)


def soft_dtw(
    X: Array,
    Y: Array,
    window: float | None = None,
) -> Array:
    """Compute soft DTW s with γ = 1 and squared costs; negative for series that are alike.

        s_ij = ‖x_i − y_j‖² − log(e^{−s_(i−1)j} + e^{−s_i(j−1)} + e^{−s_(i−1)(j−1)})

    aeon's function gives |s|, and 0 for equal series, so it cannot stand in here.

    Parameters
    ----------
    X, Y : arrays of shape (..., channels, length)
        Series, paired as NumPy broadcasts them.
    window : float, optional
        Sakoe-Chiba band, as a fraction of the length; default: no band.

    Returns
    -------
    array of shape (...)
        s of each pair.

    References
    ----------
    Cuturi, Blondel: Soft-DTW: a differentiable loss function for time-series. ICML 2017.
    """
    length = X.shape[-1]
    band = length
    if window is not None:
        band = max(1, round(window * length))
    pair_shape = np.broadcast_shapes(X.shape[:-2], Y.shape[:-2])
    nothing = np.full(pair_shape, np.inf)
    above = [np.zeros_like(nothing), *[nothing] * length]
    for i in range(length):
        row = [nothing] * (length + 1)
        first = max(0, i - band)
        last = min(length, i + band + 1)
        for j in range(first, last):
            difference = X[..., i] - Y[..., j]
            cost = np.square(difference).sum(-1)
            paths = [-above[j + 1], -row[j], -above[j]]
            row[j + 1] = cost - np.logaddexp.reduce(paths)
        above = row
    return above[-1]


def as_series(X: Array, shape: tuple[int, ...]) -> Array:
    """Reshape flat instances to series; rows become series of one channel.

    Parameters
    ----------
    X : array of shape (n, features)
        Flat instances.
    shape : tuple of int
        Shape of one instance: (features,) or (channels, length).

    Returns
    -------
    array of shape (n, channels, length)
        A view of X where it can be written to.
    """
    if len(shape) > 2:
        raise ValueError(
            f"X: elastic metrics take series (n, channels, length), got shape {shape} of one."
        )
    # numba compiles once more for read-only memory.
    return np.require(X, requirements="W").reshape(len(X), -1, shape[-1])
