"""The method of the authors of SVCE, written from the description in their papers.

max over x   log P(c | x)     subject to   ‖x − x0‖_p ≤ ε,   0 ≤ x ≤ 1

Auto-Frank-Wolfe for every p and APGD for p = 1 and 2, five runs of 75 steps from random points of
the ball. Plain and independent of the package: what it is compared with shares no code with it.
Boreiko et al., GCPR 2022; Croce and Hein, ICML 2020 and 2021.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Value = Callable[[Tensor], Tensor]


def best_of_runs(
    value: Value, x0: Tensor, eps: float, p: float, optimizer: str, restarts: int, n_iter: int
) -> Tensor:
    """Return the largest log P(c) of every image that the runs find, (n,)."""
    random = torch.Generator().manual_seed(1234)
    best = torch.full((len(x0),), -torch.inf)
    for _ in range(restarts):
        noise = torch.randn(x0.shape, generator=random)
        if optimizer == "afw":
            found = frank_wolfe(value, x0, x0 + maximize(noise, x0, eps, p), eps, p, n_iter)
        elif p == 2:
            found = apgd_l2(value, x0, project(x0 + noise, x0, eps, 2), eps, n_iter)
        else:
            found = apgd_l1(value, x0, project(x0 + noise, x0, eps, 1), eps, n_iter)
        best = torch.maximum(best, found)
    return best


# --- geometry, by bisection ----------------------------------------------------------------------


def column(values: Tensor, like: Tensor) -> Tensor:
    """Give one number per image the shape of images."""
    return values.reshape(-1, *[1] * (like.ndim - 1))


def bisect(too_large: Callable[[Tensor], Tensor], high: Tensor, passes: int = 50) -> Tensor:
    """Return the largest numbers from 0 to `high` that are not too large."""
    low = torch.zeros_like(high)
    for _ in range(passes):
        middle = (low + high) / 2
        wrong = too_large(middle)
        high = torch.where(wrong, middle, high)
        low = torch.where(wrong, low, middle)
    return low


def maximize(w: Tensor, x0: Tensor, eps: float, p: float) -> Tensor:
    """Return δ with the largest ⟨w, δ⟩, ‖δ‖_p ≤ ε and 0 ≤ x0 + δ ≤ 1."""
    room = torch.where(w > 0, 1 - x0, x0).double()
    weight = w.abs().double()
    weight = weight / column(weight.flatten(1).amax(1).clamp_min(1e-300), w)
    if p == 1:
        order = weight.flatten(1).argsort(1, descending=True)
        limit = room.flatten(1).gather(1, order)
        filled = (eps - (limit.cumsum(1) - limit)).clamp_min(0).minimum(limit)
        z = torch.zeros_like(limit).scatter(1, order, filled).reshape(w.shape)
    else:
        shape = weight.pow(1 / (p - 1))

        def share(t: Tensor) -> Tensor:
            return room.minimum(column(t, w).exp() * shape)

        # log t from -60 to 140
        t = bisect(lambda t: norm(share(t - 60), p) > eps, w.new_full((len(w),), 200.0).double())
        z = share(t - 60)
    return (w.sign() * z).to(w)


def project(x: Tensor, x0: Tensor, eps: float, p: float) -> Tensor:
    """Return the nearest point with ‖y − x0‖_p ≤ ε and 0 ≤ y ≤ 1, for p = 1 and 2."""
    step = (x - x0).double()
    size = step.abs()
    room = torch.where(step > 0, 1 - x0, x0).double()
    inside = norm(size.minimum(room), p) <= eps

    def shrunk(t: Tensor) -> Tensor:
        shorter = column(t, x) * size if p == 2 else (size - column(most - t, x)).clamp_min(0)
        return shorter.minimum(room)

    most = size.flatten(1).amax(1) if p == 1 else torch.ones(len(x), dtype=torch.float64)
    t = bisect(lambda t: norm(shrunk(t), p) > eps, most)
    z = torch.where(column(inside, x), size.minimum(room), shrunk(t))
    return (x0 + step.sign() * z).to(x).clamp(0, 1)


def norm(z: Tensor, p: float) -> Tensor:
    """Return ‖z‖_p of every image."""
    length: Tensor = torch.linalg.vector_norm(z.flatten(1), p, dim=1)
    return length


# --- optimizers ----------------------------------------------------------------------------------


def slope(value: Value, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return log P(c) and its gradient."""
    x = x.detach().requires_grad_()
    now = value(x)
    (gradient,) = torch.autograd.grad(now.sum(), x)
    return now.detach(), gradient


class Schedule:
    """Keep the best point, and halve the step at checkpoints where a run does not improve."""

    def __init__(self, x: Tensor, size: float, n_iter: int) -> None:
        self.size = torch.full((len(x),), float(size))
        self.best = x.clone()
        self.gradient = torch.zeros_like(x)
        self.value = torch.full((len(x),), -torch.inf)
        self.last = self.value.clone()
        self.at_check = self.value.clone()
        self.rises = torch.zeros(len(x))
        self.halved = torch.zeros(len(x), dtype=torch.bool)
        self.window = int(0.22 * n_iter)
        self.least_window = int(0.06 * n_iter)
        self.shorter_by = int(0.03 * n_iter)
        self.since = 0

    def note(self, x: Tensor, now: Tensor, gradient: Tensor) -> None:
        """Take over better points."""
        better = now > self.value
        self.best[better] = x[better]
        self.gradient[better] = gradient[better]
        self.value = torch.maximum(self.value, now)
        self.rises += now > self.last
        self.last = now

    def restarts(self) -> Tensor:
        """Return which images go back to their best point; halve their step."""
        self.since += 1
        if self.since < self.window:
            return torch.zeros_like(self.halved)
        stuck = ~self.halved & (self.value <= self.at_check)
        self.halved = (self.rises < 0.75 * self.since) | stuck
        self.size[self.halved] /= 2
        self.at_check = self.value.clone()
        self.rises.zero_()
        self.since = 0
        self.window = max(self.window - self.shorter_by, self.least_window)
        return self.halved


def frank_wolfe(value: Value, x0: Tensor, x: Tensor, eps: float, p: float, n_iter: int) -> Tensor:
    """Run Auto-Frank-Wolfe; return the best log P(c)."""
    schedule = Schedule(x, 0.75, n_iter)
    for _ in range(n_iter):
        now, gradient = slope(value, x)
        schedule.note(x, now, gradient)
        back = column(schedule.restarts(), x)
        x = torch.where(back, schedule.best, x)
        gradient = torch.where(back, schedule.gradient, gradient)
        corner = x0 + maximize(gradient, x0, eps, p)
        x = x + column(schedule.size, x) * (corner - x)
    return schedule.value


def apgd_l2(value: Value, x0: Tensor, x: Tensor, eps: float, n_iter: int) -> Tensor:
    """Run APGD for p = 2; return the best log P(c)."""
    schedule = Schedule(x, 2 * eps, n_iter)
    before = x
    for t in range(n_iter):
        now, gradient = slope(value, x)
        schedule.note(x, now, gradient)
        back = column(schedule.restarts(), x)
        x = torch.where(back, schedule.best, x)
        before = torch.where(back, x, before)
        gradient = torch.where(back, schedule.gradient, gradient)
        unit = gradient / column(norm(gradient, 2).clamp_min(1e-12), x)
        z = project(x + column(schedule.size, x) * unit, x0, eps, 2)
        a = 1.0 if t == 0 else 0.75
        after = project(x + a * (z - x) + (1 - a) * (x - before), x0, eps, 2)
        before, x = x, after
    return schedule.value


def apgd_l1(value: Value, x0: Tensor, x: Tensor, eps: float, n_iter: int) -> Tensor:
    """Run l1-APGD: sign steps on the steepest coordinates; return the best log P(c)."""
    d = x0[0].numel()
    keep = Schedule(x, eps, n_iter)
    count = torch.full((len(x),), 0.2 * d)
    nonzeros = torch.full((len(x),), float(d))
    for t in range(n_iter):
        now, gradient = slope(value, x)
        keep.note(x, now, gradient)
        if t and t % max(1, round(0.04 * n_iter)) == 0:
            found = (keep.best != x0).flatten(1).sum(1).float()
            sparser = found < 0.95 * nonzeros
            keep.size = torch.where(sparser, eps, keep.size / 1.5)
            x = torch.where(column(sparser, x), keep.best, x)
            gradient = torch.where(column(sparser, x), keep.gradient, gradient)
            count = (found / 1.5).clamp_min(1)
            nonzeros = found
        blocked = ((x >= 1) & (gradient > 0)) | ((x <= 0) & (gradient < 0))
        steep = gradient.masked_fill(blocked, 0).flatten(1)
        rank = steep.abs().argsort(1, descending=True).argsort(1)
        chosen = (rank < count[:, None].floor()) * steep.sign()
        step = chosen / chosen.abs().sum(1, keepdim=True).clamp_min(1)
        x = project(x + column(keep.size, x) * step.reshape(x.shape), x0, eps, 1)
    return keep.value
