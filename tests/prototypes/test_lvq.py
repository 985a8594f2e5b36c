"""The LVQ family: what is learned, and one distance for everything."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp, softmax
from sklearn.datasets import load_digits, load_iris

from contrafact.prototypes import (
    CELVQ,
    GLVQ,
    GMLVQ,
    GRLVQ,
    LGMLVQ,
    LVQ1,
    LVQ21,
    RSLVQ,
    NearestMean,
    SoftDTW,
)

FAMILY = [LVQ1, LVQ21, GLVQ, GRLVQ, GMLVQ, LGMLVQ, RSLVQ, CELVQ]
every_model = pytest.mark.parametrize("kind", FAMILY, ids=lambda kind: kind.__name__)


def by_hand(model, X, y, weight):
    """The loss that `loss_` claims, from what the fitted model tells."""
    d = model.distances(X)
    own = y[:, None] == model.prototype_labels_
    plus, minus = np.where(own, d, np.inf).min(1), np.where(own, np.inf, d).min(1)
    # LVQ1's and LVQ 2.1's losses have a unit: the data's variance.
    unit = np.average(
        (X - np.average(X, axis=0, weights=weight)) ** 2, axis=0, weights=weight
    ).mean()
    if isinstance(model, GLVQ):
        loss = expit(model.beta_ * (plus - minus) / (plus + minus))
    elif isinstance(model, LVQ1):
        loss = np.where(plus < minus, plus, -minus) / unit
    elif isinstance(model, LVQ21):
        ratio = np.sqrt(np.minimum(plus / minus, minus / plus))
        loss = np.where(ratio > (1 - model.window) / (1 + model.window), plus - minus, 0) / unit
    elif isinstance(model, RSLVQ):
        score = -d / model.temperature_
        loss = logsumexp(score, axis=1) - logsumexp(np.where(own, score, -np.inf), axis=1)
    else:
        loss = -np.log(model.predict_proba(X)[np.arange(len(y)), y])
    return np.average(loss, weights=weight)


@every_model
@pytest.mark.parametrize("batch_size", [None, 7])
@pytest.mark.parametrize("weighted", [False, True])
def test_loss_is_the_loss_of_what_is_kept(kind, batch_size, weighted, blobs):
    X, y = blobs
    weight = np.random.default_rng(3).uniform(0.1, 5, len(X)) if weighted else None
    model = kind(2, max_iter=8, batch_size=batch_size, random_state=0).fit(
        X, y, sample_weight=weight
    )
    assert model.loss_ == pytest.approx(by_hand(model, X, y, weight), rel=1e-9)
    assert len(model.loss_history_) == model.n_iter_ == 8


@pytest.mark.parametrize(
    ("kind", "steepness"), [(GLVQ, 5), (GRLVQ, 5), (GMLVQ, 1), (LGMLVQ, 1)], ids=lambda v: str(v)
)
def test_the_slope_is_in_units_of_mu_at_the_start(kind, steepness, blobs):
    X, y = blobs
    weight = np.random.default_rng(0).uniform(0.1, 5, len(X))
    start = X[:3], y[:3]
    model = kind(max_iter=2, random_state=0).fit(
        X, y, initial_prototypes=start, sample_weight=weight
    )
    d = ((X[:, None] - start[0]) ** 2).sum(2)
    own = y[:, None] == start[1]
    plus, minus = np.where(own, d, np.inf).min(1), np.where(own, np.inf, d).min(1)
    rms = np.sqrt(np.average(((plus - minus) / (plus + minus)) ** 2, weights=weight))
    assert model.beta_ == pytest.approx(steepness / rms, rel=1e-9)
    given = kind(beta=steepness / rms, max_iter=2, random_state=0).fit(
        X, y, initial_prototypes=start, sample_weight=weight
    )
    np.testing.assert_allclose(given.prototypes_, model.prototypes_, rtol=1e-9)
    assert not hasattr(kind(transfer="identity", max_iter=1).fit(X, y), "beta_")


def test_a_start_that_tells_nothing_apart_leaves_a_finite_slope(blobs):
    model = GLVQ(init="zeros", max_iter=1, random_state=0).fit(*blobs)
    assert model.beta_ == pytest.approx(50)


@every_model
def test_descent_descends(kind, blobs):
    model = kind(2, learning_rate=0.01, max_iter=30, random_state=0).fit(*blobs)
    assert model.loss_ < model.loss_history_[0]


def distances_by_hand(model, X):
    u = X[:, None] - model.prototypes_
    if hasattr(model, "omega_"):
        omega = model.omega_ if model.omega_.ndim == 3 else model.omega_[None]
        return (
            np.einsum("krd,nkd->nkr", np.broadcast_to(omega, (u.shape[1], *omega.shape[1:])), u)
            ** 2
        ).sum(2)
    return (u**2 * getattr(model, "relevances_", 1.0)).sum(2)


SOFT = [lambda n, metric=metric, kind=kind, **o: kind(n, metric=metric, **o)
        for kind in (RSLVQ, CELVQ) for metric in ("relevance", "matrix", "local")]  # fmt: skip


@pytest.mark.parametrize("kind", [*FAMILY, *SOFT])
@pytest.mark.parametrize("n_prototypes", [1, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_distance_serves_everything(kind, n_prototypes, dtype, blobs):
    X, y = blobs
    model = kind(n_prototypes, max_iter=10, dtype=dtype, random_state=0).fit(X, y)
    rows = np.concatenate([X, 3 * X])
    d = distances_by_hand(model, rows)
    np.testing.assert_allclose(model.distances(rows), d, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(model.predict(rows), model.prototype_labels_[d.argmin(1)])
    nearest = np.stack([d[:, model.prototype_labels_ == c].min(1) for c in model.classes_], axis=1)
    P = model.predict_proba(rows)
    np.testing.assert_allclose(P, softmax(-nearest / model.temperature_, axis=1), atol=1e-9)
    np.testing.assert_array_equal(model.classes_[P.argmax(1)], model.predict(rows))


@pytest.mark.parametrize("kind", [GRLVQ, GMLVQ, LGMLVQ])
def test_relevances_are_shares(kind, blobs):
    model = (
        kind(2, max_iter=10, rank=2, random_state=0) if kind is not GRLVQ else kind(2, max_iter=10)
    )
    model.fit(*blobs)
    assert (model.relevances_ >= 0).all()
    np.testing.assert_allclose(model.relevances_.sum(-1), 1)
    if kind is not GRLVQ:
        assert model.omega_.shape == ((2, 4) if kind is GMLVQ else (6, 2, 4))
        np.testing.assert_allclose(model.relevances_, (model.omega_**2).sum(-2))


@pytest.mark.parametrize("kind", [*FAMILY, NearestMean])
@pytest.mark.parametrize(("offset", "factor"), [(1e6, 1.0), (0.0, 1e-6), (-3e3, 1e4)])
def test_units_and_origin_do_not_matter(kind, offset, factor, iris):
    X, y = iris
    moved = factor * X + offset
    if kind is NearestMean:
        plain, other = kind().fit(X, y), kind().fit(moved, y)
    else:
        start, owner = X[::25], y[::25]
        options = {"max_iter": 20, "random_state": 0}
        plain = kind(2, **options).fit(X, y, initial_prototypes=(start, owner))
        other = kind(2, **options).fit(
            moved, y, initial_prototypes=(factor * start + offset, owner)
        )
    np.testing.assert_array_equal(plain.predict(X), other.predict(moved))
    np.testing.assert_allclose(plain.predict_proba(X), other.predict_proba(moved), atol=1e-4)
    np.testing.assert_allclose(other.distances(moved), factor**2 * plain.distances(X), rtol=1e-3)


def test_an_exact_tie_goes_the_same_way_in_both():
    """Equally near: `predict` and the most probable class must not part."""
    X, y = np.array([[-1.0], [1.0]]), np.array([0, 1])
    model = LVQ1(max_iter=1, learning_rate=1e-12).fit(X, y, initial_prototypes=(X[::-1], y[::-1]))
    P = model.predict_proba([[0.0]])
    assert P[0, 0] == P[0, 1]
    assert model.predict([[0.0]]) == model.classes_[P.argmax(1)]


@pytest.mark.parametrize(("rank", "share"), [(None, 1 / 64), (2, 1 / np.sqrt(2 * 64))])
def test_a_larger_matrix_learns_more_slowly(rank, share):
    """Adam moves every entry by the same step, and so the matrix by the root of their number."""
    X, y = load_digits(return_X_y=True)
    rows = X[::5] / 16, y[::5]
    options = {"rank": rank, "max_iter": 3, "random_state": 0}
    default = GMLVQ(**options).fit(*rows)
    given = GMLVQ(**options, metric_learning_rate=share).fit(*rows)
    np.testing.assert_allclose(default.omega_, given.omega_)
    faster = GMLVQ(**options, metric_learning_rate=0.1).fit(*rows)
    assert np.abs(faster.omega_ - given.omega_).max() > 1e-3


def test_more_relevances_learn_more_slowly():
    """Their sum is 1, so that each is the smaller the more there are."""
    X, y = load_digits(return_X_y=True)
    rows = X[::5] / 16, y[::5]
    default = GRLVQ(max_iter=3, random_state=0).fit(*rows)
    given = GRLVQ(max_iter=3, random_state=0, metric_learning_rate=1 / 64).fit(*rows)
    np.testing.assert_allclose(default.relevances_, given.relevances_)
    series = X[::5].reshape(-1, 2, 32)[:40], y[::5][:40]
    warped = {"max_iter": 2, "random_state": 0, "distance_fn": SoftDTW()}
    default = GRLVQ(**warped).fit(*series)  # one for each time step
    given = GRLVQ(**warped, metric_learning_rate=1 / 32).fit(*series)
    np.testing.assert_allclose(default.relevances_, given.relevances_)


def test_a_small_matrix_learns_with_a_tenth_of_the_step():
    X, y = load_iris(return_X_y=True)
    default = GMLVQ(max_iter=3, random_state=0).fit(X, y)
    given = GMLVQ(max_iter=3, random_state=0, metric_learning_rate=0.1).fit(X, y)
    np.testing.assert_array_equal(default.omega_, given.omega_)


@pytest.mark.parametrize("model", [GLVQ, GRLVQ, GMLVQ])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_of_two_classes_at_the_same_places_can_be_learned(model, dtype):
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, 2, (40, 2)).astype(float), rng.integers(0, 2, 40)
    for seed in range(4):
        found = model(n_prototypes=4, random_state=seed, max_iter=20, dtype=dtype).fit(X, y)
        assert np.isfinite(found.prototypes_).all()


@pytest.mark.parametrize(("factor", "word"), [(1e160, "large"), (1e-200, "small")])
@pytest.mark.parametrize("model", [GLVQ(), GMLVQ(), RSLVQ()])
def test_values_whose_squares_are_no_floats_are_refused(model, factor, word, blobs):
    X, y = blobs
    with pytest.raises(ValueError, match=f"X holds values up to .* too {word}"):
        model.fit(factor * X, y)


def test_a_step_of_a_frozen_metric_is_refused(blobs):
    with pytest.raises(ValueError, match="needs a metric that is trained"):
        GMLVQ(frozen=("metric",), metric_learning_rate=0.5).fit(*blobs)
