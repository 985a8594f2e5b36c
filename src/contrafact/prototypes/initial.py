"""Where prototypes start: means, k-means centers or points of their classes."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Init = Literal["kmeans", "kmeans++", "means", "random"]
INITS = ("kmeans", "kmeans++", "means", "random")


def initial_prototypes(
    X: Array,
    t: Array,
    counts: Array,
    init: Init,
    weight: Array | None,
    rng: np.random.RandomState,
) -> tuple[Array, Array]:
    """Place the first prototypes of every class.

    Parameters
    ----------
    X : array of shape (n, features)
        Training rows.
    t : int array of shape (n,)
        Class of each row, as a column.
    counts : int array of shape (classes,)
        Number of prototypes of each class.
    init : {"kmeans", "kmeans++", "means", "random"}
        Centers of k-means, rows far from each other, the class mean, or random rows. Where a
        class has several, those of "means" are scattered around the mean: equal prototypes would
        get equal gradients and never separate.
    weight : array of shape (n,) or None
        Weight of each row.
    rng : numpy.random.RandomState
        Source of random numbers.

    Returns
    -------
    prototypes : array of shape (K, features)
        The prototypes, class by class.
    owner : int array of shape (K,)
        Class of each prototype, as a column.
    """
    places = []
    for c, count in enumerate(counts):
        member = t == c
        member_weight = None if weight is None else weight[member]
        found = _within_class(X[member], int(count), init, member_weight, rng)
        places.append(found)
    owner = np.repeat(np.arange(len(counts)), counts)
    return np.concatenate(places), owner


def _within_class(
    X: Array,
    k: int,
    init: Init,
    weight: Array | None,
    rng: np.random.RandomState,
) -> Array:
    """Place k prototypes (k, features) among the rows of one class."""
    if init == "means" and k > 1:
        mean: Array = np.average(X, axis=0, weights=weight)
        noise = rng.standard_normal((k, X.shape[1]))
        around: Array = mean + 0.1 * X.std(axis=0) * noise
        return around
    if init == "random":
        rows = rng.choice(len(X), k, replace=False)
        return X[rows]
    if init in ("kmeans", "means"):
        return kmeans_centers(X, k, rng, weight)
    from sklearn.cluster import kmeans_plusplus

    centers, _ = kmeans_plusplus(X, k, sample_weight=weight, random_state=rng)
    return np.asarray(centers)


def kmeans_centers(
    X: Array,
    k: int,
    random_state: Any,
    weight: Array | None = None,
    n_init: int = 1,
) -> Array:
    """Compute k centers of rows by k-means.

    Parameters
    ----------
    X : array of shape (n, features)
        Rows.
    k : int
        Number of centers; where fewer rows differ, centers are repeated.
    random_state : int or numpy.random.RandomState
        Seed of k-means.
    weight : array of shape (n,), optional
        Weight of each row.
    n_init : int, default=1
        Runs, of which the best one is kept.

    Returns
    -------
    array of shape (k, features)
        The centers.
    """
    from sklearn.cluster import KMeans

    if k == 1:
        return np.asarray(np.average(X, axis=0, weights=weight, keepdims=True))
    different_rows = {row.tobytes() for row in X}
    n_centers = min(k, len(different_rows))
    kmeans = KMeans(n_centers, n_init=n_init, random_state=random_state)
    centers = kmeans.fit(X, sample_weight=weight).cluster_centers_
    repeated = np.arange(k) % n_centers
    return np.asarray(centers[repeated])
