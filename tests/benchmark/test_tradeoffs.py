"""Trade-offs against hand computation and brute force."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from score_table import table

from contrafact.benchmark.blocks import ranks
from contrafact.benchmark.tradeoffs import correlations, pareto_front, scalarize, sensitivity


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
    """Two methods, each best in one metric: a wins where its weight is above 1/2."""
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


@pytest.mark.parametrize(
    "weights",
    [{}, {"l2": -1.0}, {"l2": 0.0}, {"l2": np.nan}, {"l2": "1"}, {3: 1}, ["l2"], None],
)
def test_weights_are_checked(random_table, weights):
    with pytest.raises(ValueError, match="weights must be"):
        scalarize(random_table, weights)


def test_correlations_are_spearmans_of_what_is_better(random_table):
    one = random_table[random_table["dataset"] == "toy00"]
    found = correlations(one, ["l2", "sparsity", "target_confidence"])
    assert found.loc["l2", "sparsity"] == pytest.approx(
        stats.spearmanr(one["l2"], one["sparsity"]).statistic
    )
    expected = stats.spearmanr(one["l2"], -one["target_confidence"]).statistic
    assert found.loc["target_confidence", "l2"] == pytest.approx(expected)


def test_hard_data_make_no_correlation():
    """Within each block the two metrics disagree; pooled over blocks they would agree."""
    l2 = np.array([[1, 2, 3], [11, 12, 13], [21, 22, 23]])
    frame = table(l2, sparsity=np.flip(l2, 1))
    assert stats.spearmanr(frame["l2"], frame["sparsity"]).statistic > 0.5
    assert correlations(frame, ["l2", "sparsity"]).loc["l2", "sparsity"] == pytest.approx(-1)


def test_lists_of_metrics_are_checked(random_table):
    for wrong in ("l2", {"l2"}, [3], None):
        with pytest.raises(ValueError, match="metrics must be a list of metrics"):
            pareto_front(random_table, wrong)
    for wrong in ([], ["l2", "l2"]):
        with pytest.raises(ValueError, match="metrics must be different metrics, at least one"):
            pareto_front(random_table, wrong)


@pytest.mark.parametrize(
    "option", [{"draws": 0}, {"draws": 2.5}, {"concentration": "1"}, {"random_state": None}]
)
def test_options_of_a_sensitivity_are_checked(random_table, option):
    (name,) = option
    with pytest.raises(ValueError, match=f"sensitivity: {name} must be"):
        sensitivity(random_table, {"l2": 1}, **option)


def test_a_method_that_failed_in_a_whole_block_gains_nothing():
    """Nor where all others are equal there, so that the worst score is the best as well."""
    alike = table([[1, 1]] * 3, valid=[[0, 1]] * 3)
    assert scalarize(alike, {"l2": 1}).to_dict() == {"b": 1.0, "a": 0.0}
    assert sensitivity(alike, {"l2": 1}).loc["b", "wins"] == 1
    half = table([[1, 2], [1, 2]], valid=[[1, 1], [0, 1]])
    assert scalarize(half, {"l2": 1}).to_dict() == {"a": 0.5, "b": 0.5}
    assert pareto_front(half, ["l2"])["on_front"].all()
    assert pareto_front(table([[1, 2]] * 2), ["l2"])["on_front"].tolist() == [True, False]


def test_rounding_decides_nothing():
    """The means are equal, but are rounded differently."""
    one, other = np.array([13, 22, 16, 22, 13, 14]) / 24, np.array([12, 22, 16, 22, 14, 14]) / 24
    parts = [
        table([[a, b]] * 6).assign(instance=i)
        for i, (a, b) in enumerate(zip(one, other, strict=True))
    ]
    frame = pd.concat(parts)
    assert (ranks(frame, "l2") == 1.5).all(axis=None)
    assert scalarize(frame, {"l2": 1}).tolist() == [1, 1]
    assert pareto_front(frame, ["l2"])["on_front"].all()


@pytest.mark.parametrize("call", [scalarize, sensitivity, pareto_front])
def test_a_metric_without_any_score_is_named(call):
    frame = table([[1, 2]], sparsity=[np.nan, np.nan])
    with pytest.raises(ValueError, match="'sparsity' has no score in any block"):
        call(frame, {"l2": 1, "sparsity": 0} if call is not pareto_front else ["l2", "sparsity"])
