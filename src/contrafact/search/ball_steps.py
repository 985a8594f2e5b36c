"""Steps within a ball and a box: Auto-Frank-Wolfe and APGD, on one schedule.

max over x   f(x)     subject to   ‖x − x0‖_p ≤ ε,   low ≤ x ≤ high            (f = −loss)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import groupby
from typing import Literal

import torch
from torch import Tensor
from typing_extensions import override

from ..geometry.budget_allocation import power
from ..numerics import broadcast_rows
from .ball import PROJECTED, Ball, lengths
from .steps import Step

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
        self.best = ball.x0.clone()
        self.best_gradient = torch.zeros_like(ball.x0)
        self.best_loss = ball.x0.new_full((n,), torch.inf)
        self.last_loss = -self.best_loss
        self.loss_at_checkpoint = self.best_loss
        self.rises = torch.zeros_like(self.best_loss)
        self.was_halved = torch.zeros_like(self.best_loss, dtype=torch.bool)
        self.size = torch.zeros_like(self.best_loss) + size
        self.t = 0
        self.window_start = 0

    def __len__(self) -> int:
        return len(self.best_loss)

    def keep(self, which: Tensor) -> None:
        """Drop all entries but those of a mask."""
        self.ball = self.ball.take(which)
        for name, values in vars(self).items():
            if isinstance(values, Tensor):
                setattr(self, name, values[which])

    def __call__(self, theta: Tensor, gradient: Tensor, loss: Tensor) -> Tensor:
        """Return the next point of every entry."""
        self._note(theta, gradient, loss)
        restart = self._look_back()
        self.t += 1
        if bool(restart.any()):
            at_restart = broadcast_rows(restart, theta)
            theta = torch.where(at_restart, self.best, theta)
            gradient = torch.where(at_restart, self.best_gradient, gradient)
        return self._move(theta, gradient, restart)

    def _note(self, theta: Tensor, gradient: Tensor, loss: Tensor) -> None:
        """Keep the best points and count the steps that went up."""
        improved = (loss < self.best_loss).nonzero().flatten()
        # Whole rows are copied faster so than by indexing.
        self.best.index_copy_(0, improved, theta.index_select(0, improved))
        self.best_gradient.index_copy_(0, improved, gradient.index_select(0, improved))
        self.best_loss = torch.minimum(loss, self.best_loss)
        self.rises = self.rises + (loss < self.last_loss)
        self.last_loss = loss

    def _look_back(self) -> Tensor:
        """Return which entries go back to their best point, with a smaller step."""
        if self.t not in self.checkpoints:
            return torch.zeros_like(self.was_halved)
        few_rises = self.rises < RHO * (self.t - self.window_start)
        no_progress = ~self.was_halved & (self.best_loss >= self.loss_at_checkpoint)
        halved = few_rises | no_progress
        self.size = torch.where(halved, self.size / 2, self.size)
        self.was_halved = halved
        self.loss_at_checkpoint = self.best_loss
        self.window_start = self.t
        self.rises = torch.zeros_like(self.rises)
        return halved

    @abstractmethod
    def _move(self, theta: Tensor, gradient: Tensor, restart: Tensor) -> Tensor:
        """Return the next points; `restart` marks entries that were sent back to their best."""

    def _step_size(self, theta: Tensor) -> Tensor:
        return broadcast_rows(self.size, theta)


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
        v = self.ball.farthest(-gradient)
        return v.lerp_(theta, 1 - self._step_size(theta))


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
        step = descent_step(self.ball, theta, gradient, self.size, self.steepest)
        z = self.ball.bring_in(step.add_(theta))
        if self.t > 1:
            # x ← x + a (z − x) + (1 − a) (x − x_before) = a z + (1 − a) (2 x − x_before);
            # where a run starts anew there is no momentum.
            a = torch.where(restart, 1.0, self.MOMENTUM).to(theta)
            ahead = self.previous.neg_().add_(theta, alpha=2)
            z = self.ball.bring_in(z.lerp_(ahead, broadcast_rows(1 - a, theta)))
        self.previous.copy_(theta)
        return z


def descent_step(
    ball: Ball, theta: Tensor, gradient: Tensor, size: Tensor, steepest: bool
) -> Tensor:
    """Return a step of descent, of a given length in the norm of the ball.

    Parameters
    ----------
    ball : Ball
        The balls.
    theta : Tensor of shape (n, *shape)
        Points of them.
    gradient : Tensor of shape (n, *shape)
        Gradient of the loss there.
    size : Tensor of shape (n,)
        Length of the step.
    steepest : bool
        Whether to take the steepest direction in the norm, for 1 < p < inf; else the gradient.

    Returns
    -------
    Tensor of shape (n, *shape)
        The step. Where points are retracted, values at the bound they would have to cross get no
        share of its length; projections deal with them.
    """
    p = ball.p
    sign = gradient.sign().neg_()
    if p == math.inf:
        return sign.mul_(broadcast_rows(size, sign))
    largest = lengths(gradient, math.inf).clamp_min(torch.finfo(gradient.dtype).tiny)
    share = gradient.abs().div_(broadcast_rows(largest, gradient))
    if p not in PROJECTED:
        share.masked_fill_(ball.clip(theta + sign) == theta, 0.0)
        if steepest:
            share = power(share, 1 / (p - 1), out=torch.empty_like(share))
    length = lengths(share, p).clamp_min(1e-12)
    return sign.mul_(share).mul_(broadcast_rows(size / length, sign))


class SparseProjectedGradient(BallStep):
    """Take steps of l1-APGD: sign steps on the k steepest coordinates, projected exactly.

    k starts at 0.2 d, or, for a run that goes on from a known point x, at ‖x − x0‖₀ / 1.5 if that
    is less. Every 0.04 n steps: where the best point has become sparser by more than a twentieth
    the step is ε again, from the best point; elsewhere it shrinks by 1.5. Then
    k = ‖x_best − x0‖₀ / 1.5.

    Parameters
    ----------
    ball : Ball
        Where to stay.
    n_iter : int
        Number of steps.
    known : Tensor of shape (n, *shape), optional
        The point that a run goes on from.

    References
    ----------
    Croce, Hein: Mind the box: l1-APGD for sparse adversarial attacks on image classifiers.
    ICML 2021. https://doi.org/10.48550/arXiv.2103.01208
    """

    def __init__(self, ball: Ball, n_iter: int, known: Tensor | None = None) -> None:
        super().__init__(ball, n_iter, ball.eps)
        self.every = max(1, round(0.04 * n_iter))
        d = ball.x0[0].numel() if len(ball.x0) else 1
        self.nonzeros = torch.zeros_like(self.best_loss) + d
        self.k = torch.zeros_like(self.best_loss) + max(1.0, 0.2 * d)
        if known is not None:
            self.nonzeros = self._count(known)
            self.k = torch.minimum(self.k, (self.nonzeros / 1.5).clamp_min(1.0))

    def _count(self, x: Tensor) -> Tensor:
        """Return ‖x − x0‖₀, (n,)."""
        return (x != self.ball.x0).flatten(1).sum(1).to(self.size)

    @override
    def _look_back(self) -> Tensor:
        if self.t == 0 or self.t % self.every:
            return torch.zeros_like(self.was_halved)
        nonzeros = self._count(self.best)
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
        ball = self.ball
        # Values that are frozen, or at the bound they would have to cross, are none of the k.
        at_high = (theta >= ball.high) & (gradient < 0)
        at_low = (theta <= ball.low) & (gradient > 0)
        stuck = ~ball.free | at_high | at_low
        slope = gradient.masked_fill(stuck, 0.0).flatten(1)
        k = self.k.floor()
        least = _kth_largest(slope.abs(), k)
        length = self.size / k
        step = slope.sign().mul_(slope.abs() >= least).mul_(-length[:, None])
        return ball.nearest(step.reshape(theta.shape).add_(theta))


def _kth_largest(values: Tensor, k: Tensor) -> Tensor:
    """Return the k-th largest value of every row, (n, 1); selection takes a tenth of sorting."""
    d = values.shape[1]
    rows = zip(values, k.long().clamp(1, d).tolist(), strict=True)
    return torch.stack([row.kthvalue(d + 1 - count).values for row, count in rows])[:, None]


class StepsInTurn:
    """Move the entries of a batch by several steps, each those that stand in a row for it.

    Parameters
    ----------
    steps : list of BallStep
        The steps, in the order of the entries.
    """

    def __init__(self, steps: list[BallStep]) -> None:
        self.steps = steps

    def __call__(self, theta: Tensor, gradient: Tensor, loss: Tensor) -> Tensor:
        """Return the next point of every entry."""
        sizes = [len(step) for step in self.steps]
        parts = zip(*(values.split(sizes) for values in (theta, gradient, loss)), strict=True)
        return torch.cat([step(*part) for step, part in zip(self.steps, parts, strict=True)])

    def keep(self, which: Tensor) -> None:
        """Drop all entries but those of a mask."""
        sizes = [len(step) for step in self.steps]
        for step, kept in zip(self.steps, which.split(sizes), strict=True):
            step.keep(kept)


def ball_steps(
    optimizers: Sequence[Optimizer], ball: Ball, n_iter: int, known: Tensor | None = None
) -> Step:
    """Make the steps of a batch.

    Parameters
    ----------
    optimizers : sequence of {"afw", "apgd", "apgd-l2"}
        The optimizer of each entry; equal ones stand in a row.
    ball : Ball
        Where to stay.
    n_iter : int
        Number of steps.
    known : Tensor of shape (n, *shape), optional
        The points of earlier runs that these go on from.

    Returns
    -------
    Step
        The steps, to be passed to `minimize`.
    """
    steps = []
    first = 0
    for optimizer, group in groupby(optimizers):
        after = first + len(list(group))
        part = slice(first, after)
        point = None if known is None else known[part]
        steps.append(ball_step(optimizer, ball.take(part), n_iter, point))
        first = after
    return steps[0] if len(steps) == 1 else StepsInTurn(steps)


def ball_step(
    optimizer: Optimizer, ball: Ball, n_iter: int, known: Tensor | None = None
) -> BallStep:
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
    known : Tensor of shape (n, *shape), optional
        The points of earlier runs that these go on from.

    Returns
    -------
    BallStep
        The step, to be passed to `minimize`.
    """
    if optimizer == "afw":
        return FrankWolfe(ball, n_iter)
    if ball.p == 1:
        return SparseProjectedGradient(ball, n_iter, known)
    return ProjectedGradient(ball, n_iter, steepest=optimizer == "apgd")
