"""The nearest unlike cluster, against k-means."""

import numpy as np
import pytest
import torch
from guide_cases import by_first
from sklearn.cluster import KMeans

from contrafact.guides import NearestUnlikeCluster


def test_confident_clusters_are_preferred():
    reference = np.array([[0.5, 0.0], [0.6, 0.0], [5.0, 0.0], [5.1, 0.0], [-1.0, 0.0]])
    guide = NearestUnlikeCluster(2).fit(by_first, reference)
    near, far = (
        guide.guide(reference[4:], 1, confidence=c)[0][0, 0, 0].item() for c in (None, 0.9)
    )
    assert (near, far) == pytest.approx((0.55, 5.05))


@pytest.mark.parametrize("shape", [(6,), (2, 5), (3, 4, 4)])
def test_one_cluster_is_the_mean_of_the_class(shape):
    rng = np.random.default_rng(8)
    reference = rng.normal(size=(50, *shape))
    labels = by_first(reference).argmax(1)
    guide = NearestUnlikeCluster().fit(
        by_first, reference, 1 - labels
    )  # the labels are wrong, all of them
    for c in (0, 1):
        arrays, index = guide.guide(reference[:3], c)
        np.testing.assert_allclose(
            arrays[:, 0], np.broadcast_to(reference[labels == c].mean(0), (3, *shape))
        )
        assert index.tolist() == [[c]] * 3


def outside_the_circle(X):
    return np.eye(2)[(np.linalg.norm(X, axis=1) > 1).astype(int)]


def test_a_center_the_model_rejects_is_replaced_by_its_nearest_member():
    rng = np.random.default_rng(9)
    angle = rng.uniform(0, 2 * np.pi, 40)
    ring = np.stack([np.cos(angle), np.sin(angle)], 1) * rng.uniform(1.5, 3, (40, 1))
    disc = rng.normal(scale=0.2, size=(30, 2))
    guide = NearestUnlikeCluster().fit(outside_the_circle, np.concatenate([ring, disc]))
    center = ring.mean(0)
    assert np.linalg.norm(center) < 1  # inside: the model would say "disc"
    expected = ring[np.linalg.norm(ring - center, axis=1).argmin()]
    np.testing.assert_array_equal(guide.guide(disc[:1], 1)[0][0, 0], expected)
    np.testing.assert_array_equal(
        guide.candidate_proba_, np.eye(2)
    )  # of the member, not of the center
    np.testing.assert_allclose(guide.guide(ring[:1], 0)[0][0, 0], disc.mean(0))


@pytest.mark.parametrize("random_state", [0, 1])
def test_clusters_are_those_of_k_means(random_state):
    rng = np.random.default_rng(10)
    reference = rng.normal(size=(90, 1, 4)) + 2
    reference[30:] -= 4
    labels = by_first(reference).argmax(1)
    guide = NearestUnlikeCluster(3, random_state).fit(by_first, reference)
    assert torch.bincount(guide.candidate_class_).tolist() == [3, 3]
    members = reference[labels == 1].reshape(-1, 4)
    centers = KMeans(3, n_init=3, random_state=random_state).fit(members).cluster_centers_
    arrays, index = guide.guide(reference[-5:], 1, k=4)
    for row, guides in zip(reference[-5:], arrays, strict=True):
        nearest_first = np.argsort(np.linalg.norm(centers - row, axis=1))
        np.testing.assert_allclose(guides[:3, 0], centers[nearest_first])
    assert (index[:, 3] == -1).all() and index[:, :3].sort(1).values.tolist() == [[3, 4, 5]] * 5


def test_no_more_clusters_than_distinct_rows():
    reference = np.array([[1.0, 0.0]] * 5 + [[2.0, 0.0]] * 5 + [[-1.0, 0.0]])
    guide = NearestUnlikeCluster(4).fit(by_first, reference)
    assert guide.candidate_class_.tolist() == [0, 1, 1]
    assert sorted(guide.candidates_[1:, 0].tolist()) == [1.0, 2.0]
