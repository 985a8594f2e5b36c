"""FACE: the shortest path beside brute force, through dense regions, to rows that may be ends."""

import numpy as np
import pytest
from mixed_table import LABELS, TABLE, assert_rows_of_the_table, at_risk, fit_model
from sklearn.linear_model import LogisticRegression

import contrafact as cf


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 40)
    X = rng.normal(size=(80, 3)) + np.where(y[:, None] == 1, 1.2, 0.0)
    model = LogisticRegression().fit(X, y)
    return model, X, y, X[model.predict(X) == 0][:10] + 0.01


def explain(problem, *, options=None, **params):
    model, X, y, rows = problem
    return cf.FACE(**params).fit(model, X, y).explain(rows, target=1, **(options or {}))


def spread(X):
    return 1.4826 * np.median(np.abs(X - np.median(X, 0)), 0)


def graph_by_hand(X, n_neighbors, weighted):
    """The costs of all steps, inf where there is none."""
    scaled = X / spread(X)
    distance = np.linalg.norm(scaled[:, None] - scaled, axis=2)
    nearest = np.sort(distance, 1)[:, n_neighbors]
    unit = np.median(nearest)
    is_step = distance <= nearest[:, None]
    is_step |= is_step.T
    factor = (nearest[:, None] + nearest) / (2 * unit) if weighted else 1.0
    return np.where(is_step, distance * factor, np.inf), nearest, unit


def costs_by_hand(X, x, n_neighbors, weighted):
    """The cost of the shortest path to every row, by relaxing all steps until nothing changes."""
    step, nearest, unit = graph_by_hand(X, n_neighbors, weighted)
    distance = np.linalg.norm(X / spread(X) - x / spread(X), axis=1)
    own = np.sort(distance)[n_neighbors - 1]
    factor = (own + nearest) / (2 * unit) if weighted else 1.0
    cost = np.where(distance <= own, distance * factor, np.inf)
    for _ in range(len(X)):
        cost = np.minimum(cost, (cost[:, None] + step).min(0))
    return cost, nearest


@pytest.mark.parametrize("weighted", [True, False])
def test_path_is_the_shortest(problem, weighted):
    model, X, _, rows = problem
    result = explain(problem, n_neighbors=5, weighted=weighted, threshold=0.6, sparsest=0.2)
    p = model.predict_proba(X)[:, 1]
    assert not result.info["fallback"].any()
    for i, x in enumerate(rows):
        cost, nearest = costs_by_hand(X, x, 5, weighted)
        may_end = (p >= 0.6) & (nearest <= np.quantile(nearest, 0.8))
        end = np.where(may_end, cost, np.inf).argmin()
        assert result.info["guide_index"][i] == end
        assert np.isclose(result.info["path_cost"][i], cost[end], rtol=1e-6)
        np.testing.assert_array_equal(result.X_cf[i], X[end])


def test_every_step_of_a_path_is_one_of_the_graph(problem):
    _, X, _, _ = problem
    result = explain(problem, n_neighbors=4)
    step, _, _ = graph_by_hand(X, 4, weighted=True)
    for path, length, end in zip(
        result.info["path"], result.info["path_length"], result.info["guide_index"], strict=True
    ):
        rows = path[path >= 0]
        assert len(rows) == length and rows[-1] == end and (path[length:] == -1).all()
        assert np.isfinite(step[rows[:-1], rows[1:]]).all()
    assert result.info["path_length"].max() > 1


def test_threshold_and_sparsest_choose_the_ends(problem):
    model, X, _, _ = problem
    sure = explain(problem, threshold=0.9)
    assert (model.predict_proba(sure.X_cf)[:, 1] >= 0.9).all()
    assert (model.predict_proba(explain(problem).X_cf)[:, 1] < 0.9).any()
    _, nearest, _ = graph_by_hand(X, 10, weighted=True)
    dense = explain(problem, sparsest=0.8)
    ends = dense.info["guide_index"]
    assert (nearest[ends] <= np.quantile(nearest, 0.2) + 1e-12).all()
    assert not np.array_equal(ends, explain(problem).info["guide_index"])


def test_confidence_and_k(problem):
    result = explain(problem, options={"confidence": 0.8, "k": 3})
    assert len(result) == 30 and (result.target_proba[:, 1] >= 0.8).all()
    cost = result.info["path_cost"].reshape(10, 3)
    assert (np.diff(cost, axis=1) >= 0).all()


def test_without_a_path_the_line_is_taken():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 50])
    y = np.repeat([0, 1], 20)
    model = LogisticRegression().fit(X, y)
    result = cf.FACE(n_neighbors=3).fit(model, X, y).explain(X[:4], target=1)
    assert result.valid.all() and result.info["fallback"].all()
    assert (result.info["guide_index"] == -1).all() and (result.info["path"] == -1).all()
    assert np.isnan(result.info["path_cost"]).all()


@pytest.mark.parametrize("kind", ["logistic", "trees"])
def test_ends_keep_the_constraints_of_a_table(kind):
    model = fit_model(kind)
    rows = at_risk(model, 12)
    explainer = cf.FACE().fit(model, TABLE, LABELS)
    limits = cf.Constraints(frozen=["sex"], increasing=["age"])
    result = explainer.explain(rows, target="low", constraints=limits)
    assert result.valid.all()
    assert_rows_of_the_table(result)
    assert (result.frame_cf["sex"].to_numpy() == result.frame["sex"].to_numpy()).all()
    alone = explainer.explain(rows[5:6], target="low", constraints=limits)
    np.testing.assert_array_equal(alone.X_cf, result.X_cf[5:6])
    np.testing.assert_array_equal(alone.info["path"], result.info["path"][5:6])
