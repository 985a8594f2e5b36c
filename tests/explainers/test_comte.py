"""CoMTE: as few channels as do, from several distractors, and nothing asked twice."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import contrafact as cf

MOTIONS = cf.load_dataset("BasicMotions")
X = MOTIONS.X_test[:20]
METHODS = ("greedy", "hill_climbing")


def flat(series):
    return series.reshape(len(series), -1)


@pytest.fixture(scope="module")
def linear():
    return LogisticRegression(max_iter=500).fit(flat(MOTIONS.X_train), MOTIONS.y_train)


def explain(model, rows=X, *, options=None, **params):
    return (
        cf.CoMTE(**params)
        .fit(model, MOTIONS.X_train, MOTIONS.y_train)
        .explain(rows, **(options or {}))
    )


def swap(x, guide, channels):
    return np.where(np.isin(np.arange(len(x)), channels)[:, None], guide, x)


def two_classes(weight):
    """Class 1 where the weighted sum of the channels' means is positive, and a count of the rows
    asked."""

    def model(X):
        model.seen += len(X)
        p = 1 / (1 + np.exp(-X.reshape(*X.shape[:2], -1).mean(2) @ weight))
        return np.stack([1 - p, p], 1)

    model.seen = 0
    return model


# --- the fewest channels --------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_channels_are_swapped_whole_and_none_can_be_spared(linear, method):
    result = explain(linear, method=method)
    assert result.valid.all() and (result.info["n_channels"] < 6).any()
    for i in range(len(X)):
        guide, chosen = (
            MOTIONS.X_train[result.info["guide_index"][i]],
            result.info["channels"][i].nonzero()[0],
        )
        assert np.array_equal(result.X_cf[i], swap(X[i], guide, chosen))
        fewer = [swap(X[i], guide, np.setdiff1d(chosen, c)) for c in chosen]
        assert (linear.predict(flat(np.array(fewer))) != result.target[i]).all()


@pytest.mark.parametrize("method", METHODS)
def test_where_gains_add_up_no_smaller_set_of_any_distractor_does(method):
    rng = np.random.default_rng(0)
    weight = rng.normal(size=5)
    reference = (
        rng.normal(size=(40, 5, 4)) + 1.2 * np.repeat([-1, 1], 20)[:, None, None] * weight[:, None]
    )
    explainer = cf.CoMTE(method, n_distractors=3)
    explainer.fit(
        cf.as_classifier(two_classes(weight), classes=[0, 1]), reference, np.repeat([0, 1], 20)
    )
    rows = rng.normal(size=(25, 5, 4)) - 0.5 * weight[:, None]
    result = explainer.explain(rows, target=1)
    moved = result.status == "valid"
    guides, _ = explainer.guide_.guide(rows, 1, 3)
    assert moved.sum() > 15 and len(set(result.info["n_channels"][moved])) > 1
    for i in moved.nonzero()[0]:
        smaller = [
            swap(rows[i], guide, channels)
            for guide in guides[i].numpy()
            for size in range(1, result.info["n_channels"][i])
            for channels in combinations(range(5), size)
        ]
        assert (
            len(smaller) == 0 or (two_classes(weight)(np.array(smaller))[:, 1] < 0.5 + 1e-4).all()
        )


@pytest.mark.parametrize("method", METHODS)
def test_validity_goes_before_few_channels(method):
    """Only all channels together do, and one step short looks worse than none: no slope to
    follow."""

    def together(X):
        count = (X.mean(2) > 0.5).sum(1)
        p = np.where(count == 4, 0.9, 0.3 - 0.05 * count)
        return np.stack([1 - p, p], 1)

    reference = np.repeat([0.0, 1.0], 3)[:, None, None] * np.ones((6, 4, 5))
    explainer = cf.CoMTE(method).fit(
        cf.as_classifier(together, classes=[0, 1]), reference, np.repeat([0, 1], 3)
    )
    result = explainer.explain(np.zeros((2, 4, 5)))
    assert result.valid.all() and (result.info["n_channels"] == 4).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_channel_that_later_ones_make_needless_is_taken_back(method):
    """Channel 0 is the best single one, but {1, 2} does without it, and no other pair does."""
    score = {(): -3.0, (0,): -1.0, (1,): -2.0, (2,): -2.0, (0, 1): -0.9, (0, 2): -0.9, (1, 2): 1.0}

    def model(X):
        keys = [tuple(np.flatnonzero(row).tolist()) for row in X[:, :3].mean(2) > 0.5]
        p = 1 / (1 + np.exp(-np.array([score.get(key, 2.0) for key in keys])))
        return np.stack([1 - p, p], 1)

    reference = np.repeat([0.0, 1.0], 3)[:, None, None] * np.ones((6, 4, 5))
    explainer = cf.CoMTE(method, n_restarts=1)
    explainer.fit(cf.as_classifier(model, classes=[0, 1]), reference, np.repeat([0, 1], 3))
    result = explainer.explain(np.zeros((1, 4, 5)))
    assert result.valid.all() and result.info["channels"].tolist() == [[False, True, True, False]]


def test_several_distractors_are_better_than_one(linear):
    one, many = (explain(linear, n_distractors=n).info["n_channels"] for n in (1, 8))
    assert (many <= one).all() and many.sum() < one.sum()


# --- one channel, and rows ------------------------------------------------------------------------


def test_one_channel_gives_another_series_and_a_warning():
    data = cf.load_dataset("ItalyPowerDemand")
    model = LogisticRegression(max_iter=500).fit(flat(data.X_train), data.y_train)
    with pytest.warns(UserWarning, match="one, so it can only return another"):
        explainer = cf.CoMTE(n_distractors=1).fit(model, data.X_train, data.y_train)
    result = explainer.explain(data.X_test[:30])
    nearest = cf.NearestUnlike().fit(model, data.X_train, data.y_train).explain(data.X_test[:30])
    assert result.valid.all() and np.array_equal(result.X_cf, nearest.X_cf)


def test_features_of_a_row_are_channels():
    data = cf.load_dataset("iris")
    model = LogisticRegression(max_iter=500).fit(data.X_train, data.y_train)
    result = cf.CoMTE().fit(model, data.X_train, data.y_train).explain(data.X_test)
    assert result.valid.all() and (result.info["n_channels"] < 4).any()
    assert np.array_equal(result.info["channels"], result.X_cf != result.X)


# --- the cost -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_calls_are_what_the_model_saw_and_nothing_is_asked_twice(method):
    asked = []

    def model(X):
        asked.extend(row.tobytes() for row in X)
        p = 1 / (1 + np.exp(-X.mean((1, 2))))
        return np.stack([1 - p, p], 1)

    rng = np.random.default_rng(0)
    reference = rng.normal(size=(20, 4, 6)) + np.repeat([-1, 1], 10)[:, None, None]
    explainer = cf.CoMTE(method).fit(
        cf.as_classifier(model, classes=[0, 1]), reference, np.repeat([0, 1], 10)
    )
    rows = np.repeat(rng.normal(size=(5, 4, 6)) - 1, 2, axis=0)  # every instance twice
    asked.clear()
    result = explainer.explain(rows)
    assert result.calls.sum() == len(asked)
    search = asked[len(rows) : -len(rows)]  # without the first and the last word
    assert len(search) == len(set(search))
    # Of two instances alike, the first asks and pays; the other gets its two words on itself only.
    assert (result.calls[1::2] == 2).all() and (result.calls[::2] > 10).all()
    assert np.array_equal(result.X_cf[1::2], result.X_cf[::2])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("share", [5, 9, 30, 80])
def test_within_a_budget_a_row_does_not_depend_on_its_neighbors(linear, method, share):
    rows = np.repeat(X[:4], 2, axis=0)
    together = explain(linear, rows, method=method, options={"budget": cf.Budget(calls=8 * share)})
    assert together.valid.all() and together.calls.sum() <= 8 * share
    for i in range(0, 8, 2):
        alone = explain(
            linear, rows[i : i + 1], method=method, options={"budget": cf.Budget(calls=share)}
        )
        assert np.array_equal(alone.X_cf[0], together.X_cf[i]) and np.array_equal(
            together.X_cf[i], together.X_cf[i + 1]
        )


def test_a_deadline_gives_a_distractor(linear):
    result = explain(linear, options={"budget": cf.Budget(seconds=1e-9)})
    assert result.valid.all() and np.array_equal(
        result.X_cf, MOTIONS.X_train[result.info["guide_index"]]
    )


def test_rows_are_worked_on_in_parts(linear, monkeypatch):
    whole = explain(linear, X[:6], method="hill_climbing")
    monkeypatch.setattr("contrafact.explainers.comte.MAX_ELEMENTS", 1)
    parts = explain(linear, X[:6], method="hill_climbing")
    assert np.array_equal(whole.X_cf, parts.X_cf) and np.array_equal(whole.calls, parts.calls)


# --- requests -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_validity_is_one_on_real_data(linear, method):
    forest = RandomForestClassifier(30, random_state=0).fit(flat(MOTIONS.X_train), MOTIONS.y_train)
    for model in (linear, forest):
        for target in (None, "walking"):
            result = explain(model, MOTIONS.X_test, method=method, options={"target": target})
            assert set(result.status) <= {"valid", "already_target"}
            assert (model.predict(flat(result.X_cf)) == result.target).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_frozen_channel_and_a_frozen_window_stay(linear, method):
    frozen = np.zeros((6, 100), bool)
    frozen[2], frozen[:, 30:45] = True, True
    result = explain(linear, method=method, options={"constraints": cf.Constraints(frozen=frozen)})
    assert np.array_equal(result.X_cf[:, frozen], X[:, frozen])
    assert not result.info["channels"][:, 2].any() and result.valid.mean() >= 0.9


@pytest.mark.parametrize("method", METHODS)
def test_k_counterfactuals_come_from_k_distractors(linear, method):
    result = explain(linear, method=method, n_distractors=2, options={"k": 3})
    assert len(result) == 60 and result.valid.all()
    assert all(len(set(three)) == 3 for three in result.info["guide_index"].reshape(-1, 3))
    best = explain(linear, method=method, n_distractors=3)
    assert (result.info["n_channels"][::3] == best.info["n_channels"]).all()
    assert (np.diff(result.info["n_channels"].reshape(-1, 3)) >= 0).all()


def test_confidence_takes_more_channels(linear):
    plain, sure = explain(linear), explain(linear, options={"confidence": 0.99})
    assert (sure.target_proba[:, 1] >= 0.99).all()
    assert sure.info["n_channels"].sum() > plain.info["n_channels"].sum()


@pytest.mark.parametrize(
    ("option", "value"),
    [("method", "hill_climbing"), ("n_distractors", 1), ("n_restarts", 6), ("metric", "dtw")],
)
def test_every_option_matters(option, value):
    forest = RandomForestClassifier(30, random_state=0).fit(flat(MOTIONS.X_train), MOTIONS.y_train)
    base = {"method": "hill_climbing"} if option == "n_restarts" else {}
    plain, other = explain(forest, **base), explain(forest, **{**base, option: value})
    assert not np.array_equal(plain.X_cf, other.X_cf) or plain.calls.sum() != other.calls.sum()


@pytest.mark.parametrize(
    ("option", "value"),
    [("method", "random"), ("n_distractors", 0), ("n_restarts", 0), ("metric", "manhattan")],
)
def test_bad_options_are_refused(linear, option, value):
    with pytest.raises(ValueError, match=rf"{option}.*{value}"):
        explain(linear, **{option: value})
