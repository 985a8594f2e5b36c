import math

import cvxpy as cp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from contrafact.geometry import project, projection, row_blocks

INF = math.inf
NORMS = [1, 2, INF]


def sample(n, d, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    return rng.normal(0.5, spread, (n, d)), rng.random((n, d)).round(1)


def size(y, p):
    return np.linalg.norm(y, p, axis=-1)


@pytest.mark.parametrize("p", NORMS)
def test_cvxpy_agrees(p):
    x, c = sample(4, 10)
    for i, eps in enumerate((0.1, 0.5, 1.0, 2.0)):
        y = cp.Variable(10)
        limits = [cp.norm(y - c[i], "inf" if p == INF else p) <= eps, y >= 0, y <= 1]
        cp.Problem(cp.Minimize(cp.sum_squares(y - x[i])), limits).solve(solver="CLARABEL")
        assert project(x[[i]], c[[i]], eps, p)[0] == pytest.approx(y.value, abs=2e-5)


@pytest.mark.parametrize("p", [1, 2])
def test_clipping_a_projection_is_not_enough(p):
    """Projecting onto the ball, then the box, gives a point farther away."""
    x, c = sample(50, 20)
    eps = 0.8
    joint = project(x, c, eps, p)
    one_after_the_other = project(x, c, eps, p, (-INF, INF)).clip(0, 1)
    assert (size(one_after_the_other - c, p) <= eps + 1e-9).all()
    assert (size(joint - x, 2) <= size(one_after_the_other - x, 2) + 1e-12).all()
    assert (size(joint - x, 2) < size(one_after_the_other - x, 2) - 1e-3).mean() > 0.3


@pytest.mark.parametrize("p", [1, 2])
def test_kkt_conditions(p):
    """Where free, m − z = λ (p = 1) or z / m = κ (p = 2); at a bound z = g; ε is spent."""
    x, c = sample(6, 300)
    z, m = np.abs(project(x, c, 2.0, p) - c), np.abs(x - c)
    g = np.where(x > c, 1 - c, c)
    assert size(z, p) == pytest.approx(2.0, rel=1e-12)
    for i in range(6):
        clipped = z[i] >= np.minimum(g[i], m[i]) - 1e-12
        free = ~clipped & (z[i] > 0)
        multiplier = m[i] - z[i] if p == 1 else -z[i] / m[i]
        assert np.ptp(multiplier[free]) < 1e-9
        assert (multiplier[clipped & (g[i] > 0)] >= multiplier[free].max() - 1e-9).all()
        if p == 1:
            assert (m[i][z[i] == 0][g[i][z[i] == 0] > 0] <= multiplier[free].max() + 1e-9).all()


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d, scale = draw(st.integers(1, 12)), 10.0 ** draw(st.integers(-3, 3))
    x, other = np.round(rng.normal(0.5, scale, (2, 3, d)), 2)
    c = np.clip(np.round(rng.uniform(-0.3, 1.3, (3, d)), 1), 0, 1)
    return x, other, c, draw(st.floats(0, 4)), draw(st.sampled_from(NORMS)), rng


@settings(max_examples=150, deadline=None, derandomize=True)
@given(problems())
def test_projection_is_a_projection(problem):
    x, other, c, eps, p, rng = problem
    y = project(x, c, eps, p)
    tolerance = 1e-9 * (1 + np.abs(x).max())
    assert ((y >= 0) & (y <= 1)).all()
    assert (size(y - c, p) <= eps + 1e-9).all()
    assert project(y, c, eps, p) == pytest.approx(y, abs=1e-12)
    assert (size(y - project(other, c, eps, p), 2) <= size(x - other, 2) + tolerance).all()
    # ⟨x − y, v − y⟩ ≤ 0 for every feasible v: what makes y the nearest point
    v = c + np.clip(rng.uniform(-1, 1, (100, *x.shape)) * eps, -c, 1 - c)
    v = c + (v - c) * np.minimum(1, eps / np.maximum(size(v - c, p), 1e-300))[..., None]
    assert (((x - y) * (v - y)).sum(-1) <= tolerance).all()


@pytest.mark.parametrize("p", NORMS)
def test_float32_keeps_to_the_ball_and_the_box(p):
    for scale in (1e-3, 1.0, 1e6):
        x, c = (torch.from_numpy(a).float() for a in sample(4, 3072, spread=scale))
        exact = project(x.double(), c.double(), 3.0, p)
        y = project(x, c, 3.0, p)
        assert y.dtype == torch.float32 and ((y >= 0) & (y <= 1)).all()
        assert (size((y.double() - c.double()).numpy(), p) <= 3.0 * (1 + 1e-6)).all()
        assert torch.allclose(y.double(), exact, rtol=0, atol=1e-7)


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize("p", NORMS)
def test_a_point_inside_comes_back_bit_for_bit(p):
    c = torch.rand(5, 3, 4)
    x = (c + 0.01 * torch.randn(5, 3, 4)).clamp(0, 1)
    assert torch.equal(project(x, c, 9.0, p), x)


@pytest.mark.parametrize("p", NORMS)
def test_rows_blocks_radii_and_bounds(p, monkeypatch):
    monkeypatch.setattr(row_blocks, "_BLOCK", 60)
    x, c = (a.reshape(7, 3, 10) for a in sample(7, 30))
    eps, lo, hi = np.linspace(0, 12, 7), np.array([-1.0, 0.0, 0.0]), np.array([1.0, 1.0, 2.0])
    y = project(x, c, eps, p, (lo, hi))
    assert isinstance(y, np.ndarray) and y.shape == x.shape
    assert np.array_equal(y[0], c[0])
    assert (y >= lo[:, None]).all() and (y <= hi[:, None]).all()
    assert (y[:, 0] < 0).any() and (y[:, 2] > 1).any()
    for i in range(7):
        assert np.allclose(project(x[[i]], c[[i]], eps[i], p, (lo, hi))[0], y[i], rtol=1e-12)
    assert project(x[:0], c[:0], 1.0, p).shape == (0, 3, 10)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("p", NORMS)
def test_half_precision(dtype, p):
    x, c = (torch.from_numpy(a).to(dtype) for a in sample(3, 40))
    y = project(x, c, 1.0, p)
    assert y.dtype == dtype
    exact = project(x.double(), c.double(), 1.0, p)
    assert (y.double() - exact).abs().max() <= torch.finfo(dtype).eps


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"p": 1.5}, "p must be 1 or 2 or inf, got 1.5"),
        (
            {"center": torch.tensor([[0.5, 0.5], [0.5, 1.2]])},
            r"center\[1\] is outside bounds \(0, 1\)",
        ),
        ({"center": torch.full((2, 2), torch.nan)}, r"center\[0\] contains NaN or inf"),
        ({"x": torch.full((2, 2), INF)}, r"x\[0\] contains NaN or inf"),
        ({"eps": -0.1}, "eps must be finite and not negative"),
        ({"bounds": (0, -1)}, "lo <= hi"),
    ],
    ids=["norm", "center-outside", "center-nan", "x-inf", "radius", "bounds"],
)
def test_bad_input_is_named(change, message):
    good = {"x": torch.ones(2, 2), "center": torch.full((2, 2), 0.5), "eps": 1.0, "p": 2}
    with pytest.raises(ValueError, match=message):
        project(**(good | change))


def test_a_center_beyond_the_bounds_by_rounding_is_taken():
    center = torch.tensor([[1 + 1e-7, 0.5]])
    y = project(torch.tensor([[2.0, 2.0]]), center, 0.25, 1)
    assert torch.allclose(y, torch.tensor([[1.0, 0.75]]))


@pytest.mark.parametrize("p", [1, 2, math.inf])
def test_each_row_may_have_its_own_box(p):
    x, center = sample(6, 4, seed=1, spread=3.0)
    low, high = center - np.linspace(0.1, 2, 6)[:, None], center + 0.5
    together = project(x, center, 0.8, p, (low, high))
    for i in range(6):
        alone = project(x[i : i + 1], center[i : i + 1], 0.8, p, (low[i], high[i]))
        np.testing.assert_allclose(together[i], alone[0], atol=1e-12)


@pytest.mark.parametrize("p", [1, 2])
def test_a_row_outside_by_rounding_stays_finite(p):
    """The corner of the box, at a distance of ε up to the last digits of float32."""
    random = torch.Generator().manual_seed(0)
    c = torch.rand(2000, 30, generator=random).round(decimals=2)
    far = torch.where(c > 0.5, -2.0, 3.0)
    far[:, ::3] = c[:, ::3]
    eps = torch.linalg.vector_norm(far.clamp(0, 1) - c, p, dim=1, keepdim=True)
    zero, one = torch.zeros(30), torch.ones(30)
    for factor in (1 - 1e-7, 1.0, 1 + 1e-7):
        y = projection.nearest_points(far, c, factor * eps, p, zero, one, torch.float32)
        torch.testing.assert_close(y, far.clamp(0, 1), rtol=0, atol=2e-5)
