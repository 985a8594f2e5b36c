"""What is inferred from a frame, and what can be said about it."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from random_frames import random_frame

from contrafact.tables import Column, Schema

RNG = np.random.default_rng(0)
N = 60

KINDS = {
    "continuous": [RNG.normal(size=N), RNG.normal(27, 4, N).round(1)],
    "integer": [RNG.integers(18, 90, N), RNG.integers(18, 90, N).astype(float), np.full(N, 3)],
    "step": [5 * RNG.integers(0, 40, N), 0.0 + 1000 * RNG.integers(1, 99, N)],
    "boolean": [RNG.random(N) < 0.5, RNG.integers(0, 2, N), np.zeros(N, bool)],
    "categorical": [RNG.choice(["f", "m"], N), RNG.choice([f"city {i}" for i in range(25)], N)],
    "fixed": [
        [f"patient {i}" for i in range(N)],
        pd.date_range("2020-01-01", periods=N),
        [None] * N,
        pd.to_timedelta(range(N), unit="h"),
    ],
}


@pytest.mark.parametrize(
    ("kind", "values"), [(kind, values) for kind, listed in KINDS.items() for values in listed]
)
def test_the_kind_is_inferred(kind, values):
    assert Schema.infer(pd.DataFrame({"x": values}))["x"].kind == kind


def test_types_with_an_order_are_ordered():
    levels = ["low", "middle", "high"]
    frame = pd.DataFrame({"risk": pd.Categorical(["high", "low"], levels, ordered=True)})
    assert Schema.infer(frame)["risk"].levels == ("low", "high")
    frame = pl.DataFrame({"risk": pl.Series(["high", "low"], dtype=pl.Enum(levels))})
    column = Schema.infer(frame)["risk"]
    assert (column.kind, column.levels) == ("ordered", ("low", "high"))


def test_few_numbers_on_a_grid_are_not_a_grid():
    """Five even numbers may be so by chance."""
    assert Schema.infer(pd.DataFrame({"x": [40, 44, 52, 60, 48]}))["x"].kind == "integer"


def test_ranges_scales_and_decimals():
    frame = pd.DataFrame({"bmi": [20.1, 25.25, 30.0, np.nan, 22.0]})
    column = Schema.infer(frame)["bmi"]
    assert (column.lower, column.upper, column.decimals) == (20.1, 30.0, 2)
    assert column.missing and column.center == 23.63  # the median, rounded like the values
    assert column.scale == pytest.approx(1.4826 * np.median([3.525, 1.625, 6.375, 1.625]))


def test_units_do_not_matter():
    """Everything that is measured in the units of a column goes with them."""
    values = np.random.default_rng(1).normal(120, 15, 50).round(1)
    one = Schema.infer(pd.DataFrame({"x": values}))["x"]
    other = Schema.infer(pd.DataFrame({"x": (values * 1000).round()}))["x"]
    for field in ("scale", "center", "lower", "upper"):
        assert getattr(other, field) == pytest.approx(1000 * getattr(one, field))


@pytest.mark.parametrize("make", [int, bool, float])
def test_one_hot_groups_are_found(make):
    closed = pd.get_dummies(pd.Series(["r", "g", "b", "r"]), prefix="color", dtype=make)
    schema = Schema.infer(closed)
    assert schema.groups == {"color": (0, 1, 2)} and not schema.open_groups
    opened = Schema.infer(closed.assign(color_r=make(0)))
    assert opened.open_groups == {"color"}
    both = closed.assign(color_r=make(1))
    assert not Schema.infer(both).groups


def test_two_flags_that_exclude_each_other_by_chance_are_no_group():
    frame = pd.DataFrame({"has_cat": [1, 0, 0], "has_dog": [0, 1, 0]})
    assert not Schema.infer(frame).groups
    assert Schema.infer(frame[:2]).groups == {"has": (0, 1)}


def test_what_is_known_better_counts():
    frame = pd.DataFrame({"grade": [1, 2, 3, 2], "color_r": [1, 0, 0, 1], "color_g": [0, 1, 1, 0]})
    schema = Schema.infer(frame, kinds={"grade": "ordered", "color_r": "integer"})
    assert schema["grade"].levels == (1, 2, 3)
    assert not schema.groups
    with pytest.raises(ValueError, match="no column 'size'"):
        Schema.infer(frame, kinds={"size": "integer"})
    with pytest.raises(ValueError, match="column 'grade' has 3 values; 'boolean' has two"):
        Schema.infer(frame, kinds={"grade": "boolean"})
    texts = pd.DataFrame({"ward": ["A", "B"]})
    with pytest.raises(ValueError, match="column 'ward' holds texts; 'continuous' needs numbers"):
        Schema.infer(texts, kinds={"ward": "continuous"})


def test_edit_makes_another_schema():
    schema = Schema.infer(pd.DataFrame({"age": [44.5, 61.25, 50.0], "ward": ["A", "B", "A"]}))
    edited = schema.edit("age", kind="integer").edit("ward", levels=["A", "B", "C"], cost=2.0)
    assert schema["ward"].levels == ("A", "B")
    assert edited["ward"].levels == ("A", "B", "C")
    # The grid of whole numbers is that of whole numbers, whatever the median was.
    assert (edited["age"].center, edited["age"].step) == (50.0, 1.0)
    assert schema.edit("ward", kind="fixed")["ward"].levels == ()


def test_a_schema_survives_json():
    schema = Schema.infer(random_frame(np.random.default_rng(3), 40, group="open"))
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


def test_it_prints_as_a_list():
    frame = pd.DataFrame({"age": [44, 61, 44], "ward": ["A", None, "B"]})
    lines = repr(Schema.infer(frame)).splitlines()
    assert lines == [
        "Schema of 2 columns",
        "  age   integer from 44 to 61",
        "  ward  categorical A, B (may be missing)",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"kind": "number"}, "column 'x': kind must be"),
        ({"kind": "step"}, "needs step"),
        ({"kind": "continuous", "lower": 2.0, "upper": 1.0}, "lower 2 is above upper 1"),
        ({"kind": "categorical"}, "needs levels"),
        ({"kind": "integer", "levels": ("a",)}, "has no levels"),
        ({"kind": "categorical", "levels": ("a", "a")}, "levels must differ"),
        ({"kind": "boolean", "levels": ("a",)}, "two levels"),
        ({"kind": "continuous", "scale": 0.0}, "scale must be"),
        ({"kind": "continuous", "cost": -1.0}, "cost must be"),
        ({"kind": "continuous", "group": "color"}, "must be 'integer'"),
    ],
)
def test_nonsense_is_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        Column("x", **arguments)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Schema(()), "at least one"),
        (lambda: Schema((Column("x", "integer"), Column("x", "integer"))), "'x' appears more"),
        (lambda: Schema((Column("x", "integer"),), {"color"}), "color.*no column has"),
        (lambda: Schema((Column("x", "integer", group="g"),)), "has one column only"),
        (lambda: Schema.infer(np.ones((2, 2))), "must be a data frame"),
        (lambda: Schema.infer(pd.DataFrame({"x": []})), "at least one row"),
        (
            lambda: Schema((Column("x", "integer"),)).edit("y", cost=2),
            "no column 'y'. Columns: 'x'",
        ),
        (lambda: Schema((Column("x", "integer"),)).edit("x", weight=2), "no field 'weight'"),
        (lambda: Schema.from_dict({"columns": [{"name": "x"}]}), "name, kind"),
    ],
)
def test_schemas_that_cannot_be_are_refused(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make()
