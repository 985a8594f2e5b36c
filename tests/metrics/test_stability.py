"""Stability, on models whose answers can be worked out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.engine import Tags
from contrafact.explainers.support.explainer import Explainer
from contrafact.metrics import evaluate


def test_noise_validity_by_hand(changes):
    # b from 0 on; the reference's spread is 1, so the noise is 0.05: 0.05 away is one standard
    # deviation.
    rng = np.random.default_rng(0)
    X = np.zeros((300, 2))
    X_cf = np.stack([np.repeat([0.05, 1.0, -1.0], 100), rng.random(300)], 1)
    result, model = changes(lambda x: x[:, 0] >= 0, X, X_cf)
    found = evaluate(result, "noise_validity", [[-1.0, 0], [1.0, 0]], model=model)["noise_validity"]
    found = found.to_numpy().reshape(3, 100)
    assert found[0].mean() == pytest.approx(norm.cdf(1), abs=0.025)
    assert (found[1] == 1).all() and (found[2] == 0).all()


def test_transfer_validity_by_hand(changes):
    result, _ = changes(lambda x: x[:, 0] >= 0.5, np.zeros((2, 2)), [[1.0, 0], [1, 1]])
    frame = evaluate(
        result, ["valid", "transfer_validity"], other_model=lambda x: np.eye(2)[x[:, 1].astype(int)]
    )
    assert frame[["valid", "transfer_validity"]].to_numpy().tolist() == [[1, 0], [1, 1]]


class Threefold(Explainer):
    """x' = 3x, whatever the model says."""

    tags = Tags(reference=False)

    def _explain(self, tasks):
        return tasks.candidates(3 * tasks.x)


def test_lipschitz_by_hand(changes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4, 3))
    result, model = changes(lambda x: x[:, 0] > 100, X, 3 * X)
    explainer = Threefold().fit(cf.as_classifier(model, classes=["a", "b"]), X)
    found = evaluate(result, "lipschitz", X, explainer=explainer)["lipschitz"]
    np.testing.assert_allclose(found, 3, rtol=1e-9)  # failures are moved as well
    still = evaluate(result, "lipschitz", np.zeros((2, 3)), explainer=explainer)["lipschitz"]
    assert still.isna().all()


class Aimed(Explainer):
    """x' = x times the number of the target class."""

    tags = Tags(reference=False)

    def _explain(self, tasks):
        return tasks.candidates(tasks.x * tasks.target[:, None])


def test_lipschitz_asks_for_the_same_class():
    X = np.random.default_rng(0).normal(size=(3, 2))
    model = cf.as_classifier(
        lambda x: np.tile([0.6, 0.3, 0.1], (len(x), 1)), classes=["a", "b", "c"]
    )
    explainer = Aimed().fit(model, X)
    for label, number in (("b", 1), ("c", 2)):
        result = explainer.explain(X, target=label)
        found = evaluate(result, "lipschitz", X, explainer=explainer)["lipschitz"]
        np.testing.assert_allclose(found, number)


def test_lipschitz_of_a_neighbor_is_a_step():
    """The nearest unlike neighbor stays the same one, or jumps."""
    X = np.array([[0.0], [1.0], [10.0]])
    y = np.array(["a", "a", "b"])
    model = LogisticRegression().fit(X, y)
    explainer = cf.NearestUnlike().fit(model, X, y)
    result = explainer.explain(X[:2], target="b")
    assert evaluate(result, "lipschitz", X, explainer=explainer)["lipschitz"].tolist() == [0, 0]
