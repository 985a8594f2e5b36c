"""Tasks carry all that belongs to them, wherever they are taken."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import contrafact as cf
from contrafact.engine import Candidates


@pytest.fixture
def tasks(counting, open_tasks):
    """Three different series, two counterfactuals wanted for each."""
    X = np.random.default_rng(0).normal(size=(3, 1, 5))
    return open_tasks(counting, X, k=2)


def test_taking_selects_everything_a_task_carries(tasks):
    tasks = tasks.attach(number=torch.arange(6), pair=torch.arange(12).reshape(6, 2))
    which = torch.tensor([4, 1, 4])
    some = tasks.take(which)
    for name in ("x", "target", "label", "rank", "goal", "row"):
        assert torch.equal(getattr(some, name), getattr(tasks, name)[which]), name
    assert torch.equal(some["number"], which) and some["pair"].tolist() == [[8, 9], [2, 3], [8, 9]]
    assert np.array_equal(some.seed, tasks.seed[which.numpy()])
    assert torch.equal(some.before.proba, tasks.before.proba[which])
    mask = tasks["number"] > 3
    assert tasks.take(mask)["number"].tolist() == [4, 5]
    assert tasks.take(mask | True) is tasks  # nothing left, nothing copied


def test_what_is_attached_must_fit(tasks):
    with pytest.raises(ValueError, match="number has 5 entries for 6 tasks"):
        tasks.attach(number=torch.arange(5))
    with pytest.raises(KeyError):
        tasks["number"]


def test_instances_and_their_tasks(tasks):
    instances = tasks.per_instance()
    assert len(instances) == 3 and tasks.rank.tolist() == [0, 1] * 3
    spread = tasks.from_instances(torch.tensor([10.0, 20.0, 30.0]))
    assert spread.tolist() == [10.0, 10.0, 20.0, 20.0, 30.0, 30.0]
    some = tasks.take(torch.tensor([0, 1, 4]))
    assert some.from_instances(torch.tensor([1.0, 3.0])).tolist() == [1.0, 1.0, 3.0]
    assert torch.equal(tasks.repeat(3).row, tasks.row.repeat_interleave(3))


@pytest.mark.parametrize("size", [1, 4, 6, 99])
def test_parts_are_the_whole(tasks, size):
    parts = tasks.split(size)
    assert max(len(part) for part in parts) <= size
    assert torch.equal(torch.cat([part.x for part in parts]), tasks.x)


def test_candidates_of_parts_are_joined_under_their_own_tasks(tasks):
    parts = [
        part.candidates(part.x + number, n=torch.full((len(part),), number))
        for number, part in enumerate(tasks.split(4))
    ]
    joined = Candidates.concat(parts)
    assert torch.equal(joined.tasks.row, tasks.row)
    assert joined.info["n"].tolist() == [0, 0, 0, 0, 1, 1]
    torch.testing.assert_close(joined.x[4:], tasks.x[4:] + 1)


def test_random_numbers_follow_the_instance(counting, open_tasks):
    X = np.random.default_rng(0).normal(size=(4, 1, 5))
    draws = open_tasks(counting, X, 1).uniform(6)
    other = open_tasks(counting, X[[2, 0]], 1).uniform(6)
    torch.testing.assert_close(other, draws[[2, 0]])
    assert len(draws.unique()) == draws.numel()


def test_draws_differ_by_number_and_stream_and_by_task_where_told(tasks):
    assert torch.equal(tasks.uniform(4)[0], tasks.uniform(4)[1])  # of one instance
    by_rank = tasks.normal(4, tasks.rank)
    assert not torch.equal(by_rank[0], by_rank[1])
    assert not torch.equal(tasks.uniform(4, 1), tasks.uniform(4, 2))
    assert not torch.equal(tasks.uniform(4), tasks.uniform(4, stream=1))


def test_accepted_asks_only_those_who_can_pay(counting, open_tasks):
    X = np.full((2, 1, 5), -1.0)
    tasks = open_tasks(counting, X, 1, budget=cf.Budget(calls=2 * 3))
    good = torch.ones_like(tasks.x)
    tasks.take(torch.tensor([0])).ask(good[:1])
    seen = counting.seen
    assert tasks.accepted(good).tolist() == [False, True] and counting.seen - seen == 1


def test_aiming_higher_never_lowers_what_was_asked(counting, open_tasks):
    tasks = open_tasks(counting, np.full((2, 1, 5), -1.0), 1, confidence=0.8)
    assert tasks.with_goal(0.6).confidence == 0.8 and tasks.with_goal(0.9).confidence == 0.9


def test_constraints_keep_the_gradient_of_what_may_move(counting, open_tasks):
    """A value that has not moved yet is projected to itself; its gradient must not be lost."""
    frozen = np.arange(5) == 1
    limits = cf.Constraints(lower=-2.0, upper=[0.0, 9.0, 9.0, 9.0, 9.0], frozen=frozen)
    tasks = open_tasks(counting, np.full((1, 1, 5), -1.0), 1, constraints=limits)
    delta = torch.tensor([[[3.0, 3.0, 0.0, -3.0, 0.5]]], dtype=torch.float64, requires_grad=True)
    x_cf = tasks.project(tasks.x + delta)
    assert x_cf.tolist() == [[[0.0, -1.0, -1.0, -2.0, -0.5]]]
    (gradient,) = torch.autograd.grad(x_cf.sum(), delta)
    assert gradient.tolist() == [[[0.0, 0.0, 1.0, 0.0, 1.0]]]
