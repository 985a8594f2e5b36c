"""Branch and bound: below every point of a grid, above every bound, closed on small problems."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from contrafact.explainers.support.displacements import kth_of_group, length
from contrafact.explainers.support.prototype_branching import close_gaps
from contrafact.explainers.support.prototype_linearization import look, solve_linearized
from contrafact.explainers.support.prototype_problem import Problems, Prototypes, Solutions

UNLIMITED = float("inf")


def draw(seed=0, n=8, d=2, per_class=2, box=UNLIMITED):
    rng = np.random.default_rng(seed)
    owner = torch.arange(3).repeat_interleave(per_class)
    w = torch.from_numpy(rng.normal(size=(len(owner), d)))
    omega = torch.from_numpy(rng.normal(size=(len(owner), d, d)))
    x = torch.from_numpy(rng.normal(size=(n, d)))
    j = torch.from_numpy(rng.integers(len(owner), size=n))
    edge = torch.full_like(x, box)
    return Prototypes(w, owner, omega), Problems(x, j, -edge, edge)


def solve(prototypes, problems, lead=0.0):
    found = solve_linearized(prototypes, problems, "l2", lead)
    size = length(found.delta, "l2").nan_to_num(torch.inf)
    return found, close_gaps(prototypes, problems, found, size, lead)


def is_inside(prototypes, problems, i, delta, lead=0.0):
    rows = torch.full((len(delta),), i)
    return look(prototypes, problems.take(rows), delta, lead, 0.0).inside


def closed(found, share=1e-6):
    size = length(found.delta, "l2")
    return found.lower_bound >= (1 - share) * size - 1e-12


def test_no_point_of_a_grid_is_nearer_than_the_bound():
    prototypes, problems = draw(seed=0)
    before, found = solve(prototypes, problems)
    size = length(found.delta, "l2")
    assert (size <= length(before.delta, "l2").nan_to_num(torch.inf) + 1e-12).all()
    assert (found.lower_bound >= before.lower_bound).all()
    for i in range(len(problems)):
        reach = 1.01 * float(size[i]) + 1e-3
        side = torch.linspace(-reach, reach, 401, dtype=torch.float64)
        grid = torch.cartesian_prod(side, side)
        inside = is_inside(prototypes, problems, i, grid)
        nearest = grid[inside].norm(dim=1).min() if inside.any() else torch.inf
        assert float(found.lower_bound[i]) <= float(nearest) + 1e-9
        assert float(size[i]) <= float(nearest) + 1e-9
    assert not closed(before).all()
    assert closed(found).all()


def test_gaps_close_where_single_conditions_leave_them_and_solvers_find_nothing_shorter():
    prototypes, problems = draw(seed=4, n=8, d=3)
    before, found = solve(prototypes, problems)
    assert closed(before).double().mean() < 0.8
    assert closed(found).all()
    rng = np.random.default_rng(0)
    w, omega = prototypes.w.numpy(), prototypes.omega.numpy()
    for i in (~closed(before)).nonzero().flatten()[:4].tolist():
        x, j = problems.x[i].numpy(), int(problems.j[i])
        rivals = prototypes.others(problems.j)[i].numpy()

        def room(delta, x=x, j=j, rivals=rivals):
            d = np.square(np.einsum("krd,kd->kr", omega, x + delta - w)).sum(1)
            return (d - d[j])[rivals]

        limit = {"type": "ineq", "fun": room}
        for start in rng.normal(size=(6, 3)):
            trial = minimize(lambda z: z @ z, start, constraints=limit, method="SLSQP")
            if trial.success and room(trial.x).min() > -1e-9:
                assert np.sqrt(trial.fun) >= float(found.lower_bound[i]) - 1e-6


@pytest.mark.parametrize("lead", [0.0, 0.3])
def test_solutions_are_inside_the_set_and_frozen_values_stay(lead):
    prototypes, problems = draw(seed=2, n=12, d=3, box=1.5)
    lower, upper = problems.lower.clone(), problems.upper.clone()
    lower[:, 0] = upper[:, 0] = 0
    problems = replace(problems, lower=lower, upper=upper)
    before, found = solve(prototypes, problems, lead)
    solved = found.delta.isfinite().all(1)
    assert look(prototypes, problems, found.delta, lead, 0.0).inside[solved].all()
    assert (found.delta[solved, 0] == 0).all()
    assert (found.lower_bound <= length(found.delta, "l2") + 1e-9)[solved].all()
    assert closed(found)[solved].sum() > closed(before)[solved].sum()


def test_the_sides_of_a_box_have_a_part_in_the_proof():
    prototypes, problems = draw(seed=6, n=16, d=3, box=0.6)
    before, found = solve(prototypes, problems)
    solved = found.delta.isfinite().all(1)
    assert found.delta[solved].abs().max() <= 0.6
    touching = (found.delta.abs() >= 0.6 - 1e-9).any(1) & solved
    assert closed(found)[touching].any()
    assert not closed(before)[touching].any()


def test_what_is_beyond_the_cutoff_is_not_searched():
    prototypes, problems = draw(seed=4, n=12, d=3)
    found = solve_linearized(prototypes, problems, "l2")
    size = length(found.delta, "l2").nan_to_num(torch.inf)
    cutoff = found.lower_bound.clone()
    cutoff[::2] = size[::2]
    raised = close_gaps(prototypes, problems, found, cutoff)
    assert (raised.lower_bound[1::2] == found.lower_bound[1::2]).all()
    assert (raised.lower_bound[::2] > found.lower_bound[::2]).any()


def test_a_solution_is_found_where_none_was_known():
    prototypes, problems = draw(seed=0, n=10, d=3)
    known = solve(prototypes, problems)[1]
    nothing = Solutions(
        torch.full_like(problems.x, torch.nan),
        torch.zeros(len(problems), dtype=torch.float64),
        torch.zeros(len(problems), dtype=torch.bool),
    )
    cutoff = torch.full((len(problems),), torch.inf, dtype=torch.float64)
    found = close_gaps(prototypes, problems, nothing, cutoff)
    solved = found.delta.isfinite().all(1)
    assert solved.sum() >= 3
    sizes = length(found.delta, "l2")[solved]
    torch.testing.assert_close(sizes, length(known.delta, "l2")[solved], rtol=1e-6, atol=1e-9)


def test_batch_equals_loop():
    prototypes, problems = draw(seed=4, n=4, d=3)
    together = solve(prototypes, problems)[1]
    for i in range(0, len(problems), 2):
        alone = solve(prototypes, problems.take(torch.tensor([i])))[1]
        torch.testing.assert_close(alone.lower_bound[0], together.lower_bound[i], rtol=1e-6, atol=0)
        torch.testing.assert_close(alone.delta[0], together.delta[i], rtol=1e-3, atol=1e-5)


def test_kth_of_group():
    values = torch.tensor([3.0, 1.0, torch.nan, 5.0, 2.0])
    group = torch.tensor([0, 0, 2, 2, 0])
    inf = torch.inf
    assert kth_of_group(values, group, 1).tolist() == [1, 1, 5, 5, 1]
    assert kth_of_group(values, group, 2).tolist() == [2, 2, inf, inf, 2]
