"""Oracle: the only way to the model counts, remembers, and contains what goes wrong."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from contrafact.engine import Budget
from contrafact.engine.row_states import State
from contrafact.models.verdict import lead


@pytest.fixture
def tasks(counting, open_tasks):
    """Four series of class 0, class 1 wanted, ten model rows each."""
    X = np.full((4, 1, 5), -1.0)
    return open_tasks(counting, X, 1, budget=Budget(calls=4 * 12))


def at(*means):
    """Constant series with these means."""
    return torch.tensor(means, dtype=torch.float64).reshape(-1, 1, 1).expand(-1, 1, 5).clone()


def of(*rows):
    return torch.tensor(rows)


def test_all_parts_of_a_request_share_costs_and_states(tasks, counting):
    seen = counting.seen
    oracle = tasks.oracle
    tasks.take(of(2)).ask(at(-0.5))
    part = tasks.take(of(2, 0))
    part.take(of(0, 1, 1)).ask(at(-0.2, 0.3, 0.1))
    part.fail(of(1), "broke")
    part.refuse(of(0), "cannot")
    tasks.take(of(3)).affords(cost=99)
    assert oracle.meter.spent.tolist() == [2, 0, 2, 0] and counting.seen - seen == 4
    assert [State(s).name for s in oracle.states.state] == [
        "FAILED",
        "PENDING",
        "REFUSED",
        "EXHAUSTED",
    ]
    assert oracle.states.reason == ["broke", "", "cannot", ""]
    torch.testing.assert_close(tasks.take(of(0, 2)).best_attempts(), at(0.1, -0.2))


def test_a_worse_second_try_does_not_replace_the_first(tasks):
    pair = tasks.take(of(0, 1))
    pair.ask(at(0.1, 0.1))
    pair.take(of(0)).ask(at(2.0))
    torch.testing.assert_close(pair.best_attempts(), at(0.1, 0.1))


def test_a_part_has_the_rest_of_the_budget(tasks):
    tasks.take(of(*[1] * 8)).ask(at(*[-0.5] * 8))
    part = tasks.take(of(1, 3))
    assert part.affords(cost=3).tolist() == [False, True]
    assert part.affords(cost=2).tolist() == [True, True]


def test_the_best_attempt_is_the_smallest_valid_else_the_nearest_to_it(tasks):
    tasks.take(of(0, 0, 0, 1, 1, 1)).ask(at(3.0, 0.5, -0.9, -3.0, -0.3, -0.7))
    tasks.take(of(0, 1)).ask(at(1.0, -0.4))  # neither is better than what is known
    torch.testing.assert_close(tasks.take(of(0, 1, 2)).best_attempts(), at(0.5, -0.3, -1.0))


@pytest.mark.parametrize("culprit", ["search", "model"])
def test_nan_fails_its_row_and_no_other(open_tasks, culprit):
    def model(X):
        p = 1 / (1 + np.exp(-X.mean((1, 2))))
        p[X[:, 0, 0] == 7.0] = np.nan
        return np.stack([1 - p, p], 1)

    tasks = open_tasks(model, np.full((3, 1, 5), -1.0), 1)
    candidates = at(1.0, 7.0, 2.0)
    if culprit == "search":
        candidates[1, 0, 3] = torch.nan
    verdict = tasks.ask(candidates)
    reason = tasks.oracle.states.reason
    assert [bool(text) for text in reason] == [False, True, False]
    assert {"search": "the search", "model": "the model"}[culprit] in reason[1]
    assert tasks.accepts(candidates, verdict).tolist() == [True, False, True]
    assert tasks.affords().tolist() == [True, False, True]
    torch.testing.assert_close(tasks.best_attempts(), at(1.0, -1.0, 2.0))


def test_lead_is_over_the_best_other():
    values = torch.tensor([[0.2, 0.5, 0.3], [0.2, 0.5, 0.3]])
    torch.testing.assert_close(lead(values, torch.tensor([1, 0])), torch.tensor([0.2, -0.3]))
