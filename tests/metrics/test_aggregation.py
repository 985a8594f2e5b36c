"""Aggregates: over all requests, with coverage and an interval."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from contrafact.metrics import Metric, aggregate, aggregation, evaluate

NAN = float("nan")


def test_by_hand(three):
    table = aggregate(evaluate(three))
    columns = ["direction", "mean", "low", "high", "coverage", "n", "n_already"]
    assert list(table.columns) == columns
    assert table.loc["valid", ["direction", "mean", "coverage", "n"]].tolist() == [
        "max",
        1 / 3,
        1,
        3,
    ]
    assert table.loc["l1", ["direction", "mean", "coverage", "n"]].tolist() == ["min", 4, 1, 3]
    assert table.loc["contiguity", ["mean", "coverage", "n"]].tolist() == [0.25, 2 / 3, 3]
    assert table.loc["diversity", ["coverage", "n"]].tolist() == [0, 3]
    assert table.loc["diversity", ["mean", "low", "high"]].isna().all()
    assert "source" not in table.index and "status" not in table.index


def test_each_request_weighs_the_same():
    frame = pd.DataFrame({"source": [0, 0, 0, 1], "l1": [1.0, 2.0, NAN, 4.5]})
    table = aggregate(frame)
    assert table.loc["l1", ["mean", "coverage", "n"]].tolist() == [3, 1, 2]


def test_tables_read_back_hold_truth_values_and_none():
    frame = pd.DataFrame(
        {"source": range(4), "valid": np.array([True, False, None, True], dtype=object)}
    )
    assert aggregate(frame).loc["valid", ["mean", "coverage", "n"]].tolist() == [2 / 3, 3 / 4, 4]


def test_interval_is_that_of_the_mean():
    rng = np.random.default_rng(1)
    values = rng.normal(size=400)
    frame = pd.DataFrame(
        {"source": np.arange(400), "l2": values, "valid": (values > 0.5).astype(float)}
    )
    table = aggregate(frame)
    for name in ("l2", "valid"):
        error = 1.96 * frame[name].std() / 20
        low, mean, high = table.loc[name, ["low", "mean", "high"]]
        assert mean - low == pytest.approx(error, rel=0.12)
        assert high - mean == pytest.approx(error, rel=0.12)


def test_counterfactuals_of_one_request_stay_together():
    """Ten copies of a request are no more evidence than one."""
    once = pd.DataFrame({"source": np.arange(8), "l1": np.arange(8.0)})
    often = pd.concat([once] * 10)
    pd.testing.assert_frame_equal(aggregate(once), aggregate(often))


def test_seeded_and_in_blocks(monkeypatch):
    frame = pd.DataFrame({"source": np.arange(30), "l1": np.random.default_rng(0).random(30)})
    whole = aggregate(frame)
    pd.testing.assert_frame_equal(aggregate(frame), whole)
    assert aggregate(frame, random_state=1).loc["l1", "low"] != whole.loc["l1", "low"]
    monkeypatch.setattr(aggregation, "MAX_ELEMENTS", 100)
    pd.testing.assert_frame_equal(aggregate(frame), whole)


def test_resampling_by_hand():
    values = np.array([[0.0, NAN], [1.0, 2.0], [5.0, 4.0]])
    mean, low, high = aggregation.bootstrap(values, n_resamples=4, random_state=3)
    w = np.random.default_rng(3).multinomial(3, [1 / 3] * 3, size=4)
    samples = np.array(
        [[(row @ [0, 1, 5]) / 3, (row @ [0, 2, 4]) / (row[1] + row[2])] for row in w]
    )
    np.testing.assert_allclose(mean, [2, 3])
    np.testing.assert_allclose([low, high], np.nanquantile(samples, [0.025, 0.975], axis=0))


def test_groups_and_requests(three):
    frame = pd.concat(
        [evaluate(three).assign(method=m, seed=s) for m in ("p", "q") for s in (0, 1)]
    )
    table = aggregate(frame, "method", request=["seed", "source"])
    assert table.index.names == ["method", "metric"]
    assert table.loc[("q", "valid"), ["mean", "n"]].tolist() == [1 / 3, 6]
    assert "seed" not in table.index.get_level_values("metric")
    pd.testing.assert_frame_equal(
        table.loc["p"], aggregate(frame[frame["method"] == "p"], request=["seed", "source"])
    )


def test_own_metrics_bring_their_direction(three):
    class Constant(Metric):
        """Always two."""

        name, direction = "constant", "max"

        def compute(self, result, inputs):
            return np.full(len(result), 2)

    assert aggregate(evaluate(three, [Constant()])).loc[
        "constant", ["direction", "mean"]
    ].tolist() == [
        "max",
        2,
    ]


def test_empty_and_unknown(three):
    assert (aggregate(evaluate(three[:0]))["n"] == 0).all()
    with pytest.raises(ValueError, match="no rows"):
        aggregate(evaluate(three[:0]), "status")
    with pytest.raises(ValueError, match=r"no column 'method'\. Columns: source, status, valid"):
        aggregate(evaluate(three), "method")


def test_requests_already_in_the_target_class_are_counted_and_told(make):
    """They weigh like any other request, with their change of zero, and the table says how many."""
    p = [[0.9, 0.1], [0.1, 0.9], [0.9, 0.1], [0.9, 0.1]]
    status = np.array(["valid", "already_target", "valid", "invalid"])
    X_cf = np.array([[4.0], [0.0], [2.0], [2.0]])
    result = make(
        np.zeros((4, 1)),
        X_cf,
        p,
        [[0, 1.0], [0, 1.0], [0, 1.0], [1.0, 0]],
        modality="row",
        status=status,
        source=np.array([0, 1, 2, 2]),
    )
    scores = evaluate(result, ["valid", "l1", "sparsity"])
    table = aggregate(scores)
    assert table.loc["l1", ["mean", "n", "n_already"]].tolist() == [(4 + 0 + 2) / 3, 3, 1]
    assert table.loc["sparsity", ["mean", "n_already"]].tolist() == [2 / 3, 1]
    by_status = aggregate(scores, "status")
    assert by_status.loc[("already_target", "l1"), ["mean", "n", "n_already"]].tolist() == [0, 1, 1]
    assert by_status.loc[("valid", "l1"), ["n", "n_already"]].tolist() == [2, 0]
    unknown = aggregate(scores.drop(columns="status"))
    assert unknown["n_already"].isna().all() and (unknown["n"] == 3).all()


def test_numbers_that_are_not_accounted_for_are_refused(three):
    scores = evaluate(three, "l1")
    for values in (
        [1, 2, 3],
        [0.5, NAN, NAN],
        [True, False, True],
        np.array([True, None, False], dtype=object),
        np.array([0.5, "unknown", None], dtype=object),
        np.array([None, None, None], dtype=object),
        pd.Categorical([1, 2, 1]),
        pd.array([1, None, 2], dtype="Int64"),
    ):
        frame = scores.assign(mystery=values)
        with pytest.raises(ValueError, match=r"does not know the column 'mystery', which holds"):
            aggregate(frame)
    with pytest.raises(ValueError, match="name it in by or request"):
        aggregate(scores.assign(seed=0))
    table = aggregate(scores.assign(seed=[0, 0, 1]), "seed")
    assert table["n"].tolist() == [2, 1]
    assert aggregate(scores.assign(seed=[0, 0, 1]), request=["seed", "source"])["n"].tolist() == [3]


def test_labels_may_stay_undeclared(three):
    scores = evaluate(three, "l1")
    expected = aggregate(scores)
    for values in (
        "mine",
        ["a", None, "b"],
        pd.Categorical(["a", "b", "a"]),
        pd.array(["a", None, "b"], dtype="string"),
        pd.to_datetime(["2024-01-01"] * 3),
    ):
        pd.testing.assert_frame_equal(aggregate(scores.assign(method=values)), expected)


def test_columns_of_results_and_benchmarks_are_no_metrics(three):
    frame = three.to_frame()
    assert set(aggregate(frame).index) == {"valid", "seconds", "calls"}
    frame = frame.assign(instance=7, accuracy=0.9, fit_seconds=1.0, fit_calls=3, cell_status="done")
    assert set(aggregate(frame).index) == {"valid", "seconds", "calls"}


def test_suffixes_of_a_merge_do_not_hide_a_score(three):
    scores = evaluate(three, "l1")
    with pytest.raises(ValueError, match="does not know the column 'l1_x', 'l1_y'"):
        aggregate(scores.merge(scores, on=["source", "status"]))
    with pytest.raises(ValueError, match="two columns 'source'"):
        aggregate(pd.concat([scores, scores], axis=1))


def test_definitions_must_be_metrics(three):
    with pytest.raises(TypeError, match="instances of Metric, got 'l1'"):
        aggregate(evaluate(three), metrics=["l1"])
