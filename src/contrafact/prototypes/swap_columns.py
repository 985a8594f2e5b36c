"""Dissimilarities for the swap search, in single precision for scores and exact for decisions."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numba  # type: ignore[import-untyped]
import numpy as np
from scipy.spatial.distance import cdist

from .swap_kernels import Floats, Ints, Singles, fill_euclidean

BLOCK = 64  # candidates scored by one task
CACHE_BYTES = 640 * 2**20  # all columns are kept in float32 up to this size: 12,952 samples


class Columns(Protocol):
    """Dissimilarities of all samples to candidates; a column is a row: samples are contiguous."""

    #: `block` is in this unit, so that single precision neither overflows nor underflows
    unit: float

    def block(self, rows: Ints) -> Singles:
        """Return the dissimilarities (r, n) to neighboring candidates, divided by `unit`."""

    def exact(self, rows: Ints) -> Floats:
        """Return the dissimilarities (r, n) to candidates in double precision."""


class MatrixColumns:
    """Columns of a given matrix.

    Parameters
    ----------
    D : array of shape (n, n)
        D[i, j], the dissimilarity from sample i to candidate j.
    order : int array of shape (m,)
        The samples to use, in the order of the search.
    """

    def __init__(self, D: Floats, order: Ints) -> None:
        self.D = D
        self.order = order
        self.unit = float(D.max()) or 1.0
        n = len(order)
        self.cache = np.empty((n, n), np.float32)
        in_blocks(n, self._fill)

    def _fill(self, rows: Ints) -> None:
        """Write some columns into the cache."""
        np.divide(
            self.exact(rows),
            self.unit,
            out=self.cache[span(rows)],
        )

    def block(self, rows: Ints) -> Singles:
        """Return the dissimilarities (r, n) to neighboring candidates, divided by `unit`."""
        return self.cache[span(rows)]

    def exact(self, rows: Ints) -> Floats:
        """Return the dissimilarities (r, n) to candidates in double precision."""
        candidates = self.order[rows]
        return self.D[:, candidates].T[:, self.order]


class EuclideanColumns:
    """Euclidean distances, computed once if they fit into the cache, else block by block.

    Parameters
    ----------
    X : array of shape (n, features)
        Samples.
    """

    def __init__(self, X: Floats) -> None:
        self.X = X
        # An outlier draws the mean away, which costs the others their digits, but not the median.
        centered = X - np.median(X, axis=0)
        norms = np.linalg.norm(centered, axis=1)
        self.unit = float(norms.max()) or 1.0
        self.x = np.ascontiguousarray(centered.T / self.unit)
        self.cache: Singles | None = None
        if 4 * len(X) ** 2 <= CACHE_BYTES:
            cache = np.empty((len(X), len(X)), np.float32)

            def fill(rows: Ints) -> None:
                fill_euclidean(self.x, rows, cache[span(rows)])

            in_blocks(len(X), fill)
            self.cache = cache

    def block(self, rows: Ints) -> Singles:
        """Return the distances (r, n) to neighboring candidates, divided by `unit`."""
        if self.cache is not None:
            return self.cache[span(rows)]
        out = np.empty((len(rows), len(self.X)), np.float32)
        fill_euclidean(self.x, rows, out)
        return out

    def exact(self, rows: Ints) -> Floats:
        """Return the distances (r, n) to candidates in double precision."""
        distances: Floats = cdist(self.X[rows], self.X)
        return distances


def span(rows: Ints) -> slice:
    """Return the slice that a run of neighboring positions covers."""
    first = int(rows[0])
    last = int(rows[-1])
    return slice(first, last + 1)


def blocks_of(rows: Ints) -> list[Ints]:
    """Split positions into blocks of at most `BLOCK`."""
    return [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]


def in_blocks(
    stop: int,
    work: Callable[[Ints], Any],
    start: int = 0,
) -> list[Any]:
    """Run work on blocks of neighboring candidates, in threads.

    Parameters
    ----------
    stop : int
        One past the last candidate.
    work : function of an int array
        Called with the positions of each block.
    start : int, default=0
        The first candidate.

    Returns
    -------
    list
        What `work` returned, in the order of the blocks; it does not depend on the threads.
    """
    blocks = blocks_of(np.arange(start, stop))
    if len(blocks) == 1:
        return [work(blocks[0])]
    with ThreadPoolExecutor(numba.config.NUMBA_NUM_THREADS) as threads:
        return list(threads.map(work, blocks))
