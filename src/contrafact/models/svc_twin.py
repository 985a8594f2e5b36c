"""The differentiable twin of a support vector classifier, whose kernel width is not public."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import least_squares
from torch import Tensor

from .twin_tensors import Twin, as_logits, copied


def svc_twin(estimator: Any) -> Twin | None:
    """Decide by d(x) = Σ_i α_i K(x, s_i) + b over the support vectors s_i, for two classes."""
    # With probability=True the sigmoid is refitted (Platt) and may even disagree with the decision
    # function; with more classes the decision function counts votes. Neither has an exact gradient.
    if len(estimator.classes_) != 2 or getattr(estimator, "probability", False) is True:
        return None
    if estimator.kernel not in ("linear", "poly", "rbf", "sigmoid"):
        return None
    kernel = _Kernel(estimator.kernel, estimator.degree, estimator.coef0)
    S = copied(estimator.support_vectors_)
    alpha = copied(estimator.dual_coef_)
    b = copied(estimator.intercept_)

    def decide(x: Tensor, gamma: float) -> Tensor:
        similarity = kernel(x, S.to(x), gamma)  # (n, support vectors)
        weights = alpha.to(x)
        bias = b.to(x)
        return similarity @ weights.T + bias

    gamma = _gamma(estimator, S, decide)
    if gamma is None:
        return None
    return lambda x: as_logits(decide(x, gamma))


@dataclass(frozen=True)
class _Kernel:
    """Compute K(x, s) as an SVC does."""

    name: str
    degree: int
    coef0: float

    def __call__(self, x: Tensor, s: Tensor, gamma: float) -> Tensor:
        if self.name == "linear":
            return x @ s.T
        if self.name == "rbf":
            return torch.exp(-gamma * _squared_distances(x, s))
        affine = (gamma * x) @ s.T + self.coef0
        if self.name == "poly":
            return affine**self.degree
        return torch.tanh(affine)


def _squared_distances(x: Tensor, s: Tensor) -> Tensor:
    """Compute |x - s|² = |x|² + |s|² - 2 x·s, (n, support vectors)."""
    # Far from the origin this loses digits, so the origin is moved to the support vectors.
    origin = s.mean(dim=0)
    x = x - origin
    s = s - origin
    x_squared = x.square().sum(1, keepdim=True)
    s_squared = s.square().sum(1)
    return x_squared + s_squared - 2 * x @ s.T


def _gamma(
    estimator: Any,
    S: Tensor,
    decide: Callable[[Tensor, float], Tensor],
) -> float | None:
    """Return γ of a kernel; the value behind gamma="scale" is recovered by `_fit_gamma`."""
    if estimator.gamma == "auto" or estimator.kernel == "linear":
        return float(1 / S.shape[1])
    if estimator.gamma == "scale":
        return _fit_gamma(estimator, S, decide)
    return float(estimator.gamma)


def _fit_gamma(
    estimator: Any,
    S: Tensor,
    decide: Callable[[Tensor, float], Tensor],
) -> float | None:
    """Recover γ = 1 / (features · variance of the training rows) from decision values.

    The value is not public and the training rows are not kept. The support vectors are some of
    them: their variance is close enough to start a least-squares fit of the decision values, which
    ends exact. None where it does not.
    """
    variance = float(S.var(correction=0))
    if variance == 0:
        return None
    some = S[:: max(1, len(S) // 32)]
    # The smaller probes are for kernels that saturate at the data.
    probes = torch.cat([some, some / 30, some / 1000])
    target = estimator.decision_function(probes.numpy())

    def residual(log_gamma: Any) -> Any:
        gamma = float(np.exp(log_gamma[0]))
        return decide(probes, gamma)[:, 0].numpy() - target

    guess = -np.log(S.shape[1] * variance)
    grid = guess + np.linspace(-5, 5, 41)
    start = min(grid, key=lambda log_gamma: np.square(residual([log_gamma])).sum())
    fit = least_squares(
        residual,
        [start],
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-15,
    )
    error = np.abs(fit.fun).max()
    if error < 1e-6 * (1 + np.abs(target).max()):
        return float(np.exp(fit.x[0]))
    return None
