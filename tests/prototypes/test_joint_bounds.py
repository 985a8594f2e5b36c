"""The joint dual of several quadratic conditions: a proof for every multiplier, the SDP's value."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from contrafact.prototypes.joint_bounds import Conditions, DualPoint, Strips, maximize_dual
from contrafact.prototypes.pair_bounds import PairBounds


def draw(seed=0, n=6, k=4, d=3, strips=0):
    """Random problems: nearer to prototype 0 than to all others, each with its own metric."""
    rng = np.random.default_rng(seed)
    w = torch.from_numpy(rng.normal(size=(k, d)))
    omega = torch.from_numpy(rng.normal(size=(k, d, d)))
    x = torch.from_numpy(rng.normal(size=(n, d)))
    pairs = PairBounds.of(w, omega, 2)
    distance, slope = pairs.distances(x), pairs.slopes(x)
    rival = (torch.arange(k) > 0).expand(n, k)
    v = torch.from_numpy(rng.normal(size=(n, strips, d)))
    low = torch.from_numpy(rng.normal(size=(n, strips))) - 2
    return Conditions(
        metric=pairs.metric,
        j=torch.zeros(n, dtype=torch.long),
        g=(slope[:, :1] - slope) * rival[..., None],
        r=torch.where(rival, distance[:, :1] - distance, 0.0),
        rival=rival,
        free=torch.ones(n, d, dtype=torch.float64),
        strips=Strips.between(v, low, low + 3),
    )


def without_limit(conditions):
    return torch.full((len(conditions),), torch.inf, dtype=torch.float64)


def matrices(conditions, i):
    """The conditions of problem i as matrices M: [δ, 1]ᵀ M [δ, 1] ≤ 0."""
    d = conditions.free.shape[1]
    found = []
    for k in conditions.rival[i].nonzero().flatten():
        Q = conditions.metric[conditions.j[i]] - conditions.metric[k]
        found.append((Q, conditions.g[i, k], conditions.r[i, k]))
    strips = conditions.strips
    for v, a, b, c in zip(strips.v[i], strips.a[i], strips.b[i], strips.c[i], strict=True):
        found.append((a * torch.outer(v, v), b * v, c))
    whole = np.zeros((len(found), d + 1, d + 1))
    for M, (Q, g, r) in zip(whole, found, strict=True):
        M[:d, :d], M[:d, d], M[d, :d], M[d, d] = Q, g, g, r
    return whole


@pytest.mark.parametrize("strips", [0, 2])
def test_the_maximum_is_the_value_of_the_semidefinite_program(strips):
    cvxpy = pytest.importorskip("cvxpy")
    conditions = draw(strips=strips)
    value = maximize_dual(conditions, without_limit(conditions)).value
    d = conditions.free.shape[1]
    for i in range(len(conditions)):
        Z = cvxpy.Variable((d + 1, d + 1), PSD=True)
        limits = [cvxpy.trace(M @ Z) <= 0 for M in matrices(conditions, i)]
        problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.trace(Z[:d, :d])), [*limits, Z[d, d] == 1])
        problem.solve(solver="CLARABEL")
        if problem.status == "optimal":
            assert float(value[i]) == pytest.approx(problem.value, rel=1e-5, abs=1e-6)
            assert float(value[i]) <= problem.value * (1 + 1e-6) + 1e-6


def test_the_gradient_is_that_of_theta():
    conditions = draw(strips=1)
    rng = np.random.default_rng(0)
    lam = 0.02 * torch.from_numpy(rng.uniform(size=conditions.zero().shape))
    lam = lam * conditions.is_asked
    at = DualPoint.at(conditions, lam)
    gradient, _ = conditions.values(at.delta)
    for i in range(1, lam.shape[1]):
        step = torch.zeros_like(lam)
        step[:, i] = 1e-6
        up = DualPoint.at(conditions, lam + step).value
        down = DualPoint.at(conditions, lam - step).value
        torch.testing.assert_close((up - down) / 2e-6, gradient[:, i], rtol=1e-5, atol=1e-6)


def test_every_multiplier_is_a_proof():
    conditions = draw(n=4, d=2, k=3)
    side = torch.linspace(-6, 6, 601, dtype=torch.float64)
    grid = torch.cartesian_prod(side, side)
    dual = maximize_dual(conditions, without_limit(conditions))
    for i in range(len(conditions)):
        q, _ = conditions.take(torch.full((len(grid),), i)).values(grid)
        inside = (q <= 0).all(1)
        nearest = grid[inside].square().sum(1).min()
        for share in (0.3, 0.7, 1.0):
            at = DualPoint.at(conditions.take(torch.tensor([i])), share * dual.multipliers[[i]])
            assert float(at.value) <= float(nearest) + 1e-9


def test_where_the_minimum_keeps_all_conditions_it_is_the_solution():
    conditions = draw(seed=0, n=40)
    dual = maximize_dual(conditions, without_limit(conditions))
    q, _ = conditions.values(dual.delta)
    solved = (q <= 1e-9).all(1)
    assert 0.2 < solved.double().mean() < 1  # and some have a gap
    size = dual.delta.square().sum(1)
    torch.testing.assert_close(size[solved], dual.value[solved], rtol=1e-9, atol=1e-12)


def test_it_ends_where_the_bound_is_enough():
    conditions = draw()
    most = maximize_dual(conditions, without_limit(conditions)).value
    enough = maximize_dual(conditions, most / 3).value
    assert (enough >= most / 3).all()
    assert (enough < 0.999 * most)[most > 0].any()


def test_batch_equals_loop(monkeypatch):
    conditions = draw(seed=5)
    together = maximize_dual(conditions, without_limit(conditions)).value
    monkeypatch.setattr("contrafact.prototypes.joint_bounds.MAX_NUMBERS", 1)
    alone = maximize_dual(conditions, without_limit(conditions)).value
    torch.testing.assert_close(together, alone, rtol=1e-9, atol=1e-12)
