"""Nearest points of polyhedra in displacement form, and what a dual vector proves about them.

    min ‖δ‖    subject to   A δ ≤ c,   lo ≤ δ ≤ hi,        ‖·‖ the l1 or the l2 norm

The dual of either is separable in δ, so that for every y ≥ 0

    g(y) = −⟨c, y⟩ + Σ min over lo ≤ δ ≤ hi of (|δ| + (Aᵀy) δ)       (l1)
                                           or  (½ δ² + (Aᵀy) δ)      (l2)

is a lower bound, no matter how y was found. Where ⟨y, A δ⟩ > ⟨y, c⟩ for all δ of the box, y proves
that no solution exists (Farkas' lemma).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

Norm = Literal["l1", "l2"]

#: Violations up to this are rounding, where rows of A have length 1 and the largest violation is 1.
TOLERANCE = 1e-12
#: A Farkas certificate separates by more than this; where δ is unbounded, |Aᵀy| is at most this.
_FARKAS_MARGIN = 1e-9


@dataclass(frozen=True)
class Problems:
    """A batch of n problems with m half-spaces each, in d dimensions.

    Attributes
    ----------
    A : Tensor of shape (n, m, d)
        Normals of the half-spaces, of length 1 (or 0).
    c : Tensor of shape (n, m)
        Right-hand sides: A δ ≤ c.
    lo, hi : Tensor of shape (n, d)
        The box of δ; may be infinite.
    """

    A: Tensor
    c: Tensor
    lo: Tensor
    hi: Tensor

    def take(self, rows: Tensor) -> Problems:
        """Return the problems at the given positions."""
        return Problems(
            self.A[rows],
            self.c[rows],
            self.lo[rows],
            self.hi[rows],
        )

    def in_units(self, unit: Tensor) -> Problems:
        """Return the problems with lengths measured in `unit`, of shape (n, 1)."""
        return Problems(
            self.A,
            self.c / unit,
            self.lo / unit,
            self.hi / unit,
        )

    @cached_property
    def start(self) -> Tensor:
        """The point of the box nearest to 0, of shape (n, d)."""
        return self.lo.new_zeros(()).clamp(self.lo, self.hi)


@dataclass(frozen=True)
class Solution:
    """What a solver found, one entry per problem.

    Attributes
    ----------
    delta : Tensor of shape (n, d)
        The displacement; to be checked by the caller.
    y : Tensor of shape (n, m)
        The dual vector, y ≥ 0.
    infeasible : boolean Tensor of shape (n,)
        Where y proves that no solution exists.
    """

    delta: Tensor
    y: Tensor
    infeasible: Tensor


def times(A: Tensor, delta: Tensor) -> Tensor:
    """Compute A δ for every problem.

    Parameters
    ----------
    A : Tensor of shape (n, m, d)
    delta : Tensor of shape (n, d)

    Returns
    -------
    Tensor of shape (n, m)
    """
    return (A @ delta[..., None])[..., 0]


def transposed_times(A: Tensor, y: Tensor) -> Tensor:
    """Compute Aᵀ y for every problem.

    Parameters
    ----------
    A : Tensor of shape (n, m, d)
    y : Tensor of shape (n, m)

    Returns
    -------
    Tensor of shape (n, d)
    """
    return (y[:, None] @ A)[:, 0]


def lower_bound(
    problems: Problems,
    y: Tensor,
    norm: Norm,
    unit: Tensor,
) -> Tensor:
    """Compute the bound that y proves on the norm, less what rounding may have added.

    Parameters
    ----------
    problems : Problems
        In the user's units.
    y : Tensor of shape (n, m)
        Dual vector of the problems in units of `unit`.
    norm : {"l1", "l2"}
        The norm that is minimized.
    unit : Tensor of shape (n, 1)
        The unit of length that y belongs to.

    Returns
    -------
    Tensor of shape (n,)
        No solution has a smaller norm; at least 0.
    """
    A = problems.A
    u = transposed_times(A, y)
    rounding = sum(A.shape[1:]) * torch.finfo(y.dtype).eps
    # Where y is large, Aᵀy is the small difference of large numbers.
    doubt = rounding * transposed_times(A.abs(), y)
    if norm == "l2":
        return _l2_bound(problems, y, u, doubt, rounding, unit)
    return _l1_bound(problems, y, u, doubt, rounding)


def _l2_bound(
    problems: Problems,
    y: Tensor,
    u: Tensor,
    doubt: Tensor,
    rounding: float,
    unit: Tensor,
) -> Tensor:
    """Compute √(2 g(y)) for the l2 norm; u is Aᵀy, known up to `doubt`."""
    c = problems.c
    slope = u * unit
    delta = (-slope).clamp(problems.lo, problems.hi)
    lagrangian = (0.5 * delta**2 + slope * delta).sum(1)
    g = lagrangian - (c * y * unit).sum(1)
    doubt_of_slope = (doubt * unit * delta.abs()).sum(1)
    doubt_of_constant = rounding * (c.abs() * y * unit).sum(1)
    unsure = doubt_of_slope + doubt_of_constant
    return (2 * (g - unsure).clamp_min(0)).sqrt()


def _l1_bound(
    problems: Problems,
    y: Tensor,
    u: Tensor,
    doubt: Tensor,
    rounding: float,
) -> Tensor:
    """Compute g(y) for the l1 norm; u is Aᵀy, known up to `doubt`."""
    c = problems.c
    lo = problems.lo
    hi = problems.hi
    # Where δ is unbounded, |Aᵀy| may not exceed 1: y is scaled down by the (rounding) excess.
    excess_down = u.masked_fill(lo > -torch.inf, 0)
    excess_up = -u.masked_fill(hi < torch.inf, 0)
    excess = torch.maximum(excess_down, excess_up)
    share = 1 / excess.amax(1, keepdim=True).clamp_min(1)
    u = u * share
    y = y * share
    doubt = doubt * share
    # |δ| + u δ is smallest at an end of the box or at 0.
    ends = torch.stack([lo, problems.start, hi])  # (3, n, d)
    costs = ends.abs() + u * ends
    least, which = torch.where(ends.isfinite(), costs, torch.inf).min(0)
    delta = ends.gather(0, which[None])[0]
    doubt_of_slope = (doubt * delta.abs()).sum(1)
    doubt_of_constant = rounding * (c.abs() * y).sum(1)
    unsure = doubt_of_slope + doubt_of_constant
    g = least.sum(1) - (c * y).sum(1)
    return (g - unsure).clamp_min(0)


def is_farkas(problems: Problems, y: Tensor) -> Tensor:
    """Check whether y proves that no δ of the box satisfies A δ ≤ c.

    Parameters
    ----------
    problems : Problems
        The problems in question.
    y : Tensor of shape (n, m)
        The candidate certificates, y ≥ 0.

    Returns
    -------
    boolean Tensor of shape (n,)
        True where y is a Farkas certificate.
    """
    total = y.sum(1, keepdim=True)
    y = y / total.clamp_min(torch.finfo(y.dtype).tiny)
    u = transposed_times(problems.A, y)
    end = torch.where(u > 0, problems.lo, problems.hi)
    unbounded = end.isinf()
    least = torch.where(
        unbounded,
        0,
        u * end.masked_fill(unbounded, 0),
    ).sum(1)
    u_unbounded = u.abs().masked_fill(~unbounded, 0).amax(1)
    separation = least - (problems.c * y).sum(1)
    return (u_unbounded <= _FARKAS_MARGIN) & (separation > _FARKAS_MARGIN)
