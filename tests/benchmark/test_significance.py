"""Tests of significance against SciPy, tables, hand computation and brute force."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats
from score_table import table

from contrafact.benchmark.blocks import ranks
from contrafact.benchmark.significance import (
    critical_difference,
    friedman,
    holm,
    nemenyi,
    wilcoxon_holm,
)


@pytest.mark.parametrize("rounding", [6, 0], ids=["no ties", "ties"])
def test_friedman_is_scipys(random_table, rounding):
    random_table["l2"] = random_table["l2"].round(rounding)
    found = friedman(random_table, "l2")
    expected = stats.friedmanchisquare(*random_table["l2"].to_numpy().reshape(12, 5).T)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.n_methods, found.n_blocks) == (5, 12)


def test_iman_davenport_is_the_anova_of_the_ranks(random_table):
    """F of a two-way analysis of variance on the ranks, blocks removed: its definition."""
    found, r = friedman(random_table, "l2"), ranks(random_table, "l2").to_numpy()
    n, k = r.shape
    between = n * ((r.mean(0) - r.mean()) ** 2).sum() / (k - 1)
    rest = ((r - r.mean(0) - r.mean(1, keepdims=True) + r.mean()) ** 2).sum() / ((k - 1) * (n - 1))
    assert found.f_statistic == pytest.approx(between / rest)
    assert found.f_p == pytest.approx(stats.f.sf(between / rest, k - 1, (k - 1) * (n - 1)))


def test_friedman_at_the_ends():
    same = friedman(table(np.ones((4, 3))), "l2")
    assert (same.statistic, same.p, same.f_p) == (0, 1, 1)
    clear = friedman(table(np.tile([1, 2, 3], (4, 1))), "l2")
    assert clear.statistic == pytest.approx(8) and clear.f_p == 0


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


@pytest.mark.parametrize("test", [friedman, nemenyi, wilcoxon_holm])
def test_blocks_are_stated_and_runs_are_offered(test, random_table):
    """Each row is a data set; as seeds of one data set, the same rows are runs."""
    over_datasets = test(random_table, "l2")
    assert (over_datasets.blocks, over_datasets.n_blocks) == ("datasets", 12)
    repeats = random_table.assign(seed=random_table["dataset"], dataset="one")
    over_runs = test(repeats, "l2", blocks="runs")
    assert (over_runs.blocks, over_runs.n_blocks) == ("runs", 12)
    with pytest.raises(ValueError, match=r'2 blocks \(data sets\), got 5 and 1. blocks="runs"'):
        test(repeats, "l2")


@pytest.mark.parametrize("test", [friedman, nemenyi, wilcoxon_holm])
def test_too_little_to_compare_is_refused(test):
    with pytest.raises(ValueError, match=r"at least 2 methods and 2 blocks .* got 2 and 1"):
        test(table([[1, 2]]), "l2")
    with pytest.raises(ValueError, match="got 1 and 2"):
        test(table([[1], [2]]), "l2")


@pytest.mark.parametrize("test", [nemenyi, wilcoxon_holm])
def test_alpha_is_checked(test, random_table):
    for wrong in (5, 0, None, "0.05", [0.05]):
        with pytest.raises(ValueError, match="alpha must be a number above 0 and below 1"):
            test(random_table, "l2", wrong)


@pytest.mark.parametrize("wrong", [None, 3, {"l2": [1]}, np.zeros((2, 2))])
def test_a_table_is_a_frame(wrong):
    with pytest.raises(TypeError, match="frame must be a DataFrame"):
        friedman(wrong, "l2")


def test_the_arguments_of_a_table_are_named(random_table):
    with pytest.raises(ValueError, match="metric must be the name of a metric or a Metric, got 3"):
        friedman(random_table, 3)
    with pytest.raises(ValueError, match="failed_worst must be True or False, got 'no'"):
        friedman(random_table, "l2", failed_worst="no")
    with pytest.raises(ValueError, match="column 'l2' of frame has dtype"):
        friedman(random_table.assign(l2="near"), "l2")
