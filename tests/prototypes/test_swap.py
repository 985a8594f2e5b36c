"""The swap search against the plain one and against the definition of its cost."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_swap import Glvq, candidates_for, reference_swap, set_cost
from scipy.spatial.distance import cdist
from swap_cases import OBJECTIVES, first_of_each, make_data, search

from contrafact.prototypes.swap_columns import EuclideanColumns, MatrixColumns
from contrafact.prototypes.swap_start import starting_points


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_takes_the_same_swaps_as_the_plain_search(name, count, weighted):
    X, y = make_data()
    weights = np.random.default_rng(1).uniform(0.1, 3, len(y)) if weighted else np.ones(len(y))
    start = first_of_each(y, count)
    expected, costs = reference_swap(cdist(X, X), y, start, OBJECTIVES[name], weights)
    indices, history = search(EuclideanColumns(X), y, name, start, weights)
    assert indices.tolist() == expected.tolist()
    assert len(history) > 2
    np.testing.assert_allclose(history, costs, rtol=1e-10)


@pytest.mark.parametrize("name", OBJECTIVES)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(1, 3),
    kind=st.sampled_from(["plain", "copies", "skew"]),
)
@settings(max_examples=60, deadline=None)
def test_no_swap_improves_what_is_found(name, seed, count, kind):
    rng = np.random.default_rng(seed)
    y = np.sort(np.append(rng.integers(0, 3, 15), [0, 1, 2]))
    if kind == "copies":  # few places, shared by classes: 0/0 occurs
        X = rng.integers(0, 3, (len(y), 2)).astype(float)
        D = cdist(X, X)
    else:
        D = cdist(*[rng.normal(size=(len(y), 2))] * 2)
        if kind == "skew":
            D = D * rng.uniform(0.2, 2, D.shape) + rng.uniform(0, 0.2, D.shape)
    columns, rng = MatrixColumns(D, np.arange(len(y))), np.random.RandomState(seed)
    start = starting_points(columns, y, np.full(3, count), np.ones(len(y)), "random", rng)
    indices, history = search(columns, y, name, start)

    objective = OBJECTIVES[name]
    assert (np.diff(history) < 0).all()
    assert history[-1] == pytest.approx(set_cost(D, y, indices, objective), rel=1e-10)
    assert y[indices].tolist() == y[start].tolist()
    for j, k in itertools.combinations(range(len(indices)), 2):
        assert indices[j] != indices[k]
        assert y[indices[j]] != y[indices[k]] or D[indices[j], indices[k]] > 0
    for k in range(len(indices)):
        for j in candidates_for(D, y, indices, k):
            other = np.where(np.arange(len(indices)) == k, j, indices)
            assert set_cost(D, y, other, objective) > history[-1] - 1e-9


def test_finds_the_best_of_all_sets_when_classes_are_clear():
    X, y = make_data(16, 2, 2, seed=3, spread=4)
    D = cdist(X, X)
    pairs = itertools.product(np.flatnonzero(y == 0), np.flatnonzero(y == 1))
    best = min(set_cost(D, y, pair, Glvq()) for pair in pairs)
    _, history = search(EuclideanColumns(X), y, "glvq", first_of_each(y, 1))
    assert history[-1] == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_far_apart_clusters_keep_their_fine_structure(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 3)) + 1e7 * np.tile(rng.normal(size=(2, 3)), (60, 1))
    y = np.sort(rng.integers(0, 2, 120))
    start = first_of_each(y, 2)
    expected, _ = reference_swap(cdist(X, X), y, start, Glvq())
    assert search(EuclideanColumns(X), y, "glvq", start)[0].tolist() == expected.tolist()


def test_a_tiny_change_of_the_cost_is_still_a_change():
    """Two candidates that single precision cannot tell apart: the better one in double is taken."""
    x = np.array([0.0, 1.0, 1.0 + 1e-9, 2.0, 10.0, 11.0, 12.0])[:, None]
    y = np.array([0, 0, 0, 0, 1, 1, 1])
    D = cdist(x, x)
    for start in ([1, 5], [2, 5]):
        indices, history = search(EuclideanColumns(x), y, "glvq", np.array(start))
        expected, costs = reference_swap(D, y, np.array(start), Glvq())
        assert indices.tolist() == expected.tolist()
        assert history == pytest.approx(costs, rel=1e-13)
