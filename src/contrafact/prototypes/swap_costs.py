"""Costs of a set of prototypes for the swap search.

A cost is a function of what each sample sees of the prototypes of its own class and of the others:
its pools. How a pool is made of dissimilarities depends on the cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from .swap_kernels import Floats, score_glvq, score_margin, score_rslvq


class GLVQCost:
    """Σ_i w_i f(μ_i) with μ = (d⁺ − d⁻)/(d⁺ + d⁻) and f(μ) = −log(4 − μ); 0/0 counts as 0.

    A pool is the dissimilarity to the nearest prototype.

    Parameters
    ----------
    weights : array of shape (n,)
        w.
    margin : float, optional
        f(max(μ + margin, 0)) takes the place of f(μ); from 0 to 2.
    """

    pool_type: type = np.float32
    slope = 0.0
    precision = 1e-6  # a bound on the rounding error of f(μ) in the kernel

    def __init__(self, weights: Floats, margin: float | None = None) -> None:
        self.weights = weights
        self.margin = margin
        self.kernel: Any = score_glvq if margin is None else score_margin

    def scales(self, unit: float) -> tuple[float, Any]:
        """Return the factor that a pool takes before the kernel, and the kernel's last argument."""
        if self.margin is None:
            return 1 / unit, self.slope
        return 1 / unit, (self.slope, float(self.margin))

    def error(self, unit: float) -> float:
        """Return a bound on the rounding error of a score."""
        return self.precision * float(self.weights.sum())

    def pool(
        self,
        d: Floats,
        member: NDArray[np.bool_],
    ) -> Floats:
        """Compute the pools (n,) of some prototypes.

        Parameters
        ----------
        d : array of shape (K, n)
            Dissimilarities of the samples to the prototypes.
        member : bool array of shape (K, n)
            Which prototypes count for a sample.

        Returns
        -------
        array of shape (n,)
            The pools; inf where no prototype counts.
        """
        counted = np.where(member, d, np.inf)
        pool: Floats = counted.min(0, initial=np.inf)
        return pool

    def join(self, pool: Floats, d: Floats) -> Floats:
        """Return pools (..., n) to which a prototype at dissimilarities d (..., n) is added."""
        return np.minimum(pool, d)

    def cost(self, own: Floats, other: Floats) -> Floats:
        """Compute the cost (...) of pools (..., n) of the own class and of the others."""
        total = own + other
        mu = np.zeros_like(total)
        np.divide(
            own - other,
            total,
            out=mu,
            where=total > 0,
        )
        if self.margin is not None:
            mu = np.maximum(mu + self.margin, 0)
        return np.asarray(self.f(mu) @ self.weights)

    def f(self, mu: Floats) -> Floats:
        """Compute f(μ)."""
        return -np.log(4 - mu)


class SigmoidCost(GLVQCost):
    """The same with f(μ) = βμ/√(1 + β²μ²): the steeper, the closer to counting errors.

    Parameters
    ----------
    weights : array of shape (n,)
        w.
    beta : float
        β.
    margin : float, optional
        As in `GLVQCost`.
    """

    def __init__(self, weights: Floats, beta: float, margin: float | None = None) -> None:
        super().__init__(weights, margin)
        self.slope = beta
        self.precision = 4e-7 * (1 + beta)  # f rises by β at most where μ rises by 1

    @override
    def f(self, mu: Floats) -> Floats:
        scaled = self.slope * mu
        return np.asarray(scaled / np.sqrt(1 + scaled**2))


class RSLVQCost:
    """Σ_i −w_i log(Σ_{k of own class} e^{−d_k/T} / Σ_k e^{−d_k/T}).

    A pool is the logarithm of such a sum.

    Parameters
    ----------
    weights : array of shape (n,)
        w.
    temperature : float
        T.
    """

    kernel = staticmethod(score_rslvq)
    pool_type: type = np.float64

    def __init__(self, weights: Floats, temperature: float) -> None:
        self.weights = weights
        self.temperature = temperature

    def scales(self, unit: float) -> tuple[float, float]:
        """Return the factor that a pool takes before the kernel, and the kernel's last argument."""
        return 1.0, -unit / self.temperature

    def error(self, unit: float) -> float:
        """Return a bound on the rounding error of a score."""
        total_weight = float(self.weights.sum())
        return 2e-7 * total_weight * (1 + 4 * unit / self.temperature)

    def pool(
        self,
        d: Floats,
        member: NDArray[np.bool_],
    ) -> Floats:
        """Compute the pools (n,) of some prototypes.

        Parameters
        ----------
        d : array of shape (K, n)
            Dissimilarities of the samples to the prototypes.
        member : bool array of shape (K, n)
            Which prototypes count for a sample.

        Returns
        -------
        array of shape (n,)
            The pools; −inf where no prototype counts.
        """
        logs = np.where(member, -d / self.temperature, -np.inf)
        pool = np.logaddexp.reduce(logs, 0, initial=-np.inf)
        return np.asarray(pool)

    def join(self, pool: Floats, d: Floats) -> Floats:
        """Return pools (..., n) to which a prototype at dissimilarities d (..., n) is added."""
        return np.logaddexp(pool, -d / self.temperature)

    def cost(self, own: Floats, other: Floats) -> Floats:
        """Compute the cost (...) of pools (..., n) of the own class and of the others."""
        return np.asarray(np.logaddexp(0, other - own) @ self.weights)


Cost = GLVQCost | RSLVQCost
