"""The Fréchet distance against the formula with a matrix square root, and where that fails."""

import numpy as np
import pytest
import torch
from scipy.linalg import sqrtm

from contrafact.metrics import frechet_distance

RNG = np.random.default_rng(0)


def by_square_root(F, G):
    gap = F.mean(0) - G.mean(0)
    C = np.atleast_2d(np.cov(F.T))
    D = np.atleast_2d(np.cov(G.T))
    return gap @ gap + np.trace(C + D - 2 * sqrtm(C @ D).real)


@pytest.mark.parametrize(("n", "m", "d"), [(50, 80, 4), (6, 7, 1), (200, 90, 30)])
def test_equals_the_formula(n, m, d):
    F = RNG.normal(size=(n, d)) @ RNG.normal(size=(d, d))
    G = RNG.normal(size=(m, d)) @ RNG.normal(size=(d, d)) + 3
    assert frechet_distance(F, G) == pytest.approx(by_square_root(F, G), rel=1e-9)
    assert frechet_distance(F, G) == pytest.approx(frechet_distance(G, F), rel=1e-12)


def test_of_independent_features_is_that_of_each():
    """Of diagonal covariances, tr (C D)^½ is the sum of the products of deviations."""
    F = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    G = 3 * F + [1.0, -1.0]
    deviations = F.std(axis=0, ddof=1)
    assert frechet_distance(F, G) == pytest.approx(2 + np.sum((2 * deviations) ** 2), rel=1e-12)


def test_fewer_rows_than_features():
    """A rotation into more dimensions changes nothing, although the covariances are singular."""
    F = RNG.normal(size=(8, 5))
    G = RNG.normal(size=(9, 5)) + 1
    axes, _ = np.linalg.qr(RNG.normal(size=(64, 5)))
    expected = by_square_root(F, G)
    assert frechet_distance(F @ axes.T, G @ axes.T) == pytest.approx(expected, rel=1e-9)


def test_of_a_set_and_itself_is_zero_up_to_rounding():
    F = RNG.normal(size=(40, 100)) * np.logspace(-8, 8, 100)
    scale = F.var(axis=0).sum()
    assert 0 <= frechet_distance(F, F[::-1]) <= 1e-12 * scale


def test_a_shift_far_from_zero_loses_nothing():
    F = RNG.normal(size=(30, 4))
    assert frechet_distance(F + 1e6, F + 1e6 + 2) == pytest.approx(16, rel=1e-6)


def test_takes_tensors_and_float32():
    F = RNG.normal(size=(9, 3)).astype(np.float32)
    assert frechet_distance(torch.from_numpy(F), F + 1) == pytest.approx(3, rel=1e-5)


@pytest.mark.parametrize(
    ("features", "reference", "words"),
    [
        ([[1.0, 2.0]], np.ones((3, 2)), r"features has shape \(1, 2\).*at least 2 rows"),
        (np.ones((3, 2)), [[1.0, 2.0]], r"reference has shape \(1, 2\).*at least 2 rows"),
        (np.ones((3, 2)), np.ones((3, 4)), "features has 2 columns and reference 4"),
        (np.ones((3, 1, 8, 8)), np.ones((3, 64)), r"Accepted: \(n, features\)"),
        ([[1.0], [np.nan]], [[1.0], [2.0]], "features.1, 0. is nan"),
        ([[1e200], [-1e200]], [[1.0], [2.0]], "up to 1e.200, too large"),
    ],
)
def test_refuses(features, reference, words):
    with pytest.raises(ValueError, match=words):
        frechet_distance(features, reference)
