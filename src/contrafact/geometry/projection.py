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

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ..validation import brief
from .arguments import Array, Kind, as_box, as_given, as_norm, as_radius, as_rows, blocks
from .linear_maximization import linear_maximum

#: A center may be outside the bounds by this much, relative to its size: that is rounding.
_ROUNDING = 1e-5


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
    projected = torch.empty_like(rows, memory_format=torch.contiguous_format)
    for out, *block in blocks(projected, rows, centers, radius, lo, hi):
        out.copy_(_project_rows(p, *block))
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


def _project_rows(
    p: float,
    x: Tensor,
    c: Tensor,
    eps: Tensor,
    lo: Tensor,
    hi: Tensor,
) -> Tensor:
    """Project flat rows (n, d), in float64."""
    x = x.double()
    c = c.double()
    step = x - c
    m = step.abs()
    g = torch.where(step > 0, hi - c, c - lo).clamp_min(0)
    z = torch.minimum(m, g)
    if p == math.inf:
        z = torch.minimum(z, eps)
    elif p == 2:
        outside = torch.linalg.vector_norm(z, dim=1, keepdim=True) > eps
        on_ball = linear_maximum(step, c, eps, 2.0, lo, hi).abs()
        z = torch.where(outside, on_ball, z)
    else:
        outside = z.sum(1, keepdim=True) > eps
        shrunk = (m - _shrinkage(m, z, eps)).clamp_min(0)
        z = torch.where(outside, torch.minimum(shrunk, g), z)
    # c + (x − c) is not always x in floats; a point that need not move must not.
    moved = c + step.sign() * z
    return torch.where(z == m, x, moved).clamp(lo, hi)


def _shrinkage(m: Tensor, most: Tensor, eps: Tensor) -> Tensor:
    """Compute λ ≥ 0 with Σ clamp(m − λ, 0, g) = ε, where `most` = min(m, g) sums to more than ε.

    The sum is Σ (m − λ)₊ − Σ (m − most − λ)₊: linear in λ between the sorted kinks m and m − most.
    """
    kinks = torch.cat([m, m - most], 1)  # (n, 2 d)
    kink, order = kinks.sort(dim=1, descending=True)
    sign = torch.where(order < m.shape[1], 1.0, -1.0).to(m)
    total = (sign * kink).cumsum(1)
    count = sign.cumsum(1)
    # The first kink where λ is too small, and the piece before it.
    too_small = total - count * kink >= eps
    first = too_small.int().argmax(1, keepdim=True)
    piece = (first - 1).clamp_min(0)
    excess = total.gather(1, piece) - eps
    return excess / count.gather(1, piece)
