"""PrototypeCounterfactual: no counterfactual is nearer, and that is proved."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

import contrafact as cf
from contrafact.prototypes import GLVQ, GMLVQ, GRLVQ, LGMLVQ, MedianLVQ

ORDER = {"l1": 1, "l2": 2}


class PlainModel(ClassifierMixin, BaseEstimator):
    """A model of given prototypes and metric: the plain formula."""

    def __init__(self, prototypes, labels, omega=None, temperature=1.0, dtype=np.float64):
        self.prototypes, self.labels, self.omega = prototypes, labels, omega
        self.temperature, self.dtype = temperature, dtype
        self.prototypes_, self.prototype_labels_ = np.asarray(prototypes, float), np.asarray(labels)
        self.classes_, self.temperature_ = np.unique(labels), temperature
        self.n_features_in_ = self.prototypes_[0].size

    def fit(self, X, y):
        return self

    def metric_(self):
        return self.omega

    def distances(self, X):
        flat = self.prototypes_.reshape(len(self.prototypes_), -1).astype(self.dtype)
        away = np.asarray(X, self.dtype).reshape(len(X), 1, -1) - flat
        if self.omega is not None:
            local = np.broadcast_to(self.omega, (len(flat), *self.omega.shape[-2:]))
            away = np.einsum("krd,nkd->nkr", local, away)
        return (away**2).sum(2)

    def predict(self, X):
        return self.prototype_labels_[self.distances(X).argmin(1)]

    def predict_proba(self, X):
        d = np.stack([self.distances(X)[:, self.labels == c].min(1) for c in self.classes_], 1)
        weight = np.exp((d.min(1, keepdims=True) - d) / self.temperature)
        return weight / weight.sum(1, keepdims=True)


def small(n_classes=3, per_class=2, d=5, seed=0, **options):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.array(list("abcdef"))[:n_classes], per_class)
    return PlainModel(rng.normal(size=(len(labels), d)), labels, **options), rng.normal(
        size=(12, d)
    )


def by_cvxpy(model, x, target, norm, lower=-np.inf, upper=np.inf, frozen=None):
    """The smallest distance over the target's prototypes, by squared distances written out."""
    omega = np.eye(x.size) if model.omega is None else model.omega
    w, best = model.prototypes_ @ omega.T, np.inf
    for j in np.flatnonzero(model.labels == target):
        z = cp.Variable(x.size)
        limits = [
            2 * (w[k] - w[j]) @ omega @ z <= w[k] @ w[k] - w[j] @ w[j]
            for k in np.flatnonzero(model.labels != target)
        ]
        limits += [z >= lower] if np.isfinite(lower) else []
        limits += [z <= upper] if np.isfinite(upper) else []
        limits += [z[frozen] == x[frozen]] if frozen is not None else []
        problem = cp.Problem(cp.Minimize(cp.norm(z - x, ORDER[norm])), limits)
        problem.solve(solver="CLARABEL")
        best = min(best, np.inf if problem.status.startswith("infeasible") else problem.value)
    return best


def explained(model, X, norm="l2", reference=None, **options):
    return (
        cf.PrototypeCounterfactual(norm)
        .fit(model, X if reference is None else reference)
        .explain(X, **options)
    )


def lengths(result, norm):
    return np.linalg.norm(result.delta.reshape(len(result), -1), ORDER[norm], axis=1)


# --- the smallest there is


@pytest.mark.parametrize("metric", ["euclidean", "matrix", "low rank"])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_equals_cvxpy(norm, metric):
    rng = np.random.default_rng(3)
    omega = {
        "euclidean": None,
        "matrix": rng.normal(size=(5, 5)),
        "low rank": rng.normal(size=(3, 5)),
    }[metric]
    model, X = small(omega=omega)
    result = explained(model, X, norm)
    expected = [by_cvxpy(model, x, t, norm) for x, t in zip(X, result.target, strict=True)]
    assert result.valid.all() and result.info["certified"].all()
    np.testing.assert_allclose(result.info["distance"], expected, atol=1e-6)
    np.testing.assert_allclose(result.info["distance"], lengths(result, norm), atol=1e-12)
    assert (result.info["gap"] >= -1e-12).all() and result.info["gap"].max() <= 1e-6


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_equals_cvxpy_within_bounds_and_frozen(norm):
    model, X = small(d=4)
    X = X.clip(-0.8, 0.8)
    frozen = np.array([True, True, True, False])
    limits = cf.Constraints(lower=-0.8, upper=0.8, frozen=frozen)
    result = explained(model, X, norm, constraints=limits)
    expected = np.array(
        [
            by_cvxpy(model, x, t, norm, -0.8, 0.8, frozen)
            for x, t in zip(X, result.target, strict=True)
        ]
    )
    some = np.isfinite(expected)
    assert 0 < some.sum() < len(X)
    np.testing.assert_array_equal(result.valid, some)
    np.testing.assert_allclose(result.info["distance"][some], expected[some], atol=1e-6)
    assert set(result.status[~some]) == {"infeasible"}
    assert all(
        "0 of 2 prototypes" in message and "frozen" in message for message in result.message[~some]
    )
    np.testing.assert_array_equal(result.X_cf[:, :3], X[:, :3])
    assert result.X_cf.min() >= -0.8 and result.X_cf.max() <= 0.8


def test_digits_meet_the_bars():
    """Gaps of at most 1e-6; and nothing that a baseline finds is below the bound."""
    X, y = load_digits(return_X_y=True)
    model = GLVQ(n_prototypes=3, max_iter=10, random_state=0).fit(X, y)
    rows = X[:100]
    for norm in ORDER:
        for limits in (None, cf.Constraints(lower=0.0, upper=16.0)):
            result = explained(model, rows, norm, reference=X, constraints=limits)
            assert (
                result.valid.all()
                and result.info["certified"].all()
                and result.info["gap"].max() <= 1e-6
            )
            line = cf.LineSearch().fit(model, X, y).explain(rows, result.target, constraints=limits)
            assert (lengths(line, norm)[line.valid] >= result.info["lower_bound"][line.valid]).all()
            assert (result.info["distance"] < lengths(line, norm)).mean() > 0.9


def test_norm_matters():
    model, X = small(d=12)
    one, two = (explained(model, X, norm) for norm in ORDER)
    assert one.changed.mean() < 0.4 < two.changed.mean()
    assert (lengths(one, "l1") <= lengths(two, "l1") + 1e-9).all()
    assert (lengths(two, "l2") <= lengths(one, "l2") + 1e-9).all()


# --- models


@pytest.mark.parametrize("cls", [GLVQ, GRLVQ, GMLVQ])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_models_of_this_package(cls, norm):
    X, y = load_wine(return_X_y=True)
    model = cls(n_prototypes=2, random_state=0).fit(X, y)
    result = explained(model, X[::6], norm, reference=X)
    assert result.valid.all() and result.info["certified"].all()
    nearest = model.prototype_labels_[result.info["prototype"]]
    np.testing.assert_array_equal(nearest, result.target)


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler((-1, 3)), RobustScaler()])
def test_scalers_are_folded_in(scaler):
    """The same as the plain model in scaled space, seen from outside."""
    X, y = load_wine(return_X_y=True)
    pipeline = make_pipeline(scaler, GMLVQ(random_state=0)).fit(X, y)
    fitted = cf.PrototypeCounterfactual("l1").fit(pipeline, X, y)
    result = fitted.explain(X[::6])
    assert result.valid.all() and result.info["certified"].all()
    scaled, final = pipeline[:-1].transform(X[::6]), pipeline[-1]
    away = (X[::6, None] - fitted.prototypes_.w.numpy()) @ fitted.prototypes_.omega.numpy().T
    np.testing.assert_allclose((away**2).sum(2), final.distances(scaled), rtol=1e-9)


def test_a_search_over_pipelines_works():
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), GLVQ(random_state=0)), {"glvq__n_prototypes": [1]}, cv=2
    )
    assert explained(search.fit(X, y), X[::30]).info["certified"].all()


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        make_pipeline(PCA(2), GLVQ()),
        make_pipeline(MinMaxScaler(clip=True), GLVQ()),
    ],
    ids=["linear", "pca", "clipping"],
)
def test_other_models_are_refused(model):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(
        TypeError, match=r"model must be a fitted prototype model .*GLVQ.*metric_.*got"
    ):
        cf.PrototypeCounterfactual().fit(model.fit(X, y), X, y)


def test_wrong_arguments_are_refused():
    model, X = small()
    with pytest.raises(ValueError, match="norm must be 'l1' or 'l2', got 'linf'"):
        cf.PrototypeCounterfactual("linf").fit(model, X)
    with pytest.raises(ValueError, match="trained on 5 features per row, but X has 4"):
        cf.PrototypeCounterfactual().fit(model, X[:, :4])
    with pytest.raises(ValueError, match="max_step"):
        series, Y = small(d=6)
        fitted = cf.PrototypeCounterfactual().fit(series, Y[:, None], modality="series")
        fitted.explain(Y[:, None], constraints=cf.Constraints(max_step=1.0))


def test_single_precision_gets_a_wider_margin():
    """A model that rounds to float32 still agrees to most; the gap says what that cost."""
    model, X = small(d=30, per_class=4, dtype=np.float32)
    result = explained(model, X)
    assert result.valid.all() and 1e-9 < result.info["gap"].max() < 1e-3


def test_coincident_prototypes_of_two_classes():
    """Where a prototype of another class sits on the target's only one, nothing is nearer to it."""
    model = PlainModel([[0.0, 0.0], [2.0, 0.0], [2.0, 0.0]], np.array(["a", "b", "c"]))
    result = explained(model, np.array([[0.1, 0.3]]), target="c")
    assert (
        result.status[0] == "infeasible" and "0 of 1 prototypes of class 'c'" in result.message[0]
    )


# --- local metrics


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_equal_local_metrics_give_the_global_solution(norm):
    rng = np.random.default_rng(5)
    omega = rng.normal(size=(5, 5))
    exact, X = small(omega=omega)
    local, _ = small(omega=np.repeat(omega[None], 6, 0))
    known, found = (
        explained(exact, X, norm),
        explained(local, X, norm, target=explained(exact, X, norm).target),
    )
    assert found.valid.all() and (found.info["lower_bound"] > 0).all()
    np.testing.assert_allclose(found.info["distance"], known.info["distance"], rtol=1e-4)
    assert (found.info["lower_bound"] <= known.info["distance"] + 1e-9).all()
    # In l1 the bound is that of l2; in l2 a single condition decides for most rows.
    assert found.info["certified"].any() == (norm == "l2")


@pytest.mark.parametrize("n_prototypes", [1, 2])
def test_bounds_of_local_metrics_hold(n_prototypes):
    """No sample of the ball below the bound is in the target class; most gaps are closed."""
    X, y = load_iris(return_X_y=True)
    model = LGMLVQ(n_prototypes, random_state=0).fit(X, y)
    result = explained(model, X[::7], reference=X)
    assert result.valid.all() and (result.info["gap"] >= -1e-9).all()
    assert result.info["certified"].mean() > 0.5
    rng = np.random.default_rng(0)
    direction = rng.normal(size=(20_000, 4))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    for x, target, bound in zip(result.X, result.target, result.info["lower_bound"], strict=True):
        inside = x + 0.999 * bound * direction
        assert (model.predict(inside) != target).all()


def test_local_metrics_end_where_no_small_change_helps():
    """Around the result, points that are a little nearer to x are not in the target class."""
    X, y = load_iris(return_X_y=True)
    model = LGMLVQ(random_state=0).fit(X, y)
    limits = cf.Constraints(lower=0.0, upper=8.0)
    result = explained(model, X[::10], constraints=limits, reference=X)
    assert result.valid.all() and result.X_cf.min() >= 0 and result.X_cf.max() <= 8
    rng = np.random.default_rng(0)
    for x, x_cf, target in zip(result.X, result.X_cf, result.target, strict=True):
        radius = np.linalg.norm(x_cf - x)
        near = x_cf + 0.01 * radius * rng.normal(size=(3000, 4))
        near = (
            x
            + (near - x) * np.minimum(1, 0.999 * radius / np.linalg.norm(near - x, axis=1))[:, None]
        )
        assert (model.predict(near.clip(0, 8)) != target).all()


# --- options


def test_k_counterfactuals_have_k_prototypes():
    model, X = small(per_class=3)
    result = explained(model, X, k=3)
    for i in range(len(X)):
        mine = result[result.source == i]
        assert (
            len(mine) == 3 and len(set(mine.info["prototype"].tolist())) == 3 and mine.valid.all()
        )
        assert (np.diff(mine.info["distance"]) >= -1e-9).all() and mine.info["certified"].all()
    more = explained(model, X[:1], k=5)
    assert len(more) == 3 and "3 of 3 prototypes of class" in more.message[0]


def test_confidence_of_two_classes_is_exact():
    """P ≥ 0.9 is one more linear condition on the distances."""
    model, X = small(n_classes=2, temperature=0.5)
    plain, firm = explained(model, X), explained(model, X, confidence=0.9)
    assert firm.info["certified"].all() and (firm.target_proba[:, 1] >= 0.9).all()
    assert firm.target_proba[:, 1].max() < 0.9 + 1e-6
    assert (firm.info["distance"] > plain.info["distance"]).all()


def test_confidence_of_more_classes_is_reached_with_little_more_than_needed():
    model, X = small(n_classes=4, temperature=0.5)
    firm = explained(model, X, confidence=0.8)
    reached = firm.target_proba[:, 1]
    assert firm.valid.all() and (reached >= 0.8).all() and reached.max() < 0.82
    assert (firm.info["lower_bound"] <= firm.info["distance"]).all()


def confident_by_cvxpy(model, x, target, norm, confidence):
    """The smallest distance over the target's prototypes, by the log-odds written out."""
    omega = np.eye(x.size) if model.omega is None else model.omega
    w, best = model.prototypes_ @ omega.T, np.inf
    log_odds = np.log(confidence / (1 - confidence))
    for j in np.flatnonzero(model.labels == target):
        z = cp.Variable(x.size)
        behind = []  # −(d_k − d_j)/T of the nearest prototype of each other class
        for label in np.unique(model.labels[model.labels != target]):
            own = [
                (2 * (w[k] - w[j]) @ omega @ z - w[k] @ w[k] + w[j] @ w[j]) / model.temperature_
                for k in np.flatnonzero(model.labels == label)
            ]
            behind.append(cp.max(cp.hstack(own)))
        limits = [cp.log_sum_exp(cp.hstack(behind)) + log_odds <= 0, cp.max(cp.hstack(behind)) <= 0]
        problem = cp.Problem(cp.Minimize(cp.norm(z - x, ORDER[norm])), limits)
        problem.solve(solver="CLARABEL")
        best = min(best, np.inf if problem.status.startswith("infeasible") else problem.value)
    return best


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize(("confidence", "with_metric"), [(0.8, True), (0.95, False), (0.35, False)])
def test_confidence_of_more_classes_is_exact(norm, confidence, with_metric):
    """Below one half too, where the confidence alone would not decide."""
    omega = np.random.default_rng(3).normal(size=(5, 5)) if with_metric else None
    model, X = small(n_classes=4, temperature=0.5, omega=omega)
    firm = explained(model, X, norm, confidence=confidence)
    assert firm.valid.all() and firm.info["certified"].all()
    assert (firm.target_proba[:, 1] >= confidence).all()
    expected = [
        confident_by_cvxpy(model, x, target, norm, confidence)
        for x, target in zip(X, firm.target, strict=True)
    ]
    np.testing.assert_allclose(firm.info["distance"], expected, rtol=1e-5)


def test_confidence_out_of_reach_is_told():
    model, X = small(d=2, n_classes=4, per_class=3, temperature=3.0)
    limits = cf.Constraints(lower=-3.0, upper=3.0)
    firm = explained(model, X, confidence=0.999, constraints=limits)
    short = firm.target_proba[:, 1] < 0.999
    assert firm.valid.all() and short.any() and not firm.info["certified"][short].any()
    assert all("below the 0.999 asked for" in message for message in firm.message[short])


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_confidence_is_sought_within_the_target_class_too(norm, n_classes):
    """An instance of the class, but not sure enough, moves on just until it is."""
    model, X = small(n_classes=n_classes, temperature=2.0)
    own = model.predict(X)
    before = model.predict_proba(X).max(1)
    confidence = float(np.median(before))
    result = explained(model, X, norm, target=own, confidence=confidence)
    unsure = before < confidence
    assert 0 < unsure.sum() < len(X)
    assert set(result.status[~unsure]) == {"already_target"}
    np.testing.assert_array_equal(result.X_cf[~unsure], X[~unsure])

    moved = result[unsure]
    reached = moved.target_proba[:, 1]
    assert moved.valid.all() and (moved.status == "valid").all() and (reached >= confidence).all()
    assert (moved.info["distance"] > 0).all()
    np.testing.assert_allclose(moved.info["distance"], lengths(moved, norm), atol=1e-12)
    assert (moved.info["lower_bound"] <= moved.info["distance"] + 1e-12).all()
    if n_classes == 2:
        assert moved.info["certified"].all() and reached.max() < confidence + 1e-6


@pytest.mark.parametrize("k", [1, 2])
def test_an_instance_of_the_class_stays_where_the_confidence_is_out_of_reach(k):
    model, X = small(d=2, n_classes=4, per_class=3, temperature=30.0)
    limits = cf.Constraints(lower=X.min(), upper=X.max())
    own = model.predict(X)
    result = explained(model, X, target=own, confidence=0.99, constraints=limits, k=k)
    first = np.unique(result.source, return_index=True)[1]
    np.testing.assert_array_equal(result.X_cf[first], X)
    assert (result.info["distance"][first] == 0).all() and not result.info["certified"].any()
    assert result.valid.all() and (result.status == "valid").all()
    if k == 1:
        assert all("below the 0.99 asked for" in message for message in result.message)


def test_no_question_is_needed():
    """With a budget for the verdicts before and after only, the answer is the same."""
    model, X = small()
    tight = explained(model, X, budget=cf.Budget(calls=4 * len(X)))
    np.testing.assert_array_equal(tight.X_cf, explained(model, X).X_cf)
    assert tight.calls.sum() <= 4 * len(X)


def test_shapes_of_series_and_images():
    rng = np.random.default_rng(0)
    for shape in ((2, 6), (1, 4, 4)):
        w = rng.normal(size=(4, *shape))
        X = rng.normal(size=(5, *shape))
        result = explained(PlainModel(w, np.array(["a", "a", "b", "b"])), X)
        assert (
            result.X_cf.shape == X.shape and result.info["certified"].all() and result.valid.all()
        )


def test_median_models_are_exact_too():
    """Their distance is not squared: the decision is the same, a confidence is not certified."""
    X, y = load_iris(return_X_y=True)
    model = MedianLVQ(2).fit(X, y)
    explainer = cf.PrototypeCounterfactual().fit(model, X, y)
    exact = explainer.explain(X[:20], target=1)
    assert exact.valid.all() and exact.info["certified"].all()
    assert not explainer.explain(X[:5], target=1, confidence=0.7).info["certified"].any()
    assert cf.as_classifier(model).differentiable
