"""Where prototypes start: means, k-means centers or points of their classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..validation import Real, Rule
from .option_rules import read_options

Array = NDArray[Any]
Init = Literal[
    "kmeans",
    "kmeans++",
    "means",
    "random",
    "class_mean",
    "class_conditional_mean",
    "noise",
    "normal",
    "uniform",
    "zeros",
    "ones",
    "fill",
]
#: by name, the arguments that it takes and their defaults
INITS: dict[str, dict[str, float]] = {
    "kmeans": {},
    "kmeans++": {},
    "means": {},
    "random": {},
    "class_mean": {},
    "class_conditional_mean": {},
    "noise": {"noise_std": 0.1},
    "normal": {"mean": 0.0, "std": 1.0},
    "uniform": {"low": -1.0, "high": 1.0},
    "zeros": {},
    "ones": {},
    "fill": {"value": 0.0},
}
#: a function of rows, labels, prototypes per label and a random generator
MakePrototypes = Callable[[Array, Array, dict[Any, int], np.random.RandomState], tuple[Any, Any]]


def check_init(init: Init | MakePrototypes, options: Mapping[str, Any] | None) -> None:
    """Refuse arguments that a way to place prototypes does not take.

    Parameters
    ----------
    init : str or function
        Where prototypes start.
    options : mapping of str to float, or None
        The arguments given.
    """
    if options is None:
        return
    if not isinstance(init, str):
        raise ValueError("init_options needs an init by name; a function has its own arguments.")
    wide = Real(at_least=-1e9, at_most=1e9)
    accepted: dict[str, Rule] = dict.fromkeys(INITS[init], wide)
    for name in {"noise_std", "std"} & set(accepted):
        accepted[name] = Real(at_least=0, at_most=1e9)
    read_options("init_options", options, accepted, f"init={init!r}")


def initial_prototypes(
    X: Array,
    t: Array,
    counts: Array,
    init: Init,
    weight: Array | None,
    rng: np.random.RandomState,
    options: Mapping[str, float] | None = None,
) -> tuple[Array, Array]:
    """Place the first prototypes of every class.

    Parameters
    ----------
    X : array of shape (n, features)
        Training rows, in the units of training.
    t : int array of shape (n,)
        Class of each row, as a column.
    counts : int array of shape (classes,)
        Number of prototypes of each class.
    init : str
        A name of `INITS`. Where a class has several, those of "means" are scattered around the
        mean: equal prototypes would get equal gradients and never separate.
    weight : array of shape (n,) or None
        Weight of each row.
    rng : numpy.random.RandomState
        Source of random numbers.
    options : mapping of str to float, optional
        Arguments, see `INITS`.

    Returns
    -------
    prototypes : array of shape (K, features)
        The prototypes, class by class.
    owner : int array of shape (K,)
        Class of each prototype, as a column.
    """
    if init == "class_mean" and counts.max() > 1:
        raise ValueError(
            "init='class_mean' is one prototype per class; for more use 'means', which scatters "
            "them, or 'class_conditional_mean'."
        )
    values = {**INITS[init], **(options or {})}
    places = []
    for c, count in enumerate(counts):
        member = t == c
        member_weight = None if weight is None else weight[member]
        found = _within_class(X[member], int(count), init, member_weight, rng, values)
        places.append(found)
    owner = np.repeat(np.arange(len(counts)), counts)
    return np.concatenate(places), owner


def _within_class(
    X: Array,
    k: int,
    init: Init,
    weight: Array | None,
    rng: np.random.RandomState,
    values: Mapping[str, float],
) -> Array:
    """Place k prototypes (k, features) among the rows of one class, or anywhere."""
    shape = (k, X.shape[1])
    if init in ("zeros", "ones", "fill"):
        return np.full(shape, {"zeros": 0.0, "ones": 1.0}.get(init, values.get("value")))
    if init == "normal":
        return np.asarray(rng.normal(values["mean"], values["std"], shape))
    if init == "uniform":
        low, high = sorted((values["low"], values["high"]))
        return np.asarray(rng.uniform(low, high, shape))
    if init in ("class_mean", "class_conditional_mean"):
        return np.tile(np.average(X, axis=0, weights=weight), (k, 1))
    if init == "means" and k > 1:
        mean: Array = np.average(X, axis=0, weights=weight)
        noise = rng.standard_normal((k, X.shape[1]))
        around: Array = mean + 0.1 * X.std(axis=0) * noise
        return around
    if init in ("random", "noise"):
        rows = rng.choice(len(X), k, replace=False)
        noise_std = values.get("noise_std")
        return X[rows] if noise_std is None else X[rows] + noise_std * rng.standard_normal(shape)
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
