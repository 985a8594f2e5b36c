"""Scores against values worked out by hand; failures count like any other row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from contrafact.metrics import Metric, evaluate, list_metrics

NAN = float("nan")

REFERENCE_FREE = {
    "valid": [1, 0, 0],
    "flipped": [1, 0, 0],
    "target_confidence": [0.75, 0.375, 0],
    "confidence_gain": [0.5, 0.25, 0],
    "l1": [7, 5, 0],
    "l2": [5, 5**0.5, 0],
    "linf": [4, 1, 0],
    "mae": [7 / 8, 5 / 8, 0],
    "rmse": [(25 / 8) ** 0.5, (5 / 8) ** 0.5, 0],
    "proximity": [5 / 4, 5**0.5 / 4, 0],
    "dtw": [5, 5**0.5, 0],
    "sparsity": [2 / 8, 5 / 8, 0],
    "unchanged_fraction": [6 / 8, 3 / 8, 1],
    "compactness": [6 / 8, 3 / 8, 1],
    "segments": [2, 3, 0],
    "segment_length": [1, 5 / 3, NAN],
    "contiguity": [0, 2 / 4, NAN],
    "shortest_edit": [1, 1, NAN],
    "gini": [43 / 56, 15 / 40, NAN],
    "hoyer": [(8**0.5 - 7 / 5) / (8**0.5 - 1), (8**0.5 - 5**0.5) / (8**0.5 - 1), NAN],
    "diversity": [NAN, NAN, NAN],
    "coverage": [1, 0, 0],
    "seconds": [0.5, 0.5, 0.5],
    "calls": [7, 8, 9],
}


def test_by_hand(three):
    frame = evaluate(three)
    assert list(frame.columns) == ["source", "status", *REFERENCE_FREE]
    assert frame["status"].tolist() == ["valid", "invalid", "invalid"]
    for name, expected in REFERENCE_FREE.items():
        np.testing.assert_allclose(frame[name], expected, rtol=1e-12, err_msg=name)


def test_torch_gives_the_same(three):
    tensors = replace(three, X=torch.from_numpy(three.X), X_cf=torch.from_numpy(three.X_cf))
    reference = (torch.ones(6, 2, 4), torch.tensor([0, 1, 0, 1, 0, 1]))
    numbers = {
        "classes": np.arange(2),
        "target": np.ones(3, int),
        "labels": np.zeros(3, int),
        "cf_labels": np.array([1, 0, 0]),
    }
    expected = evaluate(
        replace(three, **numbers), reference=tuple(part.numpy() for part in reference)
    )
    pd.testing.assert_frame_equal(
        evaluate(replace(tensors, **numbers), reference=reference), expected
    )


def test_lifted_series_equal_one_channel(make):
    rng = np.random.default_rng(0)
    X, reference = rng.normal(size=(2, 5)), rng.normal(size=(9, 5))
    X_cf = X + np.array([[0, 1, 0, 1, 1], [0, 0, 0, 0, 0]])
    p = [[0.9, 0.1], [0.9, 0.1]]
    y = np.array(["a", "b", "b"] * 3)
    flat = evaluate(make(X, X_cf, p, p), reference=(reference, y))
    deep = evaluate(make(X[:, None], X_cf[:, None], p, p), reference=(reference[:, None], y))
    mixed = evaluate(make(X, X_cf, p, p), reference=(reference[:, None], y))
    pd.testing.assert_frame_equal(flat, deep)
    pd.testing.assert_frame_equal(flat, mixed)
    assert flat["segments"].tolist() == [2, 0]


def test_empty_result(three):
    frame = evaluate(
        three[:0],
        reference=(np.zeros((6, 2, 4)), ["a", "b"] * 3),
        model=lambda X: np.tile([1.0, 0.0], (len(X), 1)),
        other_model=lambda X: np.tile([1.0, 0.0], (len(X), 1)),
    )
    assert len(frame) == 0
    assert set(frame.left_out) == {
        "autoencoder_residual",
        "autoencoder_residual_increase",
        "feature_diversity",
        "lipschitz",
        "perturbation_auc",
        "perturbation_auc_reversed",
        "survival",
        "visible_change",
    }


def test_all_that_can_be_computed_and_why_not_the_rest(three):
    rows = np.random.default_rng(0).normal(size=(6, 2, 4))
    needs = (
        list_metrics()
        .set_index("name")["needs"]
        .str.split(", ")
        .map(lambda parts: set(parts) - {""})
    )
    for passed, available in [
        ({}, set()),
        ({"reference": rows}, {"reference"}),
        ({"reference": (rows, ["a", "b"] * 3)}, {"reference", "labels"}),
    ]:
        frame = evaluate(three, **passed)
        met = needs.index[needs.map(lambda parts, available=available: parts <= available)]
        met = met.difference(["feature_diversity", "visible_change"])  # not for series
        assert set(frame.columns) == {"source", "status", *met}
        assert set(frame.left_out) == set(needs.index) - set(met)
        assert set(frame.metrics) == set(met)
    assert frame.left_out["redundancy"] == (
        "needs more than the result: pass model=, the model that was explained"
    )
    assert set(evaluate(three).columns) == {"source", "status", *REFERENCE_FREE}


def test_the_result_passes_everything_on(three):
    model = lambda X: np.tile([1.0, 0.0], (len(X), 1))  # noqa: E731
    frame = three.evaluate(["transfer_validity", "redundancy"], model=model, other_model=model)
    np.testing.assert_array_equal(frame["transfer_validity"], [0, 0, 0])


def test_instances_and_names(three):
    class Constant(Metric):
        """Always two."""

        name, direction = "constant", "max"

        def compute(self, result, inputs):
            return np.full(len(result), 2)

    frame = evaluate(three, ["l1", Constant()])
    assert list(frame.columns) == ["source", "status", "l1", "constant"]
    assert frame["constant"].tolist() == [2.0, 2.0, 2.0]
    assert list(three.evaluate([Constant()]).columns) == ["source", "status", "constant"]


class Short(Metric):
    name, direction = "short", "max"

    def compute(self, result, inputs):
        return np.zeros(1)


class Reserved(Metric):
    """A name that benchmark tables have."""

    name, direction = "accuracy", "max"

    def compute(self, result, inputs):
        return np.zeros(len(result))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((["sparsty"],), ValueError, "'sparsty' is unknown. Did you mean 'sparsity'"),
        ((3,), TypeError, "metrics must be names"),
        ((["l3"],), ValueError, "'l3' is unknown. Known: valid, flipped"),
        (("knn_distance",), ValueError, "'knn_distance' needs.*pass reference=X,"),
        (("relative_distance",), ValueError, r"pass reference=\(X, y\)"),
        (("relative_distance", np.ones((2, 2, 4))), ValueError, r"pass reference=\(X, y\)"),
        (
            ("redundancy",),
            ValueError,
            "'redundancy' needs.*pass model=, the model that was explained",
        ),
        (("lipschitz",), ValueError, "pass explainer=, the fitted explainer and reference=X,"),
        (("perturbation_auc",), ValueError, 'model=.*info has "saliency"'),
        (
            ("autoencoder_residual", np.ones((2, 2, 4))),
            ValueError,
            "pass autoencoder=, a fitted Autoencoder",
        ),
        (("lof", np.full((2, 2, 4), NAN)), ValueError, "reference.*NaN"),
        ((["l1", "l1"],), ValueError, "Two columns would be called 'l1'"),
        ((Reserved(),), ValueError, "can't be called 'accuracy'.*Reserved: accuracy, cell_status"),
        (([3],), TypeError, "metrics must be names or instances of Metric, .*got 3"),
        ((Short(),), ValueError, r"'short' gave shape \(1,\) for 3"),
        (
            ("knn_distance", np.ones((5, 3, 4))),
            ValueError,
            r"shape \(5, 3, 4\).*accepted is \(m, 2, 4\)",
        ),
        (("knn_distance", np.ones((0, 2, 4))), ValueError, "at least one row"),
        (("knn_distance", (1, 2, 3)), ValueError, "tuple of 3"),
        ((None, (np.ones((2, 2, 4)), ["a"])), ValueError, r"y of the reference has shape \(1,\)"),
        (
            (None, (np.ones((2, 2, 4)), [0, 1])),
            ValueError,
            "labels of the reference are 0, 1; the classes.*'a', 'b'",
        ),
    ],
)
def test_refuses(three, arguments, error, words):
    with pytest.raises(error, match=words):
        evaluate(three, *arguments)


def test_list_says_direction_needs_and_meaning():
    frame = list_metrics().set_index("name")
    assert set(frame["direction"]) == {"min", "max"}
    assert frame.loc["sparsity", ["direction", "needs", "meaning"]].tolist() == [
        "min",
        "",
        "Fraction of the values that changed by more than rounding.",
    ]
    assert frame.loc["relative_distance", "needs"] == "labels, reference"
    assert frame["meaning"].str.len().min() > 5
    assert frame.index.is_unique


def test_result_is_not_touched(three):
    three.X.setflags(write=False)
    three.X_cf.setflags(write=False)
    before = evaluate(three)
    pd.testing.assert_frame_equal(evaluate(three), before)
