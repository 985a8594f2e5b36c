"""Metrics against values worked out by hand; failures count like any other row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from contrafact.metrics import Metric, evaluate, list_metrics
from contrafact.metrics.regions import count_regions, runs

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
    "dtw": [5, 5**0.5, 0],
    "sparsity": [2 / 8, 5 / 8, 0],
    "unchanged_fraction": [6 / 8, 3 / 8, 1],
    "segments": [2, 3, 0],
    "segment_length": [1, 5 / 3, NAN],
    "contiguity": [0, 2 / 4, NAN],
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
    numbers = {"classes": np.arange(2), "target": np.ones(3, int), "labels": np.zeros(3, int)}
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


def test_float32_distances_are_not_rounded_twice(make):
    X = np.full((1, 3), 16777216.0, dtype=np.float32)
    X_cf = X + np.float32(2)
    frame = evaluate(make(X, X_cf, [[1, 0]], [[0, 1]], modality="row"), ["l1", "l2"])
    assert frame[["l1", "l2"]].to_numpy().tolist() == [[6, 12**0.5]]


def test_flipped_is_not_valid(make):
    X = np.zeros((3, 1, 2))
    result = make(
        X,
        X + 1,
        [[1, 0, 0]] * 3,
        [[0, 0, 1], [1, 0, 0], [NAN, NAN, NAN]],
        classes=["a", "b", "c"],
        target=["b"] * 3,
    )
    frame = evaluate(
        replace(result, cf_labels=np.array(["c", "a", "b"])),
        ["valid", "flipped", "target_confidence"],
    )
    assert frame["valid"].tolist() == [0, 0, 0]
    # The third was never answered: whatever class stands there is nobody's verdict.
    assert frame["flipped"].tolist() == [1, 0, 0]
    np.testing.assert_array_equal(frame["target_confidence"], [0, 0, NAN])


@pytest.mark.parametrize(
    ("mask", "expected"),
    [("0000", []), ("1111", [(0, 4)]), ("1011", [(0, 1), (2, 4)]), ("0110", [(1, 3)]), ("", [])],
)
def test_runs(mask, expected):
    assert runs(np.array([bit == "1" for bit in mask], dtype=bool)) == expected


@given(npst.arrays(bool, st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 12))))
@settings(max_examples=50, deadline=None)
def test_counting_agrees_with_listing(mask):
    assert count_regions(mask, "series").tolist() == [
        sum(len(runs(channel)) for channel in row) for row in mask
    ]


def test_image_regions_touch_at_sides_over_all_channels():
    changed = np.zeros((2, 2, 3, 4), dtype=bool)
    changed[0, 0, 0, 0] = changed[0, 1, 1, 0] = (
        True  # one region: they touch, in different channels
    )
    changed[0, 0, 2, 1] = True  # a corner is not a side
    assert count_regions(changed, "image").tolist() == [2, 0]
    assert count_regions(changed[:, 0, :, 0], "row").tolist() == [1, 0]


def test_economy_of_images(make):
    X = np.zeros((2, 2, 3, 4))
    X_cf = X.copy()
    X_cf[0, 0, 0, 0] = X_cf[0, 1, 1, 0] = X_cf[0, :, 2, 1] = (
        1  # two that touch, and one at a corner
    )
    p = [[1, 0]] * 2
    frame = evaluate(
        make(X, X_cf, p, p, modality="image"), ["segments", "segment_length", "contiguity"]
    )
    np.testing.assert_array_equal(frame.iloc[:, 2:], [[2, 3 / 2, 1 / 2], [0, NAN, NAN]])


def test_concentration_from_one_value_to_all(make):
    X_cf = np.array([[0, 0, -2, 0], [3, -3, 3, 3.0]])
    p = [[1, 0]] * 2
    frame = evaluate(make(np.zeros((2, 4)), X_cf, p, p, modality="row"), ["gini", "hoyer"])
    np.testing.assert_allclose(frame.iloc[:, 2:], [[3 / 4, 1], [0, 0]])
    one = evaluate(
        make(np.zeros((1, 1)), np.ones((1, 1)), p[:1], p[:1], modality="row"), ["gini", "hoyer"]
    )
    np.testing.assert_array_equal(one.iloc[:, 2:], [[0, NAN]])


def test_dtw_forgives_a_shift_and_never_exceeds_l2(make):
    rng = np.random.default_rng(0)
    X = np.vstack([[0, 1, 0, 0, 0], rng.normal(size=(20, 5))])
    X_cf = np.vstack([[0, 0, 0, 1, 0], rng.normal(size=(20, 5))])
    p = [[1, 0]] * 21
    frame = evaluate(make(X, X_cf, p, p), ["dtw", "l2"])
    assert frame.loc[0, ["dtw", "l2"]].tolist() == [0, 2**0.5]
    assert (frame["dtw"] <= frame["l2"] + 1e-12).all()


def test_relative_distance_by_hand(make):
    X = np.zeros((4, 2))
    X_cf = np.array([[3.0, 4.0], [0.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    classes, target = ["a", "b", "c", "d"], ["b", "b", "c", "d"]
    p = np.eye(4)[[0] * 4]
    result = make(X, X_cf, p, p, classes=classes, target=target, modality="row")
    reference = np.array([[6.0, 8.0], [30.0, 40.0], [0.1, 0.0], [0.0, 0.0]])
    scores = evaluate(result, "relative_distance", (reference, ["b", "b", "a", "c"]))[
        "relative_distance"
    ]
    # c has a reference row equal to the instance, d has none: undefined.
    np.testing.assert_array_equal(scores, [0.5, 0, NAN, NAN])


def test_empty_result(three):
    frame = evaluate(
        three[:0],
        reference=(np.zeros((6, 2, 4)), ["a", "b"] * 3),
        model=lambda X: np.tile([1.0, 0.0], (len(X), 1)),
        other_model=lambda X: np.tile([1.0, 0.0], (len(X), 1)),
    )
    assert len(frame) == 0
    assert set(frame.attrs["left_out"]) == {
        "autoencoder_residual",
        "autoencoder_residual_increase",
        "lipschitz",
        "perturbation_auc",
        "perturbation_auc_reversed",
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
        assert set(frame.columns) == {"source", "status", *met}
        assert set(frame.attrs["left_out"]) == set(needs.index) - set(met)
        assert set(frame.attrs["direction"]) == set(met)
    assert frame.attrs["left_out"]["redundancy"] == (
        "needs more than the result: pass model=, the model that was explained"
    )
    assert set(evaluate(three).columns) == {"source", "status", *REFERENCE_FREE}


def test_metrics_say_where_they_make_no_sense(make):
    p = [[0.9, 0.1]]
    result = make(np.zeros((1, 4)), np.ones((1, 4)), p, p, modality="row")
    left_out = evaluate(result, reference=np.zeros((3, 4))).attrs["left_out"]
    for name in ("dtw", "dtw_lof", "dtw_lof_increase", "dtw_lof_inlier"):
        assert left_out[name] == "is for series data; this result holds row data"
    assert left_out["contiguity"] == "is for series and image data; this result holds row data"
    with pytest.raises(ValueError, match="'dtw' is for series data; this result holds row data"):
        evaluate(result, "dtw")
    image = make(np.zeros((1, 1, 2, 2)), np.ones((1, 1, 2, 2)), p, p, modality="image")
    assert "dtw" in evaluate(image).attrs["left_out"]
    assert evaluate(image)["contiguity"].tolist() == [1]


def test_detectors_say_how_many_rows_they_need(three):
    assert (
        evaluate(three, reference=np.zeros((1, 2, 4))).attrs["left_out"]["lof"]
        == "needs 2 reference rows, got 1"
    )
    with pytest.raises(ValueError, match="'dtw_lof_inlier' needs 2 reference rows, got 1"):
        evaluate(three, "dtw_lof_inlier", np.zeros((1, 2, 4)))


def test_the_result_passes_everything_on(three):
    model = lambda X: np.tile([1.0, 0.0], (len(X), 1))  # noqa: E731
    frame = three.evaluate(["transfer_validity", "redundancy"], model=model, other_model=model)
    np.testing.assert_array_equal(frame["transfer_validity"], [0, 0, 0])


def test_instances_and_names(three):
    class Constant(Metric):
        """Always two."""

        name, direction = "constant", "max"

        def compute(self, result, given):
            return np.full(len(result), 2)

    frame = evaluate(three, ["l1", Constant()])
    assert list(frame.columns) == ["source", "status", "l1", "constant"]
    assert frame["constant"].tolist() == [2.0, 2.0, 2.0]
    assert list(three.evaluate([Constant()]).columns) == ["source", "status", "constant"]


class Short(Metric):
    name, direction = "short", "max"

    def compute(self, result, given):
        return np.zeros(1)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
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
        (("lof", np.full((2, 2, 4), NAN)), ValueError, "The reference.*NaN"),
        ((["l1", "l1"],), ValueError, "Two columns would be called 'l1'"),
        (([3],), TypeError, "name or an instance of Metric, got 3"),
        ((Short(),), ValueError, r"'short' gave shape \(1,\) for 3"),
        (
            ("knn_distance", np.ones((5, 3, 4))),
            ValueError,
            r"shape \(5, 3, 4\).*accepted is \(m, 2, 4\)",
        ),
        (("knn_distance", np.ones((0, 2, 4))), ValueError, "at least one row"),
        (("knn_distance", (1, 2, 3)), ValueError, "tuple of 3"),
        ((None, (np.ones((2, 2, 4)), ["a"])), ValueError, r"reference's y has shape \(1,\)"),
        (
            (None, (np.ones((2, 2, 4)), [0, 1])),
            ValueError,
            "labels are 0, 1; the classes.*'a', 'b'",
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
        "Fraction of the values that changed, by more than a millionth of the row's largest change.",
    ]
    assert frame.loc["relative_distance", "needs"] == "labels, reference"
    assert frame["meaning"].str.len().min() > 5
    assert frame.index.is_unique


def test_result_is_not_touched(three):
    three.X.setflags(write=False)
    three.X_cf.setflags(write=False)
    before = evaluate(three)
    pd.testing.assert_frame_equal(evaluate(three), before)
