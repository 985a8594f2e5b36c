"""The shortest way into the cell of a prototype, where the answer is known from the geometry."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from contrafact.explainers.support.displacements import length
from contrafact.explainers.support.prototype_problem import (
    Problems,
    Prototypes,
    solve_exactly,
)

#: two prototypes of different classes on the first axis: the border is at x_0 = 1
PAIR = Prototypes(
    w=torch.tensor([[0.0, 0.0], [2.0, 0.0]], dtype=torch.float64),
    owner=torch.tensor([0, 1]),
    omega=None,
)


def problems(x, j, lower=-torch.inf, upper=torch.inf):
    x = torch.tensor(x, dtype=torch.float64)
    return Problems(
        x,
        torch.tensor(j),
        torch.full_like(x, lower),
        torch.full_like(x, upper),
    )


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_border_between_two_prototypes(norm):
    found = solve_exactly(PAIR, problems([[0.0, 3.0], [1.5, 3.0], [1.5, 0.0]], [1, 1, 0]), norm)
    expected = [[1.0, 0.0], [0.0, 0.0], [-0.5, 0.0]]
    np.testing.assert_allclose(found.delta, expected, atol=1e-9)
    np.testing.assert_allclose(found.lower_bound, [1.0, 0.0, 0.5], atol=1e-9)
    assert (found.lower_bound <= length(found.delta, norm)).all()
    assert not found.infeasible.any()


def test_a_lead_moves_the_border():
    """d_0 − d_1 = 4 x_0 − 4: a lead of 2 puts it at x_0 = 1.5."""
    found = solve_exactly(PAIR, problems([[0.0, 3.0]], [1]), "l2", lead=2.0)
    np.testing.assert_allclose(found.delta, [[1.5, 0.0]], atol=1e-9)


def test_the_margin_is_kept_and_not_in_the_bound():
    wide = solve_exactly(PAIR, problems([[0.0, 0.0]], [1]), "l2", margin=1e-3)
    assert 1 + 1e-4 < wide.delta[0, 0] < 1.01
    # The dual solution is that of the wide problem, so the bound is short by the square of that.
    assert 1 - 1e-5 < wide.lower_bound[0] <= 1.0


def test_a_box_that_ends_before_the_border():
    found = solve_exactly(PAIR, problems([[0.0, 0.0]], [1], -0.9, 0.9), "l2")
    assert found.infeasible.all() and found.lower_bound.isinf().all()
    assert found.delta.isnan().all()


def test_a_metric_bends_the_way():
    """With Ω = diag(1, 0) the second value does not count; with diag(0, 1) nothing separates."""
    first = Prototypes(PAIR.w, PAIR.owner, torch.diag(torch.tensor([1.0, 0.0]).double()))
    second = Prototypes(PAIR.w, PAIR.owner, torch.diag(torch.tensor([0.0, 1.0]).double()))
    question = problems([[0.0, 7.0]], [1])
    np.testing.assert_allclose(solve_exactly(first, question, "l2").delta, [[1.0, 0.0]], atol=1e-9)
    assert solve_exactly(second, question, "l2", lead=1.0).infeasible.all()


def test_some_problems_are_solved_as_all_are():
    rng = np.random.default_rng(0)
    prototypes = Prototypes(
        torch.from_numpy(rng.normal(size=(6, 3))), torch.arange(6) % 3, omega=None
    )
    everything = problems(rng.normal(size=(8, 3)).tolist(), rng.integers(6, size=8).tolist())
    whole = solve_exactly(prototypes, everything, "l1")
    which = torch.tensor([6, 1, 2])
    some = solve_exactly(prototypes, everything.take(which), "l1")
    np.testing.assert_allclose(some.delta, whole.delta[which], atol=1e-12)
