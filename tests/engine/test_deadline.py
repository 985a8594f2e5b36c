"""Deadlines: looked at before every batch, and batches that fit into the time left."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch

from contrafact.engine.deadline import Deadline, evaluate_in_time
from contrafact.models import as_classifier


@pytest.fixture
def clock(monkeypatch):
    """A clock that every test moves by hand."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


@pytest.fixture
def model(clock):
    """A model that takes a second per row."""

    def answer(X):
        clock[0] += len(X)
        return np.hstack([1 - X, X])

    return as_classifier(answer, classes=[0, 1])


def ask(model, deadline, n=100):
    asked = []
    x = torch.linspace(0, 1, n, dtype=torch.float64)[:, None]
    verdict = evaluate_in_time(model, x, deadline, asked.append)
    return verdict, asked


def test_without_a_deadline_all_rows_are_one_batch(model):
    verdict, asked = ask(model, Deadline())
    assert len(verdict.label) == 100 and asked == [slice(0, 100)]


def test_batches_fit_into_the_time_left(model, clock):
    deadline = Deadline(at=30.0)
    with deadline.timing(model, 4):
        clock[0] += 4.0
    verdict, asked = ask(model, deadline)
    assert clock[0] == 30.0
    assert len(verdict.label) == 26 and asked == [slice(0, 26)]
    torch.testing.assert_close(verdict.proba[:, 1], torch.linspace(0, 1, 100).double()[:26])


def test_a_model_that_was_not_timed_counts_as_the_slowest(model, clock):
    other = as_classifier(lambda X: np.hstack([1 - X, X]), classes=[0, 1])
    deadline = Deadline(at=10.0)
    with deadline.timing(model, 1):
        clock[0] += 2.0
    assert deadline.batch_size(other, 1024) == 4
    with deadline.timing(other, 100):
        clock[0] += 1.0
    assert deadline.batch_size(other, 1024) == 700
    assert deadline.batch_size(model, 1024) == 3


def test_one_batch_at_most_is_late(model, clock):
    """A model that gets slower from one batch to the next is cut after that batch."""
    deadline = Deadline(at=5.0)
    verdict, asked = ask(model, deadline, n=3000)
    assert len(asked) == 1 and len(verdict.label) == model.internal_batch(torch.zeros(1, 1))


def test_expired_from_outside_nothing_is_asked(model):
    deadline = Deadline()
    deadline.expire("interrupted")
    verdict, asked = ask(model, deadline)
    assert deadline.expired and deadline.reason == "interrupted"
    assert asked == [] and verdict.proba.shape == (0, 2)


@pytest.fixture
def interrupted(open_tasks):
    """Three tasks whose deadline comes after the first batch of two candidates."""
    tasks = []

    def answer(X):
        if tasks:
            tasks[0].oracle.meter.deadline.expire()
        p = 1 / (1 + np.exp(-X.mean((1, 2))))
        return np.stack([1 - p, p], 1)

    model = as_classifier(answer, classes=[0, 1], batch_size=2)
    tasks.append(open_tasks(model, np.full((3, 1, 4), -1.0), 1))
    return tasks[0]


@pytest.mark.parametrize("cached", [False, True])
def test_candidates_without_an_answer_get_the_verdict_of_their_instance(interrupted, cached):
    x_cf = torch.full((3, 1, 4), 2.0, dtype=torch.float64) + torch.arange(3)[:, None, None]
    verdict = interrupted.ask(x_cf, cached=cached)
    assert verdict.label.tolist() == [1, 1, 0]
    torch.testing.assert_close(verdict.proba[2], interrupted.before.proba[2])
    assert interrupted.oracle.meter.spent.tolist() == [1, 1, 0]
    assert interrupted.oracle.states.shortage == ["", "", "the budget ran out"]
    best = interrupted.best_attempts()[:, 0, 0]
    assert best.tolist() == [2.0, 3.0, -1.0]  # the last keeps its instance
    again = interrupted.ask(x_cf.flip(0), cached=True)
    known = [1, 1, 0] if cached else [0, 0, 0]
    assert again.label.tolist() == known[::-1]
    assert not interrupted.affords().any()
