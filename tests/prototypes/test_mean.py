"""NearestMean: closed form, by NumPy, by scikit-learn, and in parts."""

import numpy as np
import pytest
from aeon.distances import dtw_distance
from scipy.special import softmax
from scipy.stats import multivariate_normal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NearestCentroid

import contrafact as cf
from contrafact.prototypes import NearestMean

both_metrics = pytest.mark.parametrize("metric", ["euclidean", "mahalanobis"])


def within(X, y, weight=None):
    """Means of the classes and the covariance around them."""
    w = np.ones(len(X)) if weight is None else weight
    means = np.stack([np.average(X[y == c], axis=0, weights=w[y == c]) for c in np.unique(y)])
    rows = X - means[np.searchsorted(np.unique(y), y)]
    return means, (rows.T * w) @ rows / w.sum()


@both_metrics
@pytest.mark.parametrize("weighted", [False, True])
def test_closed_form(metric, weighted, blobs):
    X, y = blobs
    weight = np.random.default_rng(0).uniform(0.1, 3, len(X)) if weighted else None
    model = NearestMean(metric, shrinkage=0.2 if metric == "mahalanobis" else None)
    model.fit(X, y, sample_weight=weight)
    means, S = within(X, y, weight)
    np.testing.assert_allclose(model.prototypes_, means)
    np.testing.assert_allclose(model.counts_, np.bincount(y, weight))
    variance = np.trace(S) / 4
    u = X[:, None] - means
    if metric == "euclidean":
        d, T = (u**2).sum(2), 2 * variance
        assert model.metric_() is None
    else:
        shrunk = 0.8 * S + 0.2 * variance * np.eye(4)
        d, T = np.einsum("nkd,de,nke->nk", u, np.linalg.inv(shrunk), u), 2.0
        np.testing.assert_allclose(model.metric_().T @ model.metric_(), np.linalg.inv(shrunk))
    np.testing.assert_allclose(model.distances(X), d)
    np.testing.assert_allclose(model.predict_proba(X), softmax(-d / T, axis=1))
    np.testing.assert_array_equal(model.predict(X), d.argmin(1))


def test_probabilities_are_those_of_gaussians(blobs):
    X, y = blobs
    means, S = within(X, y)
    density = np.stack([multivariate_normal(mean, S).pdf(X) for mean in means], axis=1)
    found = NearestMean("mahalanobis", shrinkage=0.0).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(found, density / density.sum(1, keepdims=True))


def test_mahalanobis_is_linear_discriminant_analysis(iris):
    X, y = iris
    ours = NearestMean("mahalanobis", shrinkage=0.0).fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver="lsqr", priors=np.ones(3) / 3).fit(X, y)
    rows = np.random.default_rng(0).uniform(X.min(0) - 1, X.max(0) + 1, size=(2000, 4))
    np.testing.assert_array_equal(ours.predict(rows), theirs.predict(rows))
    np.testing.assert_allclose(ours.predict_proba(rows), theirs.predict_proba(rows), atol=1e-9)


def test_euclidean_is_nearest_centroid(iris):
    X, y = iris
    rows = np.random.default_rng(0).uniform(X.min(0) - 1, X.max(0) + 1, size=(2000, 4))
    theirs = NearestCentroid().fit(X, y).predict(rows)
    np.testing.assert_array_equal(NearestMean().fit(X, y).predict(rows), theirs)


@both_metrics
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("sizes", [[45], [15, 15, 15], [1, 1, 3, 40], [1] * 45])
def test_parts_make_the_whole(metric, offset, sizes, blobs):
    """In any chunks, also where a class is not in all of them, and with weights."""
    X, y = blobs[0] + offset, np.sort(blobs[1])
    weight = np.random.default_rng(0).uniform(0.1, 3, len(X))
    whole, parts = NearestMean(metric).fit(X, y, sample_weight=weight), NearestMean(metric)
    for rows in np.split(np.arange(45), np.cumsum(sizes)[:-1]):
        parts.partial_fit(X[rows], y[rows], classes=[0, 1, 2], sample_weight=weight[rows])
    np.testing.assert_allclose(parts.prototypes_, whole.prototypes_, rtol=1e-12)
    np.testing.assert_allclose(parts.distances(X), whole.distances(X), rtol=1e-6)
    np.testing.assert_allclose(parts.predict_proba(X), whole.predict_proba(X), rtol=1e-6)
    assert whole.temperature_ == pytest.approx(parts.temperature_)


def test_partial_fit_goes_on_where_fit_ended(blobs):
    X, y = blobs
    model = NearestMean("mahalanobis").fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    np.testing.assert_allclose(
        model.distances(X), NearestMean("mahalanobis").fit(X, y).distances(X)
    )
    np.testing.assert_allclose(
        model.fit(X[:20], y[:20]).prototypes_, within(X[:20], y[:20])[0]
    )  # fit starts anew


def test_classes_not_seen_yet(blobs):
    X, y = blobs
    model = NearestMean().partial_fit(X[y < 2], y[y < 2], classes=[2, 1, 0])
    assert model.prototype_labels_.tolist() == [0, 1]
    np.testing.assert_array_equal(model.predict_proba(X)[:, 2], 0)
    assert set(model.predict(X)) == {0, 1}


def test_wrong_parts_are_refused(blobs):
    X, y = blobs
    with pytest.raises(ValueError, match="classes must be given at the first call"):
        NearestMean().partial_fit(X, y)
    with pytest.raises(ValueError, match=r"y holds labels \[2\] that are not in \[0, 1\]"):
        NearestMean().partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="features"):
        NearestMean().fit(X, y).partial_fit(X[:, :2], y)


@pytest.mark.parametrize("shrinkage", [0.0, 1e-3])
def test_more_features_than_rows(shrinkage):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10, 30)), np.arange(10) % 2
    model = NearestMean("mahalanobis", shrinkage=shrinkage).fit(X, y)
    assert np.isfinite(model.predict_proba(rng.normal(size=(20, 30)))).all()
    assert model.score(X, y) == 1


@pytest.fixture(scope="module")
def series():
    rng = np.random.default_rng(0)
    y = np.arange(30) % 2
    t = np.linspace(0, 1, 20) + rng.uniform(-0.15, 0.15, size=(30, 1))
    X = np.stack([np.sin(2 * np.pi * (1 + y[:, None]) * t), t], axis=1) + 0.05 * rng.normal(
        size=(30, 2, 20)
    )
    return X, y


@pytest.mark.parametrize("window", [None, 0.1])
def test_dtw_to_the_means(window, series):
    X, y = series
    model = NearestMean("dtw", window=window).fit(X, y)
    means = np.stack([X[y == c].mean(0) for c in (0, 1)])
    np.testing.assert_allclose(model.prototypes_, means)
    d = np.array([[dtw_distance(x, mean, window=window) for mean in means] for x in X])
    np.testing.assert_allclose(model.distances(X), d)
    np.testing.assert_array_equal(model.predict(X), d.argmin(1))
    np.testing.assert_allclose(model.predict_proba(X), softmax(-d / model.temperature_, axis=1))
    assert model.score(X, y) > 0.9


def test_soft_dtw(series):
    X, y = series
    model = NearestMean("soft_dtw").fit(X, y)
    assert model.score(X, y) > 0.9
    assert (model.distances(model.prototypes_).argmin(1) == [0, 1]).all()


def test_window_and_metric_matter(series):
    X, y = series
    models = [NearestMean("dtw"), NearestMean("dtw", window=0.05), NearestMean()]
    d = [model.fit(X, y).distances(X) for model in models]
    assert min(np.abs(a - b).max() for i, a in enumerate(d) for b in d[:i]) > 1e-3


def test_elastic_models_have_no_linear_metric(series):
    model = NearestMean("dtw").fit(*series)
    with pytest.raises(TypeError, match="no linear metric"):
        model.metric_()
    assert model.differentiable_twin() is None
    assert not cf.as_classifier(model).differentiable


def test_elastic_metrics_refuse_images():
    X = np.random.default_rng(0).normal(size=(6, 1, 3, 3))
    with pytest.raises(ValueError, match="elastic metrics take series"):
        NearestMean("dtw").fit(X, np.arange(6) % 2).predict(X)


def test_rows_under_another_metric_are_refused(blobs):
    X, y = blobs
    model = NearestMean().fit(X, y)
    model.set_params(metric="mahalanobis")
    with pytest.raises(ValueError, match="metric='mahalanobis' needs other sums"):
        model.partial_fit(X, y)


def test_a_refused_first_part_leaves_nothing_behind(blobs):
    X, y = blobs
    model = NearestMean()
    with pytest.raises(ValueError, match=r"y holds labels \[2\]"):
        model.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="classes must be given"):
        model.partial_fit(X, y)
    model.partial_fit(X[:, :2], y, classes=np.unique(y))
    with pytest.raises(ValueError, match="classes must be those of the first call"):
        model.partial_fit(X[:, :2], y, classes=[7, 8])


def test_margins_are_whole_while_one_class_has_been_seen(blobs):
    X, y = blobs
    model = NearestMean().partial_fit(X[y == 0], y[y == 0], classes=np.unique(y))
    assert (model.margins(X) == 1).all() and not model.reject(X).any()


@both_metrics
def test_values_whose_squares_are_no_floats_are_refused(metric, blobs):
    X, y = blobs
    with pytest.raises(ValueError, match=r"X holds values up to .* too large"):
        NearestMean(metric).fit(1e160 * X, y)
