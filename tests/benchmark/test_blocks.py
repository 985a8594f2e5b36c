"""Means and ranks by block; failures never help a method."""

import numpy as np
import pandas as pd
import pytest
from score_table import table

from contrafact.benchmark.blocks import block_means, finished_runs, ranks
from contrafact.metrics import Metric


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
    """A liar's l2 is 0; as its rows are not valid, it is last unless bare numbers are asked for."""
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
    assert ranks(frame, "l2").index.tolist() == ["toy00", "toy02"]


def runs():
    """Two data sets with three seeds each: a wins all runs on the first, b those on the second."""
    by_run = [[1, 2], [1, 3], [1, 4], [5, 4], [6, 4], [7, 4]]
    frame = table(by_run)
    return frame.assign(
        dataset=np.repeat(["first", "second"], 6), seed=np.tile(np.repeat(range(3), 2), 2)
    )


def test_blocks_are_data_sets_or_runs():
    frame = runs()
    assert ranks(frame, "l2").to_numpy().tolist() == [[1, 2], [2, 1]]
    np.testing.assert_allclose(block_means(frame, "l2", blocks="datasets"), [[1, 3], [6, 4]])
    assert len(ranks(frame, "l2", blocks="runs")) == 6
    with pytest.raises(ValueError, match="blocks must be 'datasets' or 'runs', got 'seeds'"):
        ranks(frame, "l2", blocks="seeds")


def test_a_run_that_a_method_has_not_finished_counts_for_no_one():
    """Without the rows of b in two runs on the second data set, one run is left there."""
    frame = runs()
    is_missing = (frame["explainer"] == "b") & (frame["dataset"] == "second") & (frame["seed"] > 0)
    rest = frame[~is_missing]
    np.testing.assert_allclose(block_means(rest, "l2", blocks="datasets"), [[1, 3], [5, 4]])
    assert len(finished_runs(rest)) == 8
    nothing = frame[(frame["explainer"] == "a") ^ (frame["dataset"] == "first")]
    assert ranks(nothing, "l2").shape == (0, 2)


def test_missing_columns_are_named(random_table):
    with pytest.raises(ValueError, match=r"no column 'instance', 'linf'. Columns: dataset, .*l2"):
        ranks(random_table.drop(columns="instance"), "linf")


def test_failures_are_found_in_the_status_where_there_is_no_column_valid():
    status = [["invalid", "valid"], ["error", "already_target"]]
    frame = table([[0, 1], [0, 1]], status=status)
    assert ranks(frame, "l2").to_numpy().tolist() == [[2, 1], [2, 1]]
    assert ranks(frame, "l2", failed_worst=False).to_numpy().tolist() == [[1, 2], [1, 2]]


@pytest.mark.parametrize("column", ["dataset", "classifier", "seed"])
def test_runs_without_a_name_are_refused(column):
    with pytest.raises(ValueError, match=f"column '{column}' of frame has missing values"):
        ranks(table([[0, 1]]).assign(**{column: None}), "l2")
