"""The nearest unlike neighbor, against brute force."""

import itertools

import numpy as np
import pytest
import torch
from aeon.distances import dtw_distance
from guide_cases import Parity, brute_force, by_first
from hypothesis import given, settings
from hypothesis import strategies as st

from contrafact.guides import NearestUnlikeNeighbor
from contrafact.models import as_classifier
from timings import time_ratio


def points(kind, rng, n, d):
    values = rng.normal(size=(n, d))
    return {
        "normal": lambda: values,
        "whole numbers": lambda: rng.integers(0, 3, (n, d)).astype(float),  # ties everywhere
        "copies": lambda: values[
            rng.integers(0, 3, n)
        ],  # more equals than any short list of leaders
        "large offset": lambda: values + 1e6,
        "two offsets": lambda: values + 1e6 * rng.choice([-1, 1], (n, 1)),  # centering cannot help
        "one outlier": lambda: values * np.where(np.arange(n) == 0, 1e6, 1)[:, None],
        "tiny": lambda: values * 1e-25,  # squares vanish in float32
        "huge": lambda: values * 1e25,
        "constant": lambda: np.zeros((n, d)),
    }[kind]()


KINDS = [
    "normal",
    "whole numbers",
    "copies",
    "large offset",
    "two offsets",
    "one outlier",
    "tiny",
    "huge",
]


@settings(max_examples=150, deadline=None)
@given(
    kind=st.sampled_from([*KINDS, "constant"]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 10**6),
    n=st.integers(1, 60),
    d=st.sampled_from([1, 2, 7, 40]),
    k=st.integers(1, 6),
)
def test_neighbors_equal_a_brute_force_search(kind, dtype, seed, n, d, k):
    rng = np.random.default_rng(seed)
    both = points(kind, rng, n + 5, d).astype(np.float32 if dtype == torch.float32 else np.float64)
    x, reference = both[:5], both[5:]
    classifier = as_classifier(Parity(dtype), classes=["a", "b", "c"])
    guide = NearestUnlikeNeighbor().fit(classifier, reference)
    labels = classifier.predict(reference)
    for target in "abc":
        arrays, index = guide.guide(x, target, k)
        np.testing.assert_array_equal(index, brute_force(x, reference, labels == target, k))
        found = (index >= 0).numpy()
        np.testing.assert_array_equal(arrays.numpy()[found], reference[index.numpy()[found]])
        np.testing.assert_array_equal(arrays.numpy()[~found], np.repeat(x[:, None], k, 1)[~found])


@pytest.mark.parametrize("max_elements", [2**24, 300, 1])
def test_blocks_of_queries_change_nothing(monkeypatch, max_elements):
    rng = np.random.default_rng(3)
    reference, x = points("copies", rng, 80, 4), rng.normal(size=(30, 4))
    monkeypatch.setattr(NearestUnlikeNeighbor, "max_elements", max_elements)
    guide = NearestUnlikeNeighbor().fit(by_first, reference)
    expected = brute_force(x, reference, by_first(reference).argmax(1) == 1, 4)
    np.testing.assert_array_equal(guide.guide(x, 1, 4)[1], expected)


def test_blocks_of_queries_change_no_diverse_guides(monkeypatch):
    rng = np.random.default_rng(3)
    reference, x = rng.normal(size=(80, 4)), rng.normal(size=(30, 4))
    guide = NearestUnlikeNeighbor(diverse=True).fit(by_first, reference)
    at_once = guide.guide(x, 1, 3)[1]
    monkeypatch.setattr(NearestUnlikeNeighbor, "max_elements", 200)
    assert torch.equal(guide.guide(x, 1, 3)[1], at_once)


@pytest.mark.parametrize("window", [None, 0.1])
def test_dtw_neighbors_are_those_of_aeon(window):
    rng = np.random.default_rng(2)
    reference, x = rng.normal(size=(25, 2, 12)).cumsum(2), rng.normal(size=(4, 2, 12)).cumsum(2)
    guide = NearestUnlikeNeighbor("dtw", window=window).fit(by_first, reference)
    distance = np.array([[dtw_distance(a, b, window=window) for b in reference] for a in x])
    member = by_first(reference).argmax(1) == 1
    _, index = guide.guide(x, 1, 3)
    np.testing.assert_array_equal(index, brute_force(x, reference, member, 3, distance))
    assert (index.numpy() != brute_force(x, reference, member, 3)).any()  # warping matters here


def smallest_gap(guides):
    return min((a - b).norm() for a, b in itertools.combinations(guides, 2))


@pytest.mark.parametrize("metric", ["euclidean", "dtw"])
def test_diverse_guides_are_spread(metric):
    rng = np.random.default_rng(7)
    # Five copies, nearly, of each series: the nearest k are copies of one.
    reference = (rng.normal(size=(12, 1, 1, 10)) + 0.01 * rng.normal(size=(12, 5, 1, 10))).reshape(
        60, 1, 10
    )
    x = rng.normal(size=(10, 1, 10))
    k_nearest = NearestUnlikeNeighbor(metric).fit(by_first, reference)
    diverse = NearestUnlikeNeighbor(metric, diverse=True).fit(by_first, reference)
    k = 4
    near_arrays, near = k_nearest.guide(x, 1, k)
    arrays, index = diverse.guide(x, 1, k)
    pool = k_nearest.guide(x, 1, diverse.pool_factor * k)[1]
    assert torch.equal(index[:, 0], near[:, 0])  # the nearest is still there, first
    assert torch.equal(diverse.guide(x, 1)[1], near[:, :1])
    for i in range(len(x)):
        assert smallest_gap(arrays[i]) > 5 * smallest_gap(near_arrays[i])
        assert len(set(index[i].tolist())) == k and set(index[i].tolist()) <= set(pool[i].tolist())


@pytest.mark.parametrize("seed", range(5))
def test_diverse_guides_are_no_closer_together_than_the_nearest(seed):
    rng = np.random.default_rng(seed)
    reference, x = rng.normal(size=(200, 3)), rng.normal(size=(20, 3))
    near, spread = (
        NearestUnlikeNeighbor(diverse=d).fit(by_first, reference).guide(x, 1, 3)[0]
        for d in (False, True)
    )
    gaps = [
        (float(smallest_gap(a)), float(smallest_gap(b))) for a, b in zip(near, spread, strict=True)
    ]
    assert all(b >= a for a, b in gaps) and any(b > a for a, b in gaps)


def test_too_few_for_diversity_are_all_taken():
    reference = np.array([[1.0], [2.0], [3.0], [-1.0]])
    _, index = (
        NearestUnlikeNeighbor(diverse=True).fit(by_first, reference).guide(reference[3:], 1, k=5)
    )
    assert index.tolist() == [[0, 1, 2, -1, -1]]


def test_the_search_costs_little_more_than_one_matrix_product():
    """1,000 queries, 10,000 series of length 500."""
    rng = np.random.default_rng(0)
    reference, x = (rng.standard_normal((n, 1, 500), dtype=np.float32) for n in (10_000, 1_000))
    for series in (reference, x):
        series[..., 1:] += 50  # far from the origin, as raw measurements are
    guide = NearestUnlikeNeighbor().fit(by_first, reference)
    target = np.arange(1_000) % 2
    a, b = torch.from_numpy(x).flatten(1), torch.from_numpy(reference).flatten(1)

    assert time_ratio(lambda: guide.guide(x, target), lambda: a @ b.T, enough=1.5) <= 1.5

    member = by_first(reference).argmax(1)
    np.testing.assert_array_equal(
        guide.guide(x[:20], target[:20])[1],
        np.concatenate(
            [brute_force(x[i : i + 1], reference, member == target[i], 1) for i in range(20)]
        ),
    )
