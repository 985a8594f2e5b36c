"""Balls within boxes: points that are brought in are inside, and those inside stay."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from contrafact.search.ball import Ball

NORMS = [1.0, 1.1, 1.5, 2.0, 3.0, math.inf]


@st.composite
def problems(draw):
    """A ball, and points of which most are outside."""
    random = torch.Generator().manual_seed(draw(st.integers(0, 10**6)))
    n, d = draw(st.integers(1, 4)), draw(st.integers(1, 30))
    dtype = draw(st.sampled_from([torch.float32, torch.float64]))
    x0 = torch.rand(n, d, generator=random, dtype=dtype)
    eps = draw(st.floats(0, 3)) * torch.rand(n, generator=random, dtype=dtype)
    free = torch.rand(n, d, generator=random) < draw(st.sampled_from([0.6, 1.0]))
    width = draw(st.sampled_from([0.1, 1.0, 1e4]))
    x = x0 + width * torch.randn(n, d, generator=random, dtype=dtype)
    zero = torch.zeros(d, dtype=dtype)
    return Ball(x0, eps, draw(st.sampled_from(NORMS)), zero, zero + 1, free), x


def is_inside(ball, x):
    rounding = 20 * torch.finfo(x.dtype).eps
    in_ball = ball.norm(x) <= ball.eps.double() * (1 + rounding) + rounding
    return in_ball.all() and x.min() >= 0 and x.max() <= 1 and (x == ball.x0)[~ball.free].all()


@given(problems())
@settings(max_examples=150, deadline=None)
def test_points_are_brought_into_ball_box_and_mask(problem):
    ball, x = problem
    inside = ball.bring_in(x)
    assert is_inside(ball, inside) and is_inside(ball, ball.retract(x))
    rounding = 50 * torch.finfo(x.dtype).eps
    torch.testing.assert_close(ball.bring_in(inside), inside, rtol=0, atol=rounding)
    torch.testing.assert_close(
        ball.retract(ball.retract(x)), ball.retract(x), rtol=0, atol=rounding
    )


@given(problems())
@settings(max_examples=50, deadline=None)
def test_a_retraction_is_straight_toward_the_center(problem):
    """And ends on the surface, unless the point is inside."""
    ball, x = problem
    clipped = torch.where(ball.free, x.clamp(0, 1), ball.x0)
    length = ball.norm(clipped)
    share = (ball.eps.double() / length.clamp_min(1e-300)).clamp_max(1)
    expected = ball.x0 + share[:, None] * (clipped - ball.x0)
    torch.testing.assert_close(ball.retract(x).double(), expected, rtol=0, atol=5e-5)


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_the_nearest_point_is_no_farther_than_the_retracted_one(p):
    random = torch.Generator().manual_seed(0)
    x0 = torch.rand(50, 20, generator=random)
    x = x0 + torch.randn(50, 20, generator=random)
    ball = Ball(x0, torch.full((50,), 0.7), p, torch.zeros(20), torch.ones(20), x0 >= 0)
    nearest = (ball.bring_in(x) - x).norm(dim=1)
    retracted = (ball.retract(x) - x).norm(dim=1)
    assert (nearest <= retracted + 1e-6).all() and (nearest < retracted - 1e-3).any()
