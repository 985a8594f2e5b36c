"""The cache: nothing is asked twice, and what was asked is what is counted."""

import numpy as np
import pytest
import torch

from contrafact.engine.budget import Budget
from contrafact.engine.cache import Cache
from contrafact.models import as_classifier


@pytest.fixture
def batch(counting, open_request):
    """Three series of class 0, class 1 wanted."""
    return open_request(counting, np.full((3, 1, 5), -1.0), 1)


def at(*means):
    """Constant series with these means."""
    return torch.tensor(means, dtype=torch.float64).reshape(-1, 1, 1).expand(-1, 1, 5).clone()


def test_each_candidate_is_asked_once_and_the_first_to_ask_pays(batch, counting):
    seen = counting.seen
    batch.ask(at(0.1, 0.2, 0.1, 0.2, 0.3), torch.tensor([2, 0, 0, 1, 1]), cached=True)
    assert counting.seen - seen == 3 and batch.meter.spent.tolist() == [1, 1, 1]
    batch.ask(at(0.3, 0.1, 0.4), torch.tensor([0, 1, 2]), cached=True)
    assert counting.seen - seen == 4 and batch.meter.spent.tolist() == [1, 1, 2]


def test_answers_are_the_models_in_the_order_of_the_question(batch):
    means = torch.tensor([0.3, -0.2, 0.3, 0.1, -0.2, 0.7])
    rows = torch.tensor([0, 1, 2, 0, 1, 2])
    batch.ask(at(0.1, -0.2, 5.0), batch.rows, cached=True)
    recalled, asked = batch.ask(at(*means), rows, cached=True), batch.ask(at(*means), rows)
    for field in ("proba", "label", "score"):
        assert torch.equal(getattr(recalled, field), getattr(asked, field))


def test_a_recalled_answer_serves_every_row_that_asks(batch):
    """The best attempt of a row is known although another row asked about it."""
    batch.ask(at(0.5), torch.tensor([0]), cached=True)
    batch.ask(at(0.5), torch.tensor([2]), cached=True)
    torch.testing.assert_close(batch.best_attempts(torch.tensor([1, 2])), at(-1.0, 0.5))


def test_asking_without_the_cache_is_counted_in_full(batch, counting):
    seen = counting.seen
    for _ in range(2):
        batch.ask(at(0.1, 0.1), torch.tensor([0, 1]))
    assert counting.seen - seen == 4 and batch.meter.spent.tolist() == [2, 2, 0]


def test_a_model_asked_twice_per_row_is_counted_twice(open_request):
    from sklearn.svm import SVC

    X = np.random.default_rng(0).normal(size=(20, 4))
    classifier = as_classifier(SVC().fit(X, X[:, 0] > 0))
    batch = open_request(classifier, X[X[:, 0] < 0][:2], True, modality="row")
    before = classifier.rows_evaluated
    candidate = torch.from_numpy(X[[0, 0, 1]])
    batch.ask(candidate, torch.tensor([0, 1, 1]), cached=True)
    assert classifier.rows_per_evaluation == 2
    assert classifier.rows_evaluated - before == int(batch.meter.spent.sum()) == 4


def test_neighbors_do_not_stretch_a_budget(counting, open_request):
    """A row gets as far alone as beside rows that pay for the same answers."""
    X = np.full((3, 1, 5), -1.0)
    together = open_request(counting, X, 1, budget=Budget(calls=3 * 7))
    alone = open_request(counting, X[:1], 1, budget=Budget(calls=7))
    rows = torch.tensor([0, 0, 1, 1])
    for _ in range(2):  # a repeat of one's own question is free
        together.ask(at(0.1, 0.2, 0.1, 0.2), rows, cached=True)
        alone.ask(at(0.1, 0.2), torch.tensor([0, 0]), cached=True)
    assert together.meter.spent.tolist() == [2, 0, 0] and alone.meter.spent.tolist() == [2]
    for cost, able in ((3, True), (4, False)):
        assert together.affords(torch.tensor([0, 1]), cost).tolist() == [able, able]
        assert alone.affords(torch.tensor([0]), cost).tolist() == [able]
    part = together.take(torch.tensor([1, 2]))
    part.ask(at(0.3, 0.3), torch.tensor([0, 1]), cached=True)
    together.absorb(part, torch.tensor([1, 2]))
    assert together.meter.spent.tolist() == [2, 1, 0]
    assert (together.meter.allowance - together.meter.spent).tolist() == [3, 2, 4]


def test_beyond_the_budget_is_refused(counting, open_request):
    batch = open_request(counting, np.full((2, 1, 5), -1.0), 1, budget=Budget(calls=2 * 3))
    with pytest.raises(RuntimeError, match="beyond its budget"):
        batch.ask(at(0.1, 0.2), torch.tensor([0, 0]), cached=True)


def test_nothing_to_ask_is_nothing_asked(batch, counting):
    seen, none = counting.seen, torch.tensor([], dtype=torch.long)
    for _ in range(2):
        assert batch.ask(batch.x[none], none, cached=True).proba.shape == (0, 2)
        batch.ask(at(0.1), torch.tensor([0]), cached=True)
    assert counting.seen - seen == 1


def test_nan_fails_every_row_that_asks(open_request):
    def model(X):
        p = 1 / (1 + np.exp(-X.mean((1, 2))))
        p[X[:, 0, 0] == 7.0] = np.nan
        return np.stack([1 - p, p], 1)

    batch = open_request(model, np.full((3, 1, 5), -1.0), 1)
    batch.ask(at(7.0, 1.0, 7.0), batch.rows, cached=True)
    assert [bool(reason) for reason in batch.failures] == [True, False, True]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_keys_tell_neighboring_numbers_apart(dtype):
    x = torch.ones(1, 2, 7, dtype=dtype).repeat(4, 1, 1)
    x[1, 1, 6] += torch.finfo(dtype).eps
    x[2, 0, 0] += torch.finfo(dtype).eps
    keys = Cache.keys(x)
    assert len(set(keys)) == 3 and keys[0] == keys[3]
    assert (
        Cache.keys(x.transpose(1, 2).contiguous().transpose(1, 2)) == keys
    )  # content counts, not layout


def test_a_full_cache_starts_afresh(batch, counting, monkeypatch):
    monkeypatch.setattr(Cache, "limit", 4)
    seen = counting.seen
    rows = torch.tensor([0, 1, 2])
    batch.ask(at(0.1, 0.2, 0.3), rows, cached=True)
    batch.ask(at(0.1), torch.tensor([0]), cached=True)
    assert counting.seen - seen == 3
    verdict = batch.ask(at(0.3, 0.4, 0.3), rows, cached=True)
    assert (
        counting.seen - seen == 5 == int(batch.meter.spent.sum()) and len(batch._cache._place) == 2
    )
    torch.testing.assert_close(verdict.proba, batch.ask(at(0.3, 0.4, 0.3), rows).proba)
