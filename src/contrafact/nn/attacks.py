"""Attacks on classifiers, for robust training and for measuring robust accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from ..numerics import broadcast_rows
from ..validation import Nothing, Real, Rule, Satisfies, check_parameters
from .option_rules import STEPS

#: Maps rows to one loss per row, which the attack increases.
RowLoss = Callable[[Tensor], Tensor]
#: The smallest and the largest value an input may take; None: no limit.
Bounds = tuple[float, float] | None


def _is_norm(value: object) -> bool:
    """Return whether the value is the number 2 or inf."""
    return Real(finite=False).accepts(value) and value in (2, math.inf)


def _are_bounds(value: object) -> bool:
    """Return whether the value is a pair of numbers, the smaller one first."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        return False
    limit = Real(finite=False)
    return all(limit.accepts(number) for number in value) and value[0] < value[1]


ATTACK_RULES: dict[str, Rule] = {
    "norm": Satisfies(_is_norm, "2 or inf"),
    "eps": Satisfies(Real(at_least=0).accepts, "a finite number at least 0"),
    "steps": STEPS,
    "bounds": Satisfies(_are_bounds, "a pair of numbers, the smaller one first,") | Nothing(),
}


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
    """Increase a loss by projected gradient ascent, within a ball around each row.

        x_0 = P(x + u),     x_{i+1} = P(x_i + a d(∇ loss(x_i)))

    with u uniform in the ball, d(g) = g / ||g||_2 for norm 2 and sign(g) for norm inf, and P the
    projection onto the ball, then onto the box. Random numbers come from torch's global generator;
    `seeded` makes them repeatable and restores it.

    Parameters
    ----------
    loss : function of Tensor (n, ...)
        Returns one number per row, which depends on that row alone. Gradients are taken with
        respect to inputs only.
    x : Tensor of shape (n, ...)
        Rows, inside the bounds.
    norm : {2, inf}, default=2
        Norm of the ball.
    eps : float, default=0.5
        Radius of the ball, in the units of x.
    steps : int, default=20
        Number of steps.
    step_size : float, optional
        a; default: 2.5 eps / steps, which crosses the ball.
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
    for _ in range(steps):
        with torch.enable_grad():
            x_adv.requires_grad_()
            total = loss(x_adv).sum()
            if not total.requires_grad:
                raise ValueError(
                    "model must be differentiable, got one whose output has no gradient (it uses "
                    "no_grad, detach, NumPy or whole numbers inside)."
                )
            (gradient,) = torch.autograd.grad(total, x_adv)
        step = a * _direction(gradient, norm)
        x_adv = _project(x_adv.detach() + step, x, norm, eps, bounds)
    return x_adv


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
    if norm == 2:
        shrink = (eps / _length(delta)).clamp(max=1)
        delta = delta * shrink
    else:
        delta = delta.clamp(-eps, eps)
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
    return gradient / _length(gradient)


def _random_in_ball(x: Tensor, norm: float, eps: float) -> Tensor:
    """Draw uniformly from the ball, one point per row."""
    if norm == math.inf:
        return eps * (2 * torch.rand_like(x) - 1)
    flat = x.flatten(1)  # (n, values)
    n_values = flat.shape[1]
    radius = torch.rand_like(flat[:, :1]).pow(1 / n_values)  # (n, 1)
    direction = _direction(torch.randn_like(x), norm)
    return eps * broadcast_rows(radius, x) * direction


def _length(delta: Tensor) -> Tensor:
    """Return ||delta||_2 of every row, (n, 1, ..., 1), never 0."""
    tiny = torch.finfo(delta.dtype).tiny
    length: Tensor = torch.linalg.vector_norm(delta.flatten(1), dim=1)
    return broadcast_rows(length.clamp(min=tiny), delta)
