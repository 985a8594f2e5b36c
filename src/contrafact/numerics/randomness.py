"""Random numbers that belong to a row, wherever the row stands in a batch.

A counter-based generator (splitmix64): number j of a row is a hash of the row's key and of j,

    bits_j = mix(key + (j + 1) * golden),     key = fold_in(seed, stream)

so all rows and all numbers come from one vectorized expression, without state to carry or share.

References
----------
Steele, Lea, Flood: Fast splittable pseudorandom number generators. OOPSLA 2014.
doi:10.1145/2660193.2660195.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from ..data.arrays import as_real, read_array
from ..validation import Integer, check_parameters

Array = NDArray[np.float64]
Seeds = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_RULES = {
    "size": Integer(at_least=0, at_most=2**31),
    "stream": Integer(at_least=-(2**63), at_most=2**64 - 1),
    "seed": Integer(at_least=-(2**63), at_most=2**64 - 1),
}


def _mix(z: Seeds) -> Seeds:
    """Apply the finalizer of splitmix64, modulo 2^64: every input bit affects every output bit."""
    z = z ^ (z >> np.uint64(30))
    z = z * np.uint64(0xBF58476D1CE4E5B9)
    z = z ^ (z >> np.uint64(27))
    z = z * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _as_uint64(values: ArrayLike, name: str) -> Seeds:
    """Convert integers to unsigned ones; negative integers wrap, and stay distinct."""
    array = np.atleast_1d(read_array(values, name))
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be one integer per row, got {array.dtype} of shape {array.shape}."
        )
    return array.astype(np.uint64)


def _fold(seeds: ArrayLike, data: ArrayLike, name: str, rows: str = "seeds") -> Seeds:
    """Derive new seeds from seeds and integers; `name` and `rows` are what the user calls them."""
    first = _as_uint64(seeds, "seeds")
    second = _as_uint64(data, name)
    if len(second) != 1 and len(first) not in (1, len(second)):
        raise ValueError(
            f"{name} has shape {second.shape}. "
            f"Accepted: one integer, or one per row of {rows} ({len(first)})."
        )
    return _mix(_mix(first + _GOLDEN) + second)


def _counter(size: int) -> Seeds:
    """Return golden, 2 golden, ..., of shape (size,), modulo 2^64."""
    return np.arange(1, size + 1, dtype=np.uint64) * _GOLDEN


def fold_in(seeds: ArrayLike, data: ArrayLike) -> Seeds:
    """Derive new seeds from seeds and integers, such as a step, a restart or a stream.

    Parameters
    ----------
    seeds : array of int of shape (n,), or int
        One seed per row.
    data : int or array of int of shape (n,)
        The integer to fold in, one for all or one per row.

    Returns
    -------
    array of uint64 of shape (n,)
        The seeds.

    Examples
    --------
    >>> fold_in([1, 2], 0) == fold_in([1, 2], 1)
    array([False, False])
    """
    return _fold(seeds, data, "data")


def row_uniform(seeds: ArrayLike, size: int, stream: int = 0) -> Array:
    """Draw uniform numbers in [0, 1): row i depends on (seeds[i], stream) only.

    Parameters
    ----------
    seeds : array of int of shape (n,)
        One seed per row.
    size : int
        Numbers per row. A larger size continues the numbers of a smaller one.
    stream : int, default=0
        Different streams of the same seed are independent.

    Returns
    -------
    array of float64 of shape (n, size)
        The numbers.

    Examples
    --------
    >>> u = row_uniform([7, 8], 3)
    >>> bool((row_uniform([8], 3) == u[1]).all())
    True
    """
    check_parameters("row_uniform", _RULES, {"size": size, "stream": stream})
    key = _fold(seeds, stream, "stream")
    bits = _mix(key[:, None] + _counter(size))
    # 53 bits: all that a float64 holds.
    whole = (bits >> np.uint64(11)).astype(np.float64)
    return whole * 2.0**-53


def row_normal(seeds: ArrayLike, size: int, stream: int = 0) -> Array:
    """Draw standard normal numbers, by the inverse of the distribution function.

    Parameters
    ----------
    seeds : array of int of shape (n,)
        One seed per row.
    size : int
        Numbers per row. A larger size continues the numbers of a smaller one.
    stream : int, default=0
        Different streams of the same seed are independent.

    Returns
    -------
    array of float64 of shape (n, size)
        The numbers.

    Examples
    --------
    >>> row_normal([7, 8], 3).shape
    (2, 3)
    """
    check_parameters("row_normal", _RULES, {"size": size, "stream": stream})
    uniform = row_uniform(seeds, size, stream)
    # A uniform of exactly 0 would give -inf.
    normal: Array = ndtri(np.maximum(uniform, 2.0**-54))
    return normal


def row_seeds(X: ArrayLike, seed: int, extra: ArrayLike | None = None) -> Seeds:
    """Derive one seed per row from the row's own numbers and a global seed.

        h_i = sum_j mix(bits(x_ij) + (j + 1) * golden)      modulo 2^64

    Equal rows get equal seeds (float32 or float64, -0.0 or 0.0), unless `extra` distinguishes them.

    Parameters
    ----------
    X : array of shape (n, ...)
        The rows.
    seed : int
        The global seed.
    extra : array of int of shape (n,), optional
        Folded into the seeds, so that equal rows can get different ones.

    Returns
    -------
    array of uint64 of shape (n,)
        The seeds.

    Examples
    --------
    >>> X = np.arange(6.0).reshape(2, 3)
    >>> bool((row_seeds(X[::-1], seed=0) == row_seeds(X, seed=0)[::-1]).all())
    True
    """
    check_parameters("row_seeds", _RULES, {"seed": seed})
    array = as_real(X, "X").astype(np.float64, copy=False)
    if array.ndim == 0:
        raise ValueError("X has shape (). Accepted: (n, ...), the rows first.")
    size = math.prod(array.shape[1:])
    rows = array.reshape(len(array), size)
    # -0.0 + 0.0 is 0.0: rows that compare equal must hash equal.
    bits = (rows + 0.0).view(np.uint64)
    hashed = _mix(bits + _counter(size))
    total = hashed.sum(axis=1, dtype=np.uint64)
    seeds = _fold(total, seed, "seed")
    if extra is None:
        return seeds
    return _fold(seeds, extra, "extra", "X")
