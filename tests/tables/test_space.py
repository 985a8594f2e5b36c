"""Coordinates without units: every row comes back from its coordinates."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_frames import CHANGEABLE, random_frame

from contrafact.tables import Schema, Table, TableSpace
from contrafact.tables.grids import FINE_GRID

SEEDS = st.integers(0, 2**32 - 1)


def space_of(frame, schema=None):
    table = Table.read(frame, schema)
    return TableSpace(table), torch.from_numpy(table.codes)


def assert_same(one, other):
    assert torch.equal(one.nan_to_num(-9e9), other.nan_to_num(-9e9))


@settings(max_examples=40, deadline=None)
@given(
    seed=SEEDS,
    n=st.integers(1, 40),
    library=st.sampled_from(["pandas", "polars"]),
    group=st.sampled_from(["closed", "open", None]),
)
def test_rows_come_back_from_their_coordinates(seed, n, library, group):
    frame = random_frame(np.random.default_rng(seed), n, library, group=group)
    space, codes = space_of(frame)
    x = space.embed(codes)
    assert x.isfinite().all() and x.shape == (n, space.n_coordinates)
    back = space.codes(x)
    assert torch.equal(back.isnan(), codes.isnan())
    # Numbers that are not rounded are brought to a very fine grid; all others are exact.
    width = torch.zeros(len(space.schema), dtype=torch.float64)
    for i, column in enumerate(space.schema):
        if column.kind == "continuous" and column.decimals is None:
            largest = max(abs(column.lower), abs(column.upper))
            width[i] = FINE_GRID * column.scale + 1e-14 * largest
    assert ((back - codes).abs().nan_to_num() <= width).all()
    assert_same(space.codes(space.embed(back)), back)


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, group=st.sampled_from(["closed", "open", None]))
def test_any_point_is_near_a_row(seed, group):
    rng = np.random.default_rng(seed)
    space, codes = space_of(random_frame(rng, 20, group=group))
    x = space.embed(codes)
    points = x + torch.from_numpy(rng.normal(0, 1, x.shape))
    rows = space.codes(points)
    assert_same(space.codes(space.embed(rows)), rows)
    for i, column in enumerate(space.schema):
        known = rows[:, i][~rows[:, i].isnan()]
        if column.levels:
            assert set(known.tolist()) <= set(map(float, range(len(column.levels))))
        elif column.kind == "integer":
            assert torch.equal(known, known.round())
        assert column.missing or column.kind == "fixed" or len(known) == len(rows)
    for columns in space.group_columns:
        total = rows[:, columns].sum(1)
        assert set(total.tolist()) <= ({0.0, 1.0} if group == "open" else {1.0})


def test_distances_have_no_units():
    rng = np.random.default_rng(0)
    values = rng.normal(120, 15, (50, 2)).round(1)
    space, codes = space_of(pd.DataFrame(values, columns=["a", "b"]))
    scaled_space, scaled = space_of(pd.DataFrame(values * [1000, 1], columns=["a", "b"]))
    torch.testing.assert_close(scaled_space.embed(scaled), space.embed(codes))


def test_a_step_between_categories_has_length_one_and_costs_count():
    frame = pd.DataFrame(
        {
            "ward": ["A", "B", "C"],
            "smokes": [True, False, True],
            "risk": pd.Categorical(["lo", "mid", "hi"], ["lo", "mid", "hi"], ordered=True),
            "color_r": [1, 0, 0],
            "color_g": [0, 1, 0],
            "color_b": [0, 0, 1],
        }
    )
    schema = Schema.infer(frame)
    for cost in (1.0, 3.0):
        dear = schema
        for name in frame:
            dear = dear.edit(name, cost=cost)
        space, codes = space_of(frame, dear)
        difference = space.embed(codes[:1]) - space.embed(codes[1:2])
        for part, name in enumerate(space.part_names):
            length = float(difference[0, space.part == part].norm())
            unit = schema["risk"].scale if name == "risk" else 1.0
            assert length == pytest.approx(cost / unit)
        assert space.part_names == ["ward", "smokes", "risk", "color"]


def test_from_a_missing_value_to_a_number_there_is_no_mixture():
    """On the way to a guide's value the number is that value, or still missing."""
    frame = pd.DataFrame({"hba1c": [6.5, np.nan, 8.0, 5.0]})
    space, codes = space_of(frame)
    x = space.embed(codes)
    way = torch.linspace(0, 1, 11, dtype=torch.float64)[:, None]
    met = space.codes(x[1] + way * (x[2] - x[1]))[:, 0]
    assert set(met[~met.isnan()].tolist()) == {8.0} and met[:5].isnan().all()


def test_fixed_values_are_lost_in_every_distance():
    frame = pd.DataFrame({"id": [f"p{i}" for i in range(500)], "age": 40.0 + np.arange(500) % 2})
    space, codes = space_of(frame)
    assert space.schema["id"].kind == "fixed"
    x = space.embed(codes)
    assert float((x[0] - x[499]).norm()) == float((x[0] - x[1]).norm())
    assert torch.equal(space.codes(x), codes)


def test_single_moves_span_all_changes():
    frame = random_frame(np.random.default_rng(5), 30, kinds=CHANGEABLE, group="open")
    space, codes = space_of(frame)
    base = space.embed(codes)[0]
    moves = space.single_moves(base) - base
    others = space.embed(codes) - base
    rank = torch.linalg.matrix_rank(moves)
    assert torch.linalg.matrix_rank(torch.cat([moves, others])) == rank
    changed = (space.codes(moves + base) != space.codes(base[None])) & ~codes[0].isnan()
    assert (space.any_by_part(changed).sum(1) <= 1).all()


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_bounds_are_rounded_inward_to_values_there_are(dtype):
    values = (np.random.default_rng(2).normal(0, 9, 40) * 10).astype(dtype)
    space, _ = space_of(pd.DataFrame({"x": values}))
    for bound in (0.1, -3.7, 1e-6, 12345.678, np.inf, -np.inf):
        given_bound = torch.tensor([[bound]], dtype=torch.float64)
        low = space.inward(given_bound, up=True)
        high = space.inward(given_bound, up=False)
        assert low >= bound >= high
        if np.isfinite(bound):
            assert_same(space.codes(space.embed(low)), low)
            assert_same(space.codes(space.embed(high)), high)
            assert float(low - high) <= max(1.0, 1e-6 * abs(bound)) and low - high < 1.1


def test_numbers_for_models_of_arrays():
    frame = pd.DataFrame({"smokes": [True, False], "grade": [1, 2], "age": [44.0, np.nan]})
    space, codes = space_of(frame, Schema.infer(frame, kinds={"grade": "categorical"}))
    expected = [[1.0, 1.0, 44.0], [0.0, 2.0, np.nan]]
    np.testing.assert_array_equal(space.numbers(codes), expected)
    texts, codes = space_of(pd.DataFrame({"ward": ["A", "B"]}))
    assert texts.numbers(codes) is None
