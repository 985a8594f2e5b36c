"""Steps of the gradient loop: from θ, its gradient and its loss to the next θ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from ..numerics import broadcast_rows
from ..numerics.tensors import is_dense
from ..validation import Real, Rule, Satisfies, check_parameters


def _are_decays(value: Any) -> bool:
    """Return whether a value is a pair of numbers in [0, 1)."""
    decay = Real(at_least=0, below=1)
    return isinstance(value, tuple | list) and len(value) == 2 and all(map(decay.accepts, value))


def _are_weights(value: Any) -> bool:
    """Return whether a value is a tensor of positive, finite floats."""
    if not is_dense(value) or not value.is_floating_point() or value.ndim < 2:
        return False
    return bool((value.isfinite() & (value > 0)).all())


class Step(Protocol):
    """Move θ of every entry; entries that leave the search are dropped with `keep`."""

    def __call__(self, theta: Tensor, gradient: Tensor, loss: Tensor) -> Tensor:
        """Return the next θ, (n, ...)."""
        ...

    def keep(self, which: Tensor) -> None:
        """Drop the state of all entries but those of a mask."""
        ...


class Adam:
    """Take steps of Adam, element by element, so that a batch is as many separate runs.

    Parameters
    ----------
    learning_rate : float
        Step size.
    betas : tuple of float, default=(0.9, 0.999)
        Decay of the running means of gradient and squared gradient.
    eps : float, default=1e-8
        Added to the denominator.

    References
    ----------
    Kingma, Ba: Adam: a method for stochastic optimization. ICLR 2015.
    https://doi.org/10.48550/arXiv.1412.6980
    """

    rules: ClassVar[Mapping[str, Rule]] = {
        "learning_rate": Real(above=0),
        "betas": Satisfies(_are_decays, "two numbers at least 0 and below 1"),
        "eps": Real(at_least=0),
    }

    def __init__(
        self,
        learning_rate: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        check_parameters("Adam", self.rules, locals())
        self.learning_rate = learning_rate
        self.betas = betas
        self.eps = eps
        self.t = 0
        self.m = torch.empty(0)
        self.v = torch.empty(0)

    def __call__(self, theta: Tensor, gradient: Tensor, loss: Tensor) -> Tensor:
        """Return the next θ, (n, ...)."""
        if self.t == 0:
            self.m = torch.zeros_like(theta)
            self.v = torch.zeros_like(theta)
        self.t += 1
        beta_1, beta_2 = self.betas
        self.m = self.m.mul(beta_1).add_(gradient, alpha=1 - beta_1)
        self.v = self.v.mul(beta_2).addcmul_(gradient, gradient, value=1 - beta_2)
        scale = self.v.div(1 - beta_2**self.t).sqrt_().add_(self.eps)
        step_size = self.learning_rate / (1 - beta_1**self.t)
        return theta - step_size * self.m / scale

    def keep(self, which: Tensor) -> None:
        """Drop the state of all entries but those of a mask."""
        if self.t:
            self.m = self.m[which]
            self.v = self.v[which]


class SteepestDescent:
    """Take steps of a fixed length down the gradient, in a metric where element i costs w_i.

        d_i ∝ ∇_i / w_i

    The length is the root mean square of the step, so it does not depend on the number of elements.

    Parameters
    ----------
    learning_rate : float
        Length of a step.
    weights : Tensor of shape (n, ...)
        w, per entry and element.
    """

    rules: ClassVar[Mapping[str, Rule]] = {
        "learning_rate": Real(above=0),
        "weights": Satisfies(_are_weights, "a tensor of finite numbers above 0, one row or more"),
    }

    def __init__(self, learning_rate: float, weights: Tensor) -> None:
        check_parameters("SteepestDescent", self.rules, locals())
        self.learning_rate = learning_rate
        self.weights = weights

    def __call__(self, theta: Tensor, gradient: Tensor, loss: Tensor) -> Tensor:
        """Return the next θ, (n, ...)."""
        direction = gradient / self.weights
        length = direction.flatten(1).square().mean(1).sqrt()
        length = length.clamp_min(torch.finfo(theta.dtype).tiny)
        return theta - self.learning_rate * direction / broadcast_rows(length, theta)

    def keep(self, which: Tensor) -> None:
        """Drop the weights of all entries but those of a mask."""
        self.weights = self.weights[which]
