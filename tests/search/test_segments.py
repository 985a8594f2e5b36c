"""Segments of every kind of instance."""

from __future__ import annotations

import pytest
import torch

from contrafact.search.segments import segment_ids, sum_by_segment


def test_segments_of_series():
    assert segment_ids((2, 5), 2).tolist() == [[0, 0, 1, 1, 2], [3, 3, 4, 4, 5]]
    assert segment_ids((2, 5), 2, shared=True).tolist() == [[0, 0, 1, 1, 2]] * 2
    assert segment_ids((1, 3), 9).tolist() == [[0, 0, 0]]


def test_segments_of_rows():
    assert segment_ids((5,), 1).tolist() == [0, 1, 2, 3, 4]
    assert segment_ids((5,), 3).tolist() == [0, 0, 0, 1, 1]


def test_segments_of_images_are_patches_across_channels():
    patches = segment_ids((2, 3, 5), 2)
    assert patches[0].tolist() == [[0, 0, 1, 1, 2], [0, 0, 1, 1, 2], [3, 3, 4, 4, 5]]
    assert torch.equal(patches[0], patches[1])


@pytest.mark.parametrize("shape", [(7,), (3, 10), (2, 5, 7)])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_segments_are_numbered_without_gaps(shape, width):
    ids = segment_ids(shape, width)
    assert ids.shape == shape and ids.unique().tolist() == list(range(int(ids.max()) + 1))


def test_sums_by_segment():
    values = torch.arange(8.0).reshape(1, 2, 4)
    assert sum_by_segment(values, segment_ids((2, 4), 3)).tolist() == [[3.0, 3.0, 15.0, 7.0]]
