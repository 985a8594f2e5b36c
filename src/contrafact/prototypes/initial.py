"""Where prototypes start: means, k-means centers or points of their classes."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Init = Literal["kmeans", "kmeans++", "means", "random"]
INITS = ("kmeans", "kmeans++", "means", "random")


def initial_prototypes(
    X: Array, t: Array, counts: Array, init: Init, weight: Array | None, rng: np.random.RandomState
) -> tuple[Array, Array]:
    """`counts[c]` prototypes of every class c, and the class of each.

    init : "kmeans" (centers), "kmeans++" (rows far from each other), "random" (rows), or "means" (the class
        mean; where a class has several they stand around it, for equal ones would never part).
    """
    if init not in INITS:
        raise ValueError(f"init must be one of {', '.join(INITS)}, got {init!r}.")
    places = []
    for c, k in enumerate(counts):
        members = X[t == c]
        w = None if weight is None else weight[t == c]
        places.append(_within(members, int(k), init, w, rng))
    return np.concatenate(places), np.repeat(np.arange(len(counts)), counts)


def _within(
    X: Array, k: int, init: Init, weight: Array | None, rng: np.random.RandomState
) -> Array:
    if init == "means" and k > 1:
        mean: Array = np.average(X, axis=0, weights=weight)
        around: Array = mean + 0.1 * X.std(axis=0) * rng.standard_normal((k, X.shape[1]))
        return around
    if init == "random":
        return X[rng.choice(len(X), k, replace=False)]
    if init in ("kmeans", "means"):
        return kmeans_centers(X, k, rng, weight)
    from sklearn.cluster import kmeans_plusplus

    return np.asarray(kmeans_plusplus(X, k, sample_weight=weight, random_state=rng)[0])


def kmeans_centers(
    X: Array, k: int, random_state: Any, weight: Array | None = None, n_init: int = 1
) -> Array:
    """k centers of rows (n, features), the best of `n_init` runs; some twice where too few rows differ."""
    from sklearn.cluster import KMeans

    if k == 1:
        return np.asarray(np.average(X, axis=0, weights=weight, keepdims=True))
    distinct = min(k, len({row.tobytes() for row in X}))
    means = KMeans(distinct, n_init=n_init, random_state=random_state)
    centers = means.fit(X, sample_weight=weight).cluster_centers_
    return np.asarray(centers[np.arange(k) % distinct])
