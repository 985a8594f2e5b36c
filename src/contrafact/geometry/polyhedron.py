"""The nearest point of a polyhedron, for many points at once, with a certificate.

    min ‖δ‖    subject to   A (x + δ) ≤ b,   lo ≤ x + δ ≤ hi,        ‖·‖ the l1 or the l2 norm

With c = b − A x and the box moved by x these are the problems of `dual_problem`. They are solved by
Newton's method on the dual (l2, `dual_newton`) or by the dual simplex method (l1, `dual_simplex`);
every solution is checked, and its dual vector bounds how much shorter δ could be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..data.arrays import as_real, read_array
from ..numerics.tensors import Axes, as_kind, read_integers, read_tensor
from ..validation import OneOf, brief, check_parameters
from .arguments import Array
from .dual_newton import nearest_l2
from .dual_problem import Norm, Problems, Solution, lower_bound, times
from .dual_simplex import nearest_l1

#: Numbers in the constraints of one block of problems: they stay in the cache.
_BLOCK = 2**19
#: A displacement solves its problem if no half-space is violated by more than this.
_FEASIBLE = 1e-9


@dataclass(frozen=True)
class Nearest:
    """Nearest points of polyhedra, with the bounds that prove how near they are.

    All are tensors, or arrays where the points were given as arrays.

    Attributes
    ----------
    delta : array or Tensor of shape (n, d)
        The displacements; NaN where no point exists, or none was found.
    value : array or Tensor of shape (n,)
        Their norms; inf where no point exists, or none was found.
    lower_bound : array or Tensor of shape (n,)
        No feasible displacement is shorter than this; inf where no point exists.
    y : array or Tensor of shape (n, m)
        The dual vectors that prove the bounds; where no point exists, Farkas certificates.
    infeasible : array or Tensor of bool, shape (n,)
        Where y proves that no point exists.
    """

    delta: Any
    value: Any
    lower_bound: Any
    y: Any
    infeasible: Any

    @property
    def gap(self) -> Any:
        """How much longer than the shortest δ may be at most; 0 where no point exists."""
        where = torch.where if isinstance(self.value, Tensor) else np.where
        with np.errstate(invalid="ignore"):  # inf − inf where no point exists
            return where(self.infeasible, 0, self.value - self.lower_bound)


@dataclass(frozen=True)
class _HalfSpaces:
    """The half-spaces A x ≤ b of n points, with normals of length 1.

    A : (k, m, d), one set of normals for each value of `which`.
    empty : (k, m), where a normal is 0.
    length : (n, m), the lengths of the normals as they were given.
    b : (n, m), in the same units as A.
    which : (n,), the set of each point.
    """

    A: Tensor
    empty: Tensor
    length: Tensor
    b: Tensor
    which: Tensor

    @classmethod
    def of(
        cls,
        A: Tensor,
        b: Tensor,
        which: Tensor | None,
        n: int,
    ) -> _HalfSpaces:
        """Scale the normals to length 1; a single set (m, d) serves all n points."""
        length = torch.linalg.vector_norm(A, dim=-1)
        empty = length == 0
        length = length + empty
        A = A / length[..., None]
        if A.ndim == 2:
            A = A[None]
            length = length[None]
            empty = empty[None]
            which = torch.zeros(n, dtype=torch.long, device=A.device)
        elif which is None:
            which = torch.arange(n, device=A.device)
        length = length[which]
        b = b.double().expand(length.shape) / length
        return cls(A, empty, length, b, which)


@dataclass(frozen=True)
class _Results:
    """Results of n problems, filled block by block; `found` says where delta is a solution."""

    delta: Tensor
    y: Tensor
    lower_bound: Tensor
    infeasible: Tensor
    found: Tensor

    @classmethod
    def empty(cls, x: Tensor, m: int) -> _Results:
        """Make room for the results of the points x, with m half-spaces each."""
        n = len(x)
        return cls(
            delta=torch.empty_like(x),
            y=x.new_empty(n, m),
            lower_bound=x.new_empty(n),
            infeasible=x.new_empty(n, dtype=torch.bool),
            found=x.new_empty(n, dtype=torch.bool),
        )


def nearest_point(
    x: Array,
    A: Array,
    b: Array,
    norm: Norm = "l2",
    bounds: tuple[Any, Any] = (-torch.inf, torch.inf),
    frozen: Array | None = None,
    which: Array | None = None,
) -> Nearest:
    """Find the shortest δ with A (x + δ) ≤ b and lo ≤ x + δ ≤ hi, for every row of x.

    Parameters
    ----------
    x : array or Tensor of shape (n, d)
        The points, finite. The work is done in float64.
    A : array or Tensor of shape (n, m, d) or (m, d)
        Normals of the half-spaces, finite: m for each point, or the same m for all.
    b : array or Tensor of shape (n, m) or (m,)
        Right-hand sides of the half-spaces, finite.
    norm : {"l1", "l2"}, default="l2"
        The norm of δ to minimize. With "l1" as few values as possible leave 0 or their bounds.
    bounds : tuple of two floats, arrays or Tensors, default=(-inf, inf)
        The box (lo, hi): numbers, or arrays that broadcast against x; may be infinite.
    frozen : array or Tensor of bool, optional
        Broadcasts against x; δ = 0 where it is True, whatever the bounds say.
    which : array or Tensor of int, shape (n,), optional
        Point i has the half-spaces A[which[i]], so that points can share sets; A is (sets, m, d)
        and b is (n, m) then.

    Returns
    -------
    Nearest
        The displacements with their norms, lower bounds and certificates, in float64, as tensors
        where x is one, else as arrays.

    Raises
    ------
    ValueError, TypeError
        If an argument has the wrong shape, type or value, or lo > hi somewhere.

    Examples
    --------
    >>> x = torch.zeros(1, 2)
    >>> A = torch.tensor([[-2.0, -1.0]])
    >>> b = torch.tensor([-2.0])
    >>> nearest_point(x, A, b, "l2").delta
    tensor([[0.8000, 0.4000]], dtype=torch.float64)
    >>> nearest_point(x, A, b, "l1", bounds=(0, 0.75)).delta
    tensor([[0.7500, 0.5000]], dtype=torch.float64)
    """
    check_parameters("nearest_point", {"norm": OneOf("l1", "l2")}, {"norm": norm})
    points = read_tensor(x, "x", ("n", "d")).detach().double()
    half_spaces = _read_half_spaces(points, A, b, which)
    n, d = points.shape
    m = half_spaces.b.shape[1]
    lo, hi = _box_around(points, bounds, frozen)
    results = _Results.empty(points, m)
    for rows in _blocks(n, m * d, points.device):
        _solve_block(results, rows, points, half_spaces, lo, hi, norm)
    return _as_given(_finish(results, norm), x)


def _read_half_spaces(
    x: Tensor,
    A: Array,
    b: Array,
    which: Array | None,
) -> _HalfSpaces:
    """Check the half-spaces against the points x."""
    n, d = x.shape
    points = f"x of shape {tuple(x.shape)}"
    sets = None
    shapes: tuple[Axes, ...] = ((n, "m", d), ("m", d))
    if which is not None:
        sets = read_integers(which, "which", (n,), beside=points).to(x.device, torch.long)
        shapes = (("sets", "m", d),)
    normals = read_tensor(A, "A", *shapes, beside=points)
    m = normals.shape[-2]
    if m == 0:
        raise ValueError(f"A has shape {tuple(normals.shape)}. Accepted: at least one half-space.")
    if sets is not None and n and not 0 <= int(sets.min()) <= int(sets.max()) < len(normals):
        raise ValueError(
            f"which must hold positions in A, from 0 to {len(normals) - 1}; got values from "
            f"{int(sets.min())} to {int(sets.max())}."
        )
    sides = read_tensor(b, "b", (n, m), (m,), beside=f"A of shape {tuple(normals.shape)}")
    return _HalfSpaces.of(
        normals.detach().to(x.device).double(),
        sides.detach().to(x.device),
        sets,
        n,
    )


def _box_around(
    x: Tensor,
    bounds: tuple[Any, Any],
    frozen: Array | None,
) -> tuple[Tensor, Tensor]:
    """Return the box of δ, (n, d) each."""
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise ValueError(f"bounds must be a pair (lo, hi), got {brief(bounds)}.")
    lo, hi = (_bound(value, f"bounds[{i}]", x) - x for i, value in enumerate(bounds))
    if frozen is not None:
        values = read_array(frozen, "frozen")
        if values.dtype != bool:
            raise ValueError(f"frozen must be boolean, got {values.dtype}.")
        fixed = _expanded(torch.tensor(values, device=x.device), "frozen", x)
        lo = lo.masked_fill(fixed, 0)
        hi = hi.masked_fill(fixed, 0)
    if bool((lo > hi).any()):
        raise ValueError("bounds must be (lo, hi) with lo <= hi everywhere.")
    return lo, hi


def _bound(bound: Any, name: str, x: Tensor) -> Tensor:
    """Read one bound as a tensor of the shape of x."""
    if isinstance(bound, Tensor) and bound.dtype == x.dtype and bound.shape == x.shape:
        values = bound
    else:
        values = torch.tensor(as_real(bound, name)).to(x)
    if bool(values.isnan().any()):
        raise ValueError(f"{name} contains NaN. Accepted: numbers; infinite ones are no bound.")
    return _expanded(values, name, x)


def _expanded(values: Tensor, name: str, x: Tensor) -> Tensor:
    """Broadcast values against x."""
    try:
        return values.expand(x.shape)
    except RuntimeError:
        raise ValueError(
            f"{name} of shape {tuple(values.shape)} does not broadcast against x, {tuple(x.shape)}."
        ) from None


def _as_given(found: Nearest, x: Array) -> Nearest:
    """Return arrays where the points came as an array."""
    if isinstance(x, Tensor):
        return found
    return Nearest(**{name: as_kind(value, x) for name, value in vars(found).items()})


def _blocks(n: int, numbers: int, device: torch.device) -> Iterator[Tensor]:
    """Split n problems, with so many numbers in the constraints of each, into blocks."""
    size = max(1, _BLOCK // max(1, numbers))
    for start in range(0, n, size):
        yield torch.arange(start, min(start + size, n), device=device)


def _solve_block(
    results: _Results,
    rows: Tensor,
    x: Tensor,
    half_spaces: _HalfSpaces,
    lo: Tensor,
    hi: Tensor,
    norm: Norm,
) -> None:
    """Solve the problems of some rows and enter what was found in `results`."""
    which = half_spaces.which[rows]
    A = half_spaces.A[which]
    c = half_spaces.b[rows] - times(A, x[rows])
    problems = Problems(A, c, lo[rows], hi[rows])
    unit = _necessary_step(problems)
    # 0 ≤ −1e-99 is as false as 0 ≤ −1.
    unsatisfiable = (c < 0) & half_spaces.empty[which]
    problems = Problems(
        A,
        torch.where(unsatisfiable, -unit, c),
        problems.lo,
        problems.hi,
    )

    scaled = problems.in_units(unit)
    solution, found = _solve(scaled, norm)
    results.found[rows] = found
    results.infeasible[rows] = solution.infeasible
    results.delta[rows] = _from_units(
        solution.delta,
        scaled,
        problems,
        unit,
    )
    results.lower_bound[rows] = lower_bound(
        problems,
        solution.y,
        norm,
        unit,
    )
    # The l2 problem is quadratic in δ, so its y grows with the unit.
    y = solution.y if norm == "l1" else solution.y * unit
    results.y[rows] = y / half_spaces.length[rows]


def _necessary_step(problems: Problems) -> Tensor:
    """Return a unit of length, (n, 1): the longest step that is certainly needed, or 1."""
    to_half_spaces = -problems.c.amin(1, keepdim=True)
    to_box = problems.start.abs().amax(1, keepdim=True)
    unit = torch.maximum(to_half_spaces, to_box)
    return torch.where(unit > 0, unit, 1)


def _solve(problems: Problems, norm: Norm) -> tuple[Solution, Tensor]:
    """Solve problems in their own units; also return where a checked solution was found, (n,)."""
    solve = nearest_l2 if norm == "l2" else nearest_l1
    solution = solve(problems)
    satisfied = times(problems.A, solution.delta) <= problems.c + _FEASIBLE
    found = satisfied.all(1) & ~solution.infeasible
    lost = (~found & ~solution.infeasible).nonzero().flatten()
    if norm == "l2" and len(lost):
        # The l1 problem has a solution where the l2 problem has one, and its method decides that.
        proof = nearest_l1(problems.take(lost))
        solution.infeasible[lost] = proof.infeasible
        solution.y[lost] = torch.where(
            proof.infeasible[:, None],
            proof.y,
            solution.y[lost],
        )
    return solution, found


def _from_units(
    delta: Tensor,
    scaled: Problems,
    problems: Problems,
    unit: Tensor,
) -> Tensor:
    """Return δ in the user's units, exactly on the bounds where it is on them."""
    inside = torch.where(delta >= scaled.hi, problems.hi, delta * unit)
    return torch.where(delta <= scaled.lo, problems.lo, inside)


def _finish(results: _Results, norm: Norm) -> Nearest:
    """Compute the norms, and mark the problems without a solution."""
    lost = ~results.found
    infeasible = results.infeasible
    value = torch.linalg.vector_norm(
        results.delta,
        1 if norm == "l1" else 2,
        dim=1,
    )
    y = results.y
    y[infeasible] /= y[infeasible].sum(1, keepdim=True)
    return Nearest(
        delta=results.delta.masked_fill(lost[:, None], torch.nan),
        value=value.masked_fill(lost, torch.inf),
        lower_bound=results.lower_bound.masked_fill(infeasible, torch.inf),
        y=y,
        infeasible=infeasible,
    )
