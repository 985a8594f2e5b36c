"""Elastic dissimilarities of series."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..process_state import keeping_threads
from ..validation import Boolean, Real, Rule
from .option_rules import read_options
from .soft_dtw import band_width, soft_dtw

Array = NDArray[Any]
_AT_LEAST_0 = Real(at_least=0)
#: elastic dissimilarities, and what each takes besides a window
ELASTIC_OPTIONS: dict[str, dict[str, Rule]] = {
    "dtw": {},
    "soft_dtw": {"gamma": _AT_LEAST_0},
    "ddtw": {},
    "wdtw": {"g": _AT_LEAST_0},
    "wddtw": {"g": _AT_LEAST_0},
    "adtw": {"warp_penalty": _AT_LEAST_0},
    "erp": {"g": Real()},
    "edr": {"epsilon": _AT_LEAST_0},
    "lcss": {"epsilon": _AT_LEAST_0},
    "msm": {"c": _AT_LEAST_0, "independent": Boolean()},
    "twe": {"nu": _AT_LEAST_0, "lmbda": _AT_LEAST_0},
}
#: pairs of series that are compared at once
BLOCK = 2**18


def check_metric_options(
    metric: Any,
    window: float | None,
    params: Mapping[str, Any] | None,
) -> None:
    """Refuse a window or parameters that a metric does not take.

    Parameters
    ----------
    metric : object
        The option `metric` of a model.
    window : float or None
        Its option `window`.
    params : mapping of str to object, or None
        Its option `metric_params`.
    """
    elastic = isinstance(metric, str) and metric in ELASTIC_OPTIONS
    if window is not None and not elastic:
        raise ValueError(
            f"window={window} needs metric={' or '.join(map(repr, ELASTIC_OPTIONS))}, "
            f"got {metric!r}."
        )
    accepted = ELASTIC_OPTIONS[metric] if elastic else {}
    if params is not None:
        if "window" in params:
            raise ValueError(
                "metric_params holds 'window'; it is an option of its own: window=...."
            )
        read_options("metric_params", params, accepted, f"metric={metric!r}")


@keeping_threads()
def elastic_distances(
    X: Array,
    Y: Array | None,
    metric: str,
    window: float | None = None,
    params: Mapping[str, Any] | None = None,
) -> Array:
    """Compute the elastic dissimilarities between two sets of series, in parallel.

    Parameters
    ----------
    X : array of shape (n, channels, length)
        Series.
    Y : array of shape (m, channels, length), or None
        Series to compare with; None: X itself, where each pair is computed once.
    metric : str
        A name in `ELASTIC_OPTIONS`: "dtw", "soft_dtw" (the divergence of `SoftDTW`, γ = 1 where
        `params` has none), or another of aeon's.
    window : float, optional
        Sakoe-Chiba band, as a fraction of the length; default: no band.
    params : mapping of str to object, optional
        Further parameters of the metric; default: those of aeon.

    Returns
    -------
    array of shape (n, m)
        Dissimilarities, at least 0.
    """
    X = np.ascontiguousarray(X, dtype=np.float64)
    Y = None if Y is None else np.ascontiguousarray(Y, dtype=np.float64)
    given = dict(params or {})
    if metric == "dtw":
        return dtw_distances(X, Y, window)
    if metric == "soft_dtw":
        return soft_dtw_distances(X, Y, window, float(given.get("gamma", 1.0)))
    import numba  # type: ignore[import-untyped]
    from aeon.distances import pairwise_distance

    threads = numba.config.NUMBA_NUM_THREADS
    distances = pairwise_distance(X, Y, method=metric, window=window, n_jobs=threads, **given)
    return np.asarray(distances)


def dtw_distances(X: Array, Y: Array | None, window: float | None) -> Array:
    """Compute DTW with squared costs of all pairs; see `elastic_distances`."""
    from .warping_kernels import fill_dtw, in_threads

    others = X if Y is None else Y
    band = band_width(window, X.shape[2])

    def of_pairs(first: Array, second: Array) -> Array:
        found = np.empty(len(first))

        def fill(part: slice) -> None:
            fill_dtw(X, others, first[part], second[part], band, found[part])

        in_threads(len(first), fill)
        return found

    return _for_pairs(of_pairs, len(X), None if Y is None else len(Y))


def soft_dtw_distances(X: Array, Y: Array | None, window: float | None, gamma: float) -> Array:
    """Compute the soft-DTW divergences of all pairs; see `elastic_distances`."""
    x = torch.from_numpy(X)
    y = x if Y is None else torch.from_numpy(Y)
    length = X.shape[2]
    band = band_width(window, length)

    def of_pairs(first: Array, second: Array) -> Array:
        pairs = torch.from_numpy(first), torch.from_numpy(second)
        return soft_dtw(x, y, torch.ones(length), *pairs, band, gamma).numpy()

    def of_itself(series: Tensor) -> Array:
        rows = torch.arange(len(series))
        return soft_dtw(series, series, torch.ones(length), rows, rows, band, gamma).numpy()

    D = _for_pairs(of_pairs, len(X), None if Y is None else len(Y))
    if gamma > 0:
        own = of_itself(x)
        D -= own[:, None] / 2
        D -= (own if Y is None else of_itself(y)) / 2
    if Y is None:
        np.fill_diagonal(D, 0.0)
    return np.maximum(D, 0, out=D)


def _for_pairs(of_pairs: Callable[[Array, Array], Array], n: int, m: int | None) -> Array:
    """Fill a matrix (n, m) by pairs of positions, in blocks.

    Where m is None the matrix is (n, n) and symmetric: each pair is computed once, and the diagonal
    is 0.
    """
    D = np.zeros((n, n if m is None else m))
    rows_at_once = max(1, BLOCK // max(1, D.shape[1]))
    for start in range(0, n, rows_at_once):
        block = np.arange(start, min(start + rows_at_once, n))
        first, second = (
            side.ravel() for side in np.meshgrid(block, np.arange(D.shape[1]), indexing="ij")
        )
        if m is None:
            above = second > first
            first, second = first[above], second[above]
        D[first, second] = of_pairs(first, second)
        if m is None:
            D[second, first] = D[first, second]
    return D


def nearest_by_dtw(X: Array, prototypes: Array, window: float | None) -> tuple[Array, Array]:
    """Find the nearest prototype under DTW, pruned by lower bounds; the result is exact.

    Parameters
    ----------
    X : array of shape (n, channels, length)
        Series.
    prototypes : array of shape (K, channels, length)
        Prototypes.
    window : float or None
        Sakoe-Chiba band, as a fraction of the length.

    Returns
    -------
    nearest : int array of shape (n,)
        The first of the nearest prototypes, as an argmin over `dtw_distances` is.
    computed : int array of shape (n,)
        For how many prototypes DTW was begun.

    References
    ----------
    Keogh, Ratanamahatana: Exact indexing of dynamic time warping. Knowledge and Information Systems
    7, 2005. doi:10.1007/s10115-004-0154-9
    """
    from scipy.ndimage import maximum_filter1d, minimum_filter1d

    from .warping_kernels import fill_nearest, in_threads

    x = np.ascontiguousarray(X, dtype=np.float64)
    w = np.ascontiguousarray(prototypes, dtype=np.float64)
    band = min(band_width(window, x.shape[2]), x.shape[2])
    low = minimum_filter1d(w, 2 * band + 1, mode="nearest")
    high = maximum_filter1d(w, 2 * band + 1, mode="nearest")
    nearest = np.empty(len(x), np.intp)
    computed = np.empty(len(x), np.intp)

    def fill(part: slice) -> None:
        fill_nearest(x[part], w, low, high, band, nearest[part], computed[part])

    in_threads(len(x), fill)
    return nearest, computed


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
