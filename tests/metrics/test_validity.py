"""Validity against values worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from contrafact.metrics import evaluate

NAN = float("nan")


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
