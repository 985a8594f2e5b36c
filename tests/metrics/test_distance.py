"""Distances against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from contrafact.metrics import evaluate

NAN = float("nan")


def test_float32_distances_are_not_rounded_twice(make):
    X = np.full((1, 3), 16777216.0, dtype=np.float32)
    X_cf = X + np.float32(2)
    frame = evaluate(make(X, X_cf, [[1, 0]], [[0, 1]], modality="row"), ["l1", "l2"])
    assert frame[["l1", "l2"]].to_numpy().tolist() == [[6, 12**0.5]]


def test_proximity_and_compactness_are_those_of_the_papers(make):
    """l2 / T; the share of values within 0.01, which are changed all the same."""
    X = np.ones((2, 2, 4))
    X_cf = X + np.array([[[3, 0, 0, 0.01], [4, 0, 0, 0]], [[0.02, 0, 0, 0], [0, 0, 0, 0]]])
    p = [[1, 0]] * 2
    frame = evaluate(make(X, X_cf, p, p), ["proximity", "compactness", "unchanged_fraction"])
    np.testing.assert_allclose(frame["proximity"], [25.0001**0.5 / 4, 0.02 / 4])
    assert frame["compactness"].tolist() == [6 / 8, 7 / 8]
    assert frame["unchanged_fraction"].tolist() == [5 / 8, 7 / 8]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_change_of_the_tolerance_is_none_whatever_the_precision(make, dtype):
    X = np.arange(0, 5, 0.01).reshape(5, 1, 100)
    result = make(X.astype(dtype), (X + 0.01).astype(dtype), [[1, 0]] * 5, [[0, 1]] * 5)
    assert evaluate(result, ["compactness"])["compactness"].tolist() == [1.0] * 5
    farther = make(X.astype(dtype), (X + 0.05).astype(dtype), [[1, 0]] * 5, [[0, 1]] * 5)
    assert evaluate(farther, ["compactness"])["compactness"].tolist() == [0.0] * 5


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
