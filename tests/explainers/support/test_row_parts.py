"""Parts of rows and distances without units."""

from dataclasses import replace

import pandas as pd
import torch

from contrafact.explainers.support.row_parts import RowParts
from contrafact.tables import Schema, TableSpace
from contrafact.tables.table import Table

FRAME = pd.DataFrame(
    {
        "age": [20, 30, 40, 50, 60],
        "ward": ["A", "B", "C", "A", "B"],
        "smokes": [True, False, True, False, True],
        "red": [1, 0, 0, 1, 0],
        "blue": [0, 1, 1, 0, 1],
    }
)


def parts_of(schema=None):
    table = Table.read(FRAME, schema)
    space = TableSpace(table)
    x = space.embed(torch.tensor(table.codes))
    return RowParts.of(x, space), x, space


def test_every_exchange_counts_one():
    columns = [
        replace(column, kind="integer", levels=(), group="color")
        if column.name in ("red", "blue")
        else column
        for column in Schema.infer(FRAME)
    ]
    schema = Schema(columns)
    parts, x, space = parts_of(schema)
    distances = parts.distances(x[1], x[0])
    by_name = dict(zip(space.part_names, distances.tolist(), strict=True))
    assert abs(by_name["ward"] - 1) < 1e-6
    assert abs(by_name["color"] - 1) < 1e-6
    unit = space.schema.columns[0].scale
    assert abs(by_name["age"] - 10 / unit) < 1e-12
    assert by_name["smokes"] > 0
    numbers = dict(zip(space.part_names, parts.is_number.tolist(), strict=True))
    assert numbers == {"age": True, "ward": False, "smokes": False, "color": False}


def test_changed_parts_are_counted_once():
    parts, x, _ = parts_of()
    moved = x[0].clone()
    moved[parts.part == 1] = x[1][parts.part == 1]
    assert parts.changed(moved, x[0]).tolist() == [False, True, False, False, False]
    assert parts.only(torch.tensor([1]))[0].tolist() == (parts.part == 1).tolist()


def test_arrays_are_scaled_by_their_spread():
    X = torch.tensor([[0.0, 5.0, 0.0], [1.0, 5.0, 0.0], [2.0, 5.0, 0.0], [3.0, 5.0, 8.0]])
    parts = RowParts.of(X, None)
    wide = RowParts.of(1000 * X, None)
    assert torch.allclose(parts.distances(X[3], X[0]), wide.distances(1000 * X[3], 1000 * X[0]))
    assert parts.weight[1] == 1  # constant
    assert parts.weight[2] == 1 / X[:, 2].std(correction=0)  # most values are equal
