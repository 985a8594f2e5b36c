"""Random numbers that belong to a row: the same row draws the same numbers wherever it stands in a batch.

A counter-based generator (splitmix64, Steele, Lea, Flood 2014): number j of a row is a hash of its key and j,

    bits_j = mix(key + (j + 1) * golden),     key = fold_in(seed, stream)

so all rows and all numbers come from one vectorized expression, with no state to carry or to share.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

Array = NDArray[np.float64]
Seeds = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mix(z: Seeds) -> Seeds:
    """The finalizer of splitmix64: every input bit reaches every output bit. Wraps modulo 2^64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _as_uint64(values: ArrayLike, name: str) -> Seeds:
    array = np.atleast_1d(np.asarray(values))
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be one integer per row, got {array.dtype} of shape {array.shape}."
        )
    return array.astype(np.uint64)  # negative integers wrap, and stay distinct


def fold_in(seeds: ArrayLike, data: ArrayLike) -> Seeds:
    """New seeds from seeds and an integer (a step, a restart, a stream), or one integer per row.

    Examples
    --------
    >>> fold_in([1, 2], 0) == fold_in([1, 2], 1)
    array([False, False])
    """
    return _mix(_mix(_as_uint64(seeds, "seeds") + _GOLDEN) + _as_uint64(data, "data"))


def row_uniform(seeds: ArrayLike, size: int, stream: int = 0) -> Array:
    """Uniform numbers in [0, 1), shape (n, size): row i depends on (seeds[i], stream) only.

    Examples
    --------
    >>> u = row_uniform([7, 8], 3)
    >>> bool((row_uniform([8], 3) == u[1]).all())
    True
    """
    key = fold_in(seeds, stream)
    counter = np.arange(1, size + 1, dtype=np.uint64) * _GOLDEN
    bits = _mix(key[:, None] + counter)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53  # 53 bits: all a float64 holds


def row_normal(seeds: ArrayLike, size: int, stream: int = 0) -> Array:
    """Standard normal numbers, shape (n, size), by the inverse of the distribution function.

    Examples
    --------
    >>> row_normal([7, 8], 3).shape
    (2, 3)
    """
    # A uniform of exactly 0 would give -inf.
    normal: Array = ndtri(np.maximum(row_uniform(seeds, size, stream), 2.0**-54))
    return normal


def row_seeds(X: ArrayLike, seed: int, extra: ArrayLike | None = None) -> Seeds:
    """One seed per row from the row's own numbers, the global `seed` and an optional integer per row.

        h_i = sum_j mix(bits(x_ij) + (j + 1) * golden)      modulo 2^64

    Equal rows get equal seeds (float32 or float64, -0.0 or 0.0); `extra` tells them apart where that matters.

    Examples
    --------
    >>> X = np.arange(6.0).reshape(2, 3)
    >>> bool((row_seeds(X[::-1], seed=0) == row_seeds(X, seed=0)[::-1]).all())
    True
    """
    array = np.asarray(X, dtype=np.float64)
    # -0.0 + 0.0 is 0.0: rows that compare equal must hash equal.
    bits = (array.reshape(len(array), math.prod(array.shape[1:])) + 0.0).view(np.uint64)
    position = np.arange(1, bits.shape[1] + 1, dtype=np.uint64) * _GOLDEN
    seeds = fold_in(_mix(bits + position).sum(axis=1, dtype=np.uint64), seed)
    return seeds if extra is None else fold_in(seeds, extra)
