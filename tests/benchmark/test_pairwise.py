"""Tests of pairs against SciPy, tables, hand computation and brute force."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats
from score_table import table

from contrafact.benchmark.pairwise import critical_difference, holm, nemenyi, wilcoxon_holm


@pytest.mark.parametrize(
    ("k", "n", "alpha", "expected"),
    [(5, 10, 0.05, 1.929), (2, 10, 0.05, 0.620), (4, 14, 0.05, 1.254), (10, 20, 0.10, 2.796)],
)
def test_critical_difference_is_the_tables(k, n, alpha, expected):
    """q from Demšar's table: 2.728 (k = 5), 1.960 (2), 2.569 (4) at 0.05; 2.920 (10) at 0.10."""
    assert critical_difference(k, n, alpha) == pytest.approx(expected, abs=1e-3)


def test_nemenyi_tells_apart_what_is_further_than_cd(random_table):
    found = nemenyi(random_table, "l2", alpha=0.05)
    assert found.mean_ranks.is_monotonic_increasing and found.n_blocks == 12
    for a, b, p, different in found.pairs.itertuples(index=False):
        apart = abs(found.mean_ranks[a] - found.mean_ranks[b])
        assert different == (apart > found.critical_difference) == (p < 0.05)
    assert found.pairs["different"].any() and not found.pairs["different"].all()


def test_alpha_matters(random_table):
    loose, strict = (nemenyi(random_table, "l2", alpha) for alpha in (0.1, 0.01))
    assert loose.critical_difference < strict.critical_difference


def test_holm_by_hand():
    """Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, 0.04 lifted to 0.06."""
    np.testing.assert_allclose(holm(np.array([0.03, 0.005, 0.04, 0.01])), [0.06, 0.02, 0.06, 0.03])
    assert holm(np.array([0.6, 0.5])).tolist() == [1, 1]


def test_wilcoxon_holm_is_scipys_corrected(random_table):
    found = wilcoxon_holm(random_table, "l2", 0.05)
    scores = random_table.pivot(index="dataset", columns="explainer", values="l2")
    raw = [
        stats.wilcoxon(scores[a], scores[b]).pvalue
        for a, b in zip(found.pairs.a, found.pairs.b, strict=True)
    ]
    np.testing.assert_allclose(found.pairs["p"], holm(np.array(raw)))
    assert found.critical_difference is None


def test_wilcoxon_of_equal_and_of_missing_methods():
    rng = np.random.default_rng(0)
    one = rng.random((10, 1))
    found = wilcoxon_holm(table(np.hstack([one, one, np.full((10, 1), np.nan)])), "l2")
    p = found.pairs.set_index(["a", "b"])["p"]
    assert p["a", "b"] == 1
    assert p["a", "c"] == pytest.approx(3 * 2 / 2**10)  # all ten blocks lost, three pairs
    assert found.cliques == [("a", "b")]


def test_cliques_are_maximal_and_complete(random_table):
    """Against brute force over all sets of methods."""
    found = wilcoxon_holm(random_table, "l2", 0.3)
    alike = {
        frozenset(pair) for pair in found.pairs.loc[~found.pairs.different, ["a", "b"]].to_numpy()
    }
    methods = list(found.mean_ranks.index)
    sets = [
        set(group)
        for size in range(2, 6)
        for group in combinations(methods, size)
        if all(frozenset(pair) in alike for pair in combinations(group, 2))
    ]
    expected = {
        tuple(m for m in methods if m in s) for s in sets if not any(s < other for other in sets)
    }
    assert set(found.cliques) == expected and len(found.cliques) == len(expected)


@pytest.mark.parametrize("test", [nemenyi, wilcoxon_holm])
def test_alpha_is_checked(test, random_table):
    for wrong in (5, 0, None, "0.05", [0.05]):
        with pytest.raises(ValueError, match="alpha must be a number above 0 and below 1"):
            test(random_table, "l2", wrong)
