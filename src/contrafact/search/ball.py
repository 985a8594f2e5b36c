"""A ball of an l_p norm within a box, some values of which may be fixed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ..geometry.budget_allocation import power
from ..geometry.linear_maximization import linear_maximum
from ..geometry.projection import nearest_points
from ..numerics import broadcast_rows

#: norms of the balls that have an exact projection
PROJECTED = (1, 2, math.inf)


def lengths(delta: Tensor, p: float) -> Tensor:
    """Return ‖δ‖_p of each entry, (n,), in a fifth of the time of torch.linalg.vector_norm.

    Parameters
    ----------
    delta : Tensor of shape (n, ...)
        The entries.
    p : float
        The norm, from 1 to inf.

    Returns
    -------
    Tensor of shape (n,)
        Their lengths.
    """
    rows = delta.flatten(1)
    if p in (1, 2):
        length: Tensor = torch.linalg.vector_norm(rows, p, dim=1)
        return length
    size = rows.abs()
    largest = size.amax(1)
    if p == math.inf:
        return largest
    share = size.div_(largest.clamp_min(torch.finfo(size.dtype).tiny)[:, None])
    return power(share, p - 1, out=torch.empty_like(share)).mul_(share).sum(1).pow_(1 / p) * largest


@dataclass(frozen=True)
class Ball:
    """{x : ‖x − x0‖_p <= eps, low <= x <= high, x = x0 where not free}, one for each entry.

    Parameters
    ----------
    x0 : Tensor of shape (n, *shape)
        Centers.
    eps : Tensor of shape (n,)
        Radii.
    p : float
        The norm, from 1 to inf.
    low, high : Tensor of shape `shape` or (n, *shape)
        The box, the same for all or one for each.
    free : Tensor of bool, shape (n, *shape)
        Which values may change.
    """

    x0: Tensor
    eps: Tensor
    p: float
    low: Tensor
    high: Tensor
    free: Tensor

    @cached_property
    def all_free(self) -> bool:
        """Whether every value may change."""
        return bool(self.free.all())

    @cached_property
    def center(self) -> Tensor:
        """The centers, brought into the box."""
        return self.clip(self.x0)

    def take(self, which: Tensor | slice) -> Ball:
        """Return the balls of some entries (a mask, positions or a slice)."""
        if self._is_everything(which):
            return self
        return Ball(
            self.x0[which],
            self.eps[which],
            self.p,
            self.low[which] if self._own_boxes else self.low,
            self.high[which] if self._own_boxes else self.high,
            self.free[which],
        )

    @property
    def _own_boxes(self) -> bool:
        """Whether every entry has a box of its own."""
        return self.low.ndim == self.x0.ndim

    def _is_everything(self, which: Tensor | slice) -> bool:
        if isinstance(which, slice):
            return False
        if len(which) != len(self.x0):
            return False
        if which.dtype == torch.bool:
            return bool(which.all())
        return bool((which.diff() == 1).all())

    def farthest(self, w: Tensor) -> Tensor:
        """Return the point of each ball where ⟨w, x⟩ is largest."""
        # `lmo` without its checks: this runs thousands of times, and the loop guards against NaN.
        if not self.all_free:
            w = w * self.free
        x0 = self.x0.flatten(1)
        delta = linear_maximum(
            w.flatten(1),
            x0,
            self.eps.to(x0)[:, None],
            self.p,
            self.low.reshape(-1, x0.shape[1]),
            self.high.reshape(-1, x0.shape[1]),
            x0.dtype,
        )
        return delta.reshape(self.x0.shape).add_(self.x0)

    def clip(self, x: Tensor) -> Tensor:
        """Bring points into the box."""
        return torch.minimum(torch.maximum(x, self.low), self.high)

    def nearest(self, x: Tensor) -> Tensor:
        """Return the point of each ball nearest to x."""
        # `project` without its checks, see `farthest`.
        if not self.all_free:
            x = torch.where(self.free, x, self.x0)
        center = self.center.flatten(1)
        projected = nearest_points(
            x.flatten(1),
            center,
            self.eps.to(x)[:, None],
            self.p,
            self.low.reshape(-1, center.shape[1]),
            self.high.reshape(-1, center.shape[1]),
            x.dtype,
        ).reshape(x.shape)
        return projected if self.all_free else torch.where(self.free, projected, self.x0)

    def retract(self, x: Tensor) -> Tensor:
        """Bring x into the box, then straight toward the center until it is in the ball.

        Not the nearest point, but for every p, and in one pass over the values.
        """
        delta = self.clip(x).sub_(self.center)
        if not self.all_free:
            delta.mul_(self.free)
        length = lengths(delta, self.p)
        precision = torch.finfo(delta.dtype)
        share = self.eps.to(delta) / length.clamp_min(precision.tiny)
        # Room for rounding, which adds up where p is near 1; a point inside is not moved.
        share = torch.where(share < 1, share * (1 - 100 * precision.eps), 1.0).to(delta)
        inside = delta.mul_(broadcast_rows(share, delta)).add_(self.center)
        return inside if self.all_free else torch.where(self.free, inside, self.x0)

    def bring_in(self, x: Tensor) -> Tensor:
        """Return the nearest point where it can be computed exactly, else the retracted one."""
        return self.nearest(x) if self.p in PROJECTED else self.retract(x)

    def norm(self, x: Tensor) -> Tensor:
        """Return ‖x − x0‖_p of each entry, in float64."""
        return lengths(x.double() - self.x0, self.p)

    def gap(self, x: Tensor, w: Tensor) -> Tensor:
        """Return the Frank-Wolfe gap max ⟨w, v − x⟩ over the ball: 0 where x is stationary.

        Parameters
        ----------
        x : Tensor of shape (n, *shape)
            Points of the balls.
        w : Tensor of shape (n, *shape)
            Gradient there of what is maximized.

        Returns
        -------
        Tensor of float64, shape (n,)
            To first order, how much the objective could still rise within the ball.
        """
        rise = self.farthest(w).sub_(x).mul_(w)
        return rise.flatten(1).sum(1, dtype=torch.float64).clamp_min(0)
