"""The cache: nothing is asked twice, and what was asked is what is counted."""

import numpy as np
import pytest
import torch

from contrafact.engine.budget import Budget
from contrafact.engine.cache import Cache
from contrafact.models import as_classifier


@pytest.fixture
def tasks(counting, open_tasks):
    """Three series of class 0, class 1 wanted."""
    return open_tasks(counting, np.full((3, 1, 5), -1.0), 1)


def at(*means):
    """Constant series with these means."""
    return torch.tensor(means, dtype=torch.float64).reshape(-1, 1, 1).expand(-1, 1, 5).clone()


def test_each_candidate_is_asked_once_and_the_first_to_ask_pays(tasks, counting):
    seen = counting.seen
    tasks.take(torch.tensor([2, 0, 0, 1, 1])).ask(at(0.1, 0.2, 0.1, 0.2, 0.3), cached=True)
    assert counting.seen - seen == 3 and tasks.oracle.meter.spent.tolist() == [1, 1, 1]
    tasks.take(torch.tensor([0, 1, 2])).ask(at(0.3, 0.1, 0.4), cached=True)
    assert counting.seen - seen == 4 and tasks.oracle.meter.spent.tolist() == [1, 1, 2]


def test_answers_are_the_models_in_the_order_of_the_question(tasks):
    means = torch.tensor([0.3, -0.2, 0.3, 0.1, -0.2, 0.7])
    rows = torch.tensor([0, 1, 2, 0, 1, 2])
    tasks.ask(at(0.1, -0.2, 5.0), cached=True)
    recalled, asked = (
        tasks.take(rows).ask(at(*means), cached=True),
        tasks.take(rows).ask(at(*means)),
    )
    for field in ("proba", "label", "score"):
        assert torch.equal(getattr(recalled, field), getattr(asked, field))


def test_a_recalled_answer_serves_every_row_that_asks(tasks):
    """The best attempt of a row is known although another row asked about it."""
    tasks.take(torch.tensor([0])).ask(at(0.5), cached=True)
    tasks.take(torch.tensor([2])).ask(at(0.5), cached=True)
    torch.testing.assert_close(tasks.take(torch.tensor([1, 2])).best_attempts(), at(-1.0, 0.5))


def test_asking_without_the_cache_is_counted_in_full(tasks, counting):
    seen = counting.seen
    for _ in range(2):
        tasks.take(torch.tensor([0, 1])).ask(at(0.1, 0.1))
    assert counting.seen - seen == 4 and tasks.oracle.meter.spent.tolist() == [2, 2, 0]


@pytest.mark.usefixtures("own_random_numbers")
def test_a_model_asked_twice_per_row_is_counted_twice(open_tasks):
    from sklearn.svm import SVC

    X = np.random.default_rng(0).normal(size=(20, 4))
    classifier = as_classifier(SVC().fit(X, X[:, 0] > 0))
    tasks = open_tasks(classifier, X[X[:, 0] < 0][:2], True, modality="row")
    before = classifier.rows_evaluated
    candidate = torch.from_numpy(X[[0, 0, 1]])
    tasks.take(torch.tensor([0, 1, 1])).ask(candidate, cached=True)
    assert classifier.rows_per_evaluation == 2
    assert classifier.rows_evaluated - before == int(tasks.oracle.meter.spent.sum()) == 4


def test_neighbors_do_not_stretch_a_budget(counting, open_tasks):
    """A row gets as far alone as beside rows that pay for the same answers."""
    X = np.full((3, 1, 5), -1.0)
    together = open_tasks(counting, X, 1, budget=Budget(calls=3 * 7))
    alone = open_tasks(counting, X[:1], 1, budget=Budget(calls=7))
    rows = torch.tensor([0, 0, 1, 1])
    for _ in range(2):  # a repeat of one's own question is free
        together.take(rows).ask(at(0.1, 0.2, 0.1, 0.2), cached=True)
        alone.take(torch.tensor([0, 0])).ask(at(0.1, 0.2), cached=True)
    assert together.oracle.meter.spent.tolist() == [
        2,
        0,
        0,
    ] and alone.oracle.meter.spent.tolist() == [2]
    for cost, able in ((3, True), (4, False)):
        assert together.take(torch.tensor([0, 1])).affords(cost).tolist() == [able, able]
        assert alone.affords(cost).tolist() == [able]
    part = together.take(torch.tensor([1, 2]))
    part.ask(at(0.3, 0.3), cached=True)
    assert together.oracle.meter.spent.tolist() == [2, 1, 0]
    assert (together.oracle.meter.allowance - together.oracle.meter.spent).tolist() == [3, 2, 4]


def test_beyond_the_budget_is_refused(counting, open_tasks):
    tasks = open_tasks(counting, np.full((2, 1, 5), -1.0), 1, budget=Budget(calls=2 * 3))
    with pytest.raises(RuntimeError, match="beyond its budget"):
        tasks.take(torch.tensor([0, 0])).ask(at(0.1, 0.2), cached=True)


def test_nothing_to_ask_is_nothing_asked(tasks, counting):
    seen, none = counting.seen, torch.tensor([], dtype=torch.long)
    for _ in range(2):
        assert tasks.take(none).ask(tasks.x[none], cached=True).proba.shape == (0, 2)
        tasks.take(torch.tensor([0])).ask(at(0.1), cached=True)
    assert counting.seen - seen == 1


def test_nan_fails_every_row_that_asks(open_tasks):
    def model(X):
        p = 1 / (1 + np.exp(-X.mean((1, 2))))
        p[X[:, 0, 0] == 7.0] = np.nan
        return np.stack([1 - p, p], 1)

    tasks = open_tasks(model, np.full((3, 1, 5), -1.0), 1)
    tasks.ask(at(7.0, 1.0, 7.0), cached=True)
    assert [bool(reason) for reason in tasks.oracle.states.reason] == [True, False, True]


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


def test_a_full_cache_starts_afresh(tasks, counting, monkeypatch):
    monkeypatch.setattr(Cache, "limit", 4)
    seen = counting.seen
    rows = torch.tensor([0, 1, 2])
    tasks.take(rows).ask(at(0.1, 0.2, 0.3), cached=True)
    tasks.take(torch.tensor([0])).ask(at(0.1), cached=True)
    assert counting.seen - seen == 3
    verdict = tasks.take(rows).ask(at(0.3, 0.4, 0.3), cached=True)
    assert (
        counting.seen - seen == 5 == int(tasks.oracle.meter.spent.sum())
        and len(tasks.oracle._cache._place) == 2
    )
    torch.testing.assert_close(verdict.proba, tasks.take(rows).ask(at(0.3, 0.4, 0.3)).proba)
