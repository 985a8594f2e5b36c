"""Elastic dissimilarities of series, by aeon."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
ELASTIC = ("dtw", "soft_dtw")


def elastic_distances(X: Array, Y: Array, metric: str, window: float | None = None) -> Array:
    """(n, m) dissimilarities between series (n, channels, length) and (m, channels, length).

    metric : "dtw", or "soft_dtw": the divergence s(x, y) − ½s(x, x) − ½s(y, y) of soft DTW, γ = 1, which is 0
        for equal series (Blondel, Mensch, Vert 2021).
    window : Sakoe-Chiba band, as a fraction of the length.
    """
    X, Y = (np.ascontiguousarray(part, dtype=np.float64) for part in (X, Y))
    if metric == "dtw":
        from aeon.distances import pairwise_distance

        return np.asarray(pairwise_distance(X, Y, method=metric, window=window))
    own_x, own_y = (soft_dtw(part, part, window) for part in (X, Y))
    return np.maximum(soft_dtw(X[:, None], Y, window) - own_x[:, None] / 2 - own_y / 2, 0.0)


def soft_dtw(X: Array, Y: Array, window: float | None = None) -> Array:
    """Soft DTW s, γ = 1, squared costs; negative for series that are alike (Cuturi, Blondel 2017).

        s_ij = ‖x_i − y_j‖² − log(e^{−s_(i−1)j} + e^{−s_i(j−1)} + e^{−s_(i−1)(j−1)})

    Series (…, channels, length), paired as NumPy broadcasts them; aeon's gives |s|, and 0 for equal ones.
    """
    length = X.shape[-1]
    band = length if window is None else max(1, round(window * length))
    nothing = np.full(np.broadcast_shapes(X.shape[:-2], Y.shape[:-2]), np.inf)
    above = [np.zeros_like(nothing), *[nothing] * length]
    for i in range(length):
        row = [nothing] * (length + 1)
        for j in range(max(0, i - band), min(length, i + band + 1)):
            cost = np.square(X[..., i] - Y[..., j]).sum(-1)
            row[j + 1] = cost - np.logaddexp.reduce([-above[j + 1], -row[j], -above[j]])
        above = row
    return above[-1]


def as_series(X: Array, shape: tuple[int, ...]) -> Array:
    """Flat instances (n, features) as series (n, channels, length); rows are series of one channel."""
    if len(shape) > 2:
        raise ValueError(
            f"Elastic metrics take series (n, channels, length), got shape {shape} of one."
        )
    return X.reshape(len(X), -1, shape[-1])
