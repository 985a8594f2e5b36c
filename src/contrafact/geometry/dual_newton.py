"""Newton's method on the dual: the nearest point of a polyhedron in the l2 norm.

    g(y) = −⟨c, y⟩ + Σ min over lo ≤ δ ≤ hi of (½ δ² + (Aᵀy) δ),      y ≥ 0

is concave and piecewise quadratic. With δ(y) = clip(−Aᵀy, lo, hi) its gradient is −s, where
s = c − A δ(y) is the slack of the half-spaces, so that the method ends after finitely many pieces.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .dual_problem import TOLERANCE, Problems, Solution, is_farkas, times, transposed_times

#: Beyond this, y may be on its way to infinity, which means that no solution exists.
_LARGE = 1e6
#: Added to the diagonal of the Hessian, so that linearly dependent rows share the step.
_RIDGE = 1e-13
_LINE_SEARCH_STEPS = 60


@dataclass
class _Iterate:
    """The problems still open, k of them, and where their search is.

    rows : (k,), positions in the batch.
    problems : the k problems.
    y, u : (k, m) and (k, d), the dual vector and Aᵀy.
    """

    rows: Tensor
    problems: Problems
    y: Tensor
    u: Tensor

    def take(self, left: Tensor) -> _Iterate:
        """Return the problems at the given positions."""
        return _Iterate(
            self.rows[left],
            self.problems.take(left),
            self.y[left],
            self.u[left],
        )


def nearest_l2(problems: Problems) -> Solution:
    """Maximize g over y ≥ 0.

    Each iteration adds the most violated half-space to those with y > 0, takes the Newton direction
    in these until one of their y is 0, and stops on the way where g is largest.

    Parameters
    ----------
    problems : Problems
        In units in which the necessary steps are of the order of 1.

    Returns
    -------
    Solution
        Not necessarily feasible where the iterations did not suffice.
    """
    c = problems.c
    n, m = c.shape
    solution = Solution(
        delta=torch.empty_like(problems.lo),
        y=torch.empty_like(c),
        infeasible=torch.zeros(n, dtype=torch.bool, device=c.device),
    )
    now = _Iterate(
        rows=torch.arange(n, device=c.device),
        problems=problems,
        y=torch.zeros_like(c),
        u=torch.zeros_like(problems.lo),
    )
    for _ in range(100 + 2 * m):
        open_problems = now.problems
        delta = (-now.u).clamp(open_problems.lo, open_problems.hi)
        slack = open_problems.c - times(open_problems.A, delta)
        solution.delta[now.rows] = delta
        solution.y[now.rows] = now.y
        over = _is_over(now, slack, solution)
        if bool(over.any()):
            left = (~over).nonzero().flatten()
            if len(left) == 0:
                break
            now = now.take(left)
            delta = delta[left]
            slack = slack[left]
        _advance(now, delta, slack)
    return solution


def _is_over(now: _Iterate, slack: Tensor, solution: Solution) -> Tensor:
    """Find the problems that are solved or proved infeasible; mark the latter in `solution`."""
    largest = now.y.amax(1)
    # At the optimum min(s, y) = 0: a half-space is tight or does not press.
    residual = torch.minimum(slack, now.y).abs().amax(1)
    over = residual <= TOLERANCE * (1 + 1e-3 * largest)
    if bool((largest > _LARGE).any()):
        proved = is_farkas(now.problems, now.y)
        solution.infeasible[now.rows] = proved
        over |= proved
    return over


def _advance(now: _Iterate, delta: Tensor, slack: Tensor) -> None:
    """Take one step of Newton's method, in place."""
    problems = now.problems
    free = delta == -now.u
    direction = _newton_direction(problems.A, slack, now.y, free)
    v = transposed_times(problems.A, direction)
    linear = (direction * problems.c).sum(1, keepdim=True)
    share = _line_search(now.u, v, linear, problems.lo, problems.hi)
    moved = now.y + share * direction
    now.y = torch.where(moved > 1e-14 * now.y, moved, 0)
    now.u = now.u + share * v


def _newton_direction(
    A: Tensor,
    s: Tensor,
    y: Tensor,
    free: Tensor,
) -> Tensor:
    """Compute −H⁻¹ s in the working set W, shortened so that no y falls below 0.

    H = A_W diag(free) A_Wᵀ; W holds the rows with y > 0 and the most violated one.
    """
    active = y > 0
    worst, row = s.masked_fill(active, 0).min(1, keepdim=True)
    working = active.scatter(
        1,
        row,
        active.gather(1, row) | (worst < 0),
    )
    size = int(working.sum(1).max())
    # W is padded to one size; `mine` is 0 in the padding.
    mine, W = working.to(A.dtype).topk(size, dim=1)
    row_index = W[..., None].expand(-1, -1, A.shape[2])
    A_W = A.gather(1, row_index) * mine[..., None]  # (k, |W|, d)
    s_W = s.gather(1, W) * mine

    H = (A_W * free[:, None]) @ A_W.mT
    H.diagonal(dim1=1, dim2=2).add_(1 - mine + _RIDGE)
    factor, failed = torch.linalg.cholesky_ex(H)
    newton = -torch.cholesky_solve(s_W[..., None], factor)[..., 0]
    step = torch.where(failed[:, None] > 0, -s_W, newton)
    direction = torch.zeros_like(s).scatter_(1, W, step)
    # The new row may have to wait: the direction in the others ascends as well.
    direction = torch.where(active | (direction > 0), direction, 0)
    longest = torch.where(direction < 0, -y / direction, torch.inf)
    return direction * longest.amin(1, keepdim=True).clamp_max(1)


def _line_search(
    u: Tensor,
    v: Tensor,
    linear: Tensor,
    lo: Tensor,
    hi: Tensor,
) -> Tensor:
    """Find the share t ≤ 1 of the step where g is largest, of shape (k, 1).

    There the increasing function φ'(t) = linear − ⟨v, clip(−(u + t v), lo, hi)⟩ is 0; else t = 1.
    Newton's method, with bisection where it leaves the bracket.
    """

    def derivatives(t: Tensor) -> tuple[Tensor, Tensor]:
        unclipped = -(u + t * v)
        delta = unclipped.clamp(lo, hi)
        first = linear - (v * delta).sum(1, keepdim=True)
        second = (v**2 * (unclipped == delta)).sum(1, keepdim=True)
        return first, second

    left = torch.zeros_like(linear)
    right = torch.ones_like(linear)
    slope_at_0, _ = derivatives(left)
    close = 1e-3 * slope_at_0.abs()
    t = right
    for _ in range(_LINE_SEARCH_STEPS):
        slope, curvature = derivatives(t)
        flat = slope.abs() <= close
        whole = (t == 1) & (slope < 0)
        done = flat | whole
        if bool(done.all()):
            break
        left = torch.where(slope < 0, t, left)
        right = torch.where(slope > 0, t, right)
        newton = t - slope / curvature
        inside = (newton > left) & (newton < right)
        middle = (left + right) / 2
        following = torch.where(inside, newton, middle)
        t = torch.where(done, t, following)
    return t
