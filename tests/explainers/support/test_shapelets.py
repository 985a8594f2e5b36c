"""Shapelets: distances are aeon's, thresholds separate the classes, occurrences are located."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from contrafact.explainers.support.shapelets import (
    Shapelet,
    best_threshold,
    mine_shapelets,
    window_distance,
)

PATTERN = 2.5 * np.sin(np.linspace(0, 2 * np.pi, 12))
MINING = {"n_candidates": 200, "max_shapelets": 12, "max_length": 30, "random_state": 0}


def planted(channels=2, n=60, length=60):
    """Class 1 has a wave in the last channel at 24…35, class 0 has none."""
    rng = np.random.default_rng(0)
    X = rng.normal(0, 0.25, (n, channels, length))
    y = np.arange(n) % 2
    X[y == 1, -1, 24:36] += PATTERN
    return X, y


def test_distances_are_those_of_aeon():
    from aeon.transformations.collection.shapelet_based import RandomShapeletTransform

    X, y = planted()
    X[3, :, 10:40] = 1.0  # flat windows
    transform = RandomShapeletTransform(200, 12, random_state=0).fit(X, y)
    ours = []
    for _, length, start, channel, case, *_ in transform.shapelets:
        stretch = X[case, channel, start : start + length]
        ours.append(window_distance(torch.tensor(X[:, channel]), torch.tensor(stretch)))
    smallest = torch.stack([distance.min(1).values for distance in ours], 1).numpy()
    np.testing.assert_allclose(smallest, transform.transform(X), atol=1e-8)
    assert len(ours) > 3


def test_distance_of_every_window_by_the_formula():
    rng = np.random.default_rng(0)
    x = rng.normal(5, 2, (4, 30))
    s = rng.normal(-3, 1, 7)

    def z(v):
        return (v - v.mean()) / v.std()

    expected = [[np.mean((z(s) - z(row[t : t + 7])) ** 2) for t in range(24)] for row in x]
    distance = window_distance(torch.tensor(x), torch.tensor(s))
    np.testing.assert_allclose(distance, expected, atol=1e-10)


def test_flat_windows_and_flat_stretches_are_0_after_normalization():
    x = torch.zeros(1, 10).double()
    x[0, 6:] = torch.tensor([1.0, -1.0, 1.0, -1.0])
    wave = torch.tensor([1.0, -1.0, 1.0]).double()
    flat = torch.full((3,), 4.0).double()
    assert window_distance(x, wave)[0, :4].tolist() == pytest.approx([1] * 4)
    assert window_distance(x, flat)[0, :4].tolist() == pytest.approx([0] * 4, abs=1e-9)
    assert window_distance(x, flat)[0, -1] == pytest.approx(1)


def test_the_threshold_separates_the_class_from_the_others():
    own = torch.tensor([True, False, True, True, False, False])
    distance = torch.tensor([0.1, 0.9, 0.3, 0.2, 0.5, 0.8])
    assert best_threshold(distance, own) == pytest.approx(0.4)


def test_the_threshold_counts_shares_and_not_series():
    """Three of four others lie below 0.5, but the whole small class lies below 0.1."""
    distance = torch.tensor([0.05, 0.2, 0.3, 0.4, 0.9])
    own = torch.tensor([True, False, False, False, False])
    assert best_threshold(distance, own) == pytest.approx(0.125)


def test_a_shapelet_is_found_where_it_was_put():
    rng = np.random.default_rng(1)
    x = torch.from_numpy(rng.normal(0, 0.1, (5, 2, 50)))
    values = torch.from_numpy(PATTERN)
    place = [0, 7, 20, 38]
    for row, start in enumerate(place):
        x[row, 1, start : start + 12] += 3 * values  # the scale does not matter
    shapelet = Shapelet(values, channel=1, start=0, threshold=0.2, column=0)
    occurs, start = shapelet.find(x)
    assert occurs.tolist() == [True] * 4 + [False]
    assert start[:4].tolist() == place and len(shapelet) == 12


def test_mined_shapelets_occur_in_their_class_and_not_in_the_others():
    X, y = planted()
    X, y = torch.tensor(X), torch.tensor(y)
    shapelets = mine_shapelets(X, y, **MINING)
    wave = [shapelet for shapelet in shapelets if shapelet.column == 1]
    assert wave and len(shapelets) <= 12
    for shapelet in wave:
        occurs, _ = shapelet.find(X)
        end = shapelet.start + len(shapelet)
        assert occurs[y == 1].double().mean() > 0.9 > 0.1 > occurs[y == 0].double().mean()
        assert shapelet.channel == 1 and shapelet.start < 36 and end > 24
        assert float(shapelet.values.mean()) == pytest.approx(0, abs=1e-12)


def test_one_class_has_no_shapelets():
    X, y = planted(n=10)
    assert mine_shapelets(torch.tensor(X), torch.tensor(0 * y), **MINING) == []
