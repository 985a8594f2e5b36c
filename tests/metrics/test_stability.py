"""Stability, on models whose answers can be worked out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.engine import Tags
from contrafact.explainers.support.explainer import Explainer
from contrafact.metrics import NoiseSurvival, aggregate, evaluate


def test_noise_survival_by_hand(changes):
    # b from 0 on; the reference's spread is 1, so the noise is 0.05: 0.05 away is one standard
    # deviation.
    rng = np.random.default_rng(0)
    X = np.zeros((300, 2))
    X_cf = np.stack([np.repeat([0.05, 1.0, -1.0], 100), rng.random(300)], 1)
    result, model = changes(lambda x: x[:, 0] >= 0, X, X_cf)
    spread_one = [[-1.0, 0], [1.0, 0]]
    found = evaluate(result, "noise_survival", spread_one, model=model)["noise_survival"]
    found = found.to_numpy().reshape(3, 100)
    assert found[0].mean() == pytest.approx(norm.cdf(1), abs=0.025)
    assert (found[1] == 1).all() and (found[2] == 0).all()

    larger = evaluate(result, NoiseSurvival(sigma=0.5), spread_one, model=model)["noise_survival"]
    larger = larger.to_numpy().reshape(3, 100)
    assert larger[0].mean() == pytest.approx(norm.cdf(0.1), abs=0.025)
    assert larger[1].mean() == pytest.approx(norm.cdf(2), abs=0.025)


def test_the_old_name_of_noise_survival(changes):
    result, model = changes(lambda x: x[:, 0] >= 0, [[-1.0]], [[0.5]])
    with pytest.warns(DeprecationWarning, match="'noise_validity' is now 'noise_survival'"):
        scores = evaluate(result, "noise_validity", [[-1.0], [1.0]], model=model)
    assert scores["noise_survival"].tolist() == [1.0]
    old_table = scores.rename(columns={"noise_survival": "noise_validity"})
    assert aggregate(old_table).loc["noise_validity", "direction"] == "max"


@pytest.mark.parametrize("sigma", [0, -0.1, float("nan"), "5 %"])
def test_noise_needs_a_size(sigma):
    with pytest.raises((ValueError, TypeError), match="sigma"):
        NoiseSurvival(sigma)


def test_survival_by_hand(changes):
    """Three thresholds on the first value; one is a model whose classes come in another order."""
    result, _ = changes(lambda x: x[:, 0] >= 0.5, np.zeros((4, 1)), [[0.3], [0.6], [0.8], [1.0]])

    def from_on(threshold):
        return lambda x: np.eye(2)[(x[:, 0] >= threshold).astype(int)]

    backwards = cf.as_classifier(lambda x: from_on(0.9)(x)[:, ::-1], classes=["b", "a"])
    scores = evaluate(result, "survival", other_models=[from_on(0.5), from_on(0.7), backwards])
    np.testing.assert_allclose(scores["survival"], [0, 1 / 3, 2 / 3, 1])
    same = result.evaluate(["survival"], other_models=(from_on(0.5), from_on(0.7), backwards))
    assert same["survival"].equals(scores["survival"])


def test_survival_needs_models_that_know_the_classes(changes):
    result, model = changes(lambda x: x[:, 0] >= 0.5, np.zeros((1, 1)), np.ones((1, 1)))
    with pytest.raises(ValueError, match=r"'survival' needs more .* pass other_models=\[\.\.\.\]"):
        evaluate(result, "survival", other_models=[])
    with pytest.raises(TypeError, match="other_models must be a list of models, got function"):
        evaluate(result, "survival", other_models=model)
    strange = cf.as_classifier(model, classes=["x", "y"])
    with pytest.raises(ValueError, match=r"other_models\[1\] does not know the class 'b'"):
        evaluate(result, "survival", other_models=[model, strange])


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
