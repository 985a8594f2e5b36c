"""Soft DTW against its definition, finite differences, autograd and DTW; models that use it."""

import pickle

import numpy as np
import pytest
import torch
from aeon.distances import dtw_alignment_path, dtw_pairwise_distance
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import contrafact as cf
from contrafact.prototypes import (
    CELVQ,
    GLVQ,
    GMLVQ,
    GRLVQ,
    RSLVQ,
    DeepLVQ,
    MedianLVQ,
    SoftDTW,
    SparseRelevance,
    robustness_radius,
)
from contrafact.prototypes.soft_dtw import band_width, soft_dtw, soft_dtw_divergence

ONES = torch.ones(6, dtype=torch.float64)


def draw(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def by_recursion(x, w, importance, band, gamma):
    """The recursion cell by cell, with gradients by autograd."""
    length = x.shape[-1]
    s = {(-1, -1): torch.zeros((), dtype=x.dtype)}
    for i in range(length):
        for j in range(max(0, i - band), min(length, i + band + 1)):
            before = [s[c] for c in ((i - 1, j - 1), (i - 1, j), (i, j - 1)) if c in s]
            soft = -gamma * torch.logsumexp(-torch.stack(before) / gamma, 0)
            weight = (importance[i] + importance[j]) / 2
            s[i, j] = weight * (x[:, i] - w[:, j]).square().sum() + soft
    return s[length - 1, length - 1]


def every_pair(x, w):
    return torch.cartesian_prod(torch.arange(len(x)), torch.arange(len(w))).T


def test_sum_over_all_paths():
    """Minus the log of a sum over all warping paths, by enumeration on short series."""
    x, w = draw(1, 2, 4), draw(1, 2, 4, seed=1)

    def paths(i, j):
        if (i, j) == (0, 0):
            return [[(0, 0)]]
        before = [(a, b) for a, b in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if min(a, b) >= 0]
        return [[*path, (i, j)] for cell in before for path in paths(*cell)]

    cost = (x[0][:, :, None] - w[0][:, None]).square().sum(0)
    totals = torch.stack([sum(cost[cell] for cell in path) for path in paths(3, 3)])
    found = soft_dtw(x, w, ONES[:4], *every_pair(x, w), 4, 0.7)
    torch.testing.assert_close(found[0], -0.7 * torch.logsumexp(-totals / 0.7, 0))


@pytest.mark.parametrize("band", [0, 1, 6])
@pytest.mark.parametrize("gamma", [0.01, 1.0])
def test_values_and_gradients_are_those_of_the_recursion(band, gamma):
    x, w = draw(3, 2, 6).requires_grad_(), draw(2, 2, 6, seed=1).requires_grad_()
    importance = (ONES + 0.3 * draw(6, seed=2)).requires_grad_()
    given = (x, w, importance)
    first, second = every_pair(x, w)
    ours = soft_dtw(*given, first, second, band, gamma)
    theirs = torch.stack(
        [
            by_recursion(x[p], w[q], importance, band, gamma)
            for p, q in zip(first, second, strict=True)
        ]
    )
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
    pull = draw(6, seed=3)
    for one, other in zip(
        torch.autograd.grad(ours @ pull, given),
        torch.autograd.grad(theirs @ pull, given),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("gamma", [0.1, 2.0])
def test_finite_differences_of_the_divergence(gamma):
    given = [draw(2, 2, 6), draw(2, 2, 6, seed=1), ONES + 0.3 * draw(6, seed=2)]
    given = [value.requires_grad_() for value in given]
    assert torch.autograd.gradcheck(lambda x, w, h: soft_dtw_divergence(x, w, gamma, 3, h), given)


@pytest.mark.parametrize("window", [None, 0.0, 0.2])
def test_without_smoothing_it_is_dtw(window):
    x, w = draw(4, 2, 15).cumsum(-1), draw(3, 2, 15, seed=1).cumsum(-1)
    band = band_width(window, 15)
    ones = torch.ones(15)
    exact = torch.from_numpy(dtw_pairwise_distance(x.numpy(), w.numpy(), window=window))
    torch.testing.assert_close(soft_dtw_divergence(x, w, 0.0, band, ones), exact)
    errors = [
        (soft_dtw_divergence(x, w, gamma, band, ones) - exact).abs().max()
        for gamma in (0.1, 0.01, 0.001)
    ]
    assert errors[2] < 0.01
    if window != 0:
        assert errors[0] > errors[1] > errors[2] > 0


def test_gradient_without_smoothing_is_along_the_path():
    x, w = draw(1, 1, 15).cumsum(-1).requires_grad_(), draw(1, 1, 15, seed=1).cumsum(-1)
    soft_dtw_divergence(x, w, 0.0, 15, torch.ones(15)).sum().backward()
    path, _ = dtw_alignment_path(x.detach()[0].numpy(), w[0].numpy())
    by_hand = torch.zeros(15, dtype=torch.float64)
    for i, j in path:
        by_hand[i] += 2 * (x.detach()[0, 0, i] - w[0, 0, j])
    torch.testing.assert_close(x.grad[0, 0], by_hand)


def test_divergence_is_zero_for_equal_series_and_positive_for_others():
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(20, 1, 9, generator=rng, dtype=torch.float64)
    near = x + 1e-3 * torch.randn(20, 1, 9, generator=rng, dtype=torch.float64)
    weights = torch.rand(9, generator=rng, dtype=torch.float64) + 0.1
    for gamma in (0.01, 1.0, 100.0):
        for importance in (torch.ones(9), weights / weights.mean()):
            d = soft_dtw_divergence(x, torch.cat([x, near]), gamma, 9, importance)
            assert d.diagonal().abs().max() < 1e-9 * max(1, gamma)
            assert (d[:, 20:].diagonal() > 0).all()
            assert d.masked_fill(torch.eye(20, 40, dtype=bool), 1.0).min() > 0


def test_single_precision_and_large_costs():
    x, w = 1e6 * draw(2, 1, 6), draw(2, 1, 6, seed=1)
    d = soft_dtw_divergence(x, w, 1e-3, 6, ONES)
    torch.testing.assert_close(soft_dtw_divergence(x, w, 0.0, 6, ONES), d)
    single = soft_dtw_divergence(x.float(), w.float(), 1e-3, 6, ONES)
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), d, rtol=1e-5, atol=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": -1}, "gamma must be a number at least 0 or None, got -1"),
        ({"window": 2.0}, "window must be a number at least 0 and at most 1 or None, got 2.0"),
    ],
)
def test_refused_options(options, message):
    with pytest.raises(ValueError, match=message):
        SoftDTW(**options)


# --- models ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bumps():
    """Two channels, bumps of two shapes at random places."""
    rng = np.random.default_rng(1)
    y, t = np.repeat(["a", "b"], 12), np.arange(20)
    place = rng.integers(4, 16, (24, 1))
    bump = np.exp(-(((t - place) / 2) ** 2))
    edge = np.where(np.abs(t - place) < 3, 1.0, 0.0)
    shape = np.where((y == "b")[:, None], edge, bump)
    return np.stack([shape, -2 * shape], 1) + 0.02 * rng.normal(size=(24, 2, 20)), y


FAST = {"max_iter": 8, "random_state": 0}


@pytest.mark.usefixtures("own_random_numbers")
@parametrize_with_checks([GRLVQ(distance_fn=SoftDTW(), max_iter=10)])
def test_scikit_learn_contract(estimator, check):
    if check.func.__name__ == "check_class_weight_classifiers":
        pytest.skip(
            "it trains for 1,000 epochs; class weights are in the loss, not in the distance"
        )
    check(estimator)


@pytest.mark.parametrize("kind", [GLVQ, GRLVQ, RSLVQ, CELVQ])
def test_models_see_what_euclid_does_not(bumps, kind):
    X, y = bumps
    train, test = np.arange(24) % 3 > 0, np.arange(24) % 3 == 0
    warped = kind(distance_fn=SoftDTW(), random_state=0, max_iter=40).fit(X[train], y[train])
    plain = kind(random_state=0, max_iter=40).fit(X[train], y[train])
    assert warped.score(X[test], y[test]) == 1.0 > plain.score(X[test], y[test])
    assert warped.prototypes_.shape == (2, 2, 20)
    assert warped.loss_history_[-1] < warped.loss_history_[0]


def test_a_start_on_the_wrong_side_is_left(bumps):
    """The default slope lets a model learn whose start puts all series in one class."""
    X, y = bumps
    start = GLVQ(distance_fn=SoftDTW(), random_state=0, max_iter=1).fit(X, y)
    assert start.score(X, y) == 0.5
    model = GLVQ(distance_fn=SoftDTW(), random_state=0, max_iter=40).fit(X, y)
    assert model.score(X, y) == 1.0
    steep = GLVQ(distance_fn=SoftDTW(), random_state=0, max_iter=40, beta=20.0).fit(X, y)
    assert steep.score(X, y) == 0.5


def test_distances_are_the_divergence_in_the_units_of_the_data(bumps):
    X, y = bumps
    model = GLVQ(distance_fn=SoftDTW(window=0.3), **FAST).fit(X, y)
    scaled = GLVQ(distance_fn=SoftDTW(window=0.3), **FAST).fit(1000 * X + 5, y)
    np.testing.assert_allclose(scaled.prototypes_, 1000 * model.prototypes_ + 5, rtol=1e-5)
    np.testing.assert_allclose(scaled.distances(1000 * X + 5), 1e6 * model.distances(X), rtol=1e-5)
    gamma = 0.1 * X.var(0).mean()
    d = soft_dtw_divergence(
        torch.from_numpy(X), torch.from_numpy(model.prototypes_), gamma, 6, torch.ones(20)
    )
    np.testing.assert_allclose(model.distances(X), d, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("other", [SoftDTW(gamma=1.0), SoftDTW(window=0.1), SoftDTW(gamma=0.0)])
def test_options_matter(bumps, other):
    X, y = bumps
    one, two = (GLVQ(distance_fn=fn, **FAST).fit(X, y) for fn in (SoftDTW(), other))
    assert np.abs(one.prototypes_ - two.prototypes_).max() > 1e-3


def test_relevances_of_time_steps():
    """Where the classes differ at one time only, that is what counts."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 1, 12))
    X[:, 0, 8] = 2 * y - 1
    options = {"distance_fn": SoftDTW(window=0.1), "max_iter": 40, "random_state": 0}
    model = GRLVQ(metric_learning_rate=0.5, **options)
    relevances = model.fit(X, y).relevances_
    assert relevances.shape == (12,)
    assert relevances.sum() == pytest.approx(1)
    assert relevances.min() >= 0
    assert relevances.argmax() == 8
    assert relevances[8] > 2 * np.median(relevances)
    sparse = clone(model).set_params(regularizers=[SparseRelevance(0.2)]).fit(X, y)
    assert (sparse.relevances_ == 0).sum() > 2
    with pytest.raises(TypeError, match="no linear metric"):
        model.metric_()
    frozen = clone(model).set_params(frozen=("metric",), metric_learning_rate=None).fit(X, y)
    plain = GLVQ(**options).fit(X, y)
    np.testing.assert_allclose(frozen.prototypes_, plain.prototypes_, rtol=1e-6, atol=1e-9)


def test_clone_and_pickle(bumps):
    X, y = bumps
    model = clone(GRLVQ(distance_fn=SoftDTW(0.5, 0.2), **FAST)).fit(X, y)
    assert model.get_params()["distance_fn"] == SoftDTW(0.5, 0.2)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (GMLVQ(distance_fn=SoftDTW()), "distance_fn needs a model without a learned metric"),
        (DeepLVQ(distance_fn=SoftDTW()), "the space of a network has no time"),
        (
            GLVQ(distance_fn=SoftDTW(), mixed_precision=True, dtype="float32"),
            "mixed_precision=True has no effect on distance_fn=SoftDTW",
        ),
        (GLVQ(distance_fn="soft_dtw"), "distance_fn must be .* a SoftDTW or None, got 'soft_dtw'"),
    ],
)
def test_what_cannot_be_is_refused(bumps, model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*bumps)


def test_a_smoothing_that_loses_everything_is_refused(bumps):
    with pytest.raises(
        ValueError, match=r"gamma=100000000.0 is more than 1e\+06 times the mean var"
    ):
        GLVQ(distance_fn=SoftDTW(1e8)).fit(*bumps)


def test_images_are_refused():
    images = np.random.default_rng(0).normal(size=(6, 1, 4, 4))
    with pytest.raises(ValueError, match=r"SoftDTW compares series .* got shape \(1, 4, 4\)"):
        GLVQ(distance_fn=SoftDTW()).fit(images, [0, 1] * 3)


# --- explainers -----------------------------------------------------------------------------------


LEARNED = {"max_iter": 20, "random_state": 0}
MODELS = [
    GLVQ(distance_fn=SoftDTW(window=0.3), **LEARNED),
    GRLVQ(distance_fn=SoftDTW(window=0.3), **LEARNED),
    MedianLVQ(metric="dtw", window=0.3),
    MedianLVQ(metric="soft_dtw", metric_params={"gamma": 0.1}),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_explainers_take_gradients_through_the_warping(bumps, model):
    X, y = bumps
    model = clone(model).fit(X, y)
    classifier = cf.as_classifier(model)
    assert classifier.differentiable
    np.testing.assert_allclose(classifier.predict_proba(X), model.predict_proba(X), rtol=1e-6)
    for method in (cf.CELS(max_iter=20), cf.SVCE(n_iter=5, restarts=1)):
        result = method.fit(model, X, y).explain(X[:3])
        assert result.valid.all()
        assert (model.predict(result.X_cf) == result.target).all()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_what_needs_a_linear_metric_says_so(bumps, model):
    X, y = bumps
    model = clone(model).fit(X, y)
    with pytest.raises(
        TypeError, match="no linear metric, as exact counterfactuals and radii need"
    ):
        robustness_radius(model, X)
    with pytest.raises(
        TypeError, match="no linear metric, as exact counterfactuals and radii need"
    ):
        cf.PrototypeCounterfactual().fit(model, X, y).explain(X[:2])


def test_as_a_guide(bumps):
    X, y = bumps
    black_box = cf.as_classifier(MedianLVQ(metric="msm").fit(X, y))
    guide = cf.guides.NearestUnlikePrototype(GLVQ(distance_fn=SoftDTW(), **FAST))
    result = cf.NativeGuide(guide=guide).fit(black_box, X, y).explain(X[:3])
    assert result.valid.all()
