"""Economy of edits, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from contrafact.metrics import evaluate

NAN = float("nan")


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


def test_visible_change_by_hand(make):
    """All values move, but two pixels of twelve by more than 2 % of the range, 0 to 10."""
    X = np.zeros((2, 2, 3, 4))
    X[:, 1, 0, 0] = 10
    X_cf = X + 1e-3
    X_cf[0, 0, 1, 1] = X_cf[0, 1, 2, 2] = 0.3
    X_cf[0, 0, 2, 3] = 0.15
    X_cf[1] = X[1]
    p = [[1, 0]] * 2
    result = make(X, X_cf, p, p, modality="image")
    frame = evaluate(result, ["sparsity", "visible_change"])
    np.testing.assert_allclose(frame.iloc[:, 2:], [[1, 2 / 12], [0, 0]])
    assert np.argwhere(result.visible_pixels[0]).tolist() == [[1, 1], [2, 2]]
    with pytest.raises(ValueError, match="visible_pixels is of images"):
        _ = make(X[:, 0], X_cf[:, 0], p, p).visible_pixels


def test_shortest_edit_by_hand(make):
    X = np.zeros((4, 2, 6))
    X_cf = X.copy()
    X_cf[0, 0, 1:4] = X_cf[0, 0, 5] = 1  # runs of three and of one, at the end
    X_cf[1, 0] = 1  # a whole channel, and two steps at the start of the other
    X_cf[1, 1, :2] = 1
    X_cf[2, :, 2] = 1  # one step in both channels: not two
    p = [[1, 0]] * 4
    found = evaluate(make(X, X_cf, p, p), "shortest_edit")["shortest_edit"]
    np.testing.assert_array_equal(found, [1, 2, 1, NAN])
    flat = evaluate(make(X[:, 0], X_cf[:, 0], p, p), "shortest_edit")["shortest_edit"]
    np.testing.assert_array_equal(flat, [1, 6, 1, NAN])


def test_concentration_from_one_value_to_all(make):
    X_cf = np.array([[0, 0, -2, 0], [3, -3, 3, 3.0]])
    p = [[1, 0]] * 2
    frame = evaluate(make(np.zeros((2, 4)), X_cf, p, p, modality="row"), ["gini", "hoyer"])
    np.testing.assert_allclose(frame.iloc[:, 2:], [[3 / 4, 1], [0, 0]])
    one = evaluate(
        make(np.zeros((1, 1)), np.ones((1, 1)), p[:1], p[:1], modality="row"), ["gini", "hoyer"]
    )
    np.testing.assert_array_equal(one.iloc[:, 2:], [[0, NAN]])


def test_rounding_is_not_concentrated(make):
    X = np.ones((2, 4))
    X_cf = X.copy()
    X_cf[:, 0] = np.nextafter(1.0, 2.0)
    result = make(X, X_cf, [[1, 0]] * 2, [[0, 1]] * 2, modality="row")
    assert evaluate(result, ["gini", "hoyer"])[["gini", "hoyer"]].isna().all(axis=None)


def test_redundancy_by_hand(changes):
    # Only the first value decides. Three of four edits can be given back; a failure's edits serve
    # nothing.
    X_cf = np.array([[1.0, 1, 1, 1], [1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]])
    result, model = changes(lambda x: x[:, 0] >= 0.5, np.zeros((4, 4)), X_cf)
    found = evaluate(result, "redundancy", model=model)["redundancy"]
    np.testing.assert_array_equal(found, [3 / 4, 0, 1, np.nan])
    failures = evaluate(result[[2, 3]], "redundancy", model=model)["redundancy"]
    np.testing.assert_array_equal(failures, [1, np.nan])
