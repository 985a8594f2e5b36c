"""Centroids: distances, the soft minimum, and how they are found."""

import numpy as np
import pytest
import torch

from contrafact.explainers.support.centroids import Centroids


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


PLACE = torch.tensor([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0], [-2.0, 0.0]]).double()
OWNER = torch.tensor([0, 1, 1, 2])


def test_one_centroid_pulls_by_the_distance():
    z = normal(4, 2)
    pull = Centroids(PLACE, OWNER, beta=0.7).pull(z, torch.tensor([0, 2, 0, 2]))
    expected = (z - PLACE[[0, 3, 0, 3]]).norm(dim=1)
    torch.testing.assert_close(pull, expected, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("beta", [0.1, 1.0, 50.0])
def test_several_pull_by_the_soft_minimum(beta):
    z = normal(4, 2)
    pull = Centroids(PLACE, OWNER, beta).pull(z, torch.ones(4, dtype=torch.long))
    square = ((z.numpy()[:, None] - PLACE[1:3].numpy()) ** 2).sum(2)
    expected = -np.log(np.exp(-beta / 2 * square).sum(1)) / beta
    np.testing.assert_allclose(pull, expected, rtol=1e-9)


def test_a_sharp_soft_minimum_is_half_the_nearest_square_and_its_slope_the_way_there():
    z = normal(4, 2).requires_grad_()
    pull = Centroids(PLACE, OWNER, beta=1e6).pull(z, torch.ones(4, dtype=torch.long))
    way = z.detach()[:, None] - PLACE[1:3]
    nearest = way.square().sum(2).argmin(1)
    way = way[torch.arange(4), nearest]
    torch.testing.assert_close(pull, way.square().sum(1) / 2, atol=1e-5, rtol=0)
    torch.testing.assert_close(torch.autograd.grad(pull.sum(), z)[0], way)


def test_one_place_in_the_soft_minimum_is_half_the_square():
    """Two centroids at one place: ½‖z − μ‖² as of one, less the log 2 / β of counting it twice."""
    z, twice, beta = normal(4, 2), Centroids(PLACE[[1, 1]], torch.tensor([0, 0]), 0.7), 0.7
    expected = (z - PLACE[1]).square().sum(1) / 2 - np.log(2) / beta
    torch.testing.assert_close(twice.pull(z, torch.zeros(4, dtype=torch.long)), expected)


@pytest.mark.parametrize("c", [0, 1], ids=["one centroid", "several"])
def test_the_slope_is_finite_on_a_centroid(c):
    z = PLACE[[OWNER.tolist().index(c)]].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(
        Centroids(PLACE, OWNER, 1.0).pull(z, torch.tensor([c])).sum(), z
    )
    assert gradient.isfinite().all()
    if c == 0:
        assert not gradient.any()


def test_distance_and_nearest():
    centroids = Centroids(PLACE, OWNER, 1.0)
    z = torch.tensor([[0.0, 0.0], [3.0, 3.0]]).double()
    distance = centroids.distance(z, 4)
    r2 = np.sqrt(2)
    np.testing.assert_allclose(
        distance, [[0, r2, 2, np.inf], [3 * r2, 1, np.sqrt(34), np.inf]], atol=1e-7
    )
    assert centroids.nearest(z, torch.tensor([1, 1])).tolist() == [2, 1]
    assert centroids.nearest(z, torch.tensor([0, 2])).tolist() == [0, 3]


def test_single_centroids_are_the_means_of_their_classes():
    codes, column = (
        normal(30, 4),
        torch.arange(30) % 3 * 2,
    )  # class columns 0, 2 and 4: gaps are allowed
    centroids = Centroids.fit(codes, column, 1, beta=3.0)
    assert centroids.owner.tolist() == [0, 2, 4]
    torch.testing.assert_close(
        centroids.place, torch.stack([codes[column == c].mean(0) for c in (0, 2, 4)])
    )
    own = codes - centroids.place[column // 2]
    assert centroids.beta == pytest.approx(3.0 / float(own.square().sum(1).mean()))


def test_clusters_of_a_class_are_found():
    blobs = torch.tensor([[-5.0, 0.0], [5.0, 0.0], [0.0, 9.0]]).double()
    codes = torch.cat([blob + 0.1 * normal(10, 2, seed=i) for i, blob in enumerate(blobs)])
    column = torch.tensor([1] * 20 + [0] * 10)
    centroids = Centroids.fit(codes, column, 2, beta=1.0)
    assert centroids.owner.tolist() == [0, 0, 1, 1]
    two = centroids.place[2:]
    torch.testing.assert_close(two[two[:, 0].argsort()], blobs[:2], atol=0.1, rtol=0)


def test_small_classes_have_as_many_centroids_as_members():
    codes, column = normal(8, 3), torch.tensor([0, 1, 1, 2, 2, 2, 2, 2])
    centroids = Centroids.fit(codes, column, 3, beta=1.0)
    assert centroids.owner.tolist() == [0, 1, 1, 2, 2, 2]
    torch.testing.assert_close(centroids.place[0], codes[0])
    torch.testing.assert_close(centroids.place[1:3].sort(0)[0], codes[1:3].sort(0)[0])
    # Every code on its own centroid: no spread to measure β by, and still a finite pull.
    alone = Centroids.fit(codes[:3], column[:3], 3, beta=1.0)
    z = normal(1, 3, seed=5).requires_grad_()
    pull = alone.pull(z, torch.tensor([1]))
    assert pull.isfinite().all() and torch.autograd.grad(pull.sum(), z)[0].isfinite().all()
