"""Deadlines hold for every method, on a clock that only the model advances."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.explainers.registry import explainer_classes

#: what one model row costs, and what a request may
SECONDS_PER_ROW = 0.01
SECONDS = 1.0
#: explains prototype models by a closed form, and asks about its answers only
METHODS = sorted(set(explainer_classes()) - {"PrototypeCounterfactual"})


class Clock:
    """Stand in for `time.perf_counter`: moves when a model answers, and at no other time."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def charge(self, n_rows):
        self.now += SECONDS_PER_ROW * n_rows


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock)
    return clock


class SlowNetwork(torch.nn.Module):
    """A linear network whose every row takes its time."""

    def __init__(self, clock, weight):
        super().__init__()
        self.clock = clock
        self.head = torch.nn.Linear(len(weight), 2, dtype=torch.float64)
        self.head.weight.data = torch.stack([-weight, weight])
        self.head.bias.data.zero_()

    def forward(self, x):
        self.clock.charge(len(x))
        return self.head(x.flatten(1))


def slow_function(clock, estimator):
    def predict_proba(X):
        clock.charge(len(X))
        return estimator.predict_proba(X.reshape(len(X), -1))

    return predict_proba


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 1, 24)).cumsum(-1)
    X[y == 1, :, 8:16] += 4.0
    return X, y


@pytest.fixture
def models(clock, data):
    X, y = data
    rows = X[:, 0]
    logistic = LogisticRegression(max_iter=1000).fit(rows, y)
    forest = RandomForestClassifier(20, random_state=0).fit(rows, y)
    return {
        "function": slow_function(clock, logistic),
        "network": SlowNetwork(clock, torch.from_numpy(logistic.coef_[0])),
        "forest": slow_function(clock, forest),
    }


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", ["function", "network", "forest"])
@pytest.mark.parametrize("method", METHODS)
def test_no_method_goes_on_long_after_its_deadline(method, model, models, clock, data):
    X, y = data
    kind = explainer_classes()[method]
    if "series" not in kind.tags.modalities:
        X = X[:, 0]
    explainer = kind(**kind._get_test_params()[0]).fit(models[model], X, y)
    if method == "Graft":
        explainer.explain(X[:1])  # makes its committee, which is part of fitting
    start = clock.now
    result = explainer.explain(X[:10], budget=cf.Budget(seconds=SECONDS), refine=True)
    assert clock.now - start <= 1.5 * SECONDS
    assert len(result) == 10
    assert not np.isin(result.status, ["error"]).any(), result.message
    short = result.status == "budget"
    assert all("ran out" in message for message in result.message[short])


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.filterwarnings("ignore")
def test_deadlines_bind_here(clock, models, data):
    """The test above would not notice a clock that never reaches the deadline."""
    X, y = data
    explainer = cf.TSEvo().fit(models["forest"], X, y)
    start = clock.now
    explainer.explain(X[:10])
    assert clock.now - start > 10 * SECONDS


@pytest.mark.usefixtures("own_random_numbers")
def test_members_of_a_committee_are_cut_too(clock, models, data):
    X, y = data
    explainer = cf.CELS().fit(models["network"], X, y)
    committee = cf.Committee([models["function"], models["forest"]])
    start = clock.now
    result = explainer.explain(X[:10], budget=cf.Budget(seconds=SECONDS), committee=committee)
    assert clock.now - start <= 1.5 * SECONDS
    assert not (result.status == "error").any(), result.message
