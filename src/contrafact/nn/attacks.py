"""Attacks on classifiers, for robust training and for measuring robust accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..geometry.linear_maximization import linear_maximum
from ..numerics import broadcast_rows
from ..validation import Nothing, Real, Rule, Satisfies, check_parameters
from .option_rules import STEPS

#: Maps rows to one loss per row, which the attack increases.
RowLoss = Callable[[Tensor], Tensor]
#: The smallest and the largest value an input may take; None: no limit.
Bounds = tuple[float, float] | None
#: norm and radius
Ball = tuple[float, float]
#: norms whose attack steps along the gradient and projects; others use Frank-Wolfe
PROJECTED = (2, math.inf)

_NORM = Real(at_least=1, finite=False)
_RADIUS = Real(at_least=0)


def _are_norms(value: object) -> bool:
    """Return whether the value is a sequence of different norms."""
    if not isinstance(value, tuple | list) or len(value) == 0:
        return False
    return all(_NORM.accepts(norm) for norm in value) and len(set(value)) == len(value)


def _are_radii(value: object) -> bool:
    """Return whether the value is a sequence of radii."""
    if not isinstance(value, tuple | list) or len(value) == 0:
        return False
    return all(_RADIUS.accepts(radius) for radius in value)


def _are_bounds(value: object) -> bool:
    """Return whether the value is a pair of numbers, the smaller one first."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        return False
    limit = Real(finite=False)
    return all(limit.accepts(number) for number in value) and value[0] < value[1]


ATTACK_RULES: dict[str, Rule] = {
    "norm": Satisfies(_NORM.accepts, "a number from 1 to inf"),
    "eps": Satisfies(_RADIUS.accepts, "a finite number at least 0"),
    "steps": STEPS,
    "bounds": Satisfies(_are_bounds, "a pair of numbers, the smaller one first,") | Nothing(),
}
#: rules where several norms are given
NORMS = Satisfies(_are_norms, "a sequence of different numbers from 1 to inf")
RADII = Satisfies(_are_radii, "a sequence of finite numbers at least 0")


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
    """Increase a loss by gradient steps within a ball around each row.

        x_0 = P(x + u),     x_{i+1} = P(x_i + a d(∇ loss(x_i)))             norms 2 and inf
        x_0 = P(x + u),     x_{i+1} = x_i + 2 / (i + 2) (v_i - x_i)         other norms

    with u uniform in the ball, d(g) = g / ||g||_2 for norm 2 and sign(g) for norm inf, P the
    projection onto the ball, then onto the box, and v_i the point of ball and box where
    ⟨∇ loss(x_i), v⟩ is largest (Frank-Wolfe), computed exactly. For norm 1, v_i moves a few pixels
    to their bounds. Random numbers come from torch's global generator; `seeded` makes them
    repeatable and restores it.

    Parameters
    ----------
    loss : function of Tensor (n, ...)
        Returns one number per row, which depends on that row alone. Gradients are taken with
        respect to inputs only.
    x : Tensor of shape (n, ...)
        Rows, inside the bounds.
    norm : float, default=2
        Norm of the ball, from 1 to inf.
    eps : float, default=0.5
        Radius of the ball, in the units of x.
    steps : int, default=20
        Number of steps.
    step_size : float, optional
        a; default: 2.5 eps / steps, which crosses the ball. Without effect for norms other than 2
        and inf.
    bounds : (float, float) or None, default=(0.0, 1.0)
        Smallest and largest value of an input; None: no limit.

    Returns
    -------
    Tensor of shape (n, ...)
        x' with ||x' - x|| <= eps in the box.

    Raises
    ------
    ValueError
        If an option is out of range, or x outside the bounds.

    References
    ----------
    Madry, Makelov, Schmidt, Tsipras, Vladu: Towards deep learning models resistant to adversarial
    attacks. ICLR 2018. https://doi.org/10.48550/arXiv.1706.06083

    Jaggi: Revisiting Frank-Wolfe: projection-free sparse convex optimization. ICML 2013.
    https://proceedings.mlr.press/v28/jaggi13.html

    Examples
    --------
    >>> x = torch.full((1, 2), 0.5)
    >>> pgd(lambda x: x @ torch.tensor([1.0, -2.0]), x, norm=math.inf, eps=0.25)
    tensor([[0.7500, 0.2500]])
    """
    check_attack(x, norm, eps, steps, bounds)
    a = 2.5 * eps / steps if step_size is None else step_size
    x = x.detach()
    start = x + _random_in_ball(x, norm, eps)
    x_adv = _project(start, x, norm, eps, bounds)
    for i in range(steps):
        with torch.enable_grad():
            x_adv.requires_grad_()
            total = loss(x_adv).sum()
            if not total.requires_grad:
                raise ValueError(
                    "model must be differentiable, got one whose output has no gradient (it uses "
                    "no_grad, detach, NumPy or whole numbers inside)."
                )
            (gradient,) = torch.autograd.grad(total, x_adv)
        x_adv = x_adv.detach()
        if norm in PROJECTED:
            step = a * _direction(gradient, norm)
            x_adv = _project(x_adv + step, x, norm, eps, bounds)
        else:
            v = _farthest(gradient, x, norm, eps, bounds)
            x_adv = _project(torch.lerp(x_adv, v, 2 / (i + 2)), x, norm, eps, bounds)
    return x_adv


def strongest_attack(
    loss: RowLoss,
    x: Tensor,
    balls: Sequence[Ball],
    fast: bool,
    steps: int,
    bounds: Bounds,
) -> Tensor:
    """Attack rows in several balls, and keep for each row the attack of the highest loss.

    Parameters
    ----------
    loss, x, steps, bounds
        As in `pgd`.
    balls : sequence of (float, float)
        Norms and radii, at least one.
    fast : bool
        Take one step of 1.25 eps in place of `steps`.

    Returns
    -------
    Tensor of shape (n, ...)
        The attacked rows.
    """
    options: dict[str, Any] = {"steps": 1 if fast else steps, "bounds": bounds}
    attacks = [
        pgd(loss, x, norm=p, eps=eps, step_size=1.25 * eps if fast else None, **options)
        for p, eps in balls
    ]
    if len(attacks) == 1:
        return attacks[0]
    with torch.no_grad():
        losses = torch.stack([loss(x_adv) for x_adv in attacks])  # (balls, n)
    rows = torch.arange(len(x), device=x.device)
    return torch.stack(attacks)[losses.argmax(0), rows]


def radii_of(norms: Sequence[float], eps: Any, x: Tensor) -> tuple[float, ...]:
    """Return one radius for each norm.

    One number is the l2 radius. The radii of other norms p are those at which the output of a
    linear model with normally distributed weights w changes as much:

        eps_p = eps ||w||_2 / ||w||_q,     1 / p + 1 / q = 1

    Parameters
    ----------
    norms : sequence of float
        The norms.
    eps : float or sequence of float
        The radius for norm 2, or one radius for each norm.
    x : Tensor of shape (n, ...)
        Rows; the number of their values counts.

    Returns
    -------
    tuple of float
        The radii.

    Raises
    ------
    ValueError
        If there are not as many radii as norms.

    Examples
    --------
    >>> [round(r, 3) for r in radii_of((1, 2, math.inf), 1.0, torch.zeros(1, 784))]
    [8.196, 1.0, 0.045]
    """
    if isinstance(eps, tuple | list):
        if len(eps) != len(norms):
            raise ValueError(
                f"eps must hold one radius for each of the norms {tuple(norms)}, got {eps}."
            )
        return tuple(eps)
    d = max(x[:1].numel(), 1)
    share = (torch.arange(d, dtype=torch.float64) + 0.5) / d
    w = torch.special.ndtri((1 + share) / 2).numpy()  # quantiles of |N(0, 1)|
    ratios = [np.linalg.norm(w) / np.linalg.norm(w, _dual(p)) for p in norms]
    return tuple(eps * float(ratio) for ratio in ratios)


def _dual(p: float) -> float:
    """Return q with 1 / p + 1 / q = 1."""
    if p == math.inf:
        return 1.0
    return math.inf if p == 1 else p / (p - 1)


def log_odds(
    logits: Callable[[Tensor], Tensor],
    t: Tensor,
) -> RowLoss:
    """Make the loss log((1 - p) / p), with p the probability of class t.

    It increases in the same direction as the cross-entropy -log p, and its gradient does not vanish
    where the model is confident:

        ∇ -log p = (1 - p) ∇ log((1 - p) / p)

    Parameters
    ----------
    logits : function of Tensor (n, ...)
        Returns logits (n, classes).
    t : Tensor of shape (n,)
        Index of the class of each row.

    Returns
    -------
    function of Tensor (n, ...)
        Returns one loss per row, (n,).
    """
    own = t[:, None]

    def loss(x: Tensor) -> Tensor:
        f = logits(x)
        f_own = f.gather(1, own)[:, 0]
        f_others = f.scatter(1, own, -math.inf)
        return f_others.logsumexp(1) - f_own

    return loss


def check_attack(
    x: Tensor,
    norm: float,
    eps: float,
    steps: int,
    bounds: Bounds,
) -> None:
    """Check the arguments of an attack.

    Parameters
    ----------
    x : Tensor of shape (n, ...)
        Rows to attack.
    norm, eps, steps, bounds
        As in `pgd`.

    Raises
    ------
    ValueError
        For the first argument that is out of range.
    """
    given = {"norm": norm, "eps": eps, "steps": steps, "bounds": bounds}
    check_parameters("attack", ATTACK_RULES, given)
    if bounds is None or len(x) == 0:
        return
    low, high = bounds
    smallest = x.min()
    largest = x.max()
    if not low <= smallest <= largest <= high:
        raise ValueError(
            f"X must lie within bounds {bounds}, got values from {smallest:.4g} to {largest:.4g}. "
            "Scale X, or give its own bounds, or None for no limit."
        )


def _project(
    x_adv: Tensor,
    x: Tensor,
    norm: float,
    eps: float,
    bounds: Bounds,
) -> Tensor:
    """Project onto the ball around x, then onto the box."""
    delta = x_adv - x
    if norm == math.inf:
        delta = delta.clamp(-eps, eps)
    else:
        # For norms other than 2, only points that are in the ball up to rounding come here.
        shrink = (eps / _length(delta, norm)).clamp(max=1)
        delta = delta * shrink
    if bounds is None:
        return x + delta
    # x is in the box, so clamping only brings values closer to x, and the ball is not left again.
    return (x + delta).clamp(*bounds)


def _direction(gradient: Tensor, norm: float) -> Tensor:
    """Return the steepest direction of unit norm."""
    if norm == math.inf:
        return gradient.sign()
    # Divide by the largest entry first: the squares of a confident model's gradients underflow.
    tiny = torch.finfo(gradient.dtype).tiny
    largest = gradient.flatten(1).abs().amax(1)  # (n,)
    largest = largest.clamp(min=tiny)  # a gradient of 0 stays 0
    gradient = gradient / broadcast_rows(largest, gradient)
    return gradient / _length(gradient, norm)


def _farthest(
    gradient: Tensor,
    x: Tensor,
    norm: float,
    eps: float,
    bounds: Bounds,
) -> Tensor:
    """Return the point of ball and box that is farthest along the gradient."""
    low, high = (-math.inf, math.inf) if bounds is None else bounds
    center = x.flatten(1)
    box = torch.full_like(center[:1], low), torch.full_like(center[:1], high)
    radius = torch.as_tensor(eps, dtype=x.dtype, device=x.device)
    delta = linear_maximum(gradient.flatten(1), center, radius, norm, *box, x.dtype)
    return x + delta.reshape(x.shape)


def _random_in_ball(x: Tensor, norm: float, eps: float) -> Tensor:
    """Draw uniformly from the ball, one point per row."""
    if norm == math.inf:
        return eps * (2 * torch.rand_like(x) - 1)
    flat = x.flatten(1)  # (n, values)
    if norm != 2:
        # With |g_i|^p from Gamma(1/p) and e from Exp(1), g / (Σ |g|^p + e)^(1/p) is uniform
        # (Barthe, Guédon, Mendelson, Naor, 2005).
        powers = torch._standard_gamma(torch.full_like(flat, 1 / norm))
        total = powers.sum(1, keepdim=True) - torch.rand_like(flat[:, :1]).log()
        sign = torch.randn_like(flat).sign()
        return eps * (sign * (powers / total).pow(1 / norm)).reshape(x.shape)
    n_values = flat.shape[1]
    radius = torch.rand_like(flat[:, :1]).pow(1 / n_values)  # (n, 1)
    direction = _direction(torch.randn_like(x), norm)
    return eps * broadcast_rows(radius, x) * direction


def _length(delta: Tensor, norm: float) -> Tensor:
    """Return the norm of every row, (n, 1, ..., 1), never 0."""
    tiny = torch.finfo(delta.dtype).tiny
    length: Tensor = torch.linalg.vector_norm(delta.flatten(1), norm, dim=1)
    return broadcast_rows(length.clamp(min=tiny), delta)
