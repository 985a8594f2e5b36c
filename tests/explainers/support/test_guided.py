"""Guides of tasks, default targets, and the fallback to the line."""

import numpy as np
import pytest
import torch

import contrafact as cf
from contrafact.explainers import FallbackExplainer, GuidedExplainer
from contrafact.explainers.support.guided import make_guide


class Guide(GuidedExplainer):
    """Return the guide, and remember the tasks."""

    info_keys = {"guide_index": "reference row"}

    def _explain(self, tasks):
        self.seen = tasks
        return tasks.candidates(tasks.guide, guide_index=tasks.guide_index)


class Stuck(FallbackExplainer):
    """Find nothing, and fall back."""

    info_keys = {"fallback": "always"}

    def _explain(self, tasks):
        x_cf, fallback = self._fall_back(tasks, tasks.x)
        return tasks.candidates(x_cf, fallback=fallback)


def three_means(X):
    score = -((X.reshape(len(X), -1).mean(1)[:, None] - np.array([-1.0, 0.0, 1.0])) ** 2)
    return np.exp(score) / np.exp(score).sum(1, keepdims=True)


@pytest.fixture
def X():
    return np.linspace(-2, 2, 9)[:, None, None] * np.ones((9, 1, 4))


def test_every_task_carries_its_own_guide(X):
    explainer = Guide().fit(three_means, X)
    result = explainer.explain(X[:2], target=2, k=2)
    tasks = explainer.seen
    assert len(tasks) == 4 and tasks.rank.tolist() == [0, 1, 0, 1]
    assert torch.equal(tasks.guide, explainer.guide_.candidates_[tasks.guide_index])
    assert result.valid.all() and len(set(result.info["guide_index"][:2])) == 2


def test_tasks_without_a_guide_are_dropped_and_explained(X):
    reference = X[:5]  # classes 0 and 1 only
    explainer = Guide().fit(three_means, reference)
    result = explainer.explain(X[:2], target=2)
    assert set(result.status) == {"infeasible"}
    assert all("hold 0 guides that the model puts in class 2" in text for text in result.message)
    few = explainer.explain(X[:1], target=1, k=9)
    assert "guides that the model puts in class 1" in few.message[0]


def test_the_default_target_has_a_guide(X):
    """Class 2 is the runner-up of 0.4, but no reference row is in it."""
    reference = X[X.mean((1, 2)) < 0.4]
    query = np.full((1, 1, 4), 0.4)
    assert cf.NearestUnlike().fit(three_means, X).explain(query).target.tolist() == [2]
    assert cf.NearestUnlike().fit(three_means, reference).explain(query).target.tolist() == [0]


def test_the_fallback_is_the_line_and_says_so(X):
    explainer = Stuck().fit(three_means, X)
    result = explainer.explain(X[:3], target=1)
    line = cf.LineSearch().fit(three_means, X).explain(X[:3], target=1)
    assert result.info["fallback"].all()
    np.testing.assert_array_equal(result.X_cf, line.X_cf)


def test_dtw_needs_a_guide_that_is_a_series():
    with pytest.raises(ValueError, match="metric='dtw' needs guide='neighbor' or 'median'"):
        make_guide("cluster", "dtw")
