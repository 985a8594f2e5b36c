"""Sequential linearization: equal to the exact solution where there is one, inside everywhere."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from contrafact.explainers.support.displacements import length
from contrafact.explainers.support.prototype_linearization import solve_linearized
from contrafact.explainers.support.prototype_problem import (
    Problems,
    Prototypes,
    solve_exactly,
)


def draw(local: bool, n=12, per_class=2, n_classes=3, d=4, box=torch.inf):
    rng = np.random.default_rng(1)
    k = per_class * n_classes
    owner = torch.arange(n_classes).repeat_interleave(per_class)
    w = torch.from_numpy(rng.normal(size=(k, d)))
    omega = torch.from_numpy(rng.normal(size=(k, d, d)))
    if not local:
        omega = omega[:1].expand(k, d, d)
    x = torch.from_numpy(rng.normal(size=(n, d)))
    edge = torch.full_like(x, box)
    problems = Problems(x, torch.from_numpy(rng.integers(k, size=n)), -edge, edge)
    return Prototypes(w, owner, omega), problems


def leads(prototypes, problems, delta):
    """By how much prototype j is nearer than the nearest of another class."""
    away = (problems.x + delta)[:, None] - prototypes.w
    distance = torch.einsum("krd,nkd->nkr", prototypes.omega, away).square().sum(2)
    own = distance.gather(1, problems.j[:, None])[:, 0]
    others = distance.masked_fill(~prototypes.others(problems.j), torch.inf)
    return others.amin(1) - own


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_equal_metrics_give_the_exact_solution(norm):
    prototypes, problems = draw(local=False)
    found = solve_linearized(prototypes, problems, norm)
    one = Prototypes(prototypes.w, prototypes.owner, prototypes.omega[0])
    exact = solve_exactly(one, problems, norm)
    solved = ~exact.infeasible
    sizes = length(found.delta, norm)[solved]
    np.testing.assert_allclose(sizes, length(exact.delta, norm)[solved], rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("lead", [0.0, 0.5])
def test_solutions_are_inside_and_shorter_than_the_way_to_the_prototype(norm, lead):
    prototypes, problems = draw(local=True)
    found = solve_linearized(prototypes, problems, norm, lead)
    solved = found.delta.isfinite().all(1)
    assert solved.float().mean() > 0.8
    assert (leads(prototypes, problems, found.delta)[solved] >= lead - 1e-9).all()
    straight = prototypes.w[problems.j] - problems.x
    assert (length(found.delta, norm) <= length(straight, norm) + 1e-9)[solved].all()
    assert (found.lower_bound <= length(found.delta, norm) + 1e-9)[solved].all()
    assert not found.infeasible.any()


def test_the_box_is_kept():
    prototypes, problems = draw(local=True, box=0.4)
    found = solve_linearized(prototypes, problems, "l2")
    solved = found.delta.isfinite().all(1)
    assert 0 < solved.sum() < len(problems)  # what is not inside is not returned
    assert found.delta[solved].abs().max() <= 0.4 + 1e-12


def test_an_instance_that_is_inside_stays():
    prototypes, problems = draw(local=True)
    at_prototype = Problems(
        prototypes.w[problems.j] + 1e-3, problems.j, problems.lower, problems.upper
    )
    found = solve_linearized(prototypes, at_prototype, "l2")
    assert (found.delta == 0).all()
