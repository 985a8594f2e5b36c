"""Steps inside an l_p ball and a box: Auto-Frank-Wolfe and APGD, on one schedule.

max over x   f(x)     subject to   ‖x − x0‖_p ≤ ε,   lo ≤ x ≤ hi            (f = −loss)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ..geometry import project
from ..geometry.linear_maximization import linear_maximum

RHO = 0.75


def checkpoints(n: int) -> list[int]:
    """After which of n steps to look back: windows of 0.22 n, each next 0.03 n shorter, at least 0.06 n.

    >>> checkpoints(75)
    [16, 30, 42, 52, 60, 66, 70, 74]
    """
    points: list[int] = []
    at, window = 0, max(math.floor(0.22 * n), 1)
    while at + window <= n:
        at += window
        points.append(at)
        window = max(window - max(math.floor(0.03 * n), 1), math.floor(0.06 * n), 1)
    return points


@dataclass(frozen=True)
class Ball:
    """{x : ‖x − x0‖_p ≤ ε, lo ≤ x ≤ hi, x = x0 where not `free`}: ε and `free` per entry, one box for all."""

    x0: Tensor
    eps: Tensor
    p: float
    lo: Tensor
    hi: Tensor
    free: Tensor

    @cached_property
    def all_free(self) -> bool:
        return bool(self.free.all())

    def take(self, rows: Tensor) -> Ball:
        if len(rows) == len(self.x0) and bool((rows.diff() == 1).all()):
            return self  # the rows in their order, as long as nobody has left
        return Ball(self.x0[rows], self.eps[rows], self.p, self.lo, self.hi, self.free[rows])

    def farthest(self, w: Tensor) -> Tensor:
        """The point of the ball where ⟨w, x⟩ is largest."""
        # `lmo` without its checks: a step is taken thousands of times, and the loop guards against NaN.
        lo, hi = (bound.reshape(1, -1) for bound in (self.lo, self.hi))
        w, x0 = (w if self.all_free else w * self.free).flatten(1), self.x0.flatten(1)
        delta = linear_maximum(w, x0, self.eps.to(x0)[:, None], self.p, lo, hi, x0.dtype)
        return self.x0 + delta.reshape(self.x0.shape)

    def nearest(self, x: Tensor) -> Tensor:
        """The point of the ball nearest to x."""
        x = torch.where(self.free, x, self.x0)
        inside = torch.minimum(torch.maximum(self.x0, self.lo), self.hi)
        return torch.where(
            self.free, project(x, inside, self.eps, self.p, (self.lo, self.hi)), self.x0
        )

    def norm(self, x: Tensor) -> Tensor:
        """‖x − x0‖_p."""
        length: Tensor = torch.linalg.vector_norm((x - self.x0).double().flatten(1), self.p, dim=1)
        return length

    def gap(self, x: Tensor, w: Tensor) -> Tensor:
        """The Frank-Wolfe gap max ⟨w, v − x⟩ over v in the ball: 0 where x is stationary, w = ∇f(x)."""
        return (w * (self.farthest(w) - x)).double().flatten(1).sum(1).clamp_min(0)


class BallStep(ABC):
    """What the steps share: the best point of every entry and its gradient, and looking back at checkpoints.

    At a checkpoint the step is cut where fewer than ρ = 0.75 of the window's steps went up, or where it was
    not cut last time and the best did not improve since; those entries go on from their best point.
    """

    def __init__(self, ball: Ball, n_iter: int, size: float | Tensor) -> None:
        n = len(ball.x0)
        self.ball, self.checks = ball, checkpoints(n_iter)
        self.active = torch.arange(n, device=ball.x0.device)
        self.best, self.best_gradient = ball.x0.clone(), torch.zeros_like(ball.x0)
        self.best_loss = ball.x0.new_full((n,), torch.inf)
        self.last_loss, self.loss_at_check = self.best_loss.clone(), self.best_loss.clone()
        self.rises, self.was_cut = self.active * 0, torch.zeros_like(self.active, dtype=torch.bool)
        self.size = torch.zeros_like(self.best_loss) + size
        self.t = self.window_start = 0

    def keep(self, rows: Tensor) -> None:
        self.active = self.active[rows]

    def __call__(self, theta: Tensor, gradient: Tensor, loss: Tensor) -> Tensor:
        a = self.active
        better = loss < self.best_loss[a]
        self.best[a[better]], self.best_gradient[a[better]] = theta[better], gradient[better]
        self.best_loss[a[better]] = loss[better]
        self.rises[a] += (loss < self.last_loss[a]) & (self.t > 0)
        self.last_loss[a] = loss
        restart = self._look_back()[a]
        self.t += 1
        if bool(restart.any()):
            shape = (-1, *[1] * (theta.ndim - 1))
            theta = torch.where(restart.reshape(shape), self.best[a], theta)
            gradient = torch.where(restart.reshape(shape), self.best_gradient[a], gradient)
        return self._move(theta, gradient, restart)

    def _look_back(self) -> Tensor:
        """Which entries go back to their best point, with a smaller step."""
        if self.t not in self.checks:
            return torch.zeros_like(self.was_cut)
        few = self.rises < RHO * (self.t - self.window_start)
        cut = few | (~self.was_cut & (self.best_loss >= self.loss_at_check))
        self.size[cut] /= 2
        self.was_cut, self.loss_at_check, self.window_start = cut, self.best_loss.clone(), self.t
        self.rises = torch.zeros_like(self.rises)
        return cut

    @abstractmethod
    def _move(self, theta: Tensor, gradient: Tensor, restart: Tensor) -> Tensor:
        """The next point of every entry; `restart` marks those that were sent back to their best."""

    def _size(self, theta: Tensor) -> Tensor:
        return self.size[self.active].reshape(-1, *[1] * (theta.ndim - 1))


class FrankWolfe(BallStep):
    """Auto-Frank-Wolfe (Boreiko, Augustin, Croce, Berens, Hein 2022): x ← x + γ (v − x), γ = 0.75 at first.

    v is the point of the ball farthest along the gradient; every iterate is in the ball, for every p ≥ 1.
    """

    def __init__(self, ball: Ball, n_iter: int) -> None:
        super().__init__(ball, n_iter, 0.75)

    def _move(self, theta: Tensor, gradient: Tensor, restart: Tensor) -> Tensor:
        v = self.ball.take(self.active).farthest(-gradient)
        return theta + self._size(theta) * (v - theta)


class ProjectedGradient(BallStep):
    """APGD (Croce, Hein 2020) for p = 2 and ∞: steps of 2 ε with momentum, projected exactly."""

    MOMENTUM = 0.75

    def __init__(self, ball: Ball, n_iter: int) -> None:
        super().__init__(ball, n_iter, 2 * ball.eps)
        self.previous = ball.x0.clone()

    def _move(self, theta: Tensor, gradient: Tensor, restart: Tensor) -> Tensor:
        ball = self.ball.take(self.active)
        if self.ball.p == 2:
            largest = gradient.abs().flatten(1).amax(1).clamp_min(torch.finfo(gradient.dtype).tiny)
            scaled = gradient / largest.reshape(-1, *[1] * (theta.ndim - 1))
            length = torch.linalg.vector_norm(scaled.flatten(1), dim=1).clamp_min(1e-12)
            direction = -scaled / length.reshape(-1, *[1] * (theta.ndim - 1))
        else:
            direction = -gradient.sign()
        z = ball.nearest(theta + self._size(theta) * direction)
        first = restart | (self.t == 1)
        before = torch.where(
            first.reshape(-1, *[1] * (theta.ndim - 1)), theta, self.previous[self.active]
        )
        a = torch.where(first, 1.0, self.MOMENTUM).to(theta).reshape(-1, *[1] * (theta.ndim - 1))
        self.previous[self.active] = theta
        return ball.nearest(theta + a * (z - theta) + (1 - a) * (theta - before))


class SparseProjectedGradient(BallStep):
    """l1-APGD (Croce, Hein 2021): sign steps on the k steepest coordinates, projected exactly.

    k starts at 0.2 d. Every 0.04 n steps: where the best point has become sparser by more than a twentieth
    the step is ε again, from the best point; elsewhere it shrinks by 1.5. Then k = ‖x_best − x0‖₀ / 1.5.
    """

    def __init__(self, ball: Ball, n_iter: int) -> None:
        super().__init__(ball, n_iter, ball.eps)
        self.every = max(1, round(0.04 * n_iter))
        d = ball.x0[0].numel() if len(ball.x0) else 1
        self.nonzeros = torch.zeros_like(self.best_loss) + d
        self.k = torch.zeros_like(self.best_loss) + max(1.0, 0.2 * d)

    def _look_back(self) -> Tensor:
        if self.t == 0 or self.t % self.every:
            return torch.zeros_like(self.was_cut)
        nonzeros = (self.best != self.ball.x0).flatten(1).sum(1).to(self.size)
        sparser = nonzeros < 0.95 * self.nonzeros
        self.size = torch.where(sparser, self.ball.eps.to(self.size), self.size / 1.5)
        self.k, self.nonzeros = (nonzeros / 1.5).clamp_min(1.0), nonzeros
        return sparser

    def _move(self, theta: Tensor, gradient: Tensor, restart: Tensor) -> Tensor:
        ball = self.ball.take(self.active)
        # Places that are frozen, or at the bound they would have to cross, are none of the k.
        stuck = (
            ~ball.free
            | ((theta >= ball.hi) & (gradient < 0))
            | ((theta <= ball.lo) & (gradient > 0))
        )
        flat = gradient.masked_fill(stuck, 0.0).flatten(1)
        rank = flat.abs().argsort(dim=1, descending=True, stable=True).argsort(dim=1)
        k = self.k[self.active, None].floor()
        direction = torch.where(rank < k, -flat.sign() / k, 0.0).reshape(theta.shape)
        return ball.nearest(theta + self._size(theta) * direction)


def ball_step(optimizer: str, ball: Ball, n_iter: int) -> BallStep:
    """The step of an optimizer by its name: "afw" for every p, "apgd" for p = 1, 2 and ∞."""
    if optimizer == "afw":
        return FrankWolfe(ball, n_iter)
    return SparseProjectedGradient(ball, n_iter) if ball.p == 1 else ProjectedGradient(ball, n_iter)
