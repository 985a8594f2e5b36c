"""Compiled loops of the swap search. This module imports numba, so import it only to fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numba  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.intp]
Kernel = TypeVar("Kernel", bound=Callable[..., Any])

# log(4 − μ) − log 4 on [−1, 1], off by less than 1e−8: unlike a logarithm, a polynomial is computed
# for many samples at a time.
C0, C1, C2, C3, C4, C5, C6, C7, C8 = (
    np.polynomial.Chebyshev.interpolate(lambda mu: np.log1p(-mu / 4), 8)
    .convert(kind=np.polynomial.Polynomial)
    .coef.astype(np.float32)
)
TINY = np.finfo(np.float32).tiny


def compiled(kernel: Kernel) -> Kernel:
    """Compile on first use and keep on disk; sums may be reordered, infinities are honored."""
    flags = {"reassoc", "contract", "nsz", "arcp"}
    # Python's check for division by zero would keep loops from running on many samples at a time.
    made: Kernel = numba.njit(
        cache=True,
        nogil=True,
        fastmath=flags,
        error_model="numpy",
    )(kernel)
    return made


@compiled
def fill_euclidean(
    x: Floats,
    rows: Ints,
    out: Singles,
) -> None:
    """Compute out[r, i] = ‖x_i − x_rows[r]‖ by explicit differences.

    Parameters
    ----------
    x : array of shape (features, n)
        Samples as columns, so that a feature of all samples is contiguous.
    rows : int array of shape (r,)
        The samples to measure from.
    out : float32 array of shape (r, n)
        Where the distances go.
    """
    squares = np.empty(1024)
    for start in range(0, x.shape[1], 1024):
        stop = min(start + 1024, x.shape[1])
        squared = squares[: stop - start]
        for r in range(rows.shape[0]):
            row = rows[r]
            squared[:] = 0.0
            for f in range(x.shape[0]):
                center = x[f, row]
                part = x[f, start:stop]
                for i in range(part.shape[0]):
                    squared[i] += (part[i] - center) ** 2
            target = out[r, start:stop]
            for i in range(target.shape[0]):
                target[i] = math.sqrt(squared[i])


@compiled
def sum_f(
    d: Singles,
    pool: Singles,
    fixed: Singles,
    w: Singles,
    sign: np.float32,
    slope: np.float32,
) -> float:
    """Compute Σ_i w_i f(μ_i) with μ = sign·(near − fixed)/(near + fixed), near = min(pool, d).

    Parameters
    ----------
    d : float32 array of shape (n,)
        Dissimilarities of the samples to a candidate.
    pool : float32 array of shape (n,)
        Smallest dissimilarities to the prototypes that the candidate joins.
    fixed : float32 array of shape (n,)
        Smallest dissimilarities to the other prototypes.
    w : float32 array of shape (n,)
        Weights.
    sign : float32
        1 where the candidate is of the samples' class, else −1.
    slope : float32
        β of f(μ) = βμ/√(1 + β²μ²); 0: f(μ) = log 4 − log(4 − μ).

    Returns
    -------
    float
        The sum.
    """
    total = 0.0
    # Short sums in single precision, the long one in double.
    for start in range(0, d.shape[0], 512):
        stop = min(start + 512, d.shape[0])
        d_ = d[start:stop]
        pool_ = pool[start:stop]
        fixed_ = fixed[start:stop]
        w_ = w[start:stop]
        part: Any = np.float32(0)
        if slope == 0:
            for i in range(d_.shape[0]):
                near = min(d_[i], pool_[i])
                far = fixed_[i]
                u = sign * (near - far) / max(near + far, TINY)  # 0/0 counts as 0
                log = C7 + u * C8
                log = C6 + u * log
                log = C5 + u * log
                log = C4 + u * log
                log = C3 + u * log
                log = C2 + u * log
                log = C1 + u * log
                log = C0 + u * log
                part -= w_[i] * log
        else:
            for i in range(d_.shape[0]):
                near = min(d_[i], pool_[i])
                far = fixed_[i]
                u = sign * slope * (near - far) / max(near + far, TINY)
                part += w_[i] * u / np.sqrt(np.float32(1) + u * u)
        total += part
    return total


@compiled
def score_glvq(
    d: Singles,
    own: Singles,
    other: Singles,
    w: Singles,
    a: int,
    b: int,
    out: Floats,
    slope: float,
) -> None:
    """Compute the GLVQ costs, but for a constant, of candidates of one class.

    Parameters
    ----------
    d : float32 array of shape (r, n)
        Dissimilarities of all samples to the candidates.
    own, other : float32 arrays of shape (n,)
        Smallest dissimilarities to the prototypes of the sample's class and of the others.
    w : float32 array of shape (n,)
        Weights.
    a, b : int
        The samples of the candidates' class are a, ..., b − 1.
    out : float array of shape (r,)
        Where the costs go.
    slope : float
        As in `sum_f`.
    """
    plus = np.float32(1)
    minus = np.float32(-1)
    beta = np.float32(slope)
    for r in range(d.shape[0]):
        out[r] = sum_f(
            d[r, :a],
            other[:a],
            own[:a],
            w[:a],
            minus,
            beta,
        )
        out[r] += sum_f(
            d[r, a:b],
            own[a:b],
            other[a:b],
            w[a:b],
            plus,
            beta,
        )
        out[r] += sum_f(
            d[r, b:],
            other[b:],
            own[b:],
            w[b:],
            minus,
            beta,
        )


@compiled
def score_margin(
    d: Singles,
    own: Singles,
    other: Singles,
    w: Singles,
    a: int,
    b: int,
    out: Floats,
    scale: tuple[float, float],
) -> None:
    """Compute Σ_i w_i f(max(μ_i + margin, 0)), but for a constant, of candidates of one class.

    Parameters
    ----------
    d : float32 array of shape (r, n)
        Dissimilarities of all samples to the candidates.
    own, other : float32 arrays of shape (n,)
        Smallest dissimilarities to the prototypes of the sample's class and of the others.
    w : float32 array of shape (n,)
        Weights.
    a, b : int
        The samples of the candidates' class are a, ..., b − 1.
    out : float array of shape (r,)
        Where the costs go.
    scale : tuple of two floats
        The slope, as in `sum_f`, and the margin.
    """
    slope, margin = scale
    for r in range(d.shape[0]):
        total = 0.0
        for i in range(d.shape[1]):
            plus = own[i]
            minus = other[i]
            if a <= i < b:
                plus = min(plus, d[r, i])
            else:
                minus = min(minus, d[r, i])
            u = max((plus - minus) / max(plus + minus, TINY) + margin, 0.0)
            if slope == 0:
                total -= w[i] * math.log1p(-u / 4)
            else:
                u *= slope
                total += w[i] * u / math.sqrt(1 + u * u)
        out[r] = total


@compiled
def logaddexp(x: float, y: float) -> float:
    """Compute log(eˣ + eʸ) of two numbers."""
    high = max(x, y)
    low = min(x, y)
    if low == -np.inf:
        return high
    return high + math.log1p(math.exp(low - high))


@compiled
def score_rslvq(
    d: Singles,
    own: Floats,
    other: Floats,
    w: Singles,
    a: int,
    b: int,
    out: Floats,
    scale: float,
) -> None:
    """Compute the RSLVQ costs, but for a constant, of candidates of one class.

    Parameters
    ----------
    d : float32 array of shape (r, n)
        Dissimilarities of all samples to the candidates.
    own, other : float arrays of shape (n,)
        Log-sums over the prototypes of the sample's class and of the others.
    w : float32 array of shape (n,)
        Weights.
    a, b : int
        The samples of the candidates' class are a, ..., b − 1.
    out : float array of shape (r,)
        Where the costs go.
    scale : float
        −(unit of d)/T.
    """
    for r in range(d.shape[0]):
        total = 0.0
        for i in range(d.shape[1]):
            gain = scale * d[r, i]
            own_i = own[i]
            other_i = other[i]
            if a <= i < b:
                own_i = logaddexp(own_i, gain)
            else:
                other_i = logaddexp(other_i, gain)
            total += w[i] * logaddexp(0.0, other_i - own_i)
        out[r] = total
