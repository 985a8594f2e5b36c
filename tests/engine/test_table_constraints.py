"""Constraints in words of columns: what they accept, and how they say what is wrong."""

import numpy as np
import pandas as pd
import pytest

from contrafact import Constraints
from contrafact.engine.table_constraints import describe, table_limits
from contrafact.tables import Table, TableSpace


@pytest.fixture(scope="module")
def space():
    frame = pd.DataFrame(
        {
            "age": [44, 61, 50],
            "bmi": [22.1, 31.5, 27.0],
            "sex": ["f", "m", "f"],
            "risk": pd.Categorical(["low", "high", "low"], ["low", "high"], ordered=True),
            "smokes": [True, False, True],
            "color_r": [1, 0, 0],
            "color_g": [0, 1, 0],
            "color_b": [0, 0, 1],
            "admitted": pd.to_datetime(["2020-01-01"] * 3),
        }
    )
    return TableSpace(Table.read(frame))


def test_names_become_masks(space):
    limits = table_limits(Constraints(frozen=["sex", "color"], increasing=["age", "risk"]), space)
    names = space.schema.names
    frozen = [name for name, mask in zip(names, limits.frozen, strict=True) if mask]
    assert frozen == ["sex", "color_r", "color_g", "color_b"]
    rising = [name for name, mask in zip(names, limits.rising, strict=True) if mask]
    assert rising == ["age", "risk"]
    one = table_limits(Constraints(frozen=["color_g"]), space)
    assert one.frozen.sum() == 3  # a one-hot group is frozen as a whole
    mask = np.arange(len(names)) == 2
    assert table_limits(Constraints(frozen=mask), space).frozen.tolist() == mask.tolist()


def test_ranges(space):
    position = {name: i for i, name in enumerate(space.schema.names)}
    limits = table_limits(
        Constraints(bounds={"age": (18.5, 99.5), "bmi": (None, 35.04), "risk": ("high", None)}),
        space,
    )
    assert limits.lower[0, position["age"]] == 19 and limits.upper[0, position["age"]] == 99
    assert limits.lower[0, position["bmi"]] == -np.inf
    assert limits.upper[0, position["bmi"]] == 35.0  # one decimal place
    assert limits.lower[0, position["risk"]] == 1
    seen = table_limits(None, space)
    assert seen.lower[0, position["age"]] == 44 and seen.upper[0, position["age"]] == 61


def test_bounds_on_all_columns_leave_levels_alone(space):
    limits = table_limits(Constraints(lower=25.0, upper=40.0), space)
    for i, column in enumerate(space.schema):
        if not column.is_numeric:
            assert limits.lower[0, i] == -np.inf and limits.upper[0, i] == np.inf


def test_words():
    constraints = Constraints(
        frozen=["sex"],
        bounds={"hba1c": (4, 9), "age": (None, np.array([1, 2]))},
        increasing=["age"],
        decreasing=["bmi", "weight", "debt"],
        max_changed=1,
        relations=["age > 18"],
        forbidden={"ward": [("A", "B")]},
    )
    assert describe(constraints) == (
        "sex frozen, hba1c within [4, 9], age within [-inf, by row], age not falling, bmi, weight "
        "and debt not rising, at most 1 column changed, age > 18, moves of ward forbidden"
    )
    assert describe(Constraints()) == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"frozen": ["weight"]},
            r"constraints\.frozen: There is no column 'weight'. Columns: 'age'",
        ),
        ({"frozen": np.ones(2, bool)}, r"frozen has shape \(2,\); the table has 9 columns"),
        ({"increasing": ["sex"]}, "increasing: column 'sex' is categorical, which has no order"),
        ({"decreasing": ["admitted"]}, "decreasing: column 'admitted' is fixed"),
        ({"bounds": {"size": (0, 1)}}, r"constraints\.bounds: There is no column 'size'"),
        ({"bounds": {"sex": ("f", "m")}}, "bounds: column 'sex' is categorical"),
        ({"bounds": {"age": (9, 1)}}, r"bounds\['age'\]: lower is above upper"),
        ({"bounds": {"age": ("young", 9)}}, r"bounds\['age'\] must be numbers.*'young'"),
        ({"bounds": {"age": (np.nan, 9)}}, r"bounds\['age'\] must be numbers"),
        ({"bounds": {"risk": ("middle", None)}}, r"'middle' is not a level. Levels: 'low', 'high'"),
        ({"bounds": {"risk": (["low"], None)}}, r"bounds\['risk'\]: \['low'\] is not a level"),
        ({"bounds": {"age": ([1, 2], [3, 4, 5])}}, "2 and 3 entries|one entry per instance"),
        ({"relations": ["age > sex"]}, "'age > sex' compares 'sex', which is categorical"),
        ({"relations": ["age > weight"]}, "names 'weight', which is not a column"),
        ({"forbidden": {"sex": [("f", "x")]}}, r"forbidden\['sex'\]: 'x' is not a level.*'f', 'm'"),
        ({"forbidden": {"age": [(1, 2)]}}, "1 is not a level. Levels: none"),
        ({"linked": {"sex": len}}, "column 'sex' does not hold numbers"),
        ({"max_step": 1.0}, "max_step applies to series; X is a table"),
        ({"lower": [1.0, 2.0]}, r"lower has shape \(2,\); the table has 9 columns"),
    ],
)
def test_what_does_not_fit_the_table_is_named(space, arguments, words):
    with pytest.raises(ValueError, match=words):
        table_limits(Constraints(**arguments), space)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"bounds": [("age", 1, 2)]}, "bounds must be"),
        ({"bounds": {"age": 3}}, "bounds must be"),
        ({"bounds": {3: (1, 2)}}, "bounds must be"),
        ({"increasing": "age"}, "increasing must be"),
        ({"decreasing": [1]}, "decreasing must be"),
        ({"max_changed": 0}, "max_changed must be"),
        ({"relations": "a > b"}, "relations must be"),
        ({"forbidden": {"sex": ["fm", 3]}}, "forbidden must be"),
        ({"linked": {"bmi": 3}}, "linked must be"),
        ({"frozen": "sex"}, "frozen must be a boolean array or a list of column names"),
    ],
)
def test_nonsense_is_refused_at_once(arguments, words):
    with pytest.raises(ValueError, match=words):
        Constraints(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"frozen": ["sex"]},
        {"bounds": {"age": (1, 2)}},
        {"increasing": ["age"]},
        {"max_changed": 2},
        {"relations": ["a > b"]},
    ],
)
def test_arrays_have_no_columns(arguments):
    with pytest.raises(ValueError, match="names columns, so the data have to be a table"):
        Constraints(**arguments).check_array()
    Constraints(frozen=[]).check_array()
