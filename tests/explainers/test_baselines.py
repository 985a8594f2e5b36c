"""Floors: each does what its first line says, and its options matter."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.search import segment_ids

FLOORS = [cf.NearestUnlike, cf.LineSearch, cf.RandomMask, cf.RandomTarget]
MODELS = {
    "linear": lambda: LogisticRegression(),
    "forest": lambda: RandomForestClassifier(20, random_state=0),
}


def rows_problem(kind="linear"):
    """Three classes of plain rows, a trained model, reference and query."""
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3
    X = rng.normal(size=(150, 5)) + 2.5 * np.eye(5)[y]
    return MODELS[kind]().fit(X[:120], y[:120]), X[:120], y[:120], X[120:]


@pytest.fixture(scope="module", params=list(MODELS))
def series(request):
    """ItalyPowerDemand: the model, the dataset, 40 series to explain."""
    data = cf.load_dataset("ItalyPowerDemand")
    model = MODELS[request.param]().fit(data.X_train[:, 0], data.y_train)
    return model, data, data.X_test[:40]


def l2(result):
    return np.sqrt((result.delta.reshape(len(result), -1) ** 2).sum(1))


def test_line_search_is_no_farther_than_the_neighbor(series):
    model, data, X = series
    neighbor = cf.NearestUnlike().fit(model, data.X_train, data.y_train).explain(X)
    line = cf.LineSearch().fit(model, data.X_train, data.y_train).explain(X)
    assert (
        line.valid.all()
        and (l2(line) <= l2(neighbor) + 1e-12).all()
        and l2(line).mean() < l2(neighbor).mean()
    )
    np.testing.assert_array_equal(line.info["guide_index"], neighbor.info["guide_index"])
    expected = line.X + line.info["step"][:, None, None] * (neighbor.X_cf - line.X)
    np.testing.assert_allclose(line.X_cf, expected, atol=1e-12)


def test_neighbor_is_the_nearest_row_the_model_puts_in_the_target(series):
    model, data, X = series
    result = cf.NearestUnlike().fit(model, data.X_train, data.y_train).explain(X)
    said = model.predict(data.X_train[:, 0])
    for i in range(len(X)):
        pool = np.flatnonzero(said == result.target[i])
        nearest = pool[np.linalg.norm(data.X_train[pool, 0] - X[i, 0], axis=1).argmin()]
        assert result.info["guide_index"][i] == nearest
        np.testing.assert_array_equal(result.X_cf[i], data.X_train[nearest])


def test_random_mask_copies_whole_segments_of_its_guide(series):
    model, data, X = series
    result = cf.RandomMask(n_segments=8).fit(model, data.X_train, data.y_train).explain(X)
    guide = data.X_train[result.info["guide_index"]]
    segment = segment_ids((1, 24), 3).numpy()
    copied = 0
    for i in range(len(X)):
        for s in range(8):
            piece = result.X_cf[i][segment == s]
            from_guide = np.array_equal(piece, guide[i][segment == s])
            assert from_guide or np.array_equal(piece, X[i][segment == s])
            copied += from_guide
    assert result.valid.all() and copied == result.info["segments_copied"].sum() < 40 * 8


@pytest.mark.parametrize("method", [cf.RandomTarget, cf.RandomMask])
def test_seed_matters(series, method):
    model, data, X = series
    explainer = method().fit(model, data.X_train, data.y_train)
    first, again, other = (explainer.explain(X, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.X_cf, again.X_cf)
    assert (first.X_cf != other.X_cf).any((1, 2)).mean() > 0.5
    assert first.valid.all() and other.valid.all()


def test_random_target_gives_real_rows_of_the_target_all_over(series):
    model, data, X = series
    result = cf.RandomTarget().fit(model, data.X_train, data.y_train).explain(X, k=4)
    index = result.info["guide_index"]
    np.testing.assert_array_equal(result.X_cf, data.X_train[index])
    assert (model.predict(data.X_train[:, 0])[index] == result.target).all()
    assert all(len(set(index[result.source == i])) == 4 for i in range(len(X)))
    assert len(set(index)) > 30


def test_diverse_neighbors_differ_more(series):
    model, data, X = series
    spread, nearest = (
        cf.NearestUnlike(diverse=diverse).fit(model, data.X_train, data.y_train).explain(X, k=3)
        for diverse in (True, False)
    )

    def closest_pair(result):
        groups = (result.X_cf[result.source == i].reshape(3, -1) for i in range(len(X)))
        return np.mean(
            [min(np.linalg.norm(g[a] - g[b]) for a, b in ((0, 1), (0, 2), (1, 2))) for g in groups]
        )

    assert closest_pair(spread) > 1.1 * closest_pair(nearest)
    assert spread.valid.all()


def test_k_neighbors_come_nearest_first(series):
    model, data, X = series
    result = cf.NearestUnlike().fit(model, data.X_train, data.y_train).explain(X, k=5)
    distance = l2(result).reshape(len(X), 5)
    assert (np.diff(distance, axis=1) >= 0).all() and (distance[:, 0] < distance[:, 4]).all()


@pytest.mark.parametrize("method", [cf.NearestUnlike, cf.RandomTarget])
def test_confidence_prefers_sure_guides(series, method):
    model, data, X = series
    explainer = method().fit(model, data.X_train, data.y_train)
    plain, sure = explainer.explain(X), explainer.explain(X, confidence=0.95)
    assert (sure.target_proba[:, 1] >= 0.95).all() and (plain.target_proba[:, 1] < 0.95).any()


def test_line_search_walks_on_until_it_is_confident(series):
    model, data, X = series
    line = cf.LineSearch().fit(model, data.X_train, data.y_train).explain(X, confidence=0.8)
    assert (line.target_proba[:, 1] >= 0.8).all()


def test_line_search_options_matter(series):
    model, data, X = series

    def search(**options):
        return cf.LineSearch(**options).fit(model, data.X_train, data.y_train).explain(X)

    coarse, fine, mean = search(steps=2), search(steps=12), search(toward="mean")
    assert (l2(fine) <= l2(coarse) + 1e-12).all() and l2(fine).mean() < l2(coarse).mean()
    assert set(coarse.info["step"]) <= {0.2, 0.4, 0.6, 0.8, 1.0}  # odd: never half way
    assert coarse.calls.sum() < fine.calls.sum()
    assert mean.valid.all() and not np.array_equal(mean.X_cf, fine.X_cf)
    warped = search(metric="dtw")
    assert warped.valid.all() and (warped.info["guide_index"] != fine.info["guide_index"]).any()


@pytest.mark.parametrize("method", FLOORS)
def test_a_class_without_reference_rows_is_infeasible_by_name(method):
    model, X, y, queries = rows_problem()
    known = model.predict(X) != 2
    result = method().fit(model, X[known], y[known]).explain(queries, target=2)
    there = result.labels == 2
    assert set(result.status[~there]) == {"infeasible"} and not result.valid[~there].any()
    assert all("0 guides" in message and "class 2" in message for message in result.message[~there])
    np.testing.assert_array_equal(result.X_cf, queries)


def test_fewer_guides_than_k_are_told():
    model, X, y, queries = rows_problem()
    few = np.flatnonzero(model.predict(X) == 2)[:2]
    keep = np.r_[np.flatnonzero(model.predict(X) != 2), few]
    query = queries[model.predict(queries) != 2][:1]
    for method in (cf.NearestUnlike, cf.RandomTarget):
        result = method().fit(model, X[keep], y[keep]).explain(query, target=2, k=4)
        assert result.valid.tolist() == [True, True]
        assert all("2 of 4 counterfactuals" in m and "hold 2 guides" in m for m in result.message)


def test_default_target_is_the_runner_up_among_classes_with_guides():
    model, X, y, queries = rows_problem()
    proba = model.predict_proba(queries)
    order = proba.argsort(1)
    everything = cf.NearestUnlike().fit(model, X, y).explain(queries)
    np.testing.assert_array_equal(everything.target, order[:, -2])
    known = model.predict(X) != 2
    some = cf.NearestUnlike().fit(model, X[known], y[known]).explain(queries)
    assert (some.target != 2).all() and (some.target != some.labels).all() and some.valid.all()
    only = model.predict(X) == 1
    alone = cf.NearestUnlike().fit(model, X[only]).explain(queries)
    inside = alone.labels == 1
    assert set(alone.status[inside]) == {"infeasible"} and set(alone.status[~inside]) == {"valid"}
    np.testing.assert_array_equal(alone.target[inside], order[inside, -2])


@pytest.mark.parametrize("method", FLOORS)
def test_default_target_of_a_model_that_only_predicts_is_the_nearest_unlike_class(method):
    model, X, y, queries = rows_problem()
    result = (
        method()
        .fit(cf.as_classifier(lambda Z: model.predict(Z), classes=[0, 1, 2]), X, y)
        .explain(queries)
    )
    said, own = model.predict(X), model.predict(queries)
    for i, query in enumerate(queries):
        unlike = np.flatnonzero(said != own[i])
        nearest = unlike[np.linalg.norm(X[unlike] - query, axis=1).argmin()]
        assert result.target[i] == said[nearest]
    assert result.valid.all() and len(set(result.target)) == 3


@pytest.mark.parametrize(
    ("explainer", "words"),
    [
        (cf.LineSearch(toward="away"), "toward must be 'neighbor' or 'mean', got 'away'"),
        (cf.LineSearch(steps=0), "steps must be a whole number at least 1 and at most 50, got 0"),
        (cf.RandomMask(n_segments=1), "n_segments must be a whole number at least 2 .*, got 1"),
        (cf.NearestUnlike(metric="cosine"), "metric must be.*'cosine'"),
        (cf.LineSearch(metric="dtw"), "dtw.*needs series"),
    ],
)
def test_senseless_parameters_are_refused_at_fit(explainer, words):
    model, X, y, _ = rows_problem()
    with pytest.raises(ValueError, match=words):
        explainer.fit(model, X, y)
