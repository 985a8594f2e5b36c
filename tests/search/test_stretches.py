"""Stretches of edits: runs, patches, features."""

import torch

from contrafact.search.stretches import (
    changed_values,
    count_stretches,
    stretch_ids,
    stretch_lengths,
)


def test_runs_of_any_channel_are_one_stretch():
    changed = torch.tensor([[[1, 1, 0, 0, 0, 1], [0, 1, 1, 0, 0, 0]], [[0] * 6, [0] * 6]]).bool()
    ids = stretch_ids(changed, "series")
    assert ids.tolist() == [[[1, 1, 1, 0, 0, 2]], [[0] * 6]]
    assert count_stretches(ids).tolist() == [2, 0]
    assert stretch_lengths(ids).tolist() == [[[3, 3, 3, 0, 0, 1]], [[0] * 6]]


def test_patches_touch_within_an_image_only():
    images = torch.zeros(3, 2, 3, 4, dtype=torch.bool)
    images[0, 0, 0, 0] = images[0, 1, 1, 1] = True  # one patch, over a corner and two channels
    images[0, 0, 0, 3] = True
    images[2, 0, 0, 0] = images[2, 0, 2, 2] = True
    ids = stretch_ids(images, "image")
    assert count_stretches(ids).tolist() == [2, 0, 2]
    assert ids[0, 0].tolist() == [[1, 0, 0, 2], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert ids[2, 0, 0, 0] == 1 and ids[2, 0, 2, 2] == 2


def test_features_stand_alone():
    changed = torch.tensor([[True, True, False, True]])
    assert stretch_ids(changed, "row").tolist() == [[1, 2, 0, 3]]


def test_a_change_below_a_millionth_of_the_largest_is_none():
    x = torch.zeros(1, 1, 3, dtype=torch.float64)
    x_cf = torch.tensor([[[1.0, 1e-7, 1e-5]]], dtype=torch.float64)
    assert changed_values(x_cf, x, "series").tolist() == [[[True, False, True]]]
    assert changed_values(x_cf[0], x[0], "row").tolist() == [[True, True, True]]


def test_coordinates_of_a_column_are_one_stretch():
    part = torch.tensor([0, 1, 1, 1, 2])
    changed = torch.tensor([[0, 1, 0, 1, 1], [1, 0, 0, 0, 0]]).bool()
    assert stretch_ids(changed, "row", part).tolist() == [[0, 1, 1, 1, 2], [1, 0, 0, 0, 0]]
