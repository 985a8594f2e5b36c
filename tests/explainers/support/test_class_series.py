"""Reference series by class: every member is drawn, and the moments are NumPy's."""

from __future__ import annotations

import numpy as np
import torch

from contrafact.explainers.support.class_series import ClassSeries

COLUMN = np.array([2, 0, 2, 2, 0, 3])  # class 1 has no series


def series():
    X = np.random.default_rng(0).normal(size=(6, 2, 5))
    return X, ClassSeries(torch.from_numpy(X), torch.from_numpy(COLUMN), n_classes=4)


def test_moments_are_those_of_the_class():
    X, by_class = series()
    for column in (0, 2, 3):
        members = X[column == COLUMN]
        np.testing.assert_allclose(by_class.mean[column], members.mean(0))
        np.testing.assert_allclose(by_class.spread[column], members.std(0), atol=1e-12)
    assert not by_class.mean[1].any() and not by_class.spread[1].any()


def test_members_of_a_class_are_picked_evenly():
    X, by_class = series()
    number = (torch.arange(300) + 0.5).double() / 300
    column = torch.full((300,), 2)
    channel = torch.arange(300) % 2
    picked = by_class.pick(column, channel, number).numpy()
    expected = X[np.flatnonzero(COLUMN == 2).repeat(100), channel]
    np.testing.assert_array_equal(picked, expected)
