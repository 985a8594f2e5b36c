"""Every point is brought to a row that the schema and the constraints allow."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from contrafact import Constraints
from contrafact.engine.table_constraints import table_limits
from contrafact.tables import Schema, Table, TableSpace

sys.path.append(str(Path(__file__).parents[1] / "tables"))
from random_frames import CHANGEABLE, random_frame

SEEDS = st.integers(0, 2**32 - 1)
N = 24


def follow(frame):
    """Twice a number, with NaN where it is missing."""
    return 2 * frame["rounded"]


#: one of each kind, and all at once
CONSTRAINTS = {
    "schema": {},
    "frozen": {"frozen": ["str", "rounded", "color"]},
    "bounds": {
        "bounds": {
            "rounded": (20.05, 25.0),
            "float64": (-10.123456789, 33.3),
            "float32": (-0.1, 0.1),
            "int64": (30.5, None),
            "ordered": ("low", "low"),
            "step": (11, 98),
            "color_1": (0, 0),
        }
    },
    "by row": {"bounds": {"rounded": (np.linspace(15, 30, N), np.linspace(25, 40, N))}},
    "all columns": {"lower": 0.0, "upper": 50.0},
    "increasing": {"increasing": ["int64", "float64", "ordered", "boolean", "color_0"]},
    "decreasing": {"decreasing": ["tiny", "Int64", "Float64", "ordered"]},
    "max_changed": {"max_changed": 3},
    "relations": {
        "relations": [
            "int64 >= 2 * rounded",
            "rounded < float64 + 20",
            "Float64 + float32 > 0",
            "color_0 * step <= 60",
        ]
    },
    "forbidden": {
        "forbidden": {
            "str": [("f", "m")],
            "category": [("a", "b"), ("b", "c")],
            "bool": [(True, False)],
        }
    },
    "linked": {"linked": {"step": follow}},
}
CONSTRAINTS["all"] = {
    "frozen": ["str"],
    "bounds": CONSTRAINTS["bounds"]["bounds"],
    "increasing": ["int64"],
    "decreasing": ["tiny"],
    "max_changed": 4,
    "relations": CONSTRAINTS["relations"]["relations"],
    "forbidden": {"category": [("a", "b")]},
    "linked": {"float64": follow},
}


def problem(seed, constraints, group="closed"):
    """Make the limits, the rows and candidates around them of a random table."""
    rng = np.random.default_rng(seed)
    frame = random_frame(rng, N, kinds=[*CHANGEABLE, "datetime"], group=group)
    # All levels of the constraints have to be there.
    frame["ordered"] = frame["ordered"].where(np.arange(N) > 1, pd.Series(["low", "high"] * 12))
    frame["str"] = frame["str"].where(np.arange(N) > 1, pd.Series(["f", "m"] * 12))
    frame["category"] = frame["category"].where(np.arange(N) > 2, pd.Series(list("abc") * 8))
    if group is not None:
        for level in range(3):
            frame[f"color_{level}"] = np.roll(np.eye(3, dtype=int).repeat(8, 0)[:, level], seed % 5)
    table = Table.read(frame)
    space = TableSpace(table)
    limits = table_limits(Constraints(**constraints), space)
    x = space.embed(torch.from_numpy(table.codes))
    others = x[torch.from_numpy(rng.permutation(N))]
    share = torch.from_numpy(rng.choice([0.0, 0.3, 1.0], (N, 1)))
    noise = torch.from_numpy(rng.normal(0, 0.5, x.shape) * (rng.random(x.shape) < 0.5))
    return space, limits, x, x + share * (others - x) + noise


@pytest.mark.parametrize("name", CONSTRAINTS)
@settings(max_examples=12, deadline=None)
@given(seed=SEEDS)
def test_projections_are_allowed_rows(name, seed):
    space, limits, x, points = problem(seed, CONSTRAINTS[name])
    found = limits.project(points, x)
    assert limits.allows(found, x).all(), {k: v.tolist() for k, v in limits.check(found, x).items()}
    assert torch.equal(limits.project(found, x), found)
    # What is not changed stays to the bit, in coordinates and in the frame.
    assert torch.equal(limits.project(x, x), x)
    own, new = space.codes(x), space.codes(found)
    unchanged = ((own == new) | (own.isnan() & new.isnan()))[:, space.column]
    assert torch.equal(found[unchanged], x[unchanged])
    assert not (new.isnan() & ~own.isnan()).any()


def rows_of(name, seed, group="closed"):
    """Return the values of instances and projections by column."""
    space, limits, x, points = problem(seed, CONSTRAINTS[name], group)
    own, new = space.codes(x).numpy(), space.codes(limits.project(points, x)).numpy()
    names = space.schema.names
    before = dict(zip(names, own.T, strict=True))
    after = dict(zip(names, new.T, strict=True))
    changed = {
        column: ~((before[column] == after[column]) | np.isnan(after[column])) for column in names
    }
    return space, before, after, changed


@settings(max_examples=12, deadline=None)  # of frames with dozens of rows and every kind of column
@given(seed=SEEDS)
def test_each_limit_holds_by_its_own_words(seed):
    """Checked on the values, without the code under test."""
    for name in ("frozen", "all"):
        _, _, _, changed = rows_of(name, seed)
        for column in CONSTRAINTS[name]["frozen"]:
            assert not any(changed[one].any() for one in changed if one.startswith(column))

    space, _, after, changed = rows_of("bounds", seed)
    for column, (low, high) in CONSTRAINTS["bounds"]["bounds"].items():
        if column == "ordered":
            low = high = space.schema["ordered"].levels.index("low")
        values = after[column][changed[column]]
        assert (values >= (-np.inf if low is None else low)).all()
        assert (values <= (np.inf if high is None else high)).all()

    _, _, after, changed = rows_of("by row", seed)
    low, high = CONSTRAINTS["by row"]["bounds"]["rounded"]
    inside = (after["rounded"] >= low) & (after["rounded"] <= high)
    assert inside[changed["rounded"]].all()

    space, _, after, changed = rows_of("all columns", seed)
    for column in space.schema:
        values = after[column.name][changed[column.name]]
        if column.is_numeric:
            assert ((values >= 0) & (values <= 50)).all()

    for name, sign in (("increasing", 1), ("decreasing", -1)):
        _, before, after, changed = rows_of(name, seed)
        for column in CONSTRAINTS[name][name]:
            rise = sign * (after[column] - before[column])[changed[column]]
            assert (rise[~np.isnan(rise)] > 0).all()

    space, _, _, changed = rows_of("max_changed", seed)
    mask = torch.from_numpy(np.stack(list(changed.values()), 1))
    assert (space.any_by_part(mask).sum(1) <= 3).all()

    _, _, after, changed = rows_of("relations", seed)
    touched = changed["int64"] | changed["rounded"]
    assert (after["int64"] >= 2 * after["rounded"])[touched].all()
    touched = changed["color_0"] | changed["step"]
    assert (after["color_0"] * after["step"] <= 60)[touched].all()

    space, before, after, changed = rows_of("forbidden", seed)
    for column, moves in CONSTRAINTS["forbidden"]["forbidden"].items():
        levels = space.schema[column].levels
        done = {
            (levels[int(one)], levels[int(other)])
            for one, other in zip(before[column], after[column], strict=True)
            if not (np.isnan(one) or np.isnan(other)) and one != other
        }
        assert not done & set(moves)

    _, before, after, changed = rows_of("linked", seed)
    step_before, step = (5 * np.rint(2 * row["rounded"] / 5) for row in (before, after))
    assert (after["step"] == step)[step_before != step].all()
    assert not changed["step"][step_before == step].any()


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, name=st.sampled_from(list(CONSTRAINTS)))
def test_groups_stay_intact(seed, name):
    space, _, after, _ = rows_of(name, seed)
    (members,) = space.schema.groups.values()
    total = sum(after[space.schema.names[i]] for i in members)
    assert (total == 1).all()


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS)
def test_vacuous_constraints_change_nothing(seed):
    space, limits, x, points = problem(seed, {})
    names = [column.name for column in space.schema]
    widest = {
        column.name: (column.lower, column.upper) for column in space.schema if column.is_numeric
    }
    for vacuous in (
        {"frozen": []},
        {"lower": -np.inf, "upper": np.inf},
        {"bounds": widest},
        {"bounds": {}},
        {"increasing": [], "decreasing": (), "relations": [], "forbidden": {}, "linked": {}},
        {"max_changed": len(names)},
        {"relations": ["rounded < 1e9", "float64 + tiny > -1e9"]},
        {"forbidden": {"str": [("f", "f")]}},
    ):
        other = table_limits(Constraints(**vacuous), space)
        assert torch.equal(other.project(points, x), limits.project(points, x)), vacuous


def test_gradients_pass():
    _, limits, x, points = problem(3, CONSTRAINTS["all"])
    candidate = points.clone().requires_grad_()
    found = limits.project(candidate, x)
    assert torch.equal(found.detach(), limits.project(points, x))
    weights = torch.linspace(-1, 1, x.shape[1], dtype=torch.float64)
    (found @ weights).sum().backward()
    assert torch.equal(candidate.grad, weights.expand_as(x))


def test_a_point_between_rows_is_not_allowed():
    space, limits, x, _ = problem(4, {})
    for part in range(len(space.part_names)):
        beside = x.clone()
        beside[:, (space.part == part).nonzero()[0]] += 0.01 * (
            2**-500 if bool(space.is_fixed[space.part == part].all()) else 1
        )
        kind = space.schema.columns[int((space.part_of_column == part).nonzero()[0])].kind
        if kind not in ("continuous", "fixed"):
            assert not limits.allows(beside, x).any()
            assert torch.equal(limits.project(beside, x), x)


def frame_of(**columns):
    return pd.DataFrame(columns)


def limits_of(frame, schema=None, **constraints):
    table = Table.read(frame, schema)
    space = TableSpace(table)
    return space, table_limits(Constraints(**constraints), space), torch.from_numpy(table.codes)


def projected(space, limits, own, new):
    """Project rows given as codes; return codes."""
    x, x_cf = (space.embed(torch.as_tensor(rows, dtype=torch.float64)) for rows in (own, new))
    return space.codes(limits.project(x_cf, x))


def test_a_bound_that_the_instance_breaks_is_no_need():
    """Nothing has to be changed because of a bound: it speaks of changes."""
    frame = frame_of(age=[45, 70, 61, 52], hba1c=[9.5, 5.0, 6.1, 7.3])
    space, limits, codes = limits_of(frame, bounds={"age": (60, 80)})
    wanted = codes.clone()
    wanted[0] = torch.tensor([45.0, 6.0])
    assert torch.equal(projected(space, limits, codes, wanted), wanted)
    wanted[0, 0] = 50.0  # nearer to its own value than to the bound
    assert projected(space, limits, codes, wanted)[0].tolist() == [45.0, 6.0]
    wanted[0, 0] = 58.0
    assert projected(space, limits, codes, wanted)[0].tolist() == [60.0, 6.0]


def test_one_relation_may_break_another():
    """Undoing b for the second relation breaks the first one, which undoes a in turn."""
    frame = frame_of(a=[1.5, 2.5, 9.5], b=[2.5, 3.5, 9.5], c=[3.5, 4.5, 0.5])
    space, limits, codes = limits_of(frame, relations=["a < b", "b < c"])
    wanted = codes.clone()
    wanted[0] = torch.tensor([5.0, 6.0, 3.5])
    found = projected(space, limits, codes, wanted)
    assert found[0].tolist() == [1.5, 2.5, 3.5]
    # Where a relation does not hold before, nothing is asked for.
    assert torch.equal(projected(space, limits, codes, codes), codes)


def test_linked_columns_follow():
    frame = frame_of(
        weight=[80.0, 95.5, 70.25, 61.0],
        height=[1.8, 1.75, np.nan, 1.6],
        bmi=[24.7, 31.2, 25.0, 23.8],
        age=[40, 50, 60, 70],
    )
    schema = Schema.infer(frame).edit("bmi", lower=10, upper=60)
    space, limits, codes = limits_of(
        frame,
        schema,
        linked={"bmi": lambda frame: frame["weight"] / frame["height"] ** 2},
        max_changed=1,
    )
    wanted = codes.clone()
    wanted[:, 0] -= 10
    wanted[:, 2] = 40.0  # is not changed on its own
    found = projected(space, limits, codes, wanted)
    height = torch.tensor([1.8, 1.75, 1.6], dtype=torch.float64)
    expected = found[[0, 1, 3], 0] / height**2
    torch.testing.assert_close(found[[0, 1, 3], 2], expected, rtol=0, atol=0.05)
    assert found[2, 2] == 25.0  # cannot be computed, so it stays
    wanted = codes.clone()
    wanted[:, 3] = 60.0  # nothing that bmi depends on
    assert torch.equal(projected(space, limits, codes, wanted)[:, 2], codes[:, 2])


@pytest.mark.parametrize("result", [1.0, np.ones((2, 2)), [1.0]])
def test_linked_functions_return_one_number_per_row(result):
    frame = frame_of(a=[1.5, 2.5, 3.25], b=[1.5, 2.5, 3.5])
    space, limits, codes = limits_of(frame, linked={"b": lambda frame: result})
    with pytest.raises(ValueError, match=r"linked\['b'\] must return one number per row, 2 here"):
        projected(space, limits, codes, codes + 1)


def test_the_range_of_numbers():
    frame = frame_of(age=[45, 70, 61], hba1c=[9.5, np.nan, 6.1], ward=["A", "B", "A"])
    space, limits, codes = limits_of(frame, increasing=["age"], bounds={"hba1c": (4, 9)})
    lower, upper, free = limits.box(space.embed(codes))
    assert not lower.isnan().any() and not upper.isnan().any()
    age, hba1c = (int((space.column == i).nonzero()[0]) for i in (0, 1))
    assert free[:, age].all()
    assert free[:, hba1c].tolist() == [True, False, True]  # a missing number cannot be moved
    assert not free[:, space.column == 2].any()
    column = space.schema["hba1c"]
    assert upper[0, hba1c] * column.scale + column.center == pytest.approx(9.5)  # its own value
    assert upper[2, hba1c] * column.scale + column.center == pytest.approx(9.0)
    assert torch.equal(lower[:, age], space.embed(codes)[:, age])


def test_limits_by_instance_go_with_the_rows():
    frame = frame_of(age=[20, 30, 40])
    space, limits, codes = limits_of(frame, bounds={"age": ([25, 35, 45], [90, 90, 90])})
    limits.check_size(3)
    with pytest.raises(ValueError, match="3 entries for 2 instances"):
        limits.check_size(2)
    rows = torch.tensor([2, 0])
    found = projected(space, limits.take(rows), codes[rows], codes[rows] + 9)
    assert found.flatten().tolist() == [49.0, 29.0]


def test_what_cannot_be_changed_at_all_is_told():
    frame = frame_of(age=[20, 30], admitted=pd.to_datetime(["2020-01-01", "2020-01-02"]))
    space, limits, codes = limits_of(frame, frozen=["age"])
    assert limits.impossible(space.embed(codes)) == ["every column is frozen"] * 2
    space, limits, codes = limits_of(frame)
    assert limits.impossible(space.embed(codes)) == ["", ""]
