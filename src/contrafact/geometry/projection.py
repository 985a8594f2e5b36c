"""Exact projection onto the intersection of an l_p ball and a box, for p = 1, 2, ∞.

    min ‖y − x‖²    subject to   ‖y − c‖_p ≤ ε,   lo ≤ y ≤ hi

With m = |x − c| and the slack g from c to the bound on the side of x, y = c + sign(x − c) z, where

    p = ∞   z = min(m, g, ε)
    p = 2   z = min(m, g) inside the ball, else min(g, κ m) with Σ z² = ε²
    p = 1   z = min(m, g) inside the ball, else clamp(m − λ, 0, g) with Σ z = ε

For p = 2 that is the linear maximum for w = x − c. Clipping a projection onto the ball to the box
gives another point, and a farther one.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ..validation import brief
from .arguments import (
    Array,
    Kind,
    as_box,
    as_given,
    as_norm,
    as_radius,
    as_rows,
)
from .budget_allocation import allocate_by_sorting, newton_root
from .row_blocks import compute_in_blocks

#: A center may be outside the bounds by this much, relative to its size: that is rounding.
_ROUNDING = 1e-5
#: arrays of the size of a block that a projection works in
_N_BUFFERS = 9
_PASSES = 100


def project(
    x: Kind,
    center: Array,
    eps: ArrayLike | Tensor,
    p: float,
    bounds: tuple[ArrayLike | Tensor, ArrayLike | Tensor] = (0, 1),
) -> Kind:
    """Project every row onto the intersection of an l_p ball and a box.

    The projection is the point y nearest to x in the Euclidean norm with ‖y − center‖_p ≤ ε and
    lo ≤ y ≤ hi.

    Parameters
    ----------
    x : array or Tensor of shape (n, ...)
        The points to project; finite floats.
    center : array or Tensor of the shape of x
        The centers of the balls; inside the bounds.
    eps : float or array of shape (n,)
        The radius ε of the balls, one for all or one per row, in the unit of x.
    p : {1, 2, inf}
        The norm of the balls.
    bounds : tuple (lo, hi), default=(0, 1)
        Each a number, one number per channel (axis 1), an array that broadcasts against an
        instance, or one of the shape of x; may be infinite.

    Returns
    -------
    array or Tensor of the shape, kind and dtype of x
        The projections. A point already inside is returned unchanged.

    Raises
    ------
    ValueError
        If an argument has the wrong shape or type or is not finite, or a center is outside the
        bounds.

    Examples
    --------
    >>> x = torch.tensor([[2.0, 0.9, 0.4]])
    >>> center = torch.tensor([[0.5, 0.5, 0.5]])
    >>> project(x, center, eps=0.7, p=1)
    tensor([[1.0000, 0.7000, 0.5000]])
    >>> project(x, center, eps=0.3, p=torch.inf)
    tensor([[0.8000, 0.8000, 0.4000]])
    """
    p = as_norm(p, (1, 2, math.inf))
    rows = as_rows(x, "x")
    centers = as_rows(center, "center", x, "x")
    lo, hi = as_box(bounds, x.shape, rows)
    _check_inside(centers, lo, hi, bounds)
    radius = as_radius(eps, rows)
    projected = nearest_points(rows, centers, radius, p, lo, hi)
    return as_given(projected, x)


def _check_inside(
    centers: Tensor,
    lo: Tensor,
    hi: Tensor,
    bounds: object,
) -> None:
    """Raise an error that names the first center outside the bounds."""
    distance = torch.maximum(lo - centers, centers - hi).amax(1)
    outside = distance > _ROUNDING * (1 + centers.abs().amax(1))
    if bool(outside.any()):
        first = int(outside.nonzero()[0])
        raise ValueError(
            f"center[{first}] is outside bounds {brief(bounds)}; it must be a point of the box."
        )


def nearest_points(
    x: Tensor,
    c: Tensor,
    eps: Tensor,
    p: float,
    lo: Tensor,
    hi: Tensor,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """Compute `project` on flat rows, without checks, reusing the same memory for each block.

    Parameters
    ----------
    x : Tensor of shape (n, d)
        The points to project.
    c : Tensor of shape (n, d)
        The centers, inside the bounds.
    eps : Tensor of shape () or (n, 1)
        The radius.
    p : {1, 2, inf}
        The norm.
    lo, hi : Tensor
        The bounds; broadcast against x.
    dtype : torch.dtype, default=torch.float64
        In which to work.

    Returns
    -------
    Tensor of shape (n, d)
        The projections, in the dtype of x.
    """
    return compute_in_blocks(
        partial(_project_rows, p=p),
        x,
        c,
        eps,
        lo,
        hi,
        n_buffers=_N_BUFFERS,
        dtype=dtype,
    )


def _project_rows(
    out: Tensor,
    memory: Tensor,
    x: Tensor,
    c: Tensor,
    eps: Tensor,
    lo: Tensor,
    hi: Tensor,
    *,
    p: float,
) -> None:
    """Write the projections of one block of rows to `out`; memory is (_N_BUFFERS, n, d)."""
    step, y, m, z, *scratch = memory.unbind()
    eps = eps.to(step.dtype)
    step.copy_(x).sub_(c)
    torch.clamp(y.copy_(x), lo, hi, out=y)
    if p == math.inf:
        m.copy_(c).sub_(eps)
        torch.maximum(y, m, out=y)
        m.copy_(c).add_(eps)
        out.copy_(torch.minimum(y, m, out=y))
        return
    # Shrunk steps are shorter than m: so z = min(m, g) is all that has to be known of g.
    torch.sub(y, c, out=z).abs_()
    used = z.sum(1, keepdim=True) if p == 1 else torch.linalg.vector_norm(z, dim=1, keepdim=True)
    outside = used > eps
    if not bool(outside.any()):
        out.copy_(y)
        return
    torch.abs(step, out=m)
    if p == 1:
        shrinkage = _shrinkage(m, z, eps, scratch)
        torch.minimum(m.sub_(shrinkage).clamp_min_(0), z, out=m)
    else:
        factor = _shrink_factor(m, z, eps, scratch)
        torch.minimum(m.mul_(factor), z, out=m)
        doubt = (outside & factor.isnan())[:, 0]
        if bool(doubt.any()):
            radius = eps.expand(len(m), 1)[doubt]
            m[doubt] = allocate_by_sorting(step[doubt], z[doubt], radius, 2.0)
    moved = step.sign_().mul_(m).add_(c)
    torch.clamp(moved, lo, hi, out=moved)
    # A point that need not move must not: c + (x − c) is not always x in floats.
    out.copy_(torch.where(outside, moved, y))


def _shrink_factor(m: Tensor, z: Tensor, eps: Tensor, scratch: list[Tensor]) -> Tensor:
    """Compute κ with Σ min(z, κ m)² = ε², for rows where Σ z² is larger; (n, 1).

    NaN where numbers are too large or too small, or Newton's method does not end.
    """
    G, A, kink, *passes = scratch
    unit = eps.clamp_min(torch.finfo(m.dtype).tiny)
    torch.div(z, unit, out=G).square_()
    torch.div(m, unit, out=A).square_()
    torch.div(G, A, out=kink)
    s = newton_root(G, A, kink, scratch=(passes[0], passes[1]))
    # Beyond 1 only by rounding: a row just outside the ball, where everything is at its bound.
    return s.sqrt_().clamp_max_(1.0)


def _shrinkage(m: Tensor, z: Tensor, eps: Tensor, scratch: list[Tensor]) -> Tensor:
    """Compute λ ≥ 0 with Σ min((m − λ)₊, z) = ε, for rows where Σ z is larger; (n, 1).

    The sum falls with λ and is linear between kinks: Newton's method, and bisection where that
    leaves the bracket.
    """
    over, part, *_ = scratch
    rounding = 8 * torch.finfo(m.dtype).eps * eps
    low = torch.zeros_like(m[:, :1])
    high = m.amax(1, keepdim=True)
    at = low
    for _ in range(_PASSES):
        torch.sub(m, at, out=over).clamp_min_(0)
        free = torch.lt(over, z, out=part).mul_(torch.sign(over)).sum(1, keepdim=True)
        excess = torch.minimum(over, z, out=part).sum(1, keepdim=True).sub_(eps)
        low = torch.where(excess > -rounding, at, low)
        high = torch.where(excess < rounding, at, high)
        newton = at + excess / free
        inside = (newton > low) & (newton < high)
        at = torch.where(inside, newton, (low + high) / 2)
        if not bool(((at > low) & (at < high)).any()):
            break
    return high
