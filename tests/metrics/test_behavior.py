"""What the model does between x and x', on models whose answers can be worked out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.metrics import evaluate
from contrafact.metrics.behavior import PerturbationAUC, PerturbationAUCReversed


def test_controllability_by_hand(changes):
    # Ten edits, and b from eight on: of 1, 2, 3, 4, 5 taken back, three undo it. The second never
    # flipped.
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


def test_rounding_is_no_edit_to_take_back_or_to_replace(changes):
    """Values that moved by rounding alone are not among those reverted or replaced."""
    rng = np.random.default_rng(0)
    X_cf = np.concatenate([1 + rng.random((4, 10)), np.zeros((4, 40))], axis=1)
    clean, model = changes(lambda x: x[:, :10].mean(1) / 3, np.zeros((4, 50)), X_cf)
    noisy, _ = changes(lambda x: x[:, :10].mean(1) / 3, np.zeros((4, 50)), X_cf + 1e-9)
    saliency = rng.random((4, 50))
    for name in ("perturbation_auc", "perturbation_auc_reversed"):
        scores = [
            evaluate(replace(result, info={"saliency": saliency}), name, model=model)[name]
            for result in (clean, noisy)
        ]
        np.testing.assert_allclose(*scores, rtol=1e-6)
    for result in (clean, noisy):
        decides = lambda x: np.eye(2)[(x[:, :10] > 0.5).all(1).astype(int)]  # noqa: E731
        flips = replace(
            result,
            labels=np.repeat("a", 4),
            cf_labels=np.repeat("b", 4),
            valid=np.ones(4, dtype=bool),
            status=np.repeat("valid", 4),
        )
        found = evaluate(flips, "controllability", model=decides)["controllability"]
        assert (found == 1).all()  # every reversal takes back one of the ten that decide
