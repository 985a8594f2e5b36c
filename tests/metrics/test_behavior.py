"""What the model does between and around x and x', on models whose answers can be worked out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.engine import Candidates, Tags
from contrafact.explainers.support.explainer import Explainer
from contrafact.metrics import evaluate, inputs
from contrafact.metrics.behavior import PerturbationAUC, PerturbationAUCReversed


def test_redundancy_by_hand(changes):
    # Only the first value decides. Three of four edits can be given back; a failure's edits serve nothing.
    X_cf = np.array([[1.0, 1, 1, 1], [1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]])
    result, model = changes(lambda x: x[:, 0] >= 0.5, np.zeros((4, 4)), X_cf)
    found = evaluate(result, "redundancy", model=model)["redundancy"]
    np.testing.assert_array_equal(found, [3 / 4, 0, 1, np.nan])
    failures = evaluate(result[[2, 3]], "redundancy", model=model)["redundancy"]
    np.testing.assert_array_equal(failures, [1, np.nan])


def test_controllability_by_hand(changes):
    # Ten edits, and b from eight on: of 1, 2, 3, 4, 5 taken back, three undo it. The second never flipped.
    X_cf = np.array([np.ones(10), [1.0] * 5 + [0.0] * 5])
    result, model = changes(lambda x: x.sum(1) >= 7.5, np.zeros((2, 10)), X_cf)
    np.testing.assert_allclose(
        evaluate(result, "controllability", model=model)["controllability"], [3 / 5, 0]
    )


def test_controllability_draws_evenly(changes):
    # One of ten edits decides, so a draw of m of them hits it in m cases of ten: 0.3 on average.
    rng = np.random.default_rng(0)
    X = np.zeros((300, 10))
    X_cf = 1 + rng.random((300, 10))
    result, model = changes(lambda x: x[:, 3] >= 0.5, X, X_cf)
    found = evaluate(result, "controllability", model=model)["controllability"]
    assert found.mean() == pytest.approx(0.3, abs=0.02)
    assert found.std() > 0.05


def test_perturbation_auc_by_hand(changes):
    weight = np.array([0.4, 0.3, 0.2, 0.1])
    result, model = changes(
        lambda x: x @ weight, np.zeros((3, 4)), [[1.0] * 4, [1.0] * 4, [0, 0, 1, 1]]
    )
    nowhere = np.full(4, np.nan)
    result = replace(result, info={"saliency": np.stack([weight, nowhere, weight])})

    class Forward(PerturbationAUC):
        name, n_steps = "forward", 4

    class Backward(PerturbationAUCReversed):
        name, n_steps = "backward", 4

    frame = evaluate(result, [Forward(), Backward()], model=model)
    # 0, .4, .7, .9, 1 and 0, .1, .3, .6, 1
    np.testing.assert_allclose(frame["forward"][:2], [0.625, np.nan])
    np.testing.assert_allclose(frame["backward"][:2], [0.375, np.nan])
    # Two edits in four steps, rounded to even: none, none, one, two, two.
    assert frame["forward"][2] == pytest.approx((0 / 2 + 0 + 0.2 + 0.3 + 0.3 / 2) / 4)
    many = evaluate(result, ["perturbation_auc", "perturbation_auc_reversed"], model=model)
    assert many["perturbation_auc"][0] > 0.6 > 0.4 > many["perturbation_auc_reversed"][0]


def test_a_map_over_time_serves_all_channels(changes):
    rng = np.random.default_rng(0)
    X, X_cf, time = np.zeros((2, 3, 5)), rng.random((2, 3, 5)), rng.random((2, 5))
    weight = rng.random(15)
    result, model = changes(lambda x: x @ weight / weight.sum(), X, X_cf, modality="series")
    short = evaluate(replace(result, info={"importance": time}), "perturbation_auc", model=model)
    full = np.repeat(time[:, None], 3, axis=1)
    long = evaluate(replace(result, info={"saliency": full}), "perturbation_auc", model=model)
    np.testing.assert_array_equal(short["perturbation_auc"], long["perturbation_auc"])


def test_cels_brings_its_map():
    data = cf.load_dataset("ItalyPowerDemand")
    model = LogisticRegression(max_iter=500).fit(
        data.X_train.reshape(len(data.X_train), -1), data.y_train
    )
    explainer = cf.CELS(max_iter=60).fit(model, data.X_train, data.y_train)
    result = explainer.explain(data.X_test[:6])
    frame = evaluate(result, ["perturbation_auc", "perturbation_auc_reversed"], explainer=explainer)
    assert frame["perturbation_auc"].mean() > frame["perturbation_auc_reversed"].mean()


def test_noise_validity_by_hand(changes):
    # b from 0 on; the reference's spread is 1, so the noise is 0.05: 0.05 away is one standard deviation.
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


def test_another_model_may_order_its_classes_otherwise(changes):
    result, _ = changes(lambda x: x[:, 0] >= 0.5, np.zeros((2, 1)), [[1.0], [0.0]])
    backwards = cf.as_classifier(lambda x: np.eye(2)[1 - (x[:, 0] >= 0.5)], classes=["b", "a"])
    assert evaluate(result, "transfer_validity", other_model=backwards)[
        "transfer_validity"
    ].tolist() == [
        1,
        0,
    ]
    strange = cf.as_classifier(lambda x: np.eye(2)[x[:, 0].astype(int)], classes=["a", "x"])
    with pytest.raises(
        ValueError, match=r"other_model does not know the class 'b'\. Its classes: .*'x'"
    ):
        evaluate(result, "transfer_validity", other_model=strange)


class Threefold(Explainer):
    """x' = 3x, whatever the model says."""

    tags = Tags(reference=False)

    def _explain(self, batch):
        return Candidates(3 * batch.x, batch.rows)


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

    def _explain(self, batch):
        return Candidates(batch.x * batch.target[:, None], batch.rows)


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


def test_the_model_is_asked_in_blocks(changes, monkeypatch):
    rng = np.random.default_rng(0)
    result, model = changes(lambda x: x.mean(1), rng.random((7, 4)), rng.random((7, 4)))
    names = ["controllability", "noise_validity"]
    reference = rng.random((5, 4))
    whole = evaluate(result, names, reference, model=model)
    monkeypatch.setattr(inputs, "MAX_ELEMENTS", 1)
    parts = evaluate(result, names, reference, model=model)
    np.testing.assert_array_equal(whole[names], parts[names])
