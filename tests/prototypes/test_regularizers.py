"""Regularizers: what they do to a model, against cvxpy."""

import cvxpy as cp
import numpy as np
import pytest
import torch
from penalties_by_hand import log_determinants, mean_squared_cosine
from sklearn.datasets import load_iris

from contrafact.prototypes import (
    GLVQ,
    GMLVQ,
    GRLVQ,
    LGMLVQ,
    RSLVQ,
    DeepLVQ,
    Diversity,
    Orthogonality,
    RelevanceFloor,
    SparseRelevance,
)
from contrafact.prototypes.layers import Matrix, Relevance


def test_diversity_keeps_prototypes_apart():
    """Exclusive or: the prototypes of a class start, and without help stay, in one place."""
    rng = np.random.default_rng(0)
    corner = np.arange(80) % 4
    X = np.array([[0.0, 0.0], [3.0, 3.0], [3.0, 0.0], [0.0, 3.0]])[corner] + 0.4 * rng.normal(
        size=(80, 2)
    )
    y = corner // 2
    start = np.array([[1.5, 1.5], [1.5, 1.5], [1.5, 1.2], [1.5, 1.2]]), np.array([0, 0, 1, 1])
    options = {"beta": 1.5, "max_iter": 100, "random_state": 0}
    alone = GLVQ(**options).fit(X, y, initial_prototypes=start)
    np.testing.assert_allclose(alone.prototypes_[::2], alone.prototypes_[1::2], atol=1e-9)
    helped = GLVQ(regularizers=(Diversity(0.05, sigma=1.0),), **options).fit(
        X, y, initial_prototypes=start
    )
    assert np.linalg.norm(helped.prototypes_[::2] - helped.prototypes_[1::2], axis=1).min() > 1
    assert helped.score(X, y) > 0.7 > 0.6 > alone.score(X, y)


@pytest.fixture(scope="module")
def regression():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 8))
    return A, A @ [2, 0, 0, 1.5, 0, 0, 0.3, 0] + 0.1 * rng.normal(size=30)


@pytest.mark.parametrize("l2", [0.0, 0.5])
def test_proximal_descent_solves_the_lasso(l2, regression):
    """½‖Ax − b‖²/n + l1‖x‖₁ + l2/2‖x‖², with the relevances of a layer as x."""
    A, b = regression
    l1 = 0.2
    variable = cp.Variable(8, nonneg=True)
    cost = cp.sum_squares(A @ variable - b) / (2 * len(A)) + l1 * cp.norm1(variable)
    cp.Problem(cp.Minimize(cost + l2 / 2 * cp.sum_squares(variable))).solve(solver=cp.CLARABEL)

    layer = Relevance(torch.zeros(1, 8, dtype=torch.float64), torch.ones(8, dtype=torch.float64))
    optimizer = torch.optim.SGD([layer.relevances], lr=0.1)
    term, rows, goal = SparseRelevance(l1, l2), torch.from_numpy(A), torch.from_numpy(b)
    for _ in range(1500):
        optimizer.zero_grad()
        ((rows @ layer.relevances - goal).square().mean() / 2).backward()
        optimizer.step()
        term.after_step(layer, 0.1)
        with torch.no_grad():
            layer.relevances.clamp_(min=0)
    found = layer.relevances.detach().numpy()
    np.testing.assert_allclose(found, variable.value, atol=1e-5)
    np.testing.assert_array_equal(found == 0, variable.value < 1e-4)
    assert 3 <= (found == 0).sum() < 8


def test_proximal_descent_solves_the_group_lasso(regression):
    """½‖AΩᵀ − B‖²/n + l1 Σ_j ‖Ω_j‖: whole columns of Ω vanish."""
    A, b = regression
    B, l1 = np.stack([b, -b[::-1]], axis=1), 0.3
    variable = cp.Variable((2, 8))
    cost = cp.sum_squares(A @ variable.T - B) / (2 * len(A)) + l1 * cp.sum(
        cp.norm(variable, 2, axis=0)
    )
    cp.Problem(cp.Minimize(cost)).solve(solver=cp.CLARABEL)

    layer = Matrix(torch.zeros(1, 8, dtype=torch.float64), torch.ones(2, 8, dtype=torch.float64))
    optimizer = torch.optim.SGD([layer.omega], lr=0.1)
    rows, goal = torch.from_numpy(A), torch.from_numpy(B)
    for _ in range(1500):
        optimizer.zero_grad()
        ((rows @ layer.omega.T - goal).square().sum() / (2 * len(A))).backward()
        optimizer.step()
        SparseRelevance(l1).after_step(layer, 0.1)
    found = layer.omega.detach().numpy()
    np.testing.assert_allclose(found, variable.value, atol=1e-5)
    gone = (found == 0).all(0)
    np.testing.assert_array_equal(gone, np.linalg.norm(variable.value, axis=0) < 1e-4)
    assert 1 <= gone.sum() < 8


@pytest.fixture(scope="module")
def noisy():
    """Two features tell the classes, six are noise; rows to train on, and others."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 3
    X = rng.normal(size=(400, 8))
    X[:, :2] = 3 * np.array([[0, 0], [1, 0], [0, 1]])[y] + 0.6 * X[:, :2]
    return X[:200], y[:200], X[200:], y[200:]


@pytest.mark.parametrize(
    ("model", "l1_weight", "options"),
    [
        (GRLVQ, 1.0, {}),
        (GRLVQ, 0.3, {"optimizer": "sgd", "metric_learning_rate": 1.0}),
        (GMLVQ, 3.0, {"metric_learning_rate": 1.0}),
        (GMLVQ, 1.0, {"optimizer": "sgd", "metric_learning_rate": 1.0}),
        (LGMLVQ, 1.0, {"optimizer": "sgd", "metric_learning_rate": 1.0, "beta": 1.5}),
        (RSLVQ, 0.3, {"optimizer": "sgd", "metric_learning_rate": 1.0, "metric": "relevance"}),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_sparse_relevances_are_exactly_zero_and_cost_no_accuracy(model, l1_weight, options, noisy):
    X, y, X_test, y_test = noisy
    options = {"max_iter": 60, "random_state": 0, **options}
    plain = model(**options).fit(X, y)
    sparse = model(regularizers=(SparseRelevance(l1_weight),), **options).fit(X, y)
    before, after = (np.atleast_2d(fitted.relevances_) for fitted in (plain, sparse))
    assert (after[:, 2:] == 0).all() and (before[:, 2:] > 0).any()
    assert (after[:, :2] > 0).all()
    np.testing.assert_allclose(after.sum(1), 1)
    assert sparse.score(X_test, y_test) >= plain.score(X_test, y_test) - 0.01 > 0.9


@pytest.mark.parametrize("model", [GRLVQ, GMLVQ, LGMLVQ])
def test_no_relevance_falls_below_the_floor(model, noisy):
    X, y, *_ = noisy
    options = {"metric_learning_rate": 1.0, "max_iter": 60, "random_state": 0}
    floored = model(regularizers=(RelevanceFloor(0.08),), **options).fit(X, y)
    assert model(**options).fit(X, y).relevances_.min() < 0.04
    assert floored.relevances_.min() >= 0.08 - 1e-12
    np.testing.assert_allclose(floored.relevances_.sum(-1), 1)


@pytest.mark.parametrize("kind", [Relevance, Matrix])
def test_a_column_that_vanished_comes_back_along_its_axis(kind):
    values = torch.tensor([0.0, 0.3, 0.7, 0.0], dtype=torch.float64)
    places = torch.zeros(2, 4, dtype=torch.float64)
    layer = kind(places, values.clone() if kind is Relevance else torch.diag(values.sqrt()))
    RelevanceFloor(0.05).after_step(layer, 0.1)
    share = (layer.relevances if kind is Relevance else layer.omega.square().sum(0)).detach()
    assert float(share.min()) == pytest.approx(0.05) and float(share.sum()) == pytest.approx(1)
    assert share.argmax() == 2
    if kind is Matrix:
        assert float(layer.omega.detach().fill_diagonal_(0).abs().max()) == 0


@pytest.mark.parametrize("kind", [Relevance, Matrix])
def test_a_floor_that_holds_changes_nothing(kind):
    values = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    places = torch.zeros(2, 4, dtype=torch.float64)
    layer = kind(places, values.clone() if kind is Relevance else torch.diag(values.sqrt()))
    for _ in range(100):
        RelevanceFloor(0.05).after_step(layer, 0.1)
    share = (layer.relevances if kind is Relevance else layer.omega.square().sum(0)).detach()
    torch.testing.assert_close(share, values)


@pytest.mark.parametrize("model", [GRLVQ, GMLVQ, LGMLVQ])
def test_a_low_floor_leaves_the_metric_to_be_learned(model, noisy):
    X, y, *_ = noisy
    options = {"metric_learning_rate": 1.0, "max_iter": 60, "random_state": 0}
    signal = [
        model(regularizers=terms, **options).fit(X, y).relevances_[..., :2].sum(-1).min()
        for terms in ((), (RelevanceFloor(0.02),))
    ]
    assert signal[0] > 0.9 and signal[1] > 0.7  # six features of noise may have 0.12 of the whole


@pytest.mark.parametrize("term", [SparseRelevance(0.3), RelevanceFloor(0.1)])
def test_what_an_average_would_undo_is_refused(term, noisy):
    X, y, *_ = noisy
    with pytest.raises(ValueError, match="nor with ema"):
        GRLVQ(ema=0.9, regularizers=(term,)).fit(X, y)


def test_zeros_with_the_default_optimizer(noisy):
    """Irrelevant features get exactly 0 without tuning, and the accuracy stays."""
    X, y, *_ = noisy
    plain, sparse = (
        GMLVQ(regularizers=terms, random_state=0).fit(X, y)
        for terms in ((), (SparseRelevance(1.0),))
    )
    assert (plain.relevances_ > 0).all() and (sparse.relevances_[2:] == 0).all()
    assert sparse.score(X, y) >= plain.score(X, y) - 0.02


@pytest.mark.parametrize("model", [GLVQ, DeepLVQ])
def test_orthogonality_lowers_the_cosines(model, blobs):
    X, y = blobs
    options = {"n_prototypes": 2, "max_iter": 40, "random_state": 0}
    options |= {"cosine": True} if model is DeepLVQ else {}
    cosines = []
    for terms in ((), (Orthogonality(5.0),)):
        fitted = model(regularizers=terms, **options).fit(X, y)
        origin = 0 if model is DeepLVQ else X.mean(0)
        cosines.append(mean_squared_cosine(fitted.prototypes_ - origin, fitted.prototype_labels_))
    assert cosines[1] < cosines[0] / 2


def test_terms_add_up_in_the_loss(blobs):
    """`loss_` is the loss of the model plus the weighted terms, in units of the spread."""
    X, y = blobs
    model = GLVQ(
        2, regularizers=(Diversity(0.3, sigma=1.0), Orthogonality(0.2)), max_iter=5, random_state=0
    )
    model.fit(X, y)
    unit = np.sqrt(np.mean((X - X.mean(0)) ** 2))
    p, labels = (model.prototypes_ - X.mean(0)) / unit, model.prototype_labels_
    start = (model.prototypes_, labels)
    same_slope = GLVQ(beta=model.beta_, learning_rate=0.0, max_iter=1)
    alone = same_slope.fit(X, y, initial_prototypes=start).loss_
    expected = alone + 0.3 * log_determinants(p, labels, 1.0) + 0.2 * mean_squared_cosine(p, labels)
    assert model.loss_ == pytest.approx(expected, rel=1e-6)


def test_the_floor_holds_for_columns_beyond_the_rank():
    X, y = load_iris(return_X_y=True)
    X = np.c_[X, np.ones(len(X))]
    model = GMLVQ(rank=2, max_iter=20, regularizers=[RelevanceFloor(0.05)], random_state=0)
    assert (model.fit(X, y).relevances_ >= 0.05 - 1e-9).all()
