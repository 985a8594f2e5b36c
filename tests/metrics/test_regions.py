"""Runs and regions of changed values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from contrafact.metrics.regions import count_regions, runs


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
