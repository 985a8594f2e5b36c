"""Glacier: the nearest counterfactual, and metrics that steer it."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

import contrafact as cf

ITALY = cf.load_dataset("ItalyPowerDemand")
X = ITALY.X_test[np.random.default_rng(0).permutation(len(ITALY.X_test))[:30]]


def explain(model, **params):
    return cf.Glacier(**params).fit(model, ITALY.X_train, ITALY.y_train).explain(X)


def l2(result):
    return np.linalg.norm(result.delta.reshape(len(result), -1), axis=1)


def test_on_a_linear_model_it_finds_the_projection_onto_the_half_space(linear):
    """One channel: s is one number, so the metric is Euclidean and the minimum is |w·x + b| /
    ‖w‖."""
    result = explain(linear)
    w, b = linear.coef_[0], linear.intercept_[0]
    exact = np.abs(X[:, 0] @ w + b) / np.linalg.norm(w)
    assert result.valid.all() and not result.info["fallback"].any()
    assert (l2(result) <= 1.05 * exact + 1e-6).all()


def test_sliding_along_the_boundary_pays(network):
    first_crossing, nearest = explain(network, weights="unconstrained"), explain(network)
    assert first_crossing.valid.all() and nearest.valid.all()
    assert l2(nearest).mean() < l2(first_crossing).mean()
    assert (
        l2(nearest) < l2(cf.LineSearch().fit(network, ITALY.X_train, ITALY.y_train).explain(X))
    ).all()


@pytest.mark.parametrize("weights", ["local", "global"])
def test_unimportant_segments_change_more_than_important_ones(network, weights):
    steered, free = explain(network, weights=weights), explain(network)
    assert steered.valid.all()
    cost = steered.info["weights"].reshape(len(X), -1)
    dear, cheap = (
        cost > np.quantile(cost, 0.7, axis=1, keepdims=True),
        cost < np.quantile(cost, 0.3, axis=1, keepdims=True),
    )
    moved, freely = (np.abs(r.delta.reshape(len(X), -1)) for r in (steered, free))
    assert moved[cheap].mean() > moved[dear].mean()
    assert moved[dear].mean() < freely[dear].mean()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("tau", 0.9),
        ("learning_rate", 0.1),
        ("max_iter", 3),
        ("patience", 2),
        ("weights", "local"),
        ("weights", "global"),
    ],
)
def test_every_option_matters(network, option, value):
    assert not np.array_equal(explain(network).X_cf, explain(network, **{option: value}).X_cf)


@pytest.mark.parametrize(("option", "value"), [("strength", 2.0), ("n_segments", 4)])
def test_every_option_of_local_weights_matters(network, option, value):
    assert not np.array_equal(
        explain(network, weights="local").X_cf,
        explain(network, weights="local", **{option: value}).X_cf,
    )


def test_units_do_not_matter(linear):
    def scaled(X):
        return linear.predict_proba(X.reshape(len(X), -1) / 1e3)

    plain = cf.Glacier(max_iter=20).fit(
        cf.as_classifier(
            lambda X: linear.predict_proba(X.reshape(len(X), -1)), classes=linear.classes_
        ),
        ITALY.X_train,
        ITALY.y_train,
    )
    large = cf.Glacier(max_iter=20).fit(
        cf.as_classifier(scaled, classes=linear.classes_), 1e3 * ITALY.X_train, ITALY.y_train
    )
    np.testing.assert_allclose(
        large.explain(1e3 * X[:8]).X_cf, 1e3 * plain.explain(X[:8]).X_cf, rtol=1e-5, atol=1e-2
    )


def test_models_without_gradients_are_turned_and_say_how():
    forest = RandomForestClassifier(30, random_state=0).fit(ITALY.X_train[:, 0], ITALY.y_train)
    result = explain(forest, max_iter=10)
    assert result.valid.all()
    line = cf.LineSearch().fit(forest, ITALY.X_train, ITALY.y_train).explain(X)
    fallback = result.info["fallback"]
    np.testing.assert_allclose(result.X_cf[fallback], line.X_cf[fallback])


def test_k_counterfactuals_differ(network):
    result = cf.Glacier().fit(network, ITALY.X_train, ITALY.y_train).explain(X[:5], k=3)
    assert len(result) == 15 and result.valid.all()


def test_unknown_weights_are_refused(network):
    with pytest.raises(ValueError, match=r"weights.*'rigid'"):
        explain(network, weights="rigid")


@pytest.mark.parametrize("tau", [0.5, 0.7, 0.9])
def test_tau_is_kept(linear, tau):
    """The edit shrinks to the smallest multiple at P(target) >= tau, not to the decision
    boundary."""
    X = ITALY.X_test[:20]
    result = cf.Glacier(tau=tau).fit(linear, ITALY.X_train, ITALY.y_train).explain(X)
    p = result.target_proba[:, 1]
    assert result.valid.all() and (p >= tau).all() and (p < tau + 0.02).all()
    refined = cf.Glacier(tau=tau).fit(linear, ITALY.X_train, ITALY.y_train).explain(X, refine=True)
    assert (refined.target_proba[:, 1] >= tau).all()
