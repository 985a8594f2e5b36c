"""Swap search for prototypes that are data points: the true cost of every candidate, in one pass.

This module imports numba, so it is imported only when something is fitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

import numba  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.intp]
Kernel = TypeVar("Kernel", bound=Callable[..., Any])

BLOCK = 64  # candidates scored by one task
CACHE_BYTES = 640 * 2**20  # all columns are kept in float32 up to this size: 12,952 samples
SAME = 1e-12  # costs are equal if they differ by less, relative to their size: that is rounding

# log(4 − μ) − log 4 on [−1, 1], off by less than 1e−8: unlike a logarithm, a polynomial is computed for many
# samples at a time.
C0, C1, C2, C3, C4, C5, C6, C7, C8 = (
    np.polynomial.Chebyshev.interpolate(lambda mu: np.log1p(-mu / 4), 8)
    .convert(kind=np.polynomial.Polynomial)
    .coef.astype(np.float32)
)
TINY = np.finfo(np.float32).tiny


def compiled(kernel: Kernel) -> Kernel:
    """Compile on first use and keep on disk; sums may be reordered, infinities are honored."""
    flags = {"reassoc", "contract", "nsz", "arcp"}
    # Python's check for division by zero would keep the loops from running on many samples at a time.
    made: Kernel = numba.njit(cache=True, nogil=True, fastmath=flags, error_model="numpy")(kernel)
    return made


@compiled
def fill_euclidean(x: Floats, rows: Ints, out: Singles) -> None:
    """out[r, i] = ‖x_i − x_rows[r]‖, by explicit differences; x is (features, n): samples are contiguous."""
    squares = np.empty(1024)
    for start in range(0, x.shape[1], 1024):
        stop = min(start + 1024, x.shape[1])
        squared = squares[: stop - start]
        for r in range(rows.shape[0]):
            squared[:] = 0.0
            for f in range(x.shape[0]):
                center, part = x[f, rows[r]], x[f, start:stop]
                for i in range(part.shape[0]):
                    squared[i] += (part[i] - center) ** 2
            target = out[r, start:stop]
            for i in range(target.shape[0]):
                target[i] = math.sqrt(squared[i])


@compiled
def sum_f(
    d: Singles, pool: Singles, fixed: Singles, w: Singles, sign: np.float32, slope: np.float32
) -> float:
    """Σ_i w_i f(μ_i),  μ = sign·(min(pool, d) − fixed)/(min(pool, d) + fixed).

    f(μ) = βμ/√(1 + β²μ²) with β the slope; slope 0: f(μ) = log 4 − log(4 − μ).
    """
    total = 0.0
    for start in range(
        0, d.shape[0], 512
    ):  # short sums in single precision, the long one in double
        stop = min(start + 512, d.shape[0])
        d_, pool_, fixed_, w_ = d[start:stop], pool[start:stop], fixed[start:stop], w[start:stop]
        part: Any = np.float32(0)
        if slope == 0:
            for i in range(d_.shape[0]):
                near, far = min(d_[i], pool_[i]), fixed_[i]
                u = sign * (near - far) / max(near + far, TINY)  # 0/0 counts as 0
                log = C0 + u * (
                    C1 + u * (C2 + u * (C3 + u * (C4 + u * (C5 + u * (C6 + u * (C7 + u * C8))))))
                )
                part -= w_[i] * log
        else:
            for i in range(d_.shape[0]):
                near, far = min(d_[i], pool_[i]), fixed_[i]
                u = sign * slope * (near - far) / max(near + far, TINY)
                part += w_[i] * u / np.sqrt(np.float32(1) + u * u)
        total += part
    return total


@compiled
def score_glvq(
    d: Singles, own: Singles, other: Singles, w: Singles, a: int, b: int, out: Floats, slope: float
) -> None:
    """Costs, but for a constant, of the candidates d (rows) of the class whose samples are a…b."""
    plus, minus, beta = np.float32(1), np.float32(-1), np.float32(slope)
    for r in range(d.shape[0]):
        out[r] = sum_f(d[r, :a], other[:a], own[:a], w[:a], minus, beta)
        out[r] += sum_f(d[r, a:b], own[a:b], other[a:b], w[a:b], plus, beta)
        out[r] += sum_f(d[r, b:], other[b:], own[b:], w[b:], minus, beta)


@compiled
def logaddexp(x: float, y: float) -> float:
    high, low = max(x, y), min(x, y)
    return high if low == -np.inf else high + math.log1p(math.exp(low - high))


@compiled
def score_rslvq(
    d: Singles, own: Floats, other: Floats, w: Singles, a: int, b: int, out: Floats, scale: float
) -> None:
    """The same for the likelihood ratio; own and other are log-sums, scale = −(unit of d)/T."""
    for r in range(d.shape[0]):
        total = 0.0
        for i in range(d.shape[1]):
            gain, own_i, other_i = scale * d[r, i], own[i], other[i]
            if a <= i < b:
                own_i = logaddexp(own_i, gain)
            else:
                other_i = logaddexp(other_i, gain)
            total += w[i] * logaddexp(0.0, other_i - own_i)
        out[r] = total


class Columns(Protocol):
    """Dissimilarities of all samples to candidates; a column is a row here: samples are contiguous."""

    unit: (
        float  # `block` is in this unit, so that single precision neither overflows nor underflows
    )

    def block(self, rows: Ints) -> Singles: ...
    def exact(self, rows: Ints) -> Floats: ...


class MatrixColumns:
    """Columns of a given matrix, D[i, j] = dissimilarity from sample i to candidate j, in the order given."""

    def __init__(self, D: Floats, order: Ints) -> None:
        self.D, self.order, self.unit = D, order, float(D.max()) or 1.0
        self.cache = np.empty((len(order), len(order)), np.float32)
        in_blocks(
            len(order),
            lambda rows: np.divide(self.exact(rows), self.unit, out=self.cache[span(rows)]),
        )

    def block(self, rows: Ints) -> Singles:
        return self.cache[span(rows)]

    def exact(self, rows: Ints) -> Floats:
        return self.D[:, self.order[rows]].T[:, self.order]


class EuclideanColumns:
    """Euclidean distances, computed once if they fit into the cache, else block by block when asked for."""

    def __init__(self, X: Floats) -> None:
        self.X = X
        centered = X - X.mean(0)
        self.unit = float(np.linalg.norm(centered, axis=1).max()) or 1.0
        self.x = np.ascontiguousarray(centered.T / self.unit)
        self.cache: Singles | None = None
        if 4 * len(X) ** 2 <= CACHE_BYTES:
            cache = np.empty((len(X), len(X)), np.float32)
            in_blocks(len(X), lambda rows: fill_euclidean(self.x, rows, cache[span(rows)]))
            self.cache = cache

    def block(self, rows: Ints) -> Singles:
        if self.cache is not None:
            return self.cache[span(rows)]
        out = np.empty((len(rows), len(self.X)), np.float32)
        fill_euclidean(self.x, rows, out)
        return out

    def exact(self, rows: Ints) -> Floats:
        distances: Floats = cdist(self.X[rows], self.X)
        return distances


def span(rows: Ints) -> slice:
    return slice(int(rows[0]), int(rows[-1]) + 1)


def in_blocks(stop: int, work: Callable[[Ints], Any], start: int = 0) -> list[Any]:
    """`work` on runs of neighboring candidates, in threads; the results do not depend on how many."""
    blocks = [np.arange(i, min(i + BLOCK, stop)) for i in range(start, stop, BLOCK)]
    if len(blocks) == 1:
        return [work(blocks[0])]
    with ThreadPoolExecutor(numba.config.NUMBA_NUM_THREADS) as threads:
        return list(threads.map(work, blocks))


class GLVQCost:
    """Σ_i w_i f(μ_i),   μ = (d⁺ − d⁻)/(d⁺ + d⁻),   f(μ) = −log(4 − μ);   0/0 counts as 0.

    What a sample sees of a set of prototypes, its pool, is the nearest.
    """

    kernel = staticmethod(score_glvq)
    pool_type: type = np.float32
    slope = 0.0
    precision = 1e-6  # a bound on the rounding error of f(μ) in the kernel

    def __init__(self, weights: Floats) -> None:
        self.weights = weights

    def scales(self, unit: float) -> tuple[float, float]:
        """What makes a pool fit for the kernel, and the kernel's last argument."""
        return 1 / unit, self.slope

    def error(self, unit: float) -> float:
        """A bound on the rounding error of a score."""
        return self.precision * float(self.weights.sum())

    def pool(self, d: Floats, member: NDArray[np.bool_]) -> Floats:
        pool: Floats = np.where(member, d, np.inf).min(0, initial=np.inf)
        return pool

    def join(self, pool: Floats, d: Floats) -> Floats:
        return np.minimum(pool, d)

    def cost(self, own: Floats, other: Floats) -> Floats:
        total = own + other
        mu = np.divide(own - other, total, out=np.zeros_like(total), where=total > 0)
        return np.asarray(self.f(mu) @ self.weights)

    def f(self, mu: Floats) -> Floats:
        return -np.log(4 - mu)


class SigmoidCost(GLVQCost):
    """The same with f(μ) = βμ/√(1 + β²μ²), β = 7: what counts most is the side of the boundary."""

    slope = 7.0
    precision = 3e-6

    def f(self, mu: Floats) -> Floats:
        return np.asarray(self.slope * mu / np.sqrt(1 + (self.slope * mu) ** 2))


class RSLVQCost:
    """Σ_i −w_i log(Σ_{k of own class} e^{−d_k/T} / Σ_k e^{−d_k/T});   a pool is the log of its sum."""

    kernel = staticmethod(score_rslvq)
    pool_type: type = np.float64

    def __init__(self, weights: Floats, temperature: float) -> None:
        self.weights, self.temperature = weights, temperature

    def scales(self, unit: float) -> tuple[float, float]:
        return 1.0, -unit / self.temperature

    def error(self, unit: float) -> float:
        return 2e-7 * float(self.weights.sum()) * (1 + 4 * unit / self.temperature)

    def pool(self, d: Floats, member: NDArray[np.bool_]) -> Floats:
        logs = np.where(member, -d / self.temperature, -np.inf)
        return np.asarray(np.logaddexp.reduce(logs, 0, initial=-np.inf))

    def join(self, pool: Floats, d: Floats) -> Floats:
        return np.logaddexp(pool, -d / self.temperature)

    def cost(self, own: Floats, other: Floats) -> Floats:
        return np.asarray(np.logaddexp(0, other - own) @ self.weights)


class SwapSearch:
    """Prototypes by exact swaps: each in turn goes where the true cost, with all others in place, is least.

    A pass scores every candidate of the prototype's class in single precision; all that may be the best but
    for rounding are computed again in double. So what is accepted is the best strict improvement, and what
    remains is a swap-local optimum. No prototype goes where another of its class is (dissimilarity 0).

    Parameters
    ----------
    columns : dissimilarities of the samples, which are sorted by class.
    labels : (n,) class of each sample, 0, 1, …, ascending.
    cost : GLVQCost, SigmoidCost or RSLVQCost.
    start : the samples where the prototypes begin.
    """

    def __init__(
        self, columns: Columns, labels: Ints, cost: GLVQCost | RSLVQCost, start: Ints
    ) -> None:
        self.columns, self.labels, self.cost = columns, labels, cost
        self.indices = np.array(start)
        self.d = columns.exact(self.indices)  # of all samples to the prototypes

    def pools(self, without: int | None = None) -> tuple[Floats, Floats]:
        """What each sample sees of the prototypes of its own class and of the others."""
        own = self.labels[self.indices][:, None] == self.labels
        kept = (np.arange(len(self.indices)) != without)[:, None]
        return self.cost.pool(self.d, own & kept), self.cost.pool(self.d, ~own & kept)

    def total(self) -> float:
        return float(self.cost.cost(*self.pools()))

    def best(self, k: int, below: float) -> tuple[int, float] | None:
        """Where prototype k costs least and what, if that is below the bound."""
        mine = self.labels == self.labels[self.indices[k]]
        a, b = np.flatnonzero(mine)[[0, -1]] + (0, 1)
        own, other = self.pools(without=k)
        unit = self.columns.unit
        to_unit, scale = self.cost.scales(unit)
        near: NDArray[Any] = (own * to_unit).astype(self.cost.pool_type)
        far: NDArray[Any] = (other * to_unit).astype(self.cost.pool_type)
        weights = self.cost.weights.astype(np.float32)

        def score(rows: Ints) -> Floats:
            out = np.empty(len(rows))
            self.cost.kernel(self.columns.block(rows), near, far, weights, a, b, out, scale)
            return out

        scores = np.concatenate(in_blocks(b, score, start=a))
        rivals = mine[self.indices] & (np.arange(len(self.indices)) != k)
        scores[(self.d[rivals, a:b] == 0).any(0)] = np.inf
        scores[self.indices[rivals] - a] = np.inf
        if scores.min() == np.inf:
            return None
        # The best by exact cost has a score within twice the rounding error of the best score.
        rows = a + np.flatnonzero(scores <= scores.min() + 2 * self.cost.error(unit))
        costs = np.concatenate(
            [
                self._exact(part, mine, own, other)
                for part in np.split(rows, range(BLOCK, len(rows), BLOCK))
            ]
        )
        winner = int(np.argmin(costs))
        return (int(rows[winner]), float(costs[winner])) if costs[winner] < below else None

    def _exact(self, rows: Ints, mine: NDArray[np.bool_], own: Floats, other: Floats) -> Floats:
        d = self.columns.exact(rows)
        return self.cost.cost(
            np.where(mine, self.cost.join(own, d), own),
            np.where(mine, other, self.cost.join(other, d)),
        )

    def run(self, max_sweeps: int) -> tuple[list[float], int, bool]:
        """Swap until a whole round changes nothing: costs after each swap, sweeps begun, and if it ended."""
        n_prototypes = len(self.indices)
        history, unchanged, step = [self.total()], 0, 0
        margin = SAME * (abs(history[0]) + float(self.cost.weights.sum()))
        while unchanged < n_prototypes and step < max_sweeps * n_prototypes:
            k = step % n_prototypes
            better = self.best(k, below=history[-1] - margin)
            unchanged = 0 if better else unchanged + 1
            step += 1
            if better:
                self.indices[k], cost = better
                self.d[k] = self.columns.exact(self.indices[k : k + 1])[0]
                history.append(cost)
        return history, -(-step // n_prototypes), unchanged == n_prototypes


def starting_points(
    columns: Columns,
    labels: Ints,
    counts: Ints,
    weights: Floats,
    init: str,
    rng: np.random.RandomState,
) -> Ints:
    """`counts[c]` samples of every class c, all at different places, so fewer where it has fewer places.

    init : "greedy" (each in turn where Σ_i w_i min_k d_ik within the class is least), "kmeans++" (drawn with
        probability ∝ w_i min_k d_ik²) or "random".
    """
    chosen: list[int] = []
    for c, count in enumerate(counts):
        a, b = np.searchsorted(labels, [c, c + 1])
        w, pool, unused = weights[a:b], np.full(b - a, np.inf), np.ones(b - a, bool)
        for _ in range(count):
            free = unused & (pool > 0)
            if not free.any():
                break
            if init == "greedy":
                near, w_ = (pool / columns.unit).astype(np.float32), w.astype(np.float32)

                def spread(
                    rows: Ints, a: int = a, b: int = b, near: Any = near, w_: Any = w_
                ) -> Any:
                    return np.minimum(columns.block(rows)[:, a:b], near) @ w_

                sums = np.concatenate(in_blocks(b, spread, start=a))
                j = int(np.where(free, sums, np.inf).argmin())
            else:
                far = (
                    free * w * pool**2 if init == "kmeans++" and pool.max() < np.inf else free * 1.0
                )
                j = int(rng.choice(b - a, p=far / far.sum()))
            unused[j] = False
            pool = np.minimum(pool, columns.exact(np.array([a + j]))[0, a:b])
            chosen.append(int(a + j))
    return np.array(chosen)
