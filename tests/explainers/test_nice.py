"""NICE: each reward is the one of the equation, and the neighbor is one the model gets right."""

import numpy as np
import pytest
from mixed_table import (
    LABELS,
    TABLE,
    assert_rows_of_the_table,
    at_risk,
    column_sets,
    fit_model,
)
from sklearn.linear_model import LogisticRegression

import contrafact as cf


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 6)) + np.where(y[:, None] == 1, 1.5, 0.0) * [1, 1, 1, 0.3, 0, 0]
    model = LogisticRegression().fit(X, y)
    return model, X, y, X[model.predict(X) == 0][:30]


def explain(problem, **params):
    model, X, y, rows = problem
    return cf.NICE(**params).fit(model, X, y).explain(rows, target=1)


def spread(X):
    return 1.4826 * np.median(np.abs(X - np.median(X, 0)), 0)


def log_odds(model, x):
    return model.decision_function(x[None])[0]


def copy_by_hand(model, x, n, reward, margin=2e-4):
    """The method in a plain loop, for a model of two classes."""
    x = x.copy()
    start = x.copy()
    while log_odds(model, x) < margin:
        trials = {}
        for j in np.flatnonzero(x != n):
            trial = x.copy()
            trial[j] = n[j]
            reached = log_odds(model, trial) > margin
            trials[j] = (reached, reward(start, x, trial)), trial
        x = max(trials.values(), key=lambda found: found[0])[1]
    return x


@pytest.mark.parametrize("kind", ["sparsity", "proximity", "plausibility"])
def test_rewards_are_those_of_the_equation(problem, kind):
    model, X, _, rows = problem
    result = explain(problem, reward=kind, n_neighbors=3)
    members = X[model.predict(X) == 1]

    def strangeness(x):
        return np.sort((np.abs(members - x) / spread(X)).sum(1))[:3].mean()

    def reward(start, now, trial):
        gain = log_odds(model, trial) - log_odds(model, now)
        if kind == "proximity":
            return gain / (np.abs(trial - now) / spread(X)).sum()
        if kind == "plausibility":
            ratio = strangeness(now) / strangeness(trial)
            return gain * ratio if gain > 0 else gain / ratio
        return gain

    for i, x in enumerate(rows):
        expected = copy_by_hand(model, x, X[result.info["guide_index"][i]], reward)
        np.testing.assert_array_equal(result.X_cf[i], expected)


def test_rewards_differ(problem):
    sparse, near, plausible = (
        explain(problem, reward=reward) for reward in ("sparsity", "proximity", "plausibility")
    )
    assert (sparse.X_cf != near.X_cf).any() and (sparse.X_cf != plausible.X_cf).any()

    def distance(result):
        return (np.abs(result.X_cf - result.X) / spread(problem[1])).sum(1).mean()

    assert distance(near) < distance(sparse)
    assert sparse.info["n_columns"].mean() <= near.info["n_columns"].mean()


def test_the_number_of_neighbors_matters(problem):
    one, many = (explain(problem, reward="plausibility", n_neighbors=n) for n in (1, 40))
    assert (one.X_cf != many.X_cf).any()


def test_neighbor_is_one_that_the_model_classifies_right(problem):
    model, X, y, rows = problem
    result = explain(problem)
    index = result.info["guide_index"]
    assert (y[index] == 1).all() and (model.predict(X[index]) == 1).all()
    wrong = (model.predict(X) == 1) & (y == 0)
    assert wrong.any()
    unlabeled = cf.NICE().fit(model, X).explain(rows, target=1)
    assert np.isin(unlabeled.info["guide_index"], np.flatnonzero(wrong)).any()


@pytest.mark.parametrize("kind", ["logistic", "trees"])
def test_options_of_a_table_differ(kind):
    model = fit_model(kind)
    rows = at_risk(model, 12)
    explainer = cf.NICE().fit(model, TABLE, LABELS)
    result = explainer.explain(rows, target="low", k=3)
    assert result.valid.all()
    assert_rows_of_the_table(result)
    assert np.mean([len(set(column_sets(result, i))) for i in range(12)]) > 2
    for i in range(0, 12, 4):
        alone = explainer.explain(rows[i : i + 1], target="low", k=3)
        np.testing.assert_array_equal(alone.X_cf, result.X_cf[result.source == i])


def test_values_come_from_the_neighbor_and_few_columns_may_change():
    model = fit_model("trees")
    rows = at_risk(model, 12)
    explainer = cf.NICE().fit(model, TABLE, LABELS)
    result = explainer.explain(rows, target="low")
    neighbor = TABLE.iloc[result.info["guide_index"]]
    for column in TABLE:
        before, after, there = (
            frame[column].to_numpy() for frame in (result.frame, result.frame_cf, neighbor)
        )
        changed = (before != after) & ~(result.frame[column].isna().to_numpy() & (after != after))
        assert (after[changed] == there[changed]).all()
    limited = explainer.explain(rows, target="low", constraints=cf.Constraints(max_changed=3))
    assert limited.valid.all()
    assert limited.info["n_columns"].max() == 3
