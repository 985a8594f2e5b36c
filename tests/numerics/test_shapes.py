import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from contrafact.numerics import broadcast_rows, ceil_div


@pytest.mark.parametrize("shape", [(3,), (3, 4), (3, 4, 5), (3, 1, 2, 2)])
def test_one_value_per_row_broadcasts(shape):
    values = torch.tensor([1.0, 2.0, 3.0])
    like = torch.ones(shape)
    scaled = broadcast_rows(values, like) * like
    assert scaled.shape == shape
    for row, value in zip(scaled, values, strict=True):
        assert (row == value).all()


def test_the_result_is_a_view():
    values = torch.zeros(2)
    broadcast_rows(values, torch.ones(2, 3, 4))[1] = 7
    assert values.tolist() == [0, 7]


def test_no_rows():
    assert broadcast_rows(torch.zeros(0), torch.ones(0, 3)).shape == (0, 1)


@given(st.integers(-(10**30), 10**30), st.integers(1, 10**9))
def test_division_rounds_up(a, b):
    quotient = ceil_div(a, b)
    assert (quotient - 1) * b < a <= quotient * b
    if abs(a) < 2**40 and b < 2**10:
        assert quotient == math.ceil(a / b)
