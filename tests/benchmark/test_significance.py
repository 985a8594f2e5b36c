"""Friedman's test against SciPy and its definition; what all tests of significance refuse."""

import numpy as np
import pytest
from scipy import stats
from score_table import table

from contrafact.benchmark.blocks import ranks
from contrafact.benchmark.pairwise import nemenyi, wilcoxon_holm
from contrafact.benchmark.significance import friedman


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
