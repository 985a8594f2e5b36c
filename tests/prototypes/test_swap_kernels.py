"""Scores in single precision."""

import numpy as np
import pytest
from swap_cases import OBJECTIVES, first_of_each, make_cost, make_data

from contrafact.prototypes.swap import SwapSearch
from contrafact.prototypes.swap_columns import EuclideanColumns


@pytest.mark.parametrize("name", OBJECTIVES)
def test_scores_in_single_precision_are_within_the_claimed_error(name):
    X, y = make_data(700, 3, 6, seed=5)
    columns, cost = EuclideanColumns(1e3 * X), make_cost(name, np.ones(len(y)))
    if name == "rslvq":
        cost.temperature = 400.0
    start = first_of_each(y, 2)
    found = SwapSearch(columns, y, cost, start)
    turn = found._turn(0)
    own, other = found.pools(without=0)
    to_unit, scale = cost.scales(columns.unit)
    rows = np.flatnonzero(y == 0)
    out = np.empty(len(rows))
    pool_type = cost.pool_type
    cost.kernel(
        columns.block(rows),
        (own * to_unit).astype(pool_type),
        (other * to_unit).astype(pool_type),
        np.ones(len(y), np.float32),
        0,
        len(rows),
        out,
        scale,
    )
    exact = found._exact(rows, turn)
    shift = len(y) * np.log(4) if name == "glvq" else 0.0
    assert np.abs(out - shift - exact).max() < cost.error(columns.unit) / 2
    assert np.ptp(exact) > 100 * cost.error(columns.unit)
