"""The swap search against the plain one and against the definition of its cost."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_swap import Glvq, Rslvq, Sigmoid, candidates_for, reference_swap, set_cost
from scipy.spatial.distance import cdist

from contrafact.prototypes import swap

OBJECTIVES = {"glvq": Glvq(), "sigmoid": Sigmoid(), "rslvq": Rslvq(0.7)}


def make_cost(name, weights):
    if name == "rslvq":
        return swap.RSLVQCost(weights, 0.7)
    return {"glvq": swap.GLVQCost, "sigmoid": swap.SigmoidCost}[name](weights)


def make_data(n=90, n_classes=3, features=4, seed=0, spread=1.5):
    rng = np.random.default_rng(seed)
    y = np.sort(rng.integers(0, n_classes, n))
    return rng.normal(size=(n, features)) + spread * rng.normal(size=(n_classes, features))[y], y


def first_of_each(y, count):
    return np.concatenate([np.flatnonzero(y == c)[:count] for c in np.unique(y)])


def search(columns, y, name, start, weights=None):
    weights = np.ones(len(y)) if weights is None else weights
    found = swap.SwapSearch(columns, y, make_cost(name, weights), start)
    history, _, ended = found.run(100)
    assert ended
    return found.indices, history


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_takes_the_same_swaps_as_the_plain_search(name, count, weighted):
    X, y = make_data()
    weights = np.random.default_rng(1).uniform(0.1, 3, len(y)) if weighted else np.ones(len(y))
    start = first_of_each(y, count)
    expected, costs = reference_swap(cdist(X, X), y, start, OBJECTIVES[name], weights)
    indices, history = search(swap.EuclideanColumns(X), y, name, start, weights)
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
    columns, rng = swap.MatrixColumns(D, np.arange(len(y))), np.random.RandomState(seed)
    start = swap.starting_points(columns, y, np.full(3, count), np.ones(len(y)), "random", rng)
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
    _, history = search(swap.EuclideanColumns(X), y, "glvq", first_of_each(y, 1))
    assert history[-1] == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_blocks_cache_and_threads_change_nothing(name, monkeypatch):
    X, y = make_data(300, 3, 5, seed=4)
    start = first_of_each(y, 2)
    indices, history = search(swap.EuclideanColumns(X), y, name, start)
    for block, cache, threads in [(7, 0, 1), (64, 0, 3), (31, 10**9, 2), (1000, 0, 2)]:
        monkeypatch.setattr(swap, "BLOCK", block)
        monkeypatch.setattr(swap, "CACHE_BYTES", cache)
        monkeypatch.setattr(swap.numba.config, "NUMBA_NUM_THREADS", threads)
        columns = swap.EuclideanColumns(X)
        assert (columns.cache is None) == (cache == 0)
        again, costs = search(columns, y, name, start)
        assert again.tolist() == indices.tolist()
        assert costs == history


@pytest.mark.parametrize("name", OBJECTIVES)
def test_scores_in_single_precision_are_within_the_claimed_error(name):
    X, y = make_data(700, 3, 6, seed=5)
    columns, cost = swap.EuclideanColumns(1e3 * X), make_cost(name, np.ones(len(y)))
    if name == "rslvq":
        cost.temperature = 400.0
    start = first_of_each(y, 2)
    found = swap.SwapSearch(columns, y, cost, start)
    own, other = found.pools(without=0)
    to_unit, scale = cost.scales(columns.unit)
    mine = y == 0
    rows = np.flatnonzero(mine)
    out = np.empty(len(rows))
    pool_type = cost.pool_type
    cost.kernel(
        columns.block(rows),
        (own * to_unit).astype(pool_type),
        (other * to_unit).astype(pool_type),
        np.ones(len(y), np.float32),
        0,
        len(rows),
        out,
        scale,
    )
    exact = found._exact(rows, mine, own, other)
    shift = len(y) * np.log(4) if name == "glvq" else 0.0
    assert np.abs(out - shift - exact).max() < cost.error(columns.unit) / 2
    assert np.ptp(exact) > 100 * cost.error(columns.unit)


@pytest.mark.parametrize("seed", range(6))
def test_far_apart_clusters_keep_their_fine_structure(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 3)) + 1e7 * np.tile(rng.normal(size=(2, 3)), (60, 1))
    y = np.sort(rng.integers(0, 2, 120))
    start = first_of_each(y, 2)
    expected, _ = reference_swap(cdist(X, X), y, start, Glvq())
    assert search(swap.EuclideanColumns(X), y, "glvq", start)[0].tolist() == expected.tolist()


def test_a_tiny_change_of_the_cost_is_still_a_change():
    """Two candidates that single precision cannot tell apart: the better one in double is taken."""
    x = np.array([0.0, 1.0, 1.0 + 1e-9, 2.0, 10.0, 11.0, 12.0])[:, None]
    y = np.array([0, 0, 0, 0, 1, 1, 1])
    D = cdist(x, x)
    for start in ([1, 5], [2, 5]):
        indices, history = search(swap.EuclideanColumns(x), y, "glvq", np.array(start))
        expected, costs = reference_swap(D, y, np.array(start), Glvq())
        assert indices.tolist() == expected.tolist()
        assert history == pytest.approx(costs, rel=1e-13)


@pytest.mark.parametrize("init", ["greedy", "kmeans++", "random"])
def test_starting_points_are_distinct_and_never_more_than_places(init):
    X = np.array([[0.0], [0.0], [1.0], [0.0], [5.0], [6.0], [7.0], [7.0]])
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    columns = swap.EuclideanColumns(X)
    for seed in range(10):
        rng = np.random.RandomState(seed)
        start = swap.starting_points(columns, y, np.array([3, 3]), np.ones(8), init, rng)
        assert y[start].tolist() == [0, 0, 1, 1, 1]
        assert len(np.unique(X[start])) == 5


def test_the_greedy_start_is_the_weighted_medoid():
    X, y = make_data(50, 2, 3, seed=8)
    weights = np.random.default_rng(0).uniform(0, 2, 50)
    start = swap.starting_points(
        swap.EuclideanColumns(X), y, np.array([1, 1]), weights, "greedy", np.random.RandomState(0)
    )
    for c in (0, 1):
        members = np.flatnonzero(y == c)
        sums = weights[members] @ cdist(X[members], X[members])
        assert start[c] == members[sums.argmin()]
