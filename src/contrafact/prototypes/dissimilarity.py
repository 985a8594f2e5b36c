"""Elastic dissimilarities of series."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..process_state import keeping_threads
from ..validation import Boolean, Real, Rule
from .option_rules import read_options
from .soft_dtw import band_width, soft_dtw_divergence

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
        x = torch.from_numpy(X)
        y = x if Y is None else torch.from_numpy(Y)
        length = X.shape[2]
        gamma = float(given.get("gamma", 1.0))
        band = band_width(window, length)
        return np.asarray(soft_dtw_divergence(x, y, gamma, band, torch.ones(length)))
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
    D = np.zeros((len(X), len(others)))
    rows_at_once = max(1, BLOCK // len(others))
    for start in range(0, len(X), rows_at_once):
        block = np.arange(start, min(start + rows_at_once, len(X)))
        first, second = (
            side.ravel() for side in np.meshgrid(block, np.arange(len(others)), indexing="ij")
        )
        if Y is None:
            above = second > first
            first, second = first[above], second[above]
        found = np.empty(len(first))

        def fill(part: slice, p: Array = first, q: Array = second, out: Array = found) -> None:
            fill_dtw(X, others, p[part], q[part], band, out[part])

        in_threads(len(first), fill)
        D[first, second] = found
        if Y is None:
            D[second, first] = found
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
