"""Compiled loops of DTW. This module imports numba, so import it only to compute."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

import numba  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(kernel: Kernel) -> Kernel:
    """Compile on first use and keep on disk; sums keep their order, and infinities are honored."""
    made: Kernel = numba.njit(
        cache=True,
        nogil=True,
        fastmath={"contract"},
        error_model="numpy",
    )(kernel)
    return made


@compiled
def fill_costs(x: Floats, w: Floats, i: int, first: int, last: int, out: Floats) -> None:
    """Compute out[j] = ‖x_i − w_j‖² of two series (channels, length), for some columns j."""
    for j in range(first, last):
        difference = x[0, i] - w[0, j]
        out[j] = difference * difference
    for channel in range(1, x.shape[0]):
        for j in range(first, last):
            difference = x[channel, i] - w[channel, j]
            out[j] += difference * difference


@compiled
def dtw(x: Floats, w: Floats, band: int, cutoff: float) -> float:
    """Compute DTW with squared costs; infinite as soon as it must be above the cutoff.

    Parameters
    ----------
    x, w : arrays of shape (channels, length)
        Series.
    band : int
        Largest |i − j|.
    cutoff : float
        Every path has a cell in each row, and costs add up: once all of a row is above the cutoff,
        so is the result.

    Returns
    -------
    float
        The cost of the cheapest path.
    """
    length = x.shape[1]
    cost = np.empty(length)
    row = np.full(length + 1, np.inf)
    entered = np.empty(length)
    row[0] = 0.0
    for i in range(length):
        first = max(0, i - band)
        last = min(length, i + band + 1)
        fill_costs(x, w, i, first, last, cost)
        # What does not depend on the cell to the left is computed for many cells at a time.
        for j in range(first, last):
            entered[j] = cost[j] + (row[j] if row[j] < row[j + 1] else row[j + 1])
        row[first] = np.inf
        left = np.inf
        least = np.inf
        for j in range(first, last):
            beside = left + cost[j]
            left = beside if beside < entered[j] else entered[j]
            row[j + 1] = left
            least = left if left < least else least
        if least > cutoff:
            return np.inf
    return float(row[length])


@compiled
def fill_dtw(
    x: Floats,
    w: Floats,
    first: Ints,
    second: Ints,
    band: int,
    out: Floats,
) -> None:
    """Compute out[p] = DTW of x[first[p]] and w[second[p]]."""
    for p in range(len(first)):
        out[p] = dtw(x[first[p]], w[second[p]], band, np.inf)


@compiled
def cheapest_path(x: Floats, w: Floats, importance: Floats, band: int) -> Ints:
    """Find the path of DTW with costs ½(importance_i + importance_j) ‖x_i − w_j‖².

    Parameters
    ----------
    x, w : arrays of shape (channels, length)
        Series.
    importance : array of shape (length,)
        Weight of each time step.
    band : int
        Largest |i − j|.

    Returns
    -------
    int array of shape (steps, 2)
        The pairs of time steps (i, j), from the first to the last.
    """
    length = x.shape[1]
    s = np.full((length + 1, length + 1), np.inf)
    s[0, 0] = 0.0
    cost = np.empty(length)
    for i in range(length):
        first = max(0, i - band)
        last = min(length, i + band + 1)
        fill_costs(x, w, i, first, last, cost)
        for j in range(first, last):
            weight = (importance[i] + importance[j]) / 2
            s[i + 1, j + 1] = weight * cost[j] + min(s[i, j], s[i, j + 1], s[i + 1, j])
    path = np.empty((2 * length - 1, 2), np.intp)
    i = j = length
    steps = 0
    while i > 0:
        steps += 1
        path[len(path) - steps] = i - 1, j - 1
        least = min(s[i - 1, j - 1], s[i - 1, j], s[i, j - 1])
        if s[i - 1, j - 1] == least:
            i, j = i - 1, j - 1
        elif s[i - 1, j] == least:
            i -= 1
        else:
            j -= 1
    return path[len(path) - steps :]


@compiled
def fill_nearest(
    x: Floats,
    w: Floats,
    low: Floats,
    high: Floats,
    band: int,
    nearest: Ints,
    computed: Ints,
) -> None:
    """Find the nearest prototype of each series under DTW, computing DTW only where it may win.

    Bounds from below: the costs of the first and the last pair, which every path has (LB_Kim), and
    the squared distance to the envelope of a prototype (LB_Keogh). Prototypes are tried in the
    order of their bounds, until the next bound is above the best.

    Parameters
    ----------
    x : array of shape (n, channels, length)
        Series.
    w : array of shape (K, channels, length)
        Prototypes.
    low, high : arrays of shape (K, channels, length)
        The least and the largest value of each prototype within the band.
    band : int
        Largest |i − j|.
    nearest : int array of shape (n,)
        Where the nearest goes; of equally near ones, the first.
    computed : int array of shape (n,)
        Where the number of prototypes that were not pruned goes.
    """
    channels, length = x.shape[1:]
    bound = np.empty(len(w))
    for n in range(len(x)):
        for k in range(len(w)):
            ends = 0.0
            outside = 0.0
            for channel in range(channels):
                ends += (x[n, channel, 0] - w[k, channel, 0]) ** 2
                if length > 1:
                    ends += (x[n, channel, -1] - w[k, channel, -1]) ** 2
                for i in range(length):
                    value = x[n, channel, i]
                    beyond = max(low[k, channel, i] - value, value - high[k, channel, i], 0.0)
                    outside += beyond * beyond
            # Sums in another order may be rounded otherwise.
            bound[k] = max(ends, outside) * (1 - 1e-9)
        best = np.inf
        nearest[n] = len(w)
        computed[n] = 0
        for k in np.argsort(bound):
            if bound[k] > best:
                break
            computed[n] += 1
            d = dtw(x[n], w[k], band, best)
            if d < best or (d == best and k < nearest[n]):
                best = d
                nearest[n] = k


def in_threads(n: int, work: Callable[[slice], Any]) -> None:
    """Run work on slices of n items, one for each of numba's threads.

    Parameters
    ----------
    n : int
        Number of items.
    work : function of a slice
        Computes some items, and releases the interpreter's lock.
    """
    threads = min(n, numba.config.NUMBA_NUM_THREADS)
    if threads <= 1:
        work(slice(0, n))
        return
    ends = [n * t // threads for t in range(threads + 1)]
    parts = [slice(*pair) for pair in pairwise(ends)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, parts))
