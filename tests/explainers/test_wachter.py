"""Wachter: the weight is raised until it is enough, and no further; categories are exchanged."""

import numpy as np
import pytest
from mixed_table import LABELS, TABLE, assert_rows_of_the_table, at_risk, fit_model
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import contrafact as cf


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 5)) + np.where(y[:, None] == 1, 2.0, 0.0) * [1, 0.7, 0.3, 0, 0]
    X = X * [1, 10, 0.1, 1, 1]
    model = LogisticRegression(max_iter=2000).fit(X, y)
    return model, X, y, X[model.predict(X) == 0][:25]


def explain(problem, **params):
    model, X, y, rows = problem
    return cf.Wachter(**params).fit(model, X, y).explain(rows, target=1)


def scaled(result, X):
    spread = 1.4826 * np.median(np.abs(X - np.median(X, 0)), 0)
    return (np.abs(result.X_cf - result.X) / spread).sum(1)


def test_change_is_nearly_the_smallest_of_a_linear_model(problem):
    """The smallest l1 change moves the one feature of the largest weight per scale."""
    model, X, _, rows = problem
    spread = 1.4826 * np.median(np.abs(X - np.median(X, 0)), 0)
    smallest = -model.decision_function(rows) / np.abs(model.coef_[0] * spread).max()
    result = explain(problem)
    assert result.valid.all() and not result.info["fallback"].any()
    size = scaled(result, X)
    assert (size >= smallest - 1e-6).all()
    assert size.mean() < 1.35 * smallest.mean()


def test_weight_is_raised_where_it_is_too_small(problem):
    result = explain(problem, strength=0.5, factor=1.5, max_rounds=12)
    raised = result.info["strength"]
    assert (raised > 0.5).all() and len(np.unique(raised)) > 1
    far = -problem[0].decision_function(problem[3])
    assert far[raised == raised.max()].mean() > far[raised == raised.min()].mean()


def test_one_round_with_a_small_weight_falls_back(problem):
    result = explain(problem, strength=0.001, max_rounds=1)
    assert result.info["fallback"].any() and result.valid.all()


def test_a_large_weight_at_once_overshoots(problem):
    model, _, _, _ = problem

    def probability(**params):
        raw = []

        class Noting(cf.Wachter):
            def _finish(self, tasks, pool, usable, **info):
                raw.append(pool[:, 0].numpy())
                return super()._finish(tasks, pool, usable, **info)

        _, X, y, rows = problem
        Noting(**params).fit(model, X, y).explain(rows, target=1)
        return model.predict_proba(raw[0])[:, 1].mean()

    assert probability(strength=1000.0) > probability(strength=1.0)


@pytest.mark.parametrize("option", [{"learning_rate": 0.5}, {"max_iter": 5}, {"factor": 2.0}])
def test_every_option_changes_the_result(problem, option):
    assert (explain(problem, **option).X_cf != explain(problem).X_cf).any()


def test_models_without_gradients(problem):
    _, X, y, _ = problem
    forest = RandomForestClassifier(30, random_state=0).fit(X, y)
    rows = X[forest.predict(X) == 0][:10]
    result = cf.Wachter().fit(forest, X, y).explain(rows, target=1)
    assert result.valid.all()
    assert not result.info["fallback"].all()
    assert result.calls.max() < 2000


@pytest.mark.parametrize("kind", ["logistic", "trees"])
def test_rows_of_tables_stay_rows(kind):
    model = fit_model(kind)
    rows = at_risk(model, 10)
    explainer = cf.Wachter().fit(model, TABLE, LABELS)
    result = explainer.explain(rows, target="low", k=2)
    assert result.valid.all()
    assert_rows_of_the_table(result)
    alone = explainer.explain(rows[2:3], target="low", k=2)
    np.testing.assert_allclose(alone.X_cf, result.X_cf[result.source == 2])


def test_categories_are_exchanged_where_numbers_may_not_move():
    model = fit_model("logistic")
    rows = at_risk(model, 40)
    rows = rows[rows.smokes & (model.predict_proba(rows)[:, 0] < 0.9)]
    assert len(rows) > 2
    numbers = cf.Constraints(frozen=["age", "bmi", "hba1c", "visits"])
    result = cf.Wachter().fit(model, TABLE, LABELS).explain(rows, target="low", constraints=numbers)
    reached = result.valid & ~result.info["fallback"]
    assert reached.any()
    assert (~result.frame_cf["smokes"].to_numpy()[reached]).any()
