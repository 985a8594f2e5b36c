"""The dual simplex method: the nearest point of a polyhedron in the l1 norm.

With slacks s, A δ + s = c. Costs are piecewise linear in each of the variables (δ, s), with three
levels and two knots. With r = −[A 1]ᵀ y, a variable sits at its first level while r is below the
first knot, at the second level between the knots, at the third above; on a knot, as a basic
variable, it may lie between two levels. δ has levels lo, 0, hi and knots −1, 1; s has levels
0, ∞, ∞ and knots 0, ∞, and is basic at first.

Each iteration takes the basic variable p that is farthest outside its levels. r_p leaves its knot
by t, every other r moves by t ρ, and variables that pass a knot go to their next level, which
reduces the violation of p; the variable q at whose knot the violation ends is basic in its place.
The search starts from δ = 0 and ends in a vertex, so values that need not move are exactly 0.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .dual_problem import TOLERANCE, Problems, Solution, is_farkas, times
from .simplex_tableau import Costs, Tableau, Vertices

#: Smaller coefficients of a tableau are taken for 0.
_PIVOT = 1e-9


class _Leaving(NamedTuple):
    """The variable p that leaves the basis.

    p, variable, knot : (k, 1), its position in B, which variable it is, and the knot it is on.
    above, side : (k, 1), whether it is above its levels; 1 if so, else −1.
    row, rho : (k, d), its row of T, and the rates at which the other r move.
    levels, gaps, knots : (k, 3), (k, 2) and (k, 2), its levels, their distances, and its knots.
    """

    p: Tensor
    variable: Tensor
    knot: Tensor
    above: Tensor
    side: Tensor
    row: Tensor
    rho: Tensor
    levels: Tensor
    gaps: Tensor
    knots: Tensor


class _Path(NamedTuple):
    """The knots on the way of r, sorted by the step t that reaches each, all (k, 2 d + 1).

    t, order : the steps, and which knot: j and d + j for the knots of N_j, 2 d for p's own.
    reached : whether the violation has ended there.
    """

    t: Tensor
    order: Tensor
    reached: Tensor


class _Step(NamedTuple):
    """The step to the knot where the violation ends.

    t, end : (k, 1), its length, and the knot, numbered as in `_Path`.
    passed, passed_p : (k, 2, d) and (k, 1), the knots of N and of p that are passed before.
    """

    t: Tensor
    end: Tensor
    passed: Tensor
    passed_p: Tensor


class _Entering(NamedTuple):
    """The variable q that enters the basis, all (k, 1) but the column.

    swap : False where p stops at a knot of its own: then p stays, and nothing is exchanged.
    q, variable, level, r : its position in N, which variable it is, its level and its r.
    knot_p : the knot that the variable at position p of B is on from now on.
    level_p : the level p comes to rest at.
    pivot, column : its coefficient in p's row (1 where nothing is exchanged), its column (k, m).
    """

    swap: Tensor
    q: Tensor
    variable: Tensor
    level: Tensor
    r: Tensor
    knot_p: Tensor
    level_p: Tensor
    pivot: Tensor
    column: Tensor


def nearest_l1(problems: Problems) -> Solution:
    """Minimize the l1 norm by the dual simplex method.

    Parameters
    ----------
    problems : Problems
        In units in which the necessary steps are of the order of 1.

    Returns
    -------
    Solution
        Vertices; not necessarily feasible where the iterations did not suffice.
    """
    A = problems.A
    n, m, d = A.shape
    vertices = _dual_simplex(problems)
    # Tableaux collect rounding errors: the last vertex is computed again from the given numbers.
    identity = torch.eye(
        m,
        dtype=A.dtype,
        device=A.device,
    ).expand(n, m, m)
    columns = vertices.basic[:, None].expand(n, m, m)
    basis = torch.cat([A, identity], 2).gather(2, columns)
    factors, pivots, _ = torch.linalg.lu_factor_ex(basis)
    remainder = problems.c - times(A, vertices.values[:, :d])
    x_B = torch.linalg.lu_solve(
        factors,
        pivots,
        remainder[..., None],
    )[..., 0]
    delta = vertices.values.scatter(1, vertices.basic, x_B)[:, :d]
    y = torch.linalg.lu_solve(
        factors,
        pivots,
        -vertices.r_B[..., None],
        adjoint=True,
    )[..., 0]
    y = y.clamp_min(0)
    return Solution(
        delta,
        y,
        vertices.infeasible & is_farkas(problems, y),
    )


def _dual_simplex(problems: Problems) -> Vertices:
    """Go from vertex to vertex until no variable is outside its levels, or one must stay so."""
    _, m, d = problems.A.shape
    costs = Costs.of(problems)
    tableau = Tableau.start(problems, costs)
    vertices = Vertices.start(tableau, problems)
    for _ in range(50 + 10 * (m + d)):
        amount, p, above = _largest_violation(tableau, costs)
        optimal = amount[:, 0] <= TOLERANCE
        if bool(optimal.any()):
            vertices.record_optimal(tableau, costs, optimal)
            if bool(optimal.all()):
                break
            tableau = tableau.without(optimal)
            continue
        leaving = _leaving_variable(tableau, costs, p, above)
        path = _knots_ahead(tableau, leaving, amount)
        stuck = ~path.reached.any(1)
        if bool(stuck.any()):
            vertices.record_infeasible(
                tableau,
                costs,
                stuck,
                leaving.p,
                leaving.side,
            )
            if bool(stuck.all()):
                break
            tableau = tableau.without(stuck)
            continue
        step = _step_along(path, d)
        _pass_knots(tableau, leaving, step)
        entering = _entering_variable(tableau, leaving, step)
        _update_values(tableau, costs, leaving, entering)
        _pivot(tableau, leaving, entering)
        _exchange(tableau, leaving, entering, step)
    return vertices


def _largest_violation(
    tableau: Tableau,
    costs: Costs,
) -> tuple[Tensor, Tensor, Tensor]:
    """Find by how much a basic variable is outside its levels at most, which, and whether above."""
    rows = tableau.rows[:, None]
    low = costs.levels[rows, tableau.knot_B, tableau.B]
    high = costs.levels[rows, tableau.knot_B + 1, tableau.B]
    excess = tableau.x_B - high
    amount, p = torch.maximum(low - tableau.x_B, excess).max(1, keepdim=True)
    above = excess.gather(1, p) > 0
    return amount, p, above


def _leaving_variable(
    tableau: Tableau,
    costs: Costs,
    p: Tensor,
    above: Tensor,
) -> _Leaving:
    """Collect what the step needs to know of the variable at position p of the basis."""
    T = tableau.T
    variable = tableau.B.gather(1, p)
    which = variable[:, 0]
    side = 2 * above.long() - 1
    problem = torch.arange(len(T), device=T.device)
    row = T[problem, p[:, 0]]
    levels = costs.levels[tableau.rows, :, which]
    return _Leaving(
        p=p,
        variable=variable,
        knot=tableau.knot_B.gather(1, p),
        above=above,
        side=side,
        row=row,
        rho=side * row,
        levels=levels,
        gaps=levels.diff(dim=1),
        knots=costs.knots[:, which].T,
    )


def _knots_ahead(tableau: Tableau, leaving: _Leaving, violation: Tensor) -> _Path:
    """Sort the knots that lie ahead, and add up what passing them takes off the violation."""
    rho = leaving.rho
    speed = rho.abs()
    rises = rho > 0
    below_first = rises == (tableau.level_N < 1)
    below_second = rises == (tableau.level_N < 2)
    ahead = torch.stack([below_first, below_second], 1)  # (k, 2, d)
    ahead &= (speed > _PIVOT)[:, None]
    t_N = (tableau.knots_N - tableau.r_N[:, None]) / rho[:, None]
    t_N = torch.where(ahead, t_N, torch.inf).clamp_min(0)
    gain_N = torch.where(ahead, speed[:, None] * tableau.gaps_N, 0)

    # p may have a knot of its own ahead.
    second = leaving.above == (leaving.knot == 0)
    distance = leaving.knots[:, 1:] - leaving.knots[:, :1]
    t_p = torch.where(second, distance, torch.inf)
    gap = leaving.gaps.gather(1, 1 - leaving.knot)
    gain_p = torch.where(second, gap, 0)

    t_all = torch.cat([t_N.flatten(1), t_p], 1)  # (k, 2 d + 1)
    gain_all = torch.cat([gain_N.flatten(1), gain_p], 1)
    t, order = t_all.sort(dim=1)
    gain = gain_all.gather(1, order)
    # The margin is for rounding: all knots together may be just enough.
    reached = gain.cumsum(1) >= (1 - 1e-10) * violation
    return _Path(t, order, reached)


def _step_along(path: _Path, d: int) -> _Step:
    """Go to the first knot where the violation ends."""
    last = path.reached.int().argmax(1, keepdim=True)
    count = torch.arange(2 * d + 1, device=last.device)
    passed = torch.zeros_like(path.reached).scatter_(
        1,
        path.order,
        count < last,
    )
    return _Step(
        t=path.t.gather(1, last),
        end=path.order.gather(1, last),
        passed=passed[:, :-1].reshape(-1, 2, d),
        passed_p=passed[:, -1:],
    )


def _pass_knots(tableau: Tableau, leaving: _Leaving, step: _Step) -> None:
    """Move the variables whose knots are passed to their next levels (bound flips), in place."""
    sign = leaving.rho.sign()
    gaps_passed = torch.where(step.passed, tableau.gaps_N, 0)
    moved = sign * gaps_passed.sum(1)
    tableau.x_B = tableau.x_B - times(tableau.T, moved)
    levels_passed = sign * step.passed.sum(1)
    tableau.level_N = tableau.level_N + levels_passed.long()
    tableau.r_N = tableau.r_N + step.t * leaving.rho


def _entering_variable(tableau: Tableau, leaving: _Leaving, step: _Step) -> _Entering:
    """Find the variable whose knot the step ends at."""
    _, m, d = tableau.T.shape
    swap = step.end < 2 * d
    q = step.end % d
    other_knot = 1 - leaving.knot
    in_column = q[:, None].expand(-1, m, 1)
    column = tableau.T.gather(2, in_column)[..., 0]
    return _Entering(
        swap=swap,
        q=q,
        variable=tableau.N.gather(1, q),
        level=tableau.level_N.gather(1, q),
        r=tableau.r_N.gather(1, q),
        knot_p=torch.where(swap, step.end // d, other_knot),
        level_p=leaving.knot + leaving.above + leaving.side * step.passed_p,
        pivot=torch.where(swap, leaving.row.gather(1, q), 1),
        column=column,
    )


def _update_values(
    tableau: Tableau,
    costs: Costs,
    leaving: _Leaving,
    entering: _Entering,
) -> None:
    """Bring p to its level by moving q, in place."""
    x_p = tableau.x_B.gather(1, leaving.p)
    target = leaving.levels.gather(1, entering.level_p)
    move = torch.where(
        entering.swap,
        (x_p - target) / entering.pivot,
        0,
    )
    level_q = costs.levels[tableau.rows[:, None], entering.level, entering.variable]
    x_q = torch.where(entering.swap, level_q + move, x_p)
    x_B = tableau.x_B - entering.column * move
    tableau.x_B = x_B.scatter_(1, leaving.p, x_q)


def _pivot(tableau: Tableau, leaving: _Leaving, entering: _Entering) -> None:
    """Exchange row p and column q of T by a rank-one update, in place."""
    _, m, d = tableau.T.shape
    p = leaving.p
    pivot = entering.pivot
    column = entering.column
    row_p = (leaving.row / pivot)[:, None]  # (k, 1, d)
    exchanged = (-column / pivot).scatter_(1, p, 1 / pivot)
    column_q = torch.where(entering.swap, exchanged, column)
    moving = (column * entering.swap)[..., None]  # (k, m, 1)
    tableau.T.baddbmm_(moving, row_p, alpha=-1)
    tableau.T.scatter_(1, p[..., None].expand(-1, 1, d), row_p)
    tableau.T.scatter_(
        2,
        entering.q[:, None].expand(-1, m, 1),
        column_q[..., None],
    )


def _exchange(
    tableau: Tableau,
    leaving: _Leaving,
    entering: _Entering,
    step: _Step,
) -> None:
    """Exchange what is known of p and q between the basis and the other variables, in place."""
    p = leaving.p
    q = entering.q
    swap = entering.swap
    into_B = torch.where(swap, entering.variable, leaving.variable)
    into_N = torch.where(swap, leaving.variable, entering.variable)
    tableau.B = tableau.B.scatter(1, p, into_B)
    tableau.N = tableau.N.scatter(1, q, into_N)
    tableau.knot_B = tableau.knot_B.scatter(1, p, entering.knot_p)

    level = torch.where(swap, entering.level_p, entering.level)
    tableau.level_N = tableau.level_N.scatter(1, q, level)
    r_p = leaving.knots.gather(1, leaving.knot) + leaving.side * step.t
    tableau.r_N = tableau.r_N.scatter(
        1,
        q,
        torch.where(swap, r_p, entering.r),
    )

    both = q[:, None].expand(-1, 2, 1)
    swap = swap[..., None]
    gaps_p = leaving.gaps.nan_to_num(torch.inf)[..., None]
    gaps = torch.where(swap, gaps_p, tableau.gaps_N.gather(2, both))
    tableau.gaps_N.scatter_(2, both, gaps)
    knots = torch.where(
        swap,
        leaving.knots[..., None],
        tableau.knots_N.gather(2, both),
    )
    tableau.knots_N.scatter_(2, both, knots)
