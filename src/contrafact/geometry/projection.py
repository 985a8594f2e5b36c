"""The nearest point of an l_p ball and a box together: exact, for p = 1, 2, ∞.

    min ‖y − x‖²    subject to   ‖y − c‖_p ≤ ε,   lo ≤ y ≤ hi

With m = |x − c| and the slack g from c to the bound on the side of x, y = c + sign(x − c) z, where

    p = ∞   z = min(m, g, ε)
    p = 2   z = min(m, g) inside the ball, else min(g, κ m) with Σ z² = ε²
    p = 1   z = min(m, g) inside the ball, else clamp(m − λ, 0, g) with Σ z = ε

For p = 2 that is what the linear oracle gives for w = x − c.
Clipping a projection onto the ball gives another point, and a farther one.
"""

from __future__ import annotations

import math

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .arguments import Array, Kind, as_box, as_given, as_norm, as_radius, as_rows, blocks
from .linear_maximization import linear_maximum


def project(
    x: Kind,
    center: Array,
    eps: ArrayLike | Tensor,
    p: float,
    bounds: tuple[ArrayLike | Tensor, ArrayLike | Tensor] = (0, 1),
) -> Kind:
    """The point nearest to x (Euclidean) with ‖y − center‖_p ≤ ε and lo ≤ y ≤ hi, for every row.

    Parameters
    ----------
    x, center : (n, …) floats, NumPy or torch; finite. The center must be inside the bounds.
    eps : ε, one number or one per row.
    p : 1, 2 or inf.
    bounds : (lo, hi), each a number, one per channel (axis 1), or an array that fits an instance; may be inf.

    Returns
    -------
    y, as x is. A point already inside comes back as it is.

    Examples
    --------
    >>> x, center = torch.tensor([[2.0, 0.9, 0.4]]), torch.tensor([[0.5, 0.5, 0.5]])
    >>> project(x, center, eps=0.7, p=1)
    tensor([[1.0000, 0.7000, 0.5000]])
    >>> project(x, center, eps=0.3, p=torch.inf)
    tensor([[0.8000, 0.8000, 0.4000]])
    """
    p = as_norm(p, (1, 2, math.inf))
    rows = as_rows(x, "x")
    middle = as_rows(center, "center", rows)
    lo, hi = as_box(bounds, x.shape, rows)
    outside = torch.maximum(lo - middle, middle - hi).amax(1) > 1e-5 * (1 + middle.abs().amax(1))
    if bool(outside.any()):
        raise ValueError(
            f"center[{int(outside.nonzero()[0])}] is outside bounds {bounds}; it must be a point of the box."
        )
    projected = torch.empty_like(rows, memory_format=torch.contiguous_format)
    for out, *block in blocks(projected, rows, middle, as_radius(eps, rows), lo, hi):
        out.copy_(_nearest(p, *block))
    return as_given(projected, x)


def _nearest(p: float, x: Tensor, c: Tensor, eps: Tensor, lo: Tensor, hi: Tensor) -> Tensor:
    """`project` on flat rows; the work is done in float64."""
    x, c = x.double(), c.double()
    step = x - c
    m, g = step.abs(), torch.where(step > 0, hi - c, c - lo).clamp_min(0)
    z = torch.minimum(m, g)
    if p == math.inf:
        z = torch.minimum(z, eps)
    elif p == 2:
        outside = torch.linalg.vector_norm(z, dim=1, keepdim=True) > eps
        z = torch.where(outside, linear_maximum(step, c, eps, 2.0, lo, hi).abs(), z)
    else:
        outside = z.sum(1, keepdim=True) > eps
        z = torch.where(outside, torch.minimum((m - _shrinkage(m, z, eps)).clamp_min(0), g), z)
    # c + (x − c) is not always x in floats; a point that need not move must not.
    return torch.where(z == m, x, c + step.sign() * z).clamp(lo, hi)


def _shrinkage(m: Tensor, most: Tensor, eps: Tensor) -> Tensor:
    """λ ≥ 0 with Σ clamp(m − λ, 0, g) = ε, where `most` = min(m, g) sums to more than ε.

    The sum is Σ (m − λ)₊ − Σ (m − most − λ)₊: linear in λ between the sorted kinks m and m − most.
    """
    kink, order = torch.cat([m, m - most], 1).sort(dim=1, descending=True)
    sign = torch.where(order < m.shape[1], 1.0, -1.0).to(m)
    total, count = (sign * kink).cumsum(1), sign.cumsum(1)
    below = (
        (total - count * kink >= eps).int().argmax(1, keepdim=True)
    )  # the first kink where λ is too small
    used = (below - 1).clamp_min(0)
    return (total.gather(1, used) - eps) / count.gather(1, used)
