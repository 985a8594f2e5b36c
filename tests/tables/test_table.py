"""Frames come back exactly as they were: values, types, labels, library."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal as assert_polars_equal
from random_frames import PANDAS, POLARS, random_frame

from contrafact.tables import Schema, Table


def assert_pandas_equal(frame, expected):
    pd.testing.assert_frame_equal(frame, expected, check_exact=True, check_freq=False)
    for label in expected.columns:
        # Frames with None and with NaN count as equal; a one-hot encoder tells them apart.
        for one, other in zip(frame[label].tolist(), expected[label].tolist(), strict=True):
            assert type(one) is type(other)


SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("kind", PANDAS)
@settings(max_examples=10, deadline=None)
@given(seed=SEEDS, n=st.integers(1, 30))
def test_a_column_of_pandas_comes_back(kind, seed, n):
    frame = random_frame(np.random.default_rng(seed), n, kinds=[kind])
    assert_pandas_equal(Table.read(frame).frame(), frame)


def test_a_wide_frame_comes_back_in_one_piece():
    """Or pandas warns that it is fragmented when a column is added."""
    frame = Table.read(pd.DataFrame(np.zeros((2, 120)))).frame()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame["more"] = 1.0


@pytest.mark.parametrize("kind", POLARS)
@settings(max_examples=10, deadline=None)
@given(seed=SEEDS, n=st.integers(1, 30))
def test_a_column_of_polars_comes_back(kind, seed, n):
    frame = random_frame(np.random.default_rng(seed), n, "polars", [kind])
    assert_polars_equal(Table.read(frame).frame(), frame, check_exact=True)


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, n=st.integers(1, 40), group=st.sampled_from(["closed", "open", None]))
def test_whole_frames_come_back(seed, n, group):
    rng = np.random.default_rng(seed)
    frame = random_frame(rng, n, group=group)
    frame.index = pd.Index(rng.integers(0, 3, n), name="patient")  # repeated labels
    assert_pandas_equal(Table.read(frame).frame(), frame)
    order = rng.permutation(n)[: n // 2 + 1]
    assert_pandas_equal(Table.read(frame).take(order).frame(), frame.iloc[order])
    other = random_frame(rng, n, "polars", group=group)
    assert_polars_equal(Table.read(other).frame(), other, check_exact=True)


@pytest.mark.parametrize(
    "columns",
    [
        pd.Index([1, "two", 3.5]),
        pd.RangeIndex(3),
        pd.Index(["a", "b", "c"], name="feature"),
        pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)], names=["part", "number"]),
    ],
)
def test_labels_of_any_kind_come_back(columns):
    frame = pd.DataFrame([[1, 2.5, "x"], [3, 4.5, "y"]])
    frame.columns = columns
    table = Table.read(frame)
    assert_pandas_equal(table.frame(), frame)
    assert table.frame().columns.names == columns.names
    assert table.schema.names == tuple(str(label) for label in columns)


@pytest.mark.parametrize(
    "index",
    [
        pd.date_range("2020-01-01", periods=2, freq="D", tz="UTC"),
        pd.MultiIndex.from_tuples([("a", 1), ("a", 2)], names=["ward", "bed"]),
        pd.Index(["p7", "p7"], name="patient"),
    ],
)
def test_labels_of_rows_come_back(index):
    frame = pd.DataFrame({"age": [44, 61]}, index=index)
    assert_pandas_equal(Table.read(frame).frame(), frame)


def test_numbers_stand_for_themselves_and_levels_for_their_position():
    frame = pd.DataFrame(
        {
            "age": [44, 61, 50],
            "smokes": [True, False, True],
            "ward": ["B", None, "A"],
            "admitted": pd.to_datetime(["2020-01-01", None, "2020-01-01"]),
        }
    )
    table = Table.read(frame)
    nan = np.nan
    np.testing.assert_array_equal(
        table.codes, [[44, 1, 1, 0], [61, 0, nan, nan], [50, 1, 0, 0]], strict=False
    )


def test_a_second_frame_is_read_like_the_first():
    reference = pd.DataFrame({"ward": ["B", "A"], "id": ["x1", "x2"], "age": [1.5, 2.0]})
    schema = Schema.infer(reference, kinds={"id": "fixed"})
    table = Table.read(reference, schema)
    row = pd.DataFrame({"ward": ["B"], "id": ["x3"], "age": [7]}, index=["p9"])
    read = Table.read(row, like=table)
    assert read.codes.tolist() == [[1.0, 2.0, 7.0]]
    back = read.frame()
    assert back.index.tolist() == ["p9"] and back["id"].tolist() == ["x3"]
    assert back["age"].dtype == float  # as the model was trained on


def test_numbers_without_a_place_for_missing_values_keep_them():
    """Cast to whole numbers or booleans they would become some number, or False."""
    reference = pd.DataFrame({"age": [44, 61, 30], "smokes": [True, False, True]})
    schema = Schema.infer(reference).edit("age", missing=True).edit("smokes", missing=True)
    table = Table.read(reference, schema)
    row = pd.DataFrame({"age": [np.nan], "smokes": pd.Series([None], dtype=object)})
    back = Table.read(row, like=table).frame()
    assert back.isna().all().all()


def test_dates_that_may_change_are_days():
    frame = pd.DataFrame(
        {"admitted": pd.to_datetime(["2020-01-01 06:00", "2021-03-01 00:00", None])}
    )
    zoned = pd.DataFrame({"admitted": frame["admitted"].dt.tz_localize("America/New_York")})
    for given_frame in (frame, zoned, pl.from_pandas(frame), pl.from_pandas(zoned)):
        schema = Schema.infer(given_frame, kinds={"admitted": "continuous"})
        table = Table.read(given_frame, schema)
        assert np.diff(table.codes[:2, 0]) == [424.75]
        if isinstance(given_frame, pd.DataFrame):
            assert_pandas_equal(table.frame(), given_frame)
        else:
            assert_polars_equal(table.frame(), given_frame)


def test_empty_frames_are_read():
    frame = pd.DataFrame({"age": [44, 61], "ward": ["A", "B"]})
    table = Table.read(frame[:0], like=Table.read(frame))
    assert_pandas_equal(table.frame(), frame[:0])


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda table: pickle.loads(pickle.dumps(table))])
def test_tables_can_be_copied(copier):
    frame = random_frame(np.random.default_rng(0), 9)
    assert_pandas_equal(copier(Table.read(frame)).frame(), frame)


def test_numbers_of_fixed_values_beyond_the_last_stand_for_it():
    """A point between rows may have any number there; the model is asked about some row."""
    frame = pd.DataFrame({"admitted": pd.to_datetime(["2020-01-01", "2020-01-02"])})
    table = Table.read(frame).with_codes(np.array([[1e200], [0.0]]))
    assert table.frame()["admitted"].tolist() == frame["admitted"].tolist()[::-1]


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame({"age": ["old"], "ward": ["A"]}), "column 'age' of X holds 'old'.*'integer'"),
        (pd.DataFrame({"age": [1], "ward": ["Z"]}), "column 'ward' of X holds 'Z' in row 0.*'A'"),
        (pd.DataFrame({"age": [None], "ward": ["A"]}), "column 'age' of X has no value in row 0"),
        (pd.DataFrame({"age": [np.inf], "ward": ["A"]}), "column 'age' of X is inf in row 0"),
        (pd.DataFrame({"age": [[1]], "ward": ["A"]}), r"column 'age' of X holds \[1\] in row 0"),
        (pd.DataFrame({"ward": ["A"], "age": [1]}), "X has the columns of fit in another order"),
        (pd.DataFrame({"age": [1]}), "not those of fit: missing 'ward'"),
        (pd.DataFrame([[1, 2]], columns=["age", "age"]), "more than one column called 'age'"),
        (np.ones((1, 2)), "X must be a data frame"),
    ],
)
def test_what_does_not_fit_is_named(frame, words):
    table = Table.read(pd.DataFrame({"age": [44, 61], "ward": ["A", "B"]}))
    with pytest.raises((ValueError, TypeError), match=words):
        Table.read(frame, like=table)


@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize(
    ("dtype", "value", "accepted"),
    [
        ("int64", 49.5, "whole numbers from -9223372036854775808"),
        ("uint8", 300, "whole numbers from 0 to 255 are accepted"),
        ("uint8", -5, "whole numbers from 0 to 255 are accepted"),
        ("float32", 1e39, "numbers up to 3.40282e"),
    ],
)
def test_numbers_that_a_type_cannot_hold_are_refused(library, dtype, value, accepted):
    """Rounded or wrapped, they would be other rows."""
    values = np.arange(20).astype(dtype)
    fit = Table.read(library.DataFrame({"age": values, "b": np.arange(20.0)}))
    frame = library.DataFrame({"age": [30.0, float(value)], "b": [0.0, 1.0]})
    with pytest.raises(ValueError, match=f"column 'age' of X holds .* in row 1; .*{accepted}"):
        Table.read(frame, like=fit)
    whole = Table.read(library.DataFrame({"age": [30.0, 31.0], "b": [0.0, 1.0]}), like=fit)
    assert whole.codes[:, 0].tolist() == [30, 31]


@pytest.mark.parametrize("row", [(0, 0, 0), (0, 1, 1), (0, 2, 0), (0, 0.5, 0.5)])
def test_rows_that_break_a_one_hot_group_are_refused(row):
    names = ["color_red", "color_green", "color_blue"]
    eye = pd.DataFrame(np.tile(np.eye(3), (10, 1)), columns=names)
    fit = Table.read(eye.assign(b=np.arange(30.0)))
    frame = pd.DataFrame([[1, 0, 0, 0.0], [*row, 0.0]], columns=[*names, "b"])
    with pytest.raises(ValueError, match=r"columns 'color_red', .* exactly one is 1 .*row 1 holds"):
        Table.read(frame, like=fit)
    eye.loc[0] = 0.0
    open_ = Table.read(eye.assign(b=np.arange(30.0)))
    if sum(row) == 0:
        assert len(Table.read(frame, like=open_)) == 2
        return
    with pytest.raises(ValueError, match="at most one is 1"):
        Table.read(frame, like=open_)


@pytest.mark.parametrize("ordered", [False, True])
def test_a_level_that_was_added_to_the_schema_has_a_place_in_the_type(ordered):
    cities = pd.Categorical(["Bonn", "Rom"] * 4, ordered=ordered)
    frame = pd.DataFrame({"city": cities, "b": np.arange(8.0)})
    levels = ["Bonn", "Rom", "Berlin"]
    fit = Table.read(frame, Schema.infer(frame).edit("city", levels=levels))
    assert fit.frame()["city"].tolist() == frame["city"].tolist()
    new = pd.DataFrame({"city": ["Berlin", "Rom"], "b": [0.0, 1.0]})
    back = Table.read(new, like=fit).frame()["city"]
    assert back.tolist() == ["Berlin", "Rom"] and back.cat.ordered == ordered
    enum = pl.DataFrame({"city": ["Bonn", "Rom"] * 4}, schema={"city": pl.Enum(["Bonn", "Rom"])})
    fit = Table.read(enum, Schema.infer(enum).edit("city", levels=levels))
    assert Table.read(pl.DataFrame({"city": ["Berlin"]}), like=fit).frame()["city"][0] == "Berlin"


def test_the_value_that_is_no_number_is_named():
    fit = Table.read(pd.DataFrame({"age": np.arange(20)}))
    frame = pd.DataFrame({"age": pd.Series([37, 38, "old"], dtype=object)})
    with pytest.raises(ValueError, match="column 'age' of X holds 'old' in row 2"):
        Table.read(frame, like=fit)
