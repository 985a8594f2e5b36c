"""Batch: the only way to the model counts, remembers, and contains what goes wrong."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from contrafact.engine.batch import CLEAR_MARGIN, Candidates, lead
from contrafact.engine.budget import Budget
from contrafact.models.classifier import Verdict


@pytest.fixture
def batch(counting, open_request):
    """Four series of class 0, class 1 wanted, ten model rows each."""
    X = np.full((4, 1, 5), -1.0)
    return open_request(counting, X, 1, budget=Budget(calls=4 * 12))


def at(*means):
    """Constant series with these means."""
    return torch.tensor(means, dtype=torch.float64).reshape(-1, 1, 1).expand(-1, 1, 5).clone()


def test_parts_hand_back_what_they_spent_and_learned(batch, counting):
    seen = counting.seen
    batch.ask(at(-0.5), torch.tensor([2]))
    part = batch.take(torch.tensor([2, 0]))
    part.ask(at(-0.2, 0.3, 0.1), torch.tensor([0, 1, 1]))
    part.fail(torch.tensor([1]), "broke")
    part.refuse(torch.tensor([0]), "cannot")
    part.affords(torch.tensor([1]), cost=99)
    batch.absorb(part, torch.tensor([2, 0]))
    assert batch.meter.spent.tolist() == [2, 0, 2, 0] and counting.seen - seen == 4
    assert batch.meter.exhausted.tolist() == [True, False, False, False]
    assert batch.failures == ["broke", "", "", ""] and batch.refusals == ["", "", "cannot", ""]
    torch.testing.assert_close(batch.best_attempts(torch.tensor([0, 2])), at(0.1, -0.2))


def test_a_poorer_second_try_does_not_forget_the_first(batch):
    rows = torch.tensor([0, 1])
    first, second = batch.take(rows), batch.take(rows)
    first.ask(at(0.1, 0.1), first.rows)
    batch.absorb(first, rows)
    second.ask(at(2.0), torch.tensor([0]))
    batch.absorb(second, rows)
    torch.testing.assert_close(batch.best_attempts(rows), at(0.1, 0.1))


def test_part_has_the_rest_of_the_budget(batch):
    batch.ask(at(*[-0.5] * 8), torch.tensor([1] * 8))
    part = batch.take(torch.tensor([1, 3]))
    assert part.affords(part.rows, cost=3).tolist() == [False, True]
    assert part.affords(part.rows, cost=2).tolist() == [True, True]


def test_best_attempt_is_the_smallest_valid_else_the_nearest_to_it(batch):
    rows = torch.tensor([0, 0, 0, 1, 1, 1])
    batch.ask(at(3.0, 0.5, -0.9, -3.0, -0.3, -0.7), rows)
    batch.ask(at(1.0, -0.4), torch.tensor([0, 1]))  # neither is better than what is known
    torch.testing.assert_close(batch.best_attempts(torch.tensor([0, 1, 2])), at(0.5, -0.3, -1.0))


@pytest.mark.parametrize("culprit", ["search", "model"])
def test_nan_fails_its_row_and_no_other(open_request, culprit):
    def model(X):
        p = 1 / (1 + np.exp(-X.mean((1, 2))))
        p[X[:, 0, 0] == 7.0] = np.nan
        return np.stack([1 - p, p], 1)

    batch = open_request(model, np.full((3, 1, 5), -1.0), 1)
    candidates = at(1.0, 7.0, 2.0)
    if culprit == "search":
        candidates[1, 0, 3] = torch.nan
    verdict = batch.ask(candidates, batch.rows)
    assert [bool(reason) for reason in batch.failures] == [False, True, False]
    assert {"search": "the search", "model": "the model"}[culprit] in batch.failures[1]
    assert batch.accepts(verdict, batch.rows).tolist() == [True, False, True]
    assert batch.affords(batch.rows).tolist() == [True, False, True]
    torch.testing.assert_close(batch.best_attempts(batch.rows), at(1.0, -1.0, 2.0))


def test_accepts_wants_a_clear_lead_and_the_confidence(batch, open_request, counting):
    def verdict(*p):
        return Verdict.of_proba(torch.tensor([[1 - v, v] for v in p], dtype=torch.float64))

    said = verdict(0.5 + CLEAR_MARGIN / 4, 0.5 + CLEAR_MARGIN, 0.49, 0.97)
    assert batch.accepts(said, batch.rows).tolist() == [False, True, False, True]
    sure = open_request(counting, np.full((4, 1, 5), -1.0), 1, confidence=0.9)
    assert sure.accepts(verdict(0.89, 0.9, 0.6, 0.97), sure.rows).tolist() == [
        False,
        True,
        False,
        True,
    ]


def test_accepts_goes_by_the_models_own_label(batch):
    """A model may decide against its most probable class: probability alone is not enough."""
    proba = torch.tensor([[0.2, 0.8]], dtype=torch.float64)
    contrary = Verdict(proba, torch.tensor([0]), proba.log())
    assert not batch.accepts(contrary, torch.tensor([0])).any()


def test_lead_is_over_the_best_other():
    values = torch.tensor([[0.2, 0.5, 0.3], [0.2, 0.5, 0.3]])
    torch.testing.assert_close(lead(values, torch.tensor([1, 0])), torch.tensor([0.2, -0.3]))


def test_candidates_of_parts_are_joined_under_their_own_rows():
    parts = [Candidates(at(float(i)), torch.tensor([0]), {"n": torch.tensor([i])}) for i in (1, 2)]
    joined = Candidates.concat(parts, [torch.tensor([4]), torch.tensor([2])])
    assert joined.rows.tolist() == [4, 2] and joined.info["n"].tolist() == [1, 2]
    torch.testing.assert_close(joined.x, at(1.0, 2.0))


def test_random_numbers_follow_the_row(batch, counting, open_request):
    X = np.random.default_rng(0).normal(size=(4, 1, 5))
    draws = open_request(counting, X, 1).uniform(6)
    other = open_request(counting, X[[2, 0]], 1).uniform(6)
    torch.testing.assert_close(other, draws[[2, 0]])
    assert len(draws.unique()) == draws.numel()
