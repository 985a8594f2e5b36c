"""Whatever a method does, the result says what the model says, and one bad row never loses the
others."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import contrafact as cf
from contrafact.engine import Candidates
from contrafact.explainers.support.explainer import Explainer


class Lift(Explainer):
    """Honest: shifts an instance until its mean is half a unit on the target's side."""

    def _explain(self, tasks):
        return tasks.candidates(self.lifted(tasks))

    def lifted(self, tasks):
        goal = torch.where(tasks.target == 1, 0.5, -0.5).to(tasks.x.dtype)
        return tasks.x + (goal - tasks.x.flatten(1).mean(1)).reshape(-1, 1, 1)


class Liar(Lift):
    """Returns its input."""

    def _explain(self, tasks):
        return tasks.candidates(tasks.x.clone())


class Crasher(Lift):
    """Asks the model, then breaks down on any batch that holds a marked instance."""

    def _explain(self, tasks):
        x_cf = self.lifted(tasks)
        tasks.ask(x_cf)
        if bool((tasks.x[:, 0, 0] > 90).any()):
            raise ValueError("cursed")
        return tasks.candidates(x_cf)


class NanMaker(Lift):
    """NaN for marked instances, without asking."""

    def _explain(self, tasks):
        x_cf = self.lifted(tasks)
        x_cf[tasks.x[:, 0, 0] > 90, 0, 2] = torch.nan
        return tasks.candidates(x_cf)


class Spender(Lift):
    """Asks about marked instances again and again, and never whether it may."""

    def _explain(self, tasks):
        marked = tasks.take(tasks.x[:, 0, 0] > 90)
        for _ in range(20):
            marked.ask(marked.x)
        return super()._explain(tasks)


class Wild(Lift):
    """Knows no limits."""

    def _explain(self, tasks):
        return tasks.candidates(100 * self.lifted(tasks))


class Generous(Lift):
    """Five counterfactuals each, some of them alike, whatever k was."""

    def _explain(self, tasks):
        x_cf = self.lifted(tasks)
        more = torch.cat([x_cf, x_cf, 2 * x_cf, 3 * x_cf, 4 * x_cf])
        return Candidates.concat([tasks.candidates(part) for part in more.split(len(tasks))])


@pytest.fixture
def X():
    X = np.random.default_rng(0).normal(size=(12, 1, 6))
    return X - X.mean(2, keepdims=True) - 0.3  # all of class 0


@pytest.fixture
def marked(X):
    """Row 4 bears the mark, at the same mean."""
    X[4, 0, 0] += 99.0
    X[4, 0, 1] -= 99.0
    return X


def reference(X):
    return np.concatenate([X, -X])


def test_liar_is_caught(counting, X):
    result = Liar().fit(counting, reference(X)).explain(X, target=1)
    assert not result.valid.any() and set(result.status) == {"invalid"}
    assert all("not reached; best P(1) = 0." in message for message in result.message)


def test_crash_costs_its_row_only(counting, marked):
    honest = Lift().fit(counting, reference(marked)).explain(marked, target=1)
    explainer = Crasher().fit(counting, reference(marked))
    seen = counting.seen
    with pytest.warns(RuntimeWarning, match="1 of 12 rows failed.*cursed"):
        result = explainer.explain(marked, target=1)
    others = np.arange(12) != 4
    assert result.status[4] == "error" and result.message[4] == "ValueError: cursed"
    assert honest.valid.all() and np.array_equal(result.valid, others)
    np.testing.assert_array_equal(result.X_cf[others], honest.X_cf[others])
    np.testing.assert_array_equal(
        result.X_cf[4], honest.X_cf[4]
    )  # its best attempt, asked before the crash
    assert result.calls.sum() == counting.seen - seen  # vain attempts are counted too


def unimpressed(X):
    """A model that takes NaN in its stride, as forests do."""
    p = 1 / (1 + np.exp(-4 * np.nanmean(X, (1, 2))))
    return np.stack([1 - p, p], 1)


def module():
    """A model that answers NaN with NaN, of which the first class counts as the largest."""
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(6, 2, bias=False))
    with torch.no_grad():
        net[1].weight[:] = torch.tensor([[-1.0], [1.0]])
    return net


@pytest.mark.parametrize("model", [unimpressed, module()], ids=["ignores NaN", "spreads NaN"])
def test_nan_is_never_a_counterfactual(model, marked):
    result = NanMaker().fit(model, reference(marked)).explain(marked + 0.6, target=0)
    others = np.arange(12) != 4
    assert (result.labels == 1).all() and np.array_equal(result.valid, others)
    assert result.status[4] == "error" and result.message[4] == "the method returned NaN or inf"
    assert np.isfinite(result.X_cf).all()


@pytest.mark.parametrize("answer", ["nan", "raise"])
def test_a_model_without_an_answer_makes_an_error(answer, X):
    """The last question is the only one here: what the model cannot answer for is not valid."""

    def model(Z):
        large = np.abs(Z).max((1, 2)) > 60
        if large.any() and answer == "raise":
            raise RuntimeError("too large")
        p = np.where(large, np.nan, Z.mean((1, 2)) < 0.0)
        return np.stack([p, 1 - p], 1)

    model_ = cf.as_classifier(model, classes=["low", "high"])
    explainer = Wild().fit(model_, reference(X))
    large = 100 * (np.abs(0.5 + X - X.mean(2, keepdims=True))).max((1, 2)) > 60
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        result = explainer.explain(X, target="high")
        down = explainer.explain(-X, target="low")
    assert large.any()
    assert np.array_equal(result.status == "error", large) and np.array_equal(result.valid, ~large)
    assert not down.valid[down.status == "error"].any() and (down.status == "error").any()


def test_overspending_is_refused_and_costs_its_row_only(counting, marked):
    explainer = Spender().fit(counting, reference(marked))
    assert explainer.explain(
        marked, target=1
    ).valid.all()  # without a budget there is nothing to break
    seen = counting.seen
    with pytest.warns(RuntimeWarning, match="beyond its budget"):
        result = explainer.explain(marked, target=1, budget=cf.Budget(calls=12 * 10))
    assert np.array_equal(result.status == "error", np.arange(12) == 4)
    assert result.calls.sum() == counting.seen - seen <= 12 * 10


def test_audit_corrects_what_breaks_the_constraints(counting, X):
    limits = cf.Constraints(lower=-0.4, upper=0.7, frozen=np.arange(6) < 2, max_step=0.9)
    X = np.clip(X, -0.4, 0.7)
    result = Wild().fit(counting, reference(X)).explain(X, target=1, constraints=limits)
    moved = result.X_cf[result.status == "valid"]
    assert len(moved) > 2 and (moved >= -0.4).all() and (moved <= 0.7).all()
    assert (np.abs(np.diff(moved)) <= 0.9).all()
    np.testing.assert_array_equal(result.X_cf[..., :2], X[..., :2])
    said = counting.function(result.X_cf).argmax(1)
    np.testing.assert_array_equal(result.valid, said == 1)


def test_nothing_leaves_that_breaks_a_constraint(counting, X):
    """Frozen values too steep by a rounding error: too little to call it impossible, too much to
    pass."""
    X[:, 0, 1] = X[:, 0, 0] + 0.5 * (1 + 1e-7)
    X[:, 0] -= X[:, 0].mean(1, keepdims=True) + 0.3
    limits = cf.Constraints(frozen=np.arange(6) < 2, max_step=0.5)
    result = Wild().fit(counting, reference(X)).explain(X, target=1, constraints=limits)
    assert set(result.status) == {"infeasible"} and not result.valid.any()
    assert all("keeps 2 of 6 points frozen" in message for message in result.message)
    np.testing.assert_array_equal(result.X_cf, X)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_no_more_than_k_and_no_two_alike(counting, X, k):
    explainer = Generous().fit(counting, reference(X))
    budget = cf.Budget(calls=12 * (1 + k))
    result = explainer.explain(X, target=1, k=k, budget=budget)
    assert np.bincount(result.source).tolist() == [min(k, 4)] * 12
    for i in range(12):
        mine = result.X_cf[result.source == i].reshape(-1, 6)
        assert len(np.unique(mine, axis=0)) == len(mine)
    assert result.calls.sum() <= budget.calls
    if k == 5:
        assert all(
            message == "4 of 5 counterfactuals: no more were found" for message in result.message
        )
