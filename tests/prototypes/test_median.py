"""MedianLVQ: a scikit-learn classifier whose prototypes are rows of its data."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from aeon.distances import dtw_pairwise_distance, msm_pairwise_distance
from reference_swap import Glvq, Rslvq, Sigmoid, candidates_for, reference_swap, set_cost
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import contrafact as cf
from contrafact.prototypes.median import MedianLVQ
from contrafact.prototypes.swap import SwapSearch
from contrafact.prototypes.swap_columns import EuclideanColumns
from contrafact.prototypes.swap_costs import GLVQCost
from timings import time_ratio

OBJECTIVES = ["sigmoid", "glvq", "rslvq"]


def hopeless(model):
    """A prototype of the other class is one of its samples, and wins the samples around it."""
    if model.objective != "rslvq":
        return {}
    return {"check_class_weight_classifiers": "wants 87 % of one class"}


@pytest.mark.usefixtures("own_random_numbers")
@parametrize_with_checks(
    [MedianLVQ(), MedianLVQ(2, objective="rslvq"), MedianLVQ(metric="precomputed")],
    expected_failed_checks=hopeless,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def clouds():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    return rng.normal(size=(150, 3)) + 1.5 * rng.normal(size=(3, 3))[y], np.array(
        ["ash", "oak", "elm"]
    )[y]


@pytest.fixture(scope="module")
def series():
    """Bumps of two shapes at random places: DTW finds them, Euclid does not."""
    rng = np.random.default_rng(1)
    y, t = np.repeat([0, 1], 15), np.arange(40)
    place = rng.integers(8, 32, 30)
    bump = np.exp(-(((t - place[:, None]) / 4) ** 2))
    sharp = np.where(np.abs(t - place[:, None]) < 4, 1.0, 0.0)
    return np.where(y[:, None] == 1, sharp, bump) + 0.02 * rng.normal(size=(30, 40)), y


def objective_of(model):
    if model.objective == "sigmoid":
        return Sigmoid(model.beta_)
    return Glvq() if model.objective == "glvq" else Rslvq(model.temperature_)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("init", ["greedy", "kmeans++", "random"])
def test_public_attributes_tell_the_cost_and_no_swap_lowers_it(clouds, objective, init):
    X, y = clouds
    model = MedianLVQ(3, objective=objective, init=init, random_state=0).fit(X, y)
    D, judge = cdist(X, X), objective_of(model)
    np.testing.assert_array_equal(model.prototypes_, X[model.prototype_indices_])
    np.testing.assert_array_equal(model.prototype_labels_, y[model.prototype_indices_])
    assert len(np.unique(model.prototypes_, axis=0)) == 9
    assert (np.diff(model.loss_history_) < 0).all()
    assert model.cost_ == model.loss_ == model.loss_history_[-1]
    d, own = model.distances(X), y[:, None] == model.prototype_labels_
    nearest = np.where(own, d, np.inf).min(1), np.where(own, np.inf, d).min(1)
    if objective != "rslvq":
        assert judge.cost(*nearest) == pytest.approx(model.cost_)
    indices = model.prototype_indices_
    assert set_cost(D, y, indices, judge) == pytest.approx(model.cost_)
    for k in range(len(indices)):
        for j in candidates_for(D, y, indices, k):
            moved = np.where(np.arange(len(indices)) == k, j, indices)
            assert set_cost(D, y, moved, judge) > model.cost_ - 1e-9


def test_several_prototypes_of_a_class_do_not_collapse():
    """A class in three places gets one prototype in each of them."""
    rng = np.random.default_rng(2)
    centers = np.array([[0, 0], [8, 0], [4, 7], [4, 2.0], [12, 5], [-4, 5]])
    X = np.repeat(centers, 20, axis=0) + 0.3 * rng.normal(size=(120, 2))
    y = np.repeat([0, 0, 0, 1, 1, 1], 20)
    for objective in OBJECTIVES:
        model = MedianLVQ(3, objective=objective).fit(X, y)
        assert sorted(cdist(model.prototypes_, centers).argmin(1)) == [0, 1, 2, 3, 4, 5]
        assert model.score(X, y) == 1


@pytest.mark.parametrize("metric", ["precomputed", "callable"])
def test_one_dissimilarity_under_three_names(clouds, metric):
    X, y = clouds
    plain = MedianLVQ(2).fit(X, y)
    if metric == "callable":
        other = MedianLVQ(2, metric=lambda a, b: float(np.linalg.norm(a - b))).fit(X, y)
        queries = X + 0.1
    else:
        other = MedianLVQ(2, metric=metric).fit(cdist(X, X), y)
        queries = cdist(X + 0.1, X)
        assert other.prototypes_ is None
    np.testing.assert_array_equal(other.prototype_indices_, plain.prototype_indices_)
    np.testing.assert_allclose(
        other.predict_proba(queries), plain.predict_proba(X + 0.1), rtol=1e-6
    )


def test_direction_of_an_asymmetric_dissimilarity(clouds):
    """D[i, j] goes from sample i to candidate j; the transposed matrix is another problem."""
    X, y = clouds
    rng = np.random.default_rng(3)
    D = cdist(X, X) * rng.uniform(0.3, 3, (150, 150))
    model = MedianLVQ(2, metric="precomputed", objective="glvq").fit(D, y)
    assert set_cost(D, y, model.prototype_indices_, Glvq()) == pytest.approx(model.cost_)
    assert set_cost(D.T, y, model.prototype_indices_, Glvq()) != pytest.approx(
        model.cost_, rel=1e-3
    )
    np.testing.assert_array_equal(model.distances(D), D[:, model.prototype_indices_])


def test_dtw(series):
    X, y = series
    model = MedianLVQ(metric="dtw", window=0.2).fit(X, y)
    D = dtw_pairwise_distance(X, window=0.2)
    assert set_cost(D, y, model.prototype_indices_, objective_of(model)) == pytest.approx(
        model.cost_
    )
    np.testing.assert_allclose(model.distances(X), D[:, model.prototype_indices_])
    lifted = MedianLVQ(metric="dtw", window=0.2).fit(X[:, None], y)
    assert lifted.prototypes_.shape == (2, 1, 40)
    np.testing.assert_array_equal(lifted.prototype_indices_, model.prototype_indices_)
    np.testing.assert_array_equal(lifted.predict(X[:, None]), model.predict(X))


@pytest.mark.parametrize("window", [None, 0.1])
def test_pruning_does_not_change_predictions(series, window):
    X, y = series
    model = MedianLVQ(6, metric="dtw", window=window).fit(X[::2], y[::2])
    queries = np.concatenate([X, X + 0.2 * np.random.default_rng(0).normal(size=X.shape)])
    plain = super(MedianLVQ, model).predict(queries)
    np.testing.assert_array_equal(model.predict(queries), plain)


def test_other_elastic_metrics(series):
    X, y = series
    model = MedianLVQ(metric="msm", window=0.2, metric_params={"c": 0.2}).fit(X, y)
    D = msm_pairwise_distance(X, window=0.2, c=0.2)
    assert set_cost(D, y, model.prototype_indices_, objective_of(model)) == pytest.approx(
        model.cost_
    )
    np.testing.assert_allclose(model.distances(X), D[:, model.prototype_indices_])
    assert not cf.as_classifier(model).differentiable
    other = clone(model).set_params(metric_params={"c": 2.0}).fit(X, y)
    assert np.abs(other.distances(X) - model.distances(X)).max() > 0.1
    with pytest.raises(ValueError, match="metric_params holds 'g'; metric='msm' takes 'c', 'ind"):
        MedianLVQ(metric="msm", metric_params={"g": 1.0}).fit(X, y)


def test_dtw_sees_what_euclid_does_not(series):
    X, y = series
    folds = StratifiedKFold(5)
    warped = cross_val_score(MedianLVQ(metric="dtw", window=1.0), X, y, cv=folds).mean()
    banded = cross_val_score(MedianLVQ(metric="dtw", window=0.0), X, y, cv=folds).mean()
    assert warped > banded + 0.1  # a band of width 0 is squared Euclidean
    assert warped > cross_val_score(MedianLVQ(), X, y, cv=folds).mean() + 0.1


def test_rows_in_another_order_are_the_same_prototypes(clouds):
    X, y = clouds
    order = np.random.default_rng(4).permutation(len(X))
    for objective in OBJECTIVES:
        one = MedianLVQ(2, objective=objective).fit(X, y)
        two = MedianLVQ(2, objective=objective).fit(X[order], y[order])
        np.testing.assert_array_equal(order[two.prototype_indices_], one.prototype_indices_)


def test_weights_are_repetitions_and_zero_is_absence(clouds):
    X, y = clouds
    weights = np.random.default_rng(5).integers(0, 4, len(X))
    for objective in OBJECTIVES:
        one = MedianLVQ(2, objective=objective).fit(X, y, sample_weight=weights)
        two = MedianLVQ(2, objective=objective).fit(X.repeat(weights, 0), y.repeat(weights))
        np.testing.assert_array_equal(one.prototypes_, two.prototypes_)
        assert one.cost_ == pytest.approx(two.cost_)
        assert (weights[one.prototype_indices_] > 0).all()
    D = cdist(X, X)
    three = MedianLVQ(2, metric="precomputed", objective=objective).fit(D, y, sample_weight=weights)
    np.testing.assert_array_equal(three.prototype_indices_, one.prototype_indices_)
    np.testing.assert_allclose(three.predict_proba(D), one.predict_proba(X))


def test_units_do_not_matter(clouds):
    X, y = clouds
    plain = MedianLVQ(2).fit(X, y)
    for unit in (1e-30, 1e30):
        scaled = MedianLVQ(2).fit(unit * X, y)
        np.testing.assert_array_equal(scaled.prototype_indices_, plain.prototype_indices_)
        np.testing.assert_allclose(
            scaled.predict_proba(unit * X), plain.predict_proba(X), rtol=1e-6
        )


@pytest.mark.parametrize(
    "option",
    [
        {"n_prototypes": {"ash": 1, "oak": 3, "elm": 2}},
        {"objective": "glvq"},
        {"objective": "rslvq"},
        {"objective": "rslvq", "temperature": 5.0},
        {"temperature": 5.0},
        {"init": "random"},
        {"init": "kmeans++"},
        {"metric": lambda a, b: float(np.abs(a - b).max())},
        {"margin": 0.3},
        {"class_weight": {"ash": 9, "oak": 1, "elm": 1}},
        {"class_weight": "balanced"},
        {"tol": 1e3},
    ],
)
def test_every_option_matters(clouds, option):
    X, y = clouds
    plain = MedianLVQ(2, random_state=0).fit(X, y)
    other = MedianLVQ(**{"n_prototypes": 2, "random_state": 0, **option}).fit(X, y)
    assert not np.array_equal(plain.loss_history_, other.loss_history_) or not np.allclose(
        plain.predict_proba(X), other.predict_proba(X)
    )


class WithMargin(Glvq):
    def __init__(self, objective, margin):
        self.objective, self.margin = objective, margin

    def f(self, mu):
        return self.objective.f(np.maximum(mu + self.margin, 0))


@pytest.mark.parametrize("objective", ["sigmoid", "glvq"])
@pytest.mark.parametrize("margin", [0.0, 0.2, 1.5])
def test_the_margin_is_in_the_cost_and_no_swap_lowers_it(clouds, objective, margin):
    X, y = clouds
    model = MedianLVQ(2, objective=objective, margin=margin).fit(X, y)
    judge = WithMargin(objective_of(model), margin)
    D, indices = cdist(X, X), model.prototype_indices_
    assert set_cost(D, y, indices, judge) == pytest.approx(model.cost_)
    for k in range(len(indices)):
        for j in candidates_for(D, y, indices, k):
            moved = np.where(np.arange(len(indices)) == k, j, indices)
            assert set_cost(D, y, moved, judge) > model.cost_ - 1e-9


def test_the_slope_is_in_units_of_mu_at_the_start(clouds):
    X, y = clouds
    rows = [np.flatnonzero(y == label)[4] for label in np.unique(y)]
    model = MedianLVQ().fit(X, y, initial_prototypes=rows)
    d, own = cdist(X, X[rows]), y[:, None] == y[rows]
    plus, minus = np.where(own, d, np.inf).min(1), np.where(own, np.inf, d).min(1)
    mu = (plus - minus) / (plus + minus)
    assert model.beta_ == pytest.approx(3.5 / np.sqrt(np.mean(mu**2)))
    in_other_units = MedianLVQ().fit(1000 * X, y, initial_prototypes=rows)
    assert in_other_units.beta_ == pytest.approx(model.beta_)
    assert MedianLVQ(beta=7).fit(X, y).beta_ == 7
    assert not hasattr(model.set_params(objective="glvq").fit(X, y), "beta_")
    with pytest.raises(ValueError, match="beta=7 needs objective='sigmoid'"):
        MedianLVQ(objective="rslvq", beta=7).fit(X, y)
    for beta in (1e-40, 1e20):  # too little and too much for the numbers of the search
        with pytest.raises(ValueError, match="beta must be a number"):
            MedianLVQ(beta=beta).fit(X, y)


def test_steeper_slopes_are_closer_to_counting_errors(clouds):
    X, y = clouds
    gentle, steep = (MedianLVQ(2, beta=beta).fit(X, y) for beta in (0.5, 50))
    assert steep.score(X, y) > gentle.score(X, y)


def test_the_weight_of_a_class_is_that_of_its_rows(clouds):
    X, y = clouds
    weight = {"ash": 5.0, "oak": 1.0, "elm": 0.5}
    by_class = MedianLVQ(2, class_weight=weight).fit(X, y)
    by_row = MedianLVQ(2).fit(X, y, sample_weight=[weight[label] for label in y])
    np.testing.assert_array_equal(by_class.prototype_indices_, by_row.prototype_indices_)


def test_swaps_that_gain_less_than_tol_are_not_made(clouds):
    X, y = clouds
    model = MedianLVQ(3, init="random", random_state=0, tol=0.5).fit(X, y)
    assert (np.diff(model.loss_history_) < -0.5).all() and len(model.loss_history_) > 1
    assert MedianLVQ(3, init="random", random_state=0).fit(X, y).cost_ < model.cost_


@pytest.mark.parametrize("init", ["greedy", "random"])
def test_of_several_starts_the_best_is_kept(clouds, init):
    X, y = clouds
    one, several = (MedianLVQ(4, init=init, n_init=n, random_state=0).fit(X, y) for n in (1, 12))
    assert several.cost_ < one.cost_
    assert several.cost_ == several.loss_history_[-1]
    D = cdist(X, X)
    judge = objective_of(several)
    assert set_cost(D, y, several.prototype_indices_, judge) == pytest.approx(several.cost_)


def test_callbacks_see_the_cost_and_may_end_the_search(clouds):
    X, y = clouds
    curves = []
    options = {"n_prototypes": 3, "init": "random", "random_state": 0}
    full = MedianLVQ(**options, callbacks=(curves.append,)).fit(X, y)
    assert len(curves) == full.n_iter_ - 1 >= 2
    assert curves[-1]["train_loss"] == full.loss_history_[: len(curves[-1]["train_loss"])]
    cut = MedianLVQ(**options, callbacks=(lambda history: True,)).fit(X, y)
    assert cut.n_iter_ == 1 and cut.cost_ > full.cost_


def test_where_it_starts_may_be_given(clouds):
    """As rows of X, or as points that stand for the nearest row of their class."""
    X, y = clouds
    rows = np.concatenate([np.flatnonzero(y == label)[[4, 9]] for label in np.unique(y)])
    D, start = cdist(X, X), set_cost(cdist(X, X), y, rows, Sigmoid(7))
    by_row = MedianLVQ(1, beta=7).fit(X, y, initial_prototypes=rows)
    assert by_row.loss_history_[0] == pytest.approx(start)
    assert len(by_row.prototype_indices_) == 6
    near = X[rows] + 1e-6
    by_point = MedianLVQ(1, beta=7).fit(X, y, initial_prototypes=(near, y[rows]))
    np.testing.assert_array_equal(by_point.prototype_indices_, by_row.prototype_indices_)
    given = MedianLVQ(1, metric="precomputed", beta=7).fit(D, y, initial_prototypes=rows)
    assert given.loss_history_[0] == pytest.approx(start)
    # Rows of weight 0 are left out; what is given counts all rows.
    weight = np.ones(len(y))
    weight[:4] = 0
    weighted = MedianLVQ(1, beta=7).fit(X, y, weight, rows[rows >= 4])
    kept = weight > 0
    place = [np.flatnonzero(np.flatnonzero(kept) == row)[0] for row in rows[rows >= 4]]
    first = set_cost(cdist(X[kept], X[kept]), y[kept], place, Sigmoid(7))
    assert weighted.loss_history_[0] == pytest.approx(first)
    with pytest.raises(ValueError, match="whose weight is above 0"):
        MedianLVQ(1).fit(X, y, weight, [0, 1, 2])
    with pytest.raises(ValueError, match="must be rows of X, of shape"):
        MedianLVQ(metric="precomputed").fit(D, y, initial_prototypes=(near, y[rows]))


def test_numbers_of_prototypes_by_label(clouds):
    X, y = clouds
    model = MedianLVQ({"ash": 1, "oak": 3, "elm": 2}).fit(X, y)
    labels, counts = np.unique(model.prototype_labels_, return_counts=True)
    assert dict(zip(labels.tolist(), counts.tolist(), strict=True)) == {
        "ash": 1,
        "elm": 2,
        "oak": 3,
    }


def test_a_search_cut_short_says_so(clouds):
    X, y = clouds
    with pytest.warns(ConvergenceWarning, match="max_sweeps=1"):
        model = MedianLVQ(3, init="random", random_state=0, max_sweeps=1).fit(X, y)
    assert model.n_iter_ == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert MedianLVQ(3, init="random", random_state=0).fit(X, y).cost_ < model.cost_


def test_grid_search_pipeline_pickle(clouds):
    X, y = clouds
    grid = GridSearchCV(
        make_pipeline(StandardScaler(), MedianLVQ()),
        {"medianlvq__n_prototypes": [1, 2], "medianlvq__objective": OBJECTIVES},
        cv=3,
    ).fit(X, y)
    again = pickle.loads(pickle.dumps(grid.best_estimator_))
    np.testing.assert_array_equal(again.predict(X), grid.predict(X))
    assert clone(MedianLVQ(metric="dtw", window=0.1)).get_params()["window"] == 0.1
    scores = cross_val_score(MedianLVQ(metric="precomputed"), cdist(X, X), y, cv=3)
    np.testing.assert_allclose(scores, cross_val_score(MedianLVQ(), X, y, cv=3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"metric": "manhatten"},
            "metric must be .* or a function of .*, got 'manhatten'",
        ),
        ({"objective": "lvq"}, "objective must be 'sigmoid', 'glvq' or 'rslvq', got 'lvq'"),
        ({"init": "best"}, "init must be .* got 'best'"),
        ({"temperature": 0.0}, "temperature must be a number above 0 or None, got 0.0"),
        ({"window": 0.1}, "window=0.1 needs metric='dtw'"),
        ({"max_sweeps": 0}, "max_sweeps must be a whole number at least 1.*, got 0"),
        ({"metric": "precomputed"}, r"square matrix of dissimilarities, got shape \(150, 3\)"),
        ({"metric": lambda a, b: -1.0}, "at least 0, got -1.0"),
        ({"metric": lambda a, b: np.nan}, "at least 0, got nan"),
    ],
)
def test_errors_name_what_was_given(clouds, options, message):
    with pytest.raises(ValueError, match=message):
        MedianLVQ(**options).fit(*clouds)


def test_numba_is_not_imported_before_a_fit():
    code = "import sys; import contrafact.prototypes.median; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("load", "bar"),
    [(load_iris, 0.945), (load_wine, 0.945), (load_breast_cancer, 0.945), (load_digits, 0.90)],
)
def test_accuracy(load, bar):
    X, y = load(return_X_y=True)
    model = MedianLVQ(3) if load is load_digits else make_pipeline(StandardScaler(), MedianLVQ(3))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    assert cross_val_score(model, X, y, cv=folds).mean() >= bar


def test_faster_than_the_plain_search():
    rng = np.random.default_rng(0)
    y = np.sort(rng.integers(0, 4, 3000))
    X = rng.normal(size=(3000, 20)) + rng.normal(size=(4, 20))[y]
    start = np.array([np.flatnonzero(y == c)[0] for c in range(4)])

    def fast():
        search = SwapSearch(EuclideanColumns(X), y, GLVQCost(np.ones(len(y))), start)
        search.run(100)
        return search.indices

    def plain():
        return reference_swap(cdist(X, X), y, start, Glvq())[0]

    assert fast().tolist() == plain().tolist()  # compiles, if nothing has yet
    assert time_ratio(fast, plain, enough=0.5) <= 0.5


def test_callbacks_are_called_after_the_last_round_too(clouds):
    curves = []
    options = {"n_prototypes": 3, "init": "random", "random_state": 0, "max_sweeps": 1}
    with pytest.warns(ConvergenceWarning):
        model = MedianLVQ(**options, callbacks=(curves.append,)).fit(*clouds)
    assert [curve["train_loss"] for curve in curves] == [model.loss_history_]


@pytest.mark.parametrize("rows", [[0], [0, 60, 120]])
def test_no_swap_lowers_the_cost_beside_a_huge_value(rows):
    X, y = load_iris(return_X_y=True)
    X[rows, 0] = 1e20
    D = cdist(X, X)
    model = MedianLVQ(2).fit(X, y)
    kept = model.prototype_indices_
    cost = Sigmoid(model.beta_)
    for k in range(len(kept)):
        for row in np.flatnonzero(y == y[kept[k]]):
            swapped = kept.copy()
            swapped[k] = row
            assert set_cost(D, y, swapped, cost) >= model.cost_ - 1e-9


def test_gradients_far_from_the_origin_are_of_the_same_probabilities():
    X, y = load_iris(return_X_y=True)
    model = MedianLVQ().fit(X + 1e8, y)
    twin = model.differentiable_twin()(torch.from_numpy(X + 1e8)).softmax(1)
    np.testing.assert_allclose(twin.numpy(), model.predict_proba(X + 1e8), atol=1e-6)


def test_weights_are_rows_given_several_times_in_the_temperature():
    X, y = (part[:100] for part in load_iris(return_X_y=True))
    weight = np.where(np.arange(100) < 20, 9, 1)
    again = np.repeat(np.arange(100), weight)
    weighted = MedianLVQ().fit(X, y, sample_weight=weight)
    repeated = MedianLVQ().fit(X[again], y[again])
    assert weighted.temperature_ == pytest.approx(repeated.temperature_)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.inf, "finite number of at least 0, got inf"),
        (np.nan, "finite number of at least 0, got nan"),
        (-1.0, "finite number of at least 0, got -1"),
        (None, "one number, got None"),
        (np.zeros(3), "got array"),
    ],
)
def test_what_a_metric_returns_is_checked(answer, message, clouds):
    with pytest.raises((ValueError, TypeError), match=f"metric must return .*{message}"):
        MedianLVQ(metric=lambda a, b: answer).fit(*clouds)


@pytest.mark.parametrize(("factor", "word"), [(1e160, "large"), (1e-200, "small")])
def test_values_whose_squares_are_no_floats_are_refused(factor, word, clouds):
    X, y = clouds
    with pytest.raises(ValueError, match=f"X holds values up to .* too {word}"):
        MedianLVQ().fit(factor * X, y)
