"""Budgets: counted to the row, shared evenly, refused where they cannot work."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch

import contrafact as cf
from contrafact.engine.budget import Budget, Meter
from contrafact.engine.deadline import Deadline


def test_repeated_rows_pay_for_each_occurrence():
    meter = Meter(3, allowance=torch.tensor([2, 1, 9]))
    rows = torch.tensor([0, 1, 0, 2, 0, 1])
    able = meter.can_pay(rows, cost=1)
    assert able.tolist() == [True, True, True, True, False, False]
    meter.charge(rows[able])
    assert meter.spent.tolist() == [2, 1, 1]
    assert meter.can_pay(torch.tensor([2, 2, 2]), cost=4).tolist() == [True, True, False]


def test_charging_beyond_the_allowance_is_refused_and_charges_nothing():
    meter = Meter(2, allowance=torch.tensor([3, 3]))
    meter.charge(torch.tensor([0, 1]), cost=2)
    with pytest.raises(RuntimeError, match="beyond its budget"):
        meter.charge(torch.tensor([0, 1, 1]))
    assert meter.spent.tolist() == [2, 2]


def test_part_of_a_meter_has_what_is_left():
    meter = Meter(3, allowance=torch.tensor([5, 5, 5]))
    meter.charge(torch.tensor([1, 1, 2]))
    part = meter.take(torch.tensor([1, 2]))
    assert part.can_pay(torch.tensor([0, 1]), cost=4).tolist() == [False, True]
    assert part.spent.tolist() == [0, 0]


def test_past_deadline_refuses_everyone():
    meter = Meter(3, deadline=Deadline(time.perf_counter() - 1))
    assert not meter.can_pay(torch.tensor([0, 2]), cost=1).any()
    later = Deadline(time.perf_counter() + 60)
    assert Meter(3, deadline=later).can_pay(torch.tensor([0, 2]), cost=99).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"calls": 0}, "calls.*0"),
        ({"calls": 2.5}, "calls.*whole number at least 1 and at most 1e.18 or inf, got 2.5"),
        ({"seconds": 0.0}, "seconds.*0"),
        ({"seconds": -1}, "seconds.*-1"),
    ],
)
def test_senseless_budget_is_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        Budget(**arguments)


@pytest.fixture
def fitted(counting):
    X = np.random.default_rng(0).normal(size=(40, 1, 8))
    return cf.LineSearch().fit(counting, X), X


def test_too_small_a_budget_says_what_it_takes(fitted):
    explainer, X = fitted
    with pytest.raises(
        ValueError, match=r"calls=29 is too small for 10 instances with k=2.*takes 30"
    ):
        explainer.explain(X[:10], k=2, budget=Budget(calls=29))
    assert len(explainer.explain(X[:10], k=2, budget=Budget(calls=30))) >= 10


def test_instances_get_equal_shares(fitted):
    """An instance's answer is the same alone with its share as among others with theirs."""
    explainer, X = fitted
    together = explainer.explain(X[:6], budget=Budget(calls=6 * 7))
    assert together.calls.max() <= 7
    for i in range(6):
        alone = explainer.explain(X[i : i + 1], budget=Budget(calls=7))
        np.testing.assert_array_equal(alone.X_cf[0], together.X_cf[i])
        assert alone.calls[0] == together.calls[i]
    generous = explainer.explain(X[:6])
    assert (np.abs(generous.delta).sum((1, 2)) <= np.abs(together.delta).sum((1, 2))).all()


def test_exhausted_rows_say_so_and_keep_their_best_attempt(fitted, counting):
    explainer, X = fitted
    hard = cf.Constraints(frozen=np.arange(8) > 0)
    result = explainer.explain(X[:4], constraints=hard, budget=Budget(calls=4 * 2))
    assert set(result.status) == {"budget"} and all(
        "ran out" in message for message in result.message
    )
    late = explainer.explain(X[:4], budget=Budget(seconds=1e-9))
    assert (late.calls == 2).all()  # before and after, no search


class Insatiable(cf.Explainer):
    """Ask as long as the budget allows."""

    def _explain(self, tasks):
        while bool(tasks.affords().any()):
            able = tasks.take(tasks.affords())
            able.ask(able.x)
            if int(tasks.oracle.meter.spent.max()) > 5000:
                break
        return tasks.candidates(tasks.x)


@pytest.mark.parametrize("k", [1, 2])
def test_without_calls_a_default_binds_and_is_told(counting, k):
    X = np.full((2, 1, 8), -1.0)
    explainer = Insatiable().fit(counting, np.concatenate([X, -X]))
    for budget in (None, Budget(seconds=600)):
        result = explainer.explain(X, k=k, budget=budget)
        spent = np.bincount(result.source, result.calls)
        assert (spent <= 2000 * k).all() and (spent > 1990 * k).all()
        assert set(result.status) == {"budget"}
        limit = (
            f"stopped at the default budget of {2000 * k:,} model rows; budget=Budget(calls=...)"
        )
        assert all(message.startswith(limit) for message in result.message)
    free = explainer.explain(X, budget=Budget(calls=np.inf))
    assert (free.calls > 5000).all() and set(free.status) == {"invalid"}


def test_a_valid_row_says_that_a_budget_ended_its_search(fitted):
    explainer, X = fitted
    result = explainer.explain(X[:6], budget=Budget(calls=6 * 6))
    reached = result.status == "valid"
    assert reached.any() and (result.message[reached] == "the budget ran out").all()
    generous = explainer.explain(X[:6])
    assert (generous.message == "").all()
