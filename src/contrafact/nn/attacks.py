"""Attacks on classifiers: what robust training trains against and robust accuracy measures with."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

#: rows → one loss per row, which the attack raises
RowLoss = Callable[[Tensor], Tensor]
#: the smallest and the largest value an input may take; None: no limit
Bounds = tuple[float, float] | None


def pgd(
    loss: RowLoss,
    x: Tensor,
    *,
    norm: float = 2,
    eps: float = 0.5,
    steps: int = 20,
    step_size: float | None = None,
    bounds: Bounds = (0.0, 1.0),
) -> Tensor:
    """Projected gradient ascent (Madry et al. 2018), all rows at once: x' with ||x' - x|| <= eps in the box.

        x_0 = P(x + u),     x_{i+1} = P(x_i + a d(∇ loss(x_i)))

    with u uniform in the ball, d(g) = g / ||g||_2 for norm 2 and sign(g) for norm inf, and P the projection
    onto the ball, then onto the box.

    Parameters
    ----------
    loss : one number per row, which depends on that row alone. Gradients are taken for inputs only.
    x : rows, inside the bounds.
    step_size : a; None: 2.5 eps / steps, which crosses the ball.

    Random numbers come from torch's global generator; `seeded` makes them repeatable and leaves it as it was.

    Examples
    --------
    >>> x = torch.full((1, 2), 0.5)
    >>> pgd(lambda x: x @ torch.tensor([1.0, -2.0]), x, norm=math.inf, eps=0.25)
    tensor([[0.7500, 0.2500]])
    """
    check_attack(x, norm, eps, steps, bounds)
    a = 2.5 * eps / steps if step_size is None else step_size
    x = x.detach()
    x_adv = _project(x + _random_in_ball(x, norm, eps), x, norm, eps, bounds)
    for _ in range(steps):
        with torch.enable_grad():
            x_adv.requires_grad_()
            (g,) = torch.autograd.grad(loss(x_adv).sum(), x_adv)
        x_adv = _project(x_adv.detach() + a * _direction(g, norm), x, norm, eps, bounds)
    return x_adv


def log_odds(logits: Callable[[Tensor], Tensor], t: Tensor) -> RowLoss:
    """The loss log((1 - p) / p), with p the probability of class t.

    It rises in the same direction as the cross-entropy -log p, and does not fade where the model is sure:

        ∇ -log p = (1 - p) ∇ log((1 - p) / p)
    """
    own = t[:, None]

    def loss(x: Tensor) -> Tensor:
        f = logits(x)
        return f.scatter(1, own, -math.inf).logsumexp(1) - f.gather(1, own)[:, 0]

    return loss


def check_attack(x: Tensor, norm: float, eps: float, steps: int, bounds: Bounds) -> None:
    """Say which of an attack's arguments is wrong."""
    if norm not in (2, math.inf):
        raise ValueError(f"norm must be 2 or inf, got {norm!r}.")
    if not 0 <= eps < math.inf:
        raise ValueError(f"eps must be a finite number of at least 0, got {eps}.")
    if steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}.")
    if bounds is not None and len(x) and not bounds[0] <= x.min() <= x.max() <= bounds[1]:
        raise ValueError(
            f"X must lie within bounds {bounds}, got values from {x.min():.4g} to {x.max():.4g}. "
            "Scale X, or give its own bounds, or None for no limit."
        )


def _project(x_adv: Tensor, x: Tensor, norm: float, eps: float, bounds: Bounds) -> Tensor:
    delta = x_adv - x
    if norm == 2:
        delta = delta * (eps / _length(delta)).clamp(max=1)
    else:
        delta = delta.clamp(-eps, eps)
    # x is in the box, so the cut only brings coordinates closer to x: the ball is not left again.
    return x + delta if bounds is None else (x + delta).clamp(*bounds)


def _direction(g: Tensor, norm: float) -> Tensor:
    if norm == math.inf:
        return g.sign()
    # The largest entry first: the squares of a confident model's gradients vanish. 0 stays 0.
    tiny = torch.finfo(g.dtype).tiny
    g = g / g.flatten(1).abs().amax(1).clamp(min=tiny).view(-1, *[1] * (g.dim() - 1))
    return g / _length(g)


def _random_in_ball(x: Tensor, norm: float, eps: float) -> Tensor:
    if norm == math.inf:
        return eps * (2 * torch.rand_like(x) - 1)
    radius = torch.rand_like(x.flatten(1)[:, :1]).pow(1 / x[0].numel())
    return eps * radius.view(-1, *[1] * (x.dim() - 1)) * _direction(torch.randn_like(x), norm)


def _length(delta: Tensor) -> Tensor:
    """||delta||_2 of every row, shaped to divide it, and never 0."""
    length: Tensor = torch.linalg.vector_norm(delta.flatten(1), dim=1)
    return length.clamp(min=torch.finfo(delta.dtype).tiny).view(-1, *[1] * (delta.dim() - 1))
