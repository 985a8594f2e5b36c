"""Slopes answer in proportion, steps do not."""

import numpy as np
import pytest
import torch

import contrafact as cf
from contrafact.explainers.support.smoothness import answers_smoothly
from contrafact.search import segment_ids


def slope(X):
    p = 1 / (1 + np.exp(-X.reshape(len(X), -1).mean(1)))
    return np.stack([1 - p, p], 1)


def stairs(X):
    p = 1 / (1 + np.exp(-np.floor(4 * X.reshape(len(X), -1)).mean(1)))
    return np.stack([1 - p, p], 1)


@pytest.mark.parametrize(("model", "smooth"), [(slope, True), (stairs, False)])
def test_slopes_and_steps_are_told_apart(open_tasks, model, smooth):
    X = -np.random.default_rng(0).uniform(0.5, 1.5, (5, 1, 12))
    tasks = open_tasks(model, X, 1)
    tasks = tasks.attach(guide=torch.ones_like(tasks.x))
    assert answers_smoothly(tasks, segment_ids((1, 12), 3)).tolist() == [smooth] * 5


def test_without_budget_nothing_is_asked(open_tasks):
    X = -np.ones((2, 1, 12))
    tasks = open_tasks(slope, X, 1, budget=cf.Budget(calls=2 * 6))
    tasks = tasks.attach(guide=torch.ones_like(tasks.x))
    assert not answers_smoothly(tasks, segment_ids((1, 12), 3)).any()
    assert tasks.oracle.meter.spent.tolist() == [0, 0]
