"""The LVQ family: distances and losses by hand, gradients by finite differences, one distance for all."""

import itertools

import numpy as np
import pytest
import torch
from scipy.special import expit, logsumexp, softmax
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch.autograd import gradcheck
from torch.func import functional_call

import contrafact as cf
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
    losses,
)
from contrafact.prototypes.estimator import likely_temperature
from contrafact.prototypes.layers import Euclidean, LocalMatrix, Matrix, Relevance, make_layer

FAMILY = [LVQ1, LVQ21, GLVQ, GRLVQ, GMLVQ, LGMLVQ, RSLVQ, CELVQ]
every_model = pytest.mark.parametrize("kind", FAMILY, ids=lambda kind: kind.__name__)

# --- layers -------------------------------------------------------------------------------------------------


def random(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


LAYERS = {
    "euclidean": (Euclidean, {}),
    "relevance": (Relevance, {"relevances": random(4, seed=3).abs()}),
    "matrix": (Matrix, {"omega": random(4, 4, seed=4)}),
    "low rank": (Matrix, {"omega": random(2, 4, seed=4)}),
    "local": (LocalMatrix, {"omega": random(3, 2, 4, seed=5)}),
}
every_layer = pytest.mark.parametrize(("kind", "metric"), LAYERS.values(), ids=LAYERS)


@every_layer
def test_distances_by_hand(kind, metric):
    x, w = random(5, 4, seed=1), random(3, 4, seed=2)
    found = kind(w, **metric)(x).detach().numpy()
    for i, k in itertools.product(range(5), range(3)):
        u = (x[i] - w[k]).numpy()
        if kind is Relevance:
            d = metric["relevances"].numpy() @ u**2
        elif kind is Euclidean:
            d = u @ u
        else:
            omega = metric["omega"].numpy()
            image = (omega[k] if kind is LocalMatrix else omega) @ u
            d = image @ image
        assert found[i, k] == pytest.approx(d, rel=1e-12)


@every_layer
def test_gradients_of_the_distances(kind, metric):
    x, w = random(5, 4, seed=1).requires_grad_(), random(3, 4, seed=2)
    layer = kind(w, **metric)
    names = ["prototypes", *metric]
    values = [value.clone().requires_grad_() for value in (w, *metric.values())]

    def distances(x, *values):
        return functional_call(layer, dict(zip(names, values, strict=True)), (x,))

    assert gradcheck(distances, (x, *values))


@every_layer
def test_distances_far_from_the_origin(kind, metric):
    """The center takes the offset away: digits that |x|² + |w|² − 2x·w would lose are kept."""
    x, w, far = (
        random(5, 4, seed=1),
        random(3, 4, seed=2),
        torch.full((4,), 1e6, dtype=torch.float64),
    )
    near = kind(w, **metric)(x).detach()
    torch.testing.assert_close(
        kind(w + far, center=far, **metric)(x + far).detach(), near, rtol=1e-8, atol=1e-8
    )


@every_layer
def test_a_layer_in_other_units(kind, metric):
    x, w, center = random(5, 4, seed=1), random(3, 4, seed=2), random(4, seed=6)
    layer = kind(w, **metric)
    found = layer.placed(center, 3.0)(3.0 * x + center)
    torch.testing.assert_close(found.detach(), 9 * layer(x).detach())


@every_layer
def test_the_metric_has_its_scale_after_a_step(kind, metric):
    layer = kind(random(3, 4, seed=2), **{name: 7 * value for name, value in metric.items()})
    layer.requires_grad_(False).normalize()
    if kind is Relevance:
        assert float(layer.relevances.sum()) == pytest.approx(1)
        assert bool((layer.relevances >= 0).all())
    elif kind is Matrix:
        assert float(torch.trace(layer.omega.T @ layer.omega)) == pytest.approx(1)
    elif kind is LocalMatrix:
        assert [float(torch.trace(o.T @ o)) for o in layer.omega] == pytest.approx([1, 1, 1])


def test_a_metric_without_any_relevance_is_refused():
    with pytest.raises(ValueError, match="smaller l1_weight"):
        Relevance(random(3, 4), torch.zeros(4, dtype=torch.float64)).normalize()
    with pytest.raises(ValueError, match="smaller l1_weight"):
        LocalMatrix(random(2, 4), torch.stack([torch.eye(4), torch.zeros(4, 4)])).normalize()


@pytest.mark.parametrize("metric", ["relevance", "matrix", "local"])
def test_every_metric_starts_as_the_euclidean_one(metric):
    x, w = random(6, 4, seed=1), random(3, 4, seed=2)
    plain = make_layer("euclidean", None, w)(x).detach()
    torch.testing.assert_close(make_layer(metric, None, w)(x).detach(), plain / 4)


def test_low_rank_starts_along_the_axes_on_which_prototypes_differ():
    w = torch.zeros(3, 4, dtype=torch.float64)
    w[:, 2] = torch.tensor([-1.0, 0.0, 1.0])
    np.testing.assert_allclose(
        make_layer("matrix", 1, w).omega.detach().abs(), [[0, 0, 1, 0]], atol=1e-12
    )


# --- losses -------------------------------------------------------------------------------------------------

# Prototypes of classes 0, 1, 0; both rows are of class 0. d⁺ = 1, 4 and d⁻ = 3, 1: μ = −0.5, 0.6.
LABELS, T = torch.tensor([0, 1, 0]), torch.tensor([0, 0])
SAME = T[:, None] == LABELS
D = torch.tensor([[1.0, 3.0, 2.0], [4.0, 1.0, 9.0]], dtype=torch.float64)
LOSSES = {
    "identity": (lambda d: losses.glvq(d, SAME, "identity", 2.0, None), [-0.5, 0.6]),
    "sigmoid": (lambda d: losses.glvq(d, SAME, "sigmoid", 2.0, None), [expit(-1.0), expit(1.2)]),
    "swish": (
        lambda d: losses.glvq(d, SAME, "swish", 2.0, None),
        [-0.5 * expit(-1.0), 0.6 * expit(1.2)],
    ),
    "margin": (lambda d: losses.glvq(d, SAME, "identity", 2.0, 0.1), [0.0, 0.7]),
    "wide margin": (lambda d: losses.glvq(d, SAME, "sigmoid", 2.0, 0.7), [expit(0.4), expit(2.6)]),
    "lvq1": (lambda d: losses.lvq1(d, SAME), [1.0, -1.0]),
    # (1 − w)/(1 + w) is 1/3, squared 1/9: both rows are inside; at 0.3 it is 0.29, and 1 : 4 lies outside.
    "lvq21, wide": (lambda d: losses.lvq21(d, SAME, 0.5), [-2.0, 3.0]),
    "lvq21, narrow": (lambda d: losses.lvq21(d, SAME, 0.3), [-2.0, 0.0]),
    "rslvq": (
        lambda d: losses.rslvq(d, SAME, 2.0),
        [
            logsumexp([-0.5, -1.5, -1]) - logsumexp([-0.5, -1]),
            logsumexp([-2, -0.5, -4.5]) - logsumexp([-2, -4.5]),
        ],
    ),
    "cross-entropy": (
        lambda d: losses.cross_entropy(d, LABELS, T, 2.0),
        [logsumexp([-0.5, -1.5]) + 0.5, logsumexp([-2, -0.5]) + 2],
    ),
}


@pytest.mark.parametrize(("loss", "expected"), LOSSES.values(), ids=LOSSES)
def test_losses_by_hand(loss, expected):
    np.testing.assert_allclose(loss(D), expected, rtol=1e-12)


@pytest.mark.parametrize("loss", [loss for loss, _ in LOSSES.values()], ids=LOSSES)
def test_gradients_of_the_losses(loss):
    assert gradcheck(loss, (D.clone().requires_grad_(),))


def test_a_row_on_two_prototypes_has_a_finite_gradient():
    """d⁺ = d⁻ = 0: 0/0."""
    layer = Euclidean(torch.tensor([[0.3, 0.1], [0.3, 0.1]], dtype=torch.float64))
    mu = losses.relative_distance(
        layer(torch.tensor([[0.3, 0.1]], dtype=torch.float64)), torch.tensor([[True, False]])
    )
    mu.sum().backward()
    assert float(mu.detach()) == 0
    assert bool(layer.prototypes.grad.isfinite().all())


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
        loss = expit(1.5 * (plus - minus) / (plus + minus))
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


@every_model
def test_descent_descends(kind, blobs):
    model = kind(2, lr=0.01, max_iter=30, random_state=0).fit(*blobs)
    assert model.loss_ < model.loss_history_[0]


# --- the classical rule -------------------------------------------------------------------------------------


def test_lvq1_is_the_classical_rule():
    """Row by row: the winner moves α(x − w) toward a row of its class, and away from any other; α = 2 lr."""
    X, y = np.array([[0.0, 0.0], [2.0, 1.0], [5.0, 0.5], [1.5, 3.0]]), np.array([0, 0, 1, 1])
    start, owner, alpha = np.array([[0.5, 1.0], [4.0, 0.0]]), np.array([0, 1]), 0.2

    def classical(order):
        w = start.copy()
        for i in order:
            k = ((X[i] - w) ** 2).sum(1).argmin()
            w[k] += (1 if owner[k] == y[i] else -1) * alpha * (X[i] - w[k])
        return w

    model = LVQ1(
        optimizer="sgd", lr=alpha / 2, scheduler=None, batch_size=1, max_iter=1, random_state=0
    )
    found = model.fit(X, y, initial_prototypes=(start, owner)).prototypes_
    ways = np.array([classical(order) for order in itertools.permutations(range(4))])
    assert (
        np.abs(ways - found).max((1, 2)).min() < 1e-12
    )  # it took the rows in one of the 24 orders
    assert np.abs(ways[0] - ways).max() > 0.01  # which is not all the same
    assert np.abs(start - found).max() > 0.1


def test_lvq21_moves_both_and_only_inside_the_window():
    X, y = np.array([[1.9], [9.0]]), np.array([0, 1])
    start = np.array(
        [[0.0], [4.0]]
    )  # 1.9 lies between; 9 is 5 from the one and 9 from the other: outside
    model = LVQ21(
        window=0.2,
        optimizer="sgd",
        lr=0.1,
        scheduler=None,
        batch_size=1,
        max_iter=1,
        random_state=0,
    )
    found = model.fit(X, y, initial_prototypes=(start, y)).prototypes_
    np.testing.assert_allclose(found, [[0.2 * 1.9], [4.0 + 0.2 * 2.1]], atol=1e-12)


# --- one distance -------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("kind", FAMILY)
def test_metric_gives_the_distances(kind, blobs):
    model = kind(2, max_iter=5, random_state=0).fit(*blobs)
    u, omega = blobs[0][:, None] - model.prototypes_, model.metric_()
    if omega is not None:
        u = np.einsum("krd,nkd->nkr", np.broadcast_to(omega, (6, *omega.shape[-2:])), u)
    np.testing.assert_allclose((u**2).sum(2), model.distances(blobs[0]), rtol=1e-9)
    assert (omega is None) == (kind in (LVQ1, LVQ21, GLVQ, RSLVQ, CELVQ))


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
    model = LVQ1(max_iter=1, lr=1e-12).fit(X, y, initial_prototypes=(X[::-1], y[::-1]))
    P = model.predict_proba([[0.0]])
    assert P[0, 0] == P[0, 1]
    assert model.predict([[0.0]]) == model.classes_[P.argmax(1)]


def test_temperature_is_the_most_likely(blobs):
    """Neither a lower nor a higher one explains the labels better."""
    X, y = blobs
    model = GLVQ(2, max_iter=5, random_state=0).fit(X, y)
    d = model.distances(X)
    nearest = np.stack([d[:, model.prototype_labels_ == c].min(1) for c in range(3)], axis=1)

    def likelihood(T):
        return np.log(softmax(-nearest / T, axis=1)[np.arange(len(y)), y]).sum()

    best = likelihood(model.temperature_)
    assert all(best > likelihood(model.temperature_ * factor) for factor in (0.5, 0.99, 1.01, 2))
    weight = np.where(y == 0, 3.0, 1.0)
    weighted = likely_temperature(
        torch.from_numpy(d), torch.from_numpy(y), torch.from_numpy(model.prototype_labels_), weight
    )
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    repeated = likely_temperature(
        torch.from_numpy(d[rows]),
        torch.from_numpy(y[rows]),
        torch.from_numpy(model.prototype_labels_),
    )
    # The unit of the search is another, so only nearly.
    assert weighted == pytest.approx(repeated, rel=1e-6)
    assert weighted != pytest.approx(model.temperature_, rel=1e-3)


# --- as a model to explain ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*FAMILY, NearestMean])
@pytest.mark.parametrize("scaled", [False, True])
def test_twin_has_the_probabilities(kind, scaled, blobs):
    X, y = blobs
    names = np.array(["a", "b", "c"])[y]
    model = kind() if kind is NearestMean else kind(2, max_iter=10, random_state=0)
    model = (make_pipeline(StandardScaler(), model) if scaled else model).fit(X, names)
    classifier = cf.as_classifier(model)
    assert classifier.differentiable is True
    assert list(classifier.classes) == ["a", "b", "c"]
    x = torch.from_numpy(X).requires_grad_()
    logits = classifier.logits(x)
    np.testing.assert_allclose(logits.detach().softmax(1), model.predict_proba(X), atol=1e-9)
    (gradient,) = torch.autograd.grad(logits[:, 0].sum(), x)
    step = 1e-6
    for j in range(4):
        shift = step * np.eye(4)[j]
        up, down = (
            classifier.logits(torch.from_numpy(X + s)).detach()[:, 0] for s in (shift, -shift)
        )
        np.testing.assert_allclose(gradient[:, j], (up - down) / (2 * step), rtol=1e-4, atol=1e-4)


@pytest.fixture(scope="module")
def italy():
    data = cf.load_dataset("ItalyPowerDemand")
    model = GMLVQ(2, max_iter=60, random_state=0).fit(data.X_train, data.y_train)
    assert model.score(data.X_test, data.y_test) > 0.94
    return data, model


@pytest.mark.parametrize("method", ["CELS", "Glacier"])
def test_explainers_descend_on_prototype_models(method, italy):
    data, model = italy
    explainer = getattr(cf, method)().fit(model, data.X_train, data.y_train)
    result = explainer.explain(data.X_test[:12], random_state=0)
    assert result.valid.all()
    np.testing.assert_array_equal(model.predict(result.X_cf), result.target)
    assert (model.predict(data.X_test[:12]) != result.target).all()
