"""Scores keep the definitions of their metrics through what users do with tables."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

from contrafact.metrics import Metric, Scores, aggregate, evaluate


class Beauty(Metric):
    """Always two."""

    name = "beauty"
    direction = "max"

    def compute(self, result, inputs):
        return np.full(len(result), 2.0)


class Ugliness(Metric):
    """Another metric of the same name, with the other direction."""

    name = "beauty"
    direction = "min"

    def compute(self, result, inputs):
        return np.full(len(result), 3.0)


class Charm(Metric):
    """Always four."""

    name = "charm"
    direction = "max"

    def compute(self, result, inputs):
        return np.full(len(result), 4.0)


@pytest.fixture
def scores(three):
    return evaluate(three, ["valid", "l1", Beauty()])


METHODS = pd.DataFrame({"source": [0, 1, 2], "method": ["p", "q", "q"]})
KEPT = {
    "rows": lambda s: s[s["valid"] == 0],
    "loc": lambda s: s.loc[[0, 2]],
    "iloc": lambda s: s.iloc[1:],
    "columns": lambda s: s[["source", "beauty"]],
    "drop": lambda s: s.drop(columns="l1"),
    "head": lambda s: s.head(2),
    "query": lambda s: s.query("l1 > 0"),
    "copy": lambda s: s.copy(),
    "deepcopy": copy.deepcopy,
    "pickle": lambda s: pickle.loads(pickle.dumps(s)),
    "assign": lambda s: s.assign(method="p"),
    "insert": lambda s: (s.insert(0, "method", "p"), s)[1],
    "reset_index": lambda s: s.reset_index(drop=True),
    "sort_values": lambda s: s.sort_values("l1"),
    "astype": lambda s: s.astype({"l1": float}),
    "fillna": lambda s: s.fillna(0),
    "concat": lambda s: pd.concat([s, s]),
    "concat with keys": lambda s: pd.concat({"p": s, "q": s}),
    "concat with a plain frame": lambda s: pd.concat([s, pd.DataFrame(s)]),
    "concat of columns": lambda s: pd.concat([s, METHODS["method"]], axis=1),
    "merge": lambda s: s.merge(METHODS, on="source"),
    "pd.merge": lambda s: pd.merge(s, METHODS, on="source", how="left"),
    "merge by index": lambda s: s.merge(METHODS["method"], left_index=True, right_index=True),
    "join": lambda s: s.join(METHODS["method"]),
    "join of several": lambda s: s.join([METHODS[["method"]], METHODS[["source"]].add_prefix("o")]),
}


@pytest.mark.parametrize("way", KEPT)
def test_definitions_are_kept(scores, way):
    kept = KEPT[way](scores)
    assert type(kept) is Scores
    assert set(kept.metrics) == {"valid", "l1", "beauty"}
    assert isinstance(kept.metrics["beauty"], Beauty)
    if way != "join of several":
        table = aggregate(kept)
        assert table.loc["beauty", ["direction", "mean"]].tolist() == ["max", 2]


def test_definitions_of_several_tables_are_joined(three, scores):
    other = evaluate(three, Charm())
    stacked = pd.concat([scores, other])
    assert set(stacked.metrics) == {"valid", "l1", "beauty", "charm"}
    for joined in (
        scores.merge(other, on=["source", "status"]),
        scores.join(other[["charm"]]),
        pd.concat([scores, other[["charm"]]], axis=1),
    ):
        assert aggregate(joined).loc[["beauty", "charm"], "mean"].tolist() == [2, 4]


def test_reasons_travel_too(three):
    everything = evaluate(three)
    reason = everything.left_out["redundancy"]
    assert "pass model=" in reason
    assert pd.concat([evaluate(three, "l1"), everything]).left_out["redundancy"] == reason
    assert everything.merge(METHODS, on="source").left_out == everything.left_out
    assert evaluate(three, "l1").left_out == {}


def test_what_is_handed_out_is_a_copy(scores):
    scores.metrics.clear()
    scores.left_out["l1"] = "no reason"
    assert len(scores.metrics) == 3 and scores.left_out == {}


def test_contradicting_definitions_are_refused(three, scores):
    with pytest.raises(ValueError, match=r"different metrics of the name 'beauty'.*'max'.*'min'"):
        pd.concat([scores, evaluate(three, Ugliness())])


def test_a_table_made_by_hand_knows_nothing():
    assert Scores({"l1": [1.0]}).metrics == {}
    assert Scores({"l1": [1.0]})[:0].left_out == {}


def test_scores_are_a_frame(scores, tmp_path):
    assert isinstance(scores, pd.DataFrame) and isinstance(scores["l1"], pd.Series)
    assert scores.attrs == {}
    assert scores.mean(numeric_only=True)["l1"] == 4
    scores.to_parquet(tmp_path / "scores.parquet")
    again = pd.read_parquet(tmp_path / "scores.parquet")
    pd.testing.assert_frame_equal(pd.DataFrame(scores), again)


def test_a_file_loses_definitions_and_that_is_said(scores, tmp_path):
    scores.to_parquet(tmp_path / "scores.parquet")
    again = pd.read_parquet(tmp_path / "scores.parquet")
    with pytest.raises(ValueError, match=r"'beauty'.*metrics=\[MyMetric\(\)\].*read from a file"):
        aggregate(again)
    pd.testing.assert_frame_equal(aggregate(again, metrics=[Beauty()]), aggregate(scores))
    pd.testing.assert_frame_equal(aggregate(again, metrics=Beauty()), aggregate(scores))


def test_a_plain_frame_on_the_left_loses_definitions_and_that_is_said(scores):
    with pytest.raises(ValueError, match="does not know the column 'beauty'"):
        aggregate(METHODS.merge(scores, on="source"))
