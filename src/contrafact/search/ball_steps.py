"""Steps within a ball and a box: Auto-Frank-Wolfe and APGD, on one schedule.

max over x   f(x)     subject to   ‖x − x0‖_p ≤ ε,   low ≤ x ≤ high            (f = −loss)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Literal

import torch
from torch import Tensor
from typing_extensions import override

from ..numerics import broadcast_rows
from .ball import PROJECTED, Ball

Optimizer = Literal["afw", "apgd", "apgd-l2"]
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
    """Take steps of APGD: steps of 2 ε with momentum, brought back into the ball.

    For p = 2 and ∞ points are projected exactly; other balls have no such projection, and points
    are retracted, see `Ball.retract`.

    Parameters
    ----------
    ball : Ball
        Where to stay.
    n_iter : int
        Number of steps.
    steepest : bool, default=True
        Whether to move along the steepest direction in the norm of the ball; else along the
        gradient.

    References
    ----------
    Croce, Hein: Reliable evaluation of adversarial robustness with an ensemble of diverse
    parameter-free attacks. ICML 2020. https://doi.org/10.48550/arXiv.2003.01690
    """

    MOMENTUM = 0.75

    def __init__(self, ball: Ball, n_iter: int, steepest: bool = True) -> None:
        super().__init__(ball, n_iter, 2 * ball.eps)
        self.previous = ball.x0.clone()
        self.steepest = steepest

    @override
    def _move(self, theta: Tensor, gradient: Tensor, restart: Tensor) -> Tensor:
        ball = self.ball.take(self.active)
        step = descent_direction(ball, theta, gradient, self.steepest)
        z = ball.bring_in(step.mul_(self._step_size(theta)).add_(theta))
        if self.t > 1:
            # Where a run starts anew there is no momentum.
            a = torch.where(restart, 1.0, self.MOMENTUM).to(theta)
            a = broadcast_rows(a, theta)
            momentum = theta - self.previous[self.active]
            z = ball.bring_in(z.sub_(theta).mul_(a).add_(momentum.mul_(1 - a)).add_(theta))
        self.previous[self.active] = theta
        return z


def descent_direction(ball: Ball, theta: Tensor, gradient: Tensor, steepest: bool) -> Tensor:
    """Return the direction of descent of length 1 in the norm of the ball.

    Parameters
    ----------
    ball : Ball
        The balls.
    theta : Tensor of shape (n, *shape)
        Points of them.
    gradient : Tensor of shape (n, *shape)
        Gradient of the loss there.
    steepest : bool
        Whether to take the steepest direction in the norm, for 1 < p < inf; else the gradient.

    Returns
    -------
    Tensor of shape (n, *shape)
        The direction. Where points are retracted, values at the bound they would have to cross get
        no share of its length; projections deal with them.
    """
    p = ball.p
    if p == math.inf:
        return gradient.sign().neg_()
    tiny = torch.finfo(gradient.dtype).tiny
    largest = torch.linalg.vector_norm(gradient.flatten(1), math.inf, dim=1).clamp_min(tiny)
    step = gradient / broadcast_rows(-largest, gradient)
    if p not in PROJECTED:
        blocked = ((theta >= ball.high) & (step > 0)) | ((theta <= ball.low) & (step < 0))
        step.masked_fill_(blocked, 0.0)
        if steepest:
            step = step.sign().mul_(step.abs_().pow_(1 / (p - 1)))
    length = torch.linalg.vector_norm(step.flatten(1), p, dim=1).clamp_min(1e-12)
    return step.div_(broadcast_rows(length, step))


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
        k = self.k[self.active].floor()
        least = _kth_largest(slope.abs(), k)
        length = self.size[self.active] / k
        step = slope.sign().mul_(slope.abs() >= least).mul_(-length[:, None])
        return ball.nearest(step.reshape(theta.shape).add_(theta))


def _kth_largest(values: Tensor, k: Tensor) -> Tensor:
    """Return the k-th largest value of every row, (n, 1); selection takes a tenth of sorting."""
    d = values.shape[1]
    rows = zip(values, k.long().clamp(1, d).tolist(), strict=True)
    return torch.stack([row.kthvalue(d + 1 - count).values for row, count in rows])[:, None]


def ball_step(optimizer: Optimizer, ball: Ball, n_iter: int) -> BallStep:
    """Make the step of an optimizer.

    Parameters
    ----------
    optimizer : {"afw", "apgd", "apgd-l2"}
        Auto-Frank-Wolfe, APGD, or APGD along the gradient where others take the steepest direction
        in the norm.
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
    return ProjectedGradient(ball, n_iter, steepest=optimizer == "apgd")
