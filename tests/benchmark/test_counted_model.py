"""The stand-in for the model: the same answers, every row charged to the instance at work."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from contrafact.benchmark.counted_model import CountedModel, OutOfBudget
from contrafact.engine import Budget

X = np.random.default_rng(0).normal(size=(3, 1, 5))


def open_model(counting, open_tasks, **options):
    tasks = open_tasks(counting, X, classes=["low", "high"], **options)
    return CountedModel(tasks.classifier, tasks.shape), tasks.split(1)


def test_any_shape_is_read(counting, open_tasks):
    model, _ = open_model(counting, open_tasks)
    expected = counting.function(X)
    for rows in (X, X[:, 0], X.tolist()):
        np.testing.assert_allclose(model.predict_proba(rows), expected)
    assert model.predict(X).tolist() == np.array(["low", "high"])[expected.argmax(1)].tolist()
    assert model.predict(X[0, 0]).shape == (1,)


def test_the_instance_at_work_pays(counting, open_tasks):
    model, (_, second, _) = open_model(counting, open_tasks)
    spent = lambda: second.oracle.meter.spent.tolist()  # noqa: E731
    model.predict(X)
    assert spent() == [0, 0, 0]
    with model.paid_by(second):
        model.predict(X)
        model.predict_proba(X[:2])
    assert spent() == [0, 5, 0]
    model.predict(X)
    assert spent() == [0, 5, 0]


def test_what_is_not_affordable_is_not_asked(counting, open_tasks):
    model, (first, second, _) = open_model(counting, open_tasks, budget=Budget(calls=3 * 8))
    left = int(first.oracle.meter.allowance[0])
    rows = np.repeat(X[:1], left, axis=0)
    with model.paid_by(first):
        model.predict(rows[1:])
        seen = counting.seen
        with pytest.raises(OutOfBudget):
            model.predict(rows[:2])
        assert counting.seen == seen
    with model.paid_by(second):
        model.predict(rows)


def test_nobody_pays_after_an_error(counting, open_tasks):
    model, (first, *_) = open_model(counting, open_tasks)
    with pytest.raises(KeyError), model.paid_by(first):
        raise KeyError
    model.predict(X)
    assert first.oracle.meter.spent.tolist() == [0, 0, 0]


def test_a_copy_is_counted_too(counting, open_tasks):
    """Other libraries copy the estimator and ask the copy."""
    model, (_, second, _) = open_model(counting, open_tasks)
    copied = copy.deepcopy(model)
    before = second.oracle.meter.spent.tolist()
    with model.paid_by(second):
        copied.predict(X[:2])
    assert second.oracle.meter.spent.tolist() != before


def test_it_passes_for_a_fitted_classifier(counting, open_tasks):
    model, _ = open_model(counting, open_tasks)
    check_is_fitted(model)
    assert is_classifier(model)
    assert (model.n_features_in_, model.n_timesteps_in_, model.n_dims_in_) == (5, 5, 1)
