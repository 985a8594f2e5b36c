"""Averages along warping paths."""

import numpy as np
import pytest
import torch

from contrafact.explainers.support.warping import barycenter, warping_paths


@pytest.fixture
def pair():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 2, 20)).cumsum(2)
    n = np.roll(x, 3, axis=2) + 0.1
    return x, n


def test_the_ends_of_the_blend_are_the_two_series(pair):
    x, n = pair
    path = torch.from_numpy(warping_paths(x, n))
    x, n = torch.from_numpy(x), torch.from_numpy(n)
    torch.testing.assert_close(barycenter(x, n, path, torch.zeros(3).double()), x)
    torch.testing.assert_close(barycenter(x, n, path, torch.ones(3).double()), n)


def test_equal_series_warp_along_the_diagonal(pair):
    x, _ = pair
    path = warping_paths(x, x)
    assert (path[:, :20, 0] == np.arange(20)).all() and (path[..., 0] == path[..., 1]).all()
    assert (path[:, 20:] == 19).all()


def test_every_row_has_its_own_weight(pair):
    x, n = pair
    path = torch.from_numpy(warping_paths(x, n))
    x, n = torch.from_numpy(x), torch.from_numpy(n)
    beta = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)
    mixed = barycenter(x, n, path, beta)
    torch.testing.assert_close(mixed[0], x[0])
    torch.testing.assert_close(mixed[2], n[2])
    alone = barycenter(x[1:2], n[1:2], path[1:2], beta[1:2])
    torch.testing.assert_close(mixed[1:2], alone)
