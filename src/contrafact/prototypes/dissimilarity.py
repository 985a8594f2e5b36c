"""Elastic dissimilarities of series, by aeon."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
ELASTIC = ("dtw", "soft_dtw")


def elastic_distances(X: Array, Y: Array, metric: str, window: float | None = None) -> Array:
    """(n, m) dissimilarities between series (n, channels, length) and (m, channels, length).

    window : Sakoe-Chiba band, as a fraction of the length.
    """
    from aeon.distances import pairwise_distance

    X, Y = (np.ascontiguousarray(part, dtype=np.float64) for part in (X, Y))
    return np.asarray(pairwise_distance(X, Y, method=metric, window=window))


def as_series(X: Array, shape: tuple[int, ...]) -> Array:
    """Flat instances (n, features) as series (n, channels, length); rows are series of one channel."""
    if len(shape) > 2:
        raise ValueError(f"Elastic metrics take series (n, channels, length), got shape {shape} of one.")
    return X.reshape(len(X), -1, shape[-1])
