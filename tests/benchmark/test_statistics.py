"""Statistics against SciPy, tables, hand computation and brute force; failures never help a method."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contrafact.benchmark.statistics import (
    block_means,
    correlations,
    critical_difference,
    friedman,
    holm,
    nemenyi,
    pareto_front,
    ranks,
    scalarize,
    sensitivity,
    wilcoxon_holm,
)
from contrafact.metrics import Metric


def table(scores, **columns):
    """One instance in each block: scores (blocks, methods) of l2, methods a, b, c, …"""
    scores = np.asarray(scores, dtype=float)
    blocks, methods = scores.shape
    frame = pd.DataFrame(
        {
            "dataset": "toy",
            "classifier": "net",
            "seed": np.repeat(np.arange(blocks), methods),
            "instance": 0,
            "explainer": [chr(97 + j) for j in range(methods)] * blocks,
            "l2": scores.ravel(),
        }
    )
    return frame.assign(**{name: np.ravel(values) for name, values in columns.items()})


@pytest.fixture
def random_table():
    rng = np.random.default_rng(3)
    shape = (12, 5)
    l2 = rng.normal(size=shape) + 0.7 * np.arange(5)
    return table(l2, sparsity=rng.random(shape), target_confidence=rng.random(shape))


# --- ranks --------------------------------------------------------------------------------------------------


def test_blocks_average_instances_before_ranking():
    """a wins two of three instances, b has the better mean."""
    frame = pd.concat(
        [
            table([[l2_a, l2_b]]).assign(instance=i)
            for i, (l2_a, l2_b) in enumerate([(1, 2), (1, 2), (9, 2)])
        ]
    )
    np.testing.assert_allclose(block_means(frame, "l2"), [[11 / 3, 2]])
    assert ranks(frame, "l2").to_numpy().tolist() == [[2, 1]]


def test_directions_are_those_of_the_metric_classes():
    frame = table([[1, 2, 3]], valid=[1, 1, 1], target_confidence=[0.1, 0.2, 0.3])
    assert ranks(frame, "l2").to_numpy().tolist() == [[1, 2, 3]]
    assert ranks(frame, "target_confidence").to_numpy().tolist() == [[3, 2, 1]]


def test_a_metric_of_ones_own_brings_its_direction():
    class Beauty(Metric):
        name, direction = "beauty", "max"

        def compute(self, result, reference=None):
            raise NotImplementedError

    frame = table([[0, 0]], beauty=[1, 2])
    assert ranks(frame, Beauty()).to_numpy().tolist() == [[2, 1]]
    with pytest.raises(ValueError, match=r"'beauty' is unknown. Known: .*valid"):
        ranks(frame, "beauty")


def test_ties_share_and_missing_is_worst():
    frame = table([[1, 1, 5, np.nan], [np.nan, np.inf, 2, 3]])
    assert ranks(frame, "l2").to_numpy().tolist() == [[1.5, 1.5, 3, 4], [3.5, 3.5, 1, 2]]


def test_giving_the_instance_back_wins_nothing():
    """A liar's l2 is 0; as its rows are not valid, it is last, unless one asks for the bare numbers."""
    frame = table([[3, 0], [4, 0]], valid=[1, 0, 1, 0])
    assert ranks(frame, "l2").to_numpy().tolist() == [[1, 2], [1, 2]]
    assert ranks(frame, "l2", failed_worst=False).to_numpy().tolist() == [[2, 1], [2, 1]]


def test_some_failures_get_the_worst_score_of_the_block():
    frame = pd.concat(
        [
            table([[3, 1]], valid=[1, 1]).assign(instance=0),
            table([[7, 0]], valid=[1, 0]).assign(instance=1),
        ]
    )
    np.testing.assert_allclose(block_means(frame, "l2"), [[5, (1 + 7) / 2]])
    np.testing.assert_allclose(block_means(frame, "valid"), [[1, 0.5]])


def test_one_failure_among_k_is_a_failure():
    frame = pd.concat([table([[3, 1]], valid=[1, 1]), table([[5, 1]], valid=[1, 0])])
    np.testing.assert_allclose(block_means(frame, "valid"), [[1, 0]])
    assert ranks(frame, "l2").to_numpy().tolist() == [[1, 2]]


def test_a_cell_that_broke_down_counts():
    """Its rows have neither an instance nor scores, only that they are not valid."""
    frame = table([[3, 1, 2]], valid=[1.0, 1.0, 1.0])
    frame.loc[1, ["instance", "l2", "valid"]] = [np.nan, np.nan, 0.0]
    assert ranks(frame, "l2").to_numpy().tolist() == [[2, 3, 1]]
    np.testing.assert_allclose(block_means(frame, "valid"), [[1, 0, 1]])


def test_what_no_method_has_a_score_for_is_left_out():
    frame = table([[1, 2], [np.nan, np.nan], [2, 1]])
    assert ranks(frame, "l2").index.get_level_values("seed").tolist() == [0, 2]


def test_missing_columns_are_named(random_table):
    with pytest.raises(ValueError, match=r"no column 'instance', 'linf'. Columns: dataset, .*l2"):
        ranks(random_table.drop(columns="instance"), "linf")


# --- tests of hypotheses ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounding", [6, 0], ids=["no ties", "ties"])
def test_friedman_is_scipys(random_table, rounding):
    random_table["l2"] = random_table["l2"].round(rounding)
    found = friedman(random_table, "l2")
    expected = stats.friedmanchisquare(*random_table["l2"].to_numpy().reshape(12, 5).T)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.n_methods, found.n_blocks) == (5, 12)


def test_iman_davenport_is_the_anova_of_the_ranks(random_table):
    """F of a two-way analysis of variance on the ranks, blocks removed: the definition behind the formula."""
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
    """Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, and 0.04 lifted to 0.06."""
    np.testing.assert_allclose(holm(np.array([0.03, 0.005, 0.04, 0.01])), [0.06, 0.02, 0.06, 0.03])
    assert holm(np.array([0.6, 0.5])).tolist() == [1, 1]


def test_wilcoxon_holm_is_scipys_corrected(random_table):
    found = wilcoxon_holm(random_table, "l2", 0.05)
    scores = random_table.pivot(index="seed", columns="explainer", values="l2")
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
def test_too_little_to_compare_is_refused(test):
    with pytest.raises(ValueError, match=r"at least 2 methods and 2 blocks .* got 2 and 1"):
        test(table([[1, 2]]), "l2")
    with pytest.raises(ValueError, match="got 1 and 2"):
        test(table([[1], [2]]), "l2")


@pytest.mark.parametrize("test", [nemenyi, wilcoxon_holm])
def test_alpha_is_checked(test, random_table):
    with pytest.raises(ValueError, match="alpha must lie strictly between 0 and 1, got 5"):
        test(random_table, "l2", 5)


# --- trade-offs ---------------------------------------------------------------------------------------------


def test_pareto_front_is_brute_forces():
    rng = np.random.default_rng(1)
    l2, confidence, sparsity = rng.integers(0, 4, size=(3, 1, 20)).astype(float)
    frame = table(l2, target_confidence=confidence, sparsity=sparsity)
    found = pareto_front(frame, ["l2", "target_confidence", "sparsity"])
    loss = np.stack([l2[0], -confidence[0], sparsity[0]], 1)
    expected = [
        not any((other <= mine).all() and (other < mine).any() for other in loss) for mine in loss
    ]
    assert found["on_front"].tolist() == expected and 0 < sum(expected) < 20
    np.testing.assert_allclose(found["target_confidence"], confidence[0])


def test_twins_are_both_on_the_front():
    assert pareto_front(table([[1, 1, 2]]), ["l2"])["on_front"].tolist() == [True, True, False]


def test_scalarize_by_hand():
    """u(l2) = 1, 0.5, 0 and u(confidence) = 0, 1, 0.25; weights 1 : 3."""
    frame = table([[1, 2, 3]], target_confidence=[0.2, 0.6, 0.3])
    found = scalarize(frame, {"l2": 1, "target_confidence": 3})
    assert found.index.tolist() == ["b", "a", "c"]
    np.testing.assert_allclose(found, [0.875, 0.25, 0.1875])


def test_what_never_differs_changes_no_order():
    frame = table([[1, 2, 3]], target_confidence=[0.5] * 3)
    assert scalarize(frame, {"l2": 1, "target_confidence": 1}).tolist() == [1, 0.75, 0.5]


def test_sensitivity_counts_wins_exactly():
    """Two methods, each best in one metric: a wins where its weight is above 1/2, a Beta probability."""
    frame = table([[1, 2]], target_confidence=[0.2, 0.6])
    found = sensitivity(
        frame, {"l2": 0.7, "target_confidence": 0.3}, concentration=10, draws=20_000, random_state=1
    )
    assert found.loc["a", "wins"] == pytest.approx(stats.beta.sf(0.5, 7, 3), abs=0.01)
    assert found["wins"].sum() == pytest.approx(1) and found.loc["b", "best_rank"] == 1
    firm = sensitivity(frame, {"l2": 0.7, "target_confidence": 0.3}, concentration=1e6)
    assert firm["wins"].tolist() == [1, 0]


def test_sensitivity_shares_ties_and_follows_its_seed(random_table):
    assert sensitivity(table([[1, 1, 2]]), {"l2": 1})["wins"].tolist() == [0.5, 0.5, 0]
    weights = {"l2": 1, "sparsity": 2, "target_confidence": 0}
    one, again, other = (
        sensitivity(random_table, weights, random_state=s, draws=50) for s in (0, 0, 1)
    )
    pd.testing.assert_frame_equal(one, again)
    assert not one.equals(other)


@pytest.mark.parametrize("weights", [{}, {"l2": -1.0}, {"l2": 0.0}, {"l2": np.nan}])
def test_weights_are_checked(random_table, weights):
    with pytest.raises(ValueError, match="weights must be"):
        scalarize(random_table, weights)


def test_correlations_are_spearmans_of_what_is_better(random_table):
    one = random_table[random_table["seed"] == 0]
    found = correlations(one, ["l2", "sparsity", "target_confidence"])
    assert found.loc["l2", "sparsity"] == pytest.approx(
        stats.spearmanr(one["l2"], one["sparsity"]).statistic
    )
    expected = stats.spearmanr(one["l2"], -one["target_confidence"]).statistic
    assert found.loc["target_confidence", "l2"] == pytest.approx(expected)


def test_hard_data_make_no_correlation():
    """Within each block the two metrics disagree; pooled over blocks of different scale they would agree."""
    l2 = np.array([[1, 2, 3], [11, 12, 13], [21, 22, 23]])
    frame = table(l2, sparsity=np.flip(l2, 1))
    assert stats.spearmanr(frame["l2"], frame["sparsity"]).statistic > 0.5
    assert correlations(frame, ["l2", "sparsity"]).loc["l2", "sparsity"] == pytest.approx(-1)


def test_lists_of_metrics_are_checked(random_table):
    for wrong in ("l2", [], ["l2", "l2"]):
        with pytest.raises(ValueError, match="a list of different metrics"):
            pareto_front(random_table, wrong)
