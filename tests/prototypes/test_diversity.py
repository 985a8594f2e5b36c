"""select_diverse: greedy maximization of log det, checked against the determinants themselves."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from contrafact.prototypes import select_diverse


def kernel(candidates, quality=None):
    """L = diag(q) K diag(q) as in the docstring."""
    flat = np.asarray(candidates, dtype=np.float64).reshape(len(candidates), -1)
    squared = ((flat[:, None] - flat) ** 2).sum(2)
    median = np.sort(squared, axis=None)[(squared.size - 1) // 2]
    q = np.ones(len(flat)) if quality is None else np.asarray(quality, dtype=np.float64)
    return q[:, None] * np.exp(-squared / (2 * median)) * q


def log_det(L, subset):
    subset = list(subset)
    return np.linalg.slogdet(L[np.ix_(subset, subset)])[1]


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(3, 14),
    d=st.integers(2, 6),
    k=st.integers(1, 5),
    spread=st.sampled_from([0.0, 0.3, 3.0]),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    offset=st.sampled_from([0.0, 1e6]),
)
def test_every_choice_is_the_greedy_one(seed, m, d, k, spread, scale, offset):
    rng = np.random.default_rng(seed)
    candidates, quality = (
        scale * (offset + rng.normal(size=(m, d))),
        np.exp(spread * rng.normal(size=m)),
    )
    k = min(k, m)
    chosen = select_diverse(torch.from_numpy(candidates), k, torch.from_numpy(quality)).tolist()
    L = kernel(candidates, quality)
    for step, choice in enumerate(chosen):
        before = chosen[:step]
        gains = {c: log_det(L, [*before, c]) for c in range(m) if c not in before}
        assert gains[choice] >= max(gains.values()) - 1e-6


def test_the_first_is_the_best_by_quality():
    rng = np.random.default_rng(0)
    candidates, quality = (
        torch.from_numpy(rng.normal(size=(20, 30, 4))),
        torch.from_numpy(rng.random((20, 30))),
    )
    assert torch.equal(select_diverse(candidates, 1, quality)[:, 0], quality.argmax(1))
    assert torch.equal(select_diverse(candidates, 3, quality)[:, 0], quality.argmax(1))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [2, 3])
def test_the_whole_choice_is_optimal_where_groups_are_clear(seed, k):
    """k groups of near copies far apart: the best of each group make the optimal subset."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.repeat(np.arange(k), 3))
    candidates = 10 * np.eye(k)[group] + 0.1 * rng.normal(size=(3 * k, k))
    quality = rng.uniform(0.5, 1, 3 * k)
    L = kernel(candidates, quality)
    best = max(itertools.combinations(range(3 * k), k), key=lambda subset: log_det(L, subset))
    chosen = select_diverse(torch.from_numpy(candidates), k, torch.from_numpy(quality)).tolist()
    assert tuple(sorted(chosen)) == best
    assert sorted(group[chosen]) == list(range(k))


def test_quality_and_distance_both_count():
    points = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
    assert select_diverse(points, 2).tolist() == [0, 3]
    assert select_diverse(points, 2, torch.tensor([0.1, 1.0, 0.1, 0.1])).tolist() == [1, 3]
    assert select_diverse(points, 2, torch.tensor([1.0, 0.9, 0.9, 1e-3])).tolist() == [0, 2]


@pytest.mark.parametrize("with_quality", [False, True])
def test_copies_come_last_and_nothing_comes_twice(with_quality):
    rng = np.random.default_rng(1)
    which = rng.permutation(np.repeat(np.arange(4), 3))
    candidates = torch.from_numpy(rng.normal(size=(4, 2))[which])
    quality = torch.from_numpy(rng.uniform(0.2, 1, 12)) if with_quality else None
    chosen = select_diverse(candidates, 12, quality).tolist()
    assert sorted(which[chosen[:4]]) == [0, 1, 2, 3]
    assert sorted(chosen) == list(range(12))


@pytest.mark.parametrize("m", [1, 5, 40])
def test_equal_candidates_are_each_taken_once(m):
    quality = torch.linspace(1, 0.5, m).flip(0)
    chosen = select_diverse(torch.zeros(m, 3), m, quality).tolist()
    assert chosen[0] == m - 1 and sorted(chosen) == list(range(m))


@pytest.mark.parametrize("shape", [(3,), (2, 5), (1, 4, 4)])
@pytest.mark.parametrize("with_quality", [False, True])
def test_pools_at_once_equal_pools_one_by_one(shape, with_quality):
    rng = np.random.default_rng(2)
    # Each pool of its own scale: none may leak into another's kernel.
    scales = torch.logspace(-3, 3, 9, dtype=torch.float64).reshape(9, *[1] * (1 + len(shape)))
    pools = torch.from_numpy(rng.normal(size=(9, 15, *shape))) * scales
    quality = torch.from_numpy(rng.random((9, 15))) if with_quality else None
    together = select_diverse(pools, 5, quality)
    for i, pool in enumerate(pools):
        flat = pool.flatten(1)
        alone = select_diverse(flat, 5) if quality is None else select_diverse(pool, 5, quality[i])
        assert torch.equal(together[i], alone)
    assert len({tuple(row) for row in together.tolist()}) > 1


@pytest.mark.parametrize("k", [0, -1, 6])
def test_k_beyond_the_pool_is_refused(k):
    with pytest.raises(ValueError, match=f"k must be .* at least 1 and at most 5, got {k}"):
        select_diverse(torch.zeros(5, 2), k)


@pytest.mark.parametrize("unit", [1.0, 1e200, 1e-200])
def test_the_unit_of_quality_does_not_matter(unit):
    points = [[0.0], [0.01], [5.0]]
    quality = [0.9 * unit, 1.0 * unit, 0.8 * unit]
    assert select_diverse(points, 2, quality=quality).tolist() == [1, 2]
