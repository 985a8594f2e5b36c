"""Steps within a ball and a box: Auto-Frank-Wolfe and APGD, on one schedule.

max over x   f(x)     subject to   ‖x − x0‖_p ≤ ε,   low ≤ x ≤ high            (f = −loss)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor
from typing_extensions import override

from ..numerics import broadcast_rows
from .ball import Ball

#: share of rising steps below which the step size is halved
RHO = 0.75


def checkpoints(n: int) -> list[int]:
    """Compute after which of n steps to look back.

    Windows start at 0.22 n steps, each next one 0.03 n shorter, at least 0.06 n.

    >>> checkpoints(75)
    [16, 30, 42, 52, 60, 66, 70, 74]
    """
    points: list[int] = []
    shorter_by = max(math.floor(0.03 * n), 1)
    window = max(math.floor(0.22 * n), 1)
    at = 0
    while at + window <= n:
        at += window
        points.append(at)
        window = max(window - shorter_by, math.floor(0.06 * n), 1)
    return points


class BallStep(ABC):
    """Keep the best point of every entry with its gradient, and look back at checkpoints.

    At a checkpoint the step is halved where fewer than ρ = 0.75 of the window's steps went up, or
    where it was not halved last time and the best did not improve since; those entries go on from
    their best point.

    Parameters
    ----------
    ball : Ball
        Where to stay.
    n_iter : int
        Number of steps.
    size : float or Tensor of shape (n,)
        Step size to start with.
    """

    def __init__(self, ball: Ball, n_iter: int, size: float | Tensor) -> None:
        n = len(ball.x0)
        self.ball = ball
        self.checkpoints = checkpoints(n_iter)
        self.active = torch.arange(n, device=ball.x0.device)
        self.best = ball.x0.clone()
        self.best_gradient = torch.zeros_like(ball.x0)
        self.best_loss = ball.x0.new_full((n,), torch.inf)
        self.last_loss = self.best_loss.clone()
        self.loss_at_checkpoint = self.best_loss.clone()
        self.rises = torch.zeros_like(self.active)
        self.was_halved = torch.zeros_like(self.active, dtype=torch.bool)
        self.size = torch.zeros_like(self.best_loss) + size
        self.t = 0
        self.window_start = 0

    def keep(self, which: Tensor) -> None:
        """Drop all entries but those of a mask."""
        self.active = self.active[which]

    def __call__(self, theta: Tensor, gradient: Tensor, loss: Tensor) -> Tensor:
        """Return the next point of every entry."""
        active = self.active
        self._note(theta, gradient, loss)
        looks_back = self.t in self.checkpoints
        restart = self._look_back()[active]
        self.t += 1
        if looks_back and bool(restart.any()):
            at_restart = broadcast_rows(restart, theta)
            theta = torch.where(at_restart, self.best[active], theta)
            gradient = torch.where(at_restart, self.best_gradient[active], gradient)
        return self._move(theta, gradient, restart)

    def _note(self, theta: Tensor, gradient: Tensor, loss: Tensor) -> None:
        """Keep the best points and count the steps that went up."""
        active = self.active
        better = (loss < self.best_loss[active]).nonzero().flatten()
        improved = active[better]
        self.best[improved] = theta[better]
        self.best_gradient[improved] = gradient[better]
        self.best_loss[improved] = loss[better]
        self.rises[active] += (loss < self.last_loss[active]) & (self.t > 0)
        self.last_loss[active] = loss

    def _look_back(self) -> Tensor:
        """Return which entries go back to their best point, with a smaller step."""
        if self.t not in self.checkpoints:
            return torch.zeros_like(self.was_halved)
        few_rises = self.rises < RHO * (self.t - self.window_start)
        no_progress = ~self.was_halved & (self.best_loss >= self.loss_at_checkpoint)
        halved = few_rises | no_progress
        self.size = torch.where(halved, self.size / 2, self.size)
        self.was_halved = halved
        self.loss_at_checkpoint = self.best_loss.clone()
        self.window_start = self.t
        self.rises = torch.zeros_like(self.rises)
        return halved

    @abstractmethod
    def _move(self, theta: Tensor, gradient: Tensor, restart: Tensor) -> Tensor:
        """Return the next points; `restart` marks entries that were sent back to their best."""

    def _step_size(self, theta: Tensor) -> Tensor:
        return broadcast_rows(self.size[self.active], theta)


class FrankWolfe(BallStep):
    """Take steps of Auto-Frank-Wolfe: x ← x + γ (v − x), γ = 0.75 at first.

    v is the point of the ball farthest along the gradient; every iterate is in the ball, for every
    p ≥ 1.

    References
    ----------
    Boreiko, Augustin, Croce, Berens, Hein: Sparse visual counterfactual explanations in image
    space. GCPR 2022. https://doi.org/10.48550/arXiv.2205.07972
    """

    def __init__(self, ball: Ball, n_iter: int) -> None:
        super().__init__(ball, n_iter, 0.75)

    @override
    def _move(self, theta: Tensor, gradient: Tensor, restart: Tensor) -> Tensor:
        v = self.ball.take(self.active).farthest(-gradient)
        return theta + self._step_size(theta) * (v - theta)


class ProjectedGradient(BallStep):
    """Take steps of APGD for p = 2 and ∞: steps of 2 ε with momentum, projected exactly.

    References
    ----------
    Croce, Hein: Reliable evaluation of adversarial robustness with an ensemble of diverse
    parameter-free attacks. ICML 2020. https://doi.org/10.48550/arXiv.2003.01690
    """

    MOMENTUM = 0.75

    def __init__(self, ball: Ball, n_iter: int) -> None:
        super().__init__(ball, n_iter, 2 * ball.eps)
        self.previous = ball.x0.clone()

    @override
    def _move(self, theta: Tensor, gradient: Tensor, restart: Tensor) -> Tensor:
        ball = self.ball.take(self.active)
        direction = -self._unit(gradient)
        z = ball.nearest(theta + self._step_size(theta) * direction)
        first = restart | (self.t == 1)
        before = torch.where(
            broadcast_rows(first, theta),
            theta,
            self.previous[self.active],
        )
        a = torch.where(first, 1.0, self.MOMENTUM).to(theta)
        a = broadcast_rows(a, theta)
        self.previous[self.active] = theta
        return ball.nearest(theta + a * (z - theta) + (1 - a) * (theta - before))

    def _unit(self, gradient: Tensor) -> Tensor:
        """Return the steepest direction of length 1 in the norm."""
        if self.ball.p != 2:
            return gradient.sign()
        tiny = torch.finfo(gradient.dtype).tiny
        largest = gradient.abs().flatten(1).amax(1).clamp_min(tiny)
        scaled = gradient / broadcast_rows(largest, gradient)
        length = torch.linalg.vector_norm(scaled.flatten(1), dim=1).clamp_min(1e-12)
        return scaled / broadcast_rows(length, gradient)


class SparseProjectedGradient(BallStep):
    """Take steps of l1-APGD: sign steps on the k steepest coordinates, projected exactly.

    k starts at 0.2 d. Every 0.04 n steps: where the best point has become sparser by more than a
    twentieth the step is ε again, from the best point; elsewhere it shrinks by 1.5. Then
    k = ‖x_best − x0‖₀ / 1.5.

    References
    ----------
    Croce, Hein: Mind the box: l1-APGD for sparse adversarial attacks on image classifiers.
    ICML 2021. https://doi.org/10.48550/arXiv.2103.01208
    """

    def __init__(self, ball: Ball, n_iter: int) -> None:
        super().__init__(ball, n_iter, ball.eps)
        self.every = max(1, round(0.04 * n_iter))
        d = ball.x0[0].numel() if len(ball.x0) else 1
        self.nonzeros = torch.zeros_like(self.best_loss) + d
        self.k = torch.zeros_like(self.best_loss) + max(1.0, 0.2 * d)

    @override
    def _look_back(self) -> Tensor:
        if self.t == 0 or self.t % self.every:
            return torch.zeros_like(self.was_halved)
        nonzeros = (self.best != self.ball.x0).flatten(1).sum(1).to(self.size)
        sparser = nonzeros < 0.95 * self.nonzeros
        self.size = torch.where(
            sparser,
            self.ball.eps.to(self.size),
            self.size / 1.5,
        )
        self.k = (nonzeros / 1.5).clamp_min(1.0)
        self.nonzeros = nonzeros
        return sparser

    @override
    def _move(self, theta: Tensor, gradient: Tensor, restart: Tensor) -> Tensor:
        ball = self.ball.take(self.active)
        # Values that are frozen, or at the bound they would have to cross, are none of the k.
        at_high = (theta >= ball.high) & (gradient < 0)
        at_low = (theta <= ball.low) & (gradient > 0)
        stuck = ~ball.free | at_high | at_low
        slope = gradient.masked_fill(stuck, 0.0).flatten(1)
        steepest = slope.abs().argsort(dim=1, descending=True, stable=True)
        rank = steepest.argsort(dim=1)
        k = self.k[self.active, None].floor()
        direction = torch.where(rank < k, -slope.sign() / k, 0.0).reshape(theta.shape)
        return ball.nearest(theta + self._step_size(theta) * direction)


def ball_step(optimizer: str, ball: Ball, n_iter: int) -> BallStep:
    """Make the step of an optimizer.

    Parameters
    ----------
    optimizer : {"afw", "apgd"}
        "afw" (Auto-Frank-Wolfe) for every p, "apgd" for p = 1, 2 and inf.
    ball : Ball
        Where to stay.
    n_iter : int
        Number of steps.

    Returns
    -------
    BallStep
        The step, to be passed to `minimize`.
    """
    if optimizer == "afw":
        return FrankWolfe(ball, n_iter)
    if ball.p == 1:
        return SparseProjectedGradient(ball, n_iter)
    return ProjectedGradient(ball, n_iter)
