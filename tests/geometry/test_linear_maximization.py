import math

import cvxpy as cp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_problems import INF, NORMS, norm, points, slack, value, weights
from scipy.optimize import brentq

from contrafact.geometry import duality_gap, linear_maximization, lmo, row_blocks


def by_brentq(w, g, eps, p):
    """z of one row in float64: the multiplier by root finding on its logarithm."""
    if norm(g[None], p) <= eps:
        return g
    w, g = w.abs().numpy() / w.abs().max().item(), g.numpy()

    def z(log_m):
        with np.errstate(divide="ignore", over="ignore"):
            return np.minimum(g, np.exp((np.log(w) - log_m) / (p - 1)))

    log_m = brentq(lambda m: (z(m) ** p).sum() / eps**p - 1, -200, 200, xtol=1e-14, rtol=1e-14)
    return torch.from_numpy(z(log_m))


# --- optimal --------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("kind", ["normal", "cauchy", "lognormal"])
def test_float32_meets_the_bars_at_every_scale(kind, p):
    for d in (1, 2, 40, 3072):
        base, x = weights(kind, (4, d)), points((4, d)).float()
        for scale in (1e-30, 1e-12, 1.0, 1e12, 1e30):
            w = (base * scale).float()
            for share in (0.01, 0.5, 0.95, 1.5):
                eps = (share * norm(slack(w, x), p)).float()
                delta = lmo(w, x, eps, p)
                assert delta.dtype == torch.float32 and delta.isfinite().all()
                assert ((x + delta >= 0) & (x + delta <= 1)).all()
                assert (norm(delta, p) <= eps.double() * (1 + 1e-6)).all()
                gap = duality_gap(w, x, delta, eps, p)
                assert gap.max() <= 2e-7 and gap.min() >= -2e-7


@pytest.mark.parametrize("p", [1.02, 1.1, 1.5, 2.0, 3.0, 7.0])
@pytest.mark.parametrize("kind", ["normal", "cauchy"])
def test_float64_equals_root_finding(kind, p):
    w, x = weights(kind, (6, 50)), points((6, 50))
    g = slack(w, x)
    for share in (0.1, 0.6, 0.9):
        eps = share * norm(g, p)
        delta = lmo(w, x, eps, p)
        for i in range(6):
            z = by_brentq(w[i], g[i], eps[i].item(), p)
            assert torch.allclose(delta[i], w[i].sign() * z, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("p", [1.01, 1.1, 1.5, 2.0, 4.0])
def test_kkt_conditions(p):
    """|w| = m z^(p−1) where free, ≥ where clipped, with one m ≥ 0 per row; the budget is spent."""
    w, x = weights("normal", (5, 200)), points((5, 200))
    g = slack(w, x)
    eps = 0.5 * norm(g, p)
    z = lmo(w, x, eps, p) * w.sign()
    assert torch.allclose(norm(z, p), eps, rtol=1e-10)
    for i in range(5):
        clipped = z[i] >= g[i] * (1 - 1e-12)
        shown = ~clipped & (z[i] > 1e-100)  # smaller ones have lost their digits
        log_m = w[i].abs().log() - (p - 1) * z[i].log()
        assert clipped.any() and shown.any()
        assert log_m[shown].max() - log_m[shown].min() < 1e-9
        open_ = clipped & (g[i] > 0)
        assert (log_m[open_] >= log_m[shown].max() - 1e-9).all()


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, INF])
def test_cvxpy_finds_nothing_better(p):
    w, x = weights("normal", (3, 12)).numpy(), points((3, 12)).numpy()
    for i, eps in enumerate((0.2, 0.8, 1.6)):
        delta = cp.Variable(12)
        limits = [
            cp.norm(delta, "inf" if p == INF else p) <= eps,
            x[i] + delta >= 0,
            x[i] + delta <= 1,
        ]
        best = cp.Problem(cp.Maximize(w[i] @ delta), limits).solve(solver="CLARABEL")
        assert lmo(w[[i]], x[[i]], eps, p)[0] @ w[i] == pytest.approx(best, rel=1e-5)


def test_heavy_tails_and_tiny_slack_at_the_top():
    """The largest w can hardly move, the rest is 1e-12 of it: naive powers underflow to 0/0."""
    w = torch.tensor([[1.0, 1e-12, 1e-12, -2e-12]])
    x = torch.tensor([[1 - 1e-6, 0.5, 0.5, 0.5]])
    for p in (1.0, 1.01, 1.1, 1.5, 2.0):
        delta = lmo(w, x, 0.4, p)
        assert norm(delta, p).item() == pytest.approx(0.4, rel=1e-6)
        assert duality_gap(w, x, delta, 0.4, p).abs().max() < 2e-7


# --- the certificate ------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.0, 1.05, 1.5, 2.0, INF])
def test_certificate_notices_what_is_missing(p):
    w, x = weights("normal", (4, 60)), points((4, 60))
    delta = lmo(w, x, 1.0, p)
    assert duality_gap(w, x, delta, 1.0, p).abs().max() < 1e-12
    for kept in (0.999, 0.9, 0.0):
        assert torch.allclose(
            duality_gap(w, x, kept * delta, 1.0, p), torch.tensor(1 - kept).double()
        )
    assert torch.equal(duality_gap(0 * w, x, 0 * delta, 1.0, p), torch.zeros(4).double())


@pytest.mark.parametrize("p", [1.0, 1.1, 1.5, 2.0])
def test_certificate_holds_for_any_multiplier(p, monkeypatch):
    """Weak duality: a wrong price only loosens the bound, so it cannot hide a loss."""
    w, x = weights("normal", (4, 60)), points((4, 60))
    delta, solve = lmo(w, x, 1.0, p), linear_maximization.scale_free_allocation
    for factor in (0.5, 0.9, 1.1, 2.0):

        def mispriced(r, u, p, factor=factor):
            price = factor * solve(r, u, p)[1]
            z = (r > price) * u if p == 1 else torch.minimum(u, (r / price) ** (1 / (p - 1)))
            return z, price

        monkeypatch.setattr(linear_maximization, "scale_free_allocation", mispriced)
        assert (duality_gap(w, x, delta, 1.0, p) > 1e-6).all()


# --- geometry -------------------------------------------------------------------------------------


@st.composite
def problems(draw):
    d, seed = draw(st.integers(1, 12)), draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    # Rounded, for ties and zeros.
    w = np.round(rng.normal(size=(2, d)), 1) * 10.0 ** draw(st.integers(-12, 12))
    x = np.clip(np.round(rng.uniform(-0.3, 1.3, size=(2, d)), 1), 0, 1)
    p = draw(st.one_of(st.just(1.0), st.floats(1.0, 1.3), st.floats(1.3, 20), st.just(INF)))
    return w, x, draw(st.floats(0, 3)), p, rng


@settings(max_examples=150, deadline=None, derandomize=True)
@given(problems())
def test_feasible_and_better_than_any_feasible_point(problem):
    w, x, eps, p, rng = problem
    delta = lmo(w, x, eps, p)
    assert ((x + delta >= -1e-15) & (x + delta <= 1 + 1e-15)).all()
    assert (norm(torch.from_numpy(delta), p) <= eps * (1 + 1e-9)).all()
    assert (delta[w == 0] == 0).all() and (delta * w >= 0).all()
    others = np.clip(rng.uniform(-1, 1, (100, *w.shape)) * eps, -x, 1 - x)
    sizes = np.linalg.norm(others, np.inf if p == INF else p, axis=2, keepdims=True)
    others *= np.minimum(1, eps / np.maximum(sizes, 1e-300))
    best, scale = (w * delta).sum(1), np.abs(w).sum()
    assert ((w * others).sum(2) <= best + 1e-9 * scale).all()


@pytest.mark.parametrize("p", NORMS)
def test_scaling_w_changes_nothing(p):
    w, x = weights("normal", (3, 500)), points((3, 500))
    reference = lmo(w, x, 2.0, p)
    for exponent in (-40, -13, 13, 40):  # powers of two: exact, 1e-12 … 1e12
        assert torch.equal(lmo(w * 2.0**exponent, x, 2.0, p), reference)


@pytest.mark.parametrize("p", NORMS)
def test_scaling_space_scales_the_answer(p):
    w, x = weights("normal", (3, 50)), points((3, 50))
    reference = lmo(w, x, 2.0, p)
    for scale in (2.0**-60, 2.0**60):
        assert torch.allclose(
            lmo(w, x * scale, 2.0 * scale, p, (0, scale)), reference * scale, rtol=1e-12
        )


# --- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.0, 1.05, 1.5, INF])
def test_a_row_does_not_depend_on_its_batch(p, monkeypatch):
    monkeypatch.setattr(row_blocks, "_BLOCK", 200)  # blocks of two rows, the last of one
    w, x, eps = weights("normal", (7, 2, 50)), points((7, 2, 50)), torch.linspace(0, 3, 7).double()
    whole, gaps = lmo(w, x, eps, p), duality_gap(w, x, lmo(w, x, eps, p), eps, p)
    for i in range(7):
        assert torch.allclose(lmo(w[[i]], x[[i]], eps[i].item(), p)[0], whole[i], rtol=1e-12)
    assert gaps.abs().max() < 1e-12
    assert (norm(whole, p) <= eps * (1 + 1e-9)).all() and whole[0].eq(0).all()


@pytest.mark.parametrize("p", [1.0, 1.05, 1.5, INF])
def test_mask_keeps_the_rest_still(p):
    w, x = weights("normal", (3, 2, 4, 4)), points((3, 2, 4, 4))
    mask = torch.zeros(4, 4, dtype=torch.bool)
    mask[1:3] = True
    delta = lmo(w, x, 0.7, p, mask=mask)
    assert delta[:, :, ~mask].eq(0).all() and delta[:, :, mask].ne(0).any()
    inside = lmo(w[:, :, 1:3], x[:, :, 1:3], 0.7, p)
    assert torch.allclose(delta[:, :, 1:3], inside, rtol=1e-12)
    assert duality_gap(w, x, delta, 0.7, p, mask=mask).abs().max() < 1e-12
    by_row = mask.expand(3, 2, 4, 4).clone()
    by_row[0] = False
    assert lmo(w, x, 0.7, p, mask=by_row.numpy())[0].eq(0).all()


def test_bounds_per_channel_and_per_point():
    w, x = weights("normal", (4, 3, 5)), points((4, 3, 5))
    lo, hi = torch.tensor([0.0, -1.0, -2.0]), np.array([1.0, 2.0, 3.0])
    delta = lmo(w, x, 9.0, INF, (lo, hi))
    for c in range(3):
        assert torch.equal(delta[:, c], lmo(w[:, c], x[:, c], 9.0, INF, (lo[c].item(), hi[c])))
    per_point = torch.full((3, 5), 0.0), torch.linspace(1, 2, 15).reshape(3, 5)
    assert torch.equal(
        x + lmo(w.abs(), x, 9.0, INF, per_point), per_point[1].double().expand(4, 3, 5)
    )
    rows = lmo(w[:, 0], x[:, 0], 9.0, INF, (0.0, torch.linspace(1, 2, 5)))
    assert torch.equal(
        rows, lmo(w[:, 0], x[:, 0], 9.0, INF, (0.0, np.linspace(1, 2, 5, dtype=np.float32)))
    )


def test_without_a_box_it_is_hoelders_equality():
    w, x = weights("normal", (4, 30)), points((4, 30))
    for p, q in ((1.0, INF), (1.5, 3.0), (2.0, 2.0), (INF, 1.0)):
        delta = lmo(w, x, 0.7, p, (-INF, INF))
        assert torch.allclose(value(w, delta), 0.7 * norm(w, q))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("p", [1.0, 1.5, INF])
def test_type_in_is_type_out(dtype, p):
    w, x = weights("normal", (3, 40)).to(dtype), points((3, 40)).to(dtype)
    delta = lmo(w, x, 1.0, p)
    tolerance = torch.finfo(dtype).eps
    assert delta.dtype == dtype
    assert (norm(delta, p) <= 1 + tolerance).all()
    assert duality_gap(w, x, delta, 1.0, p).abs().max() <= tolerance


def test_numpy_in_is_numpy_out_and_nothing_is_changed():
    w, x = weights("normal", (4, 3, 6)).numpy(), points((4, 3, 6)).numpy()
    expected = lmo(torch.from_numpy(w), torch.from_numpy(x), 0.5, 1.5).numpy()
    kept = w.copy(), x.copy()
    w.flags.writeable = x.flags.writeable = False
    for a, b, order in ((w, x, slice(None)), (w[::-1], x[::-1], slice(None, None, -1))):
        delta = lmo(a, b, np.float64(0.5), 1.5)
        assert isinstance(delta, np.ndarray) and np.array_equal(delta[order], expected)
        assert isinstance(duality_gap(a, b, delta, 0.5, 1.5), np.ndarray)
    assert np.array_equal(w, kept[0]) and np.array_equal(x, kept[1])
    turned = torch.from_numpy(kept[0]).transpose(1, 2), torch.from_numpy(kept[1]).transpose(1, 2)
    assert torch.allclose(
        lmo(*turned, 0.5, 1.5), torch.from_numpy(expected).transpose(1, 2), rtol=1e-12
    )


@pytest.mark.usefixtures("own_random_numbers")
def test_gradients_do_not_pass_and_the_answer_can_be_used_in_training():
    w = torch.randn(2, 5, requires_grad=True)
    delta = lmo(w, torch.rand(2, 5), 0.5, 1.5)
    assert not delta.requires_grad
    (w * delta).sum().backward()
    assert torch.equal(w.grad, delta)


@pytest.mark.parametrize("p", NORMS)
def test_degenerate_rows(p):
    x = torch.tensor([[0.2, 0.5], [0.0, 1.0], [0.2, 0.5], [1.0 + 1e-6, 0.0]])
    w = torch.tensor([[0.0, 0.0], [-1.0, 1.0], [1.0, -3.0], [2.0, 0.0]])
    delta = lmo(w, x, torch.tensor([1.0, 1.0, 0.0, 1.0]), p)
    assert delta.eq(0).all()  # nothing to gain; no room; no budget; already beyond the bound
    assert lmo(w[:0], x[:0], 1.0, p).shape == (0, 2)
    assert duality_gap(w[:0], x[:0], x[:0], torch.ones(0), p).shape == (0,)
    assert lmo(w[:, :0], x[:, :0], 1.0, p).shape == (4, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"w": torch.tensor([[1.0, 1.0], [1.0, torch.nan]])}, r"w\[1\] contains NaN or inf"),
        ({"w": torch.tensor([[-torch.inf, 1.0], [1.0, torch.inf]])}, r"w\[0\] contains NaN or inf"),
        ({"x": torch.tensor([[0.5, torch.nan], [0.5, 0.5]])}, r"x\[0\] contains NaN or inf"),
        (
            {"w": torch.ones(2, 2, dtype=torch.int64)},
            "w must be an array or tensor of floats .*int64",
        ),
        ({"w": [[1.0, 2.0]]}, "w must be an array or tensor of floats .*list"),
        ({"w": torch.ones(2)}, r"rows first, got torch.float32 \(2,\)"),
        ({"x": torch.rand(2, 3)}, r"x has shape \(2, 3\). Accepted: \(2, 2\), as w"),
        ({"eps": -1.0}, "eps must be finite and not negative, got -1.0"),
        ({"eps": math.nan}, "eps must be finite"),
        ({"eps": torch.tensor([1.0, INF])}, "eps must be finite"),
        ({"eps": torch.ones(3)}, r"eps must be one number or one per row \(2\), got shape \(3,\)"),
        ({"p": 0.5}, "p must be a number from 1 to inf, got 0.5"),
        ({"p": math.nan}, "p must be a number from 1 to inf"),
        ({"bounds": (1, 0)}, r"lo <= hi everywhere, got \(1, 0\)"),
        (
            {"bounds": (0, torch.ones(3))},
            r"bounds\[1\] of shape \(3,\) does not fit an instance \(2,\)",
        ),
        ({"mask": torch.ones(2)}, "mask must be boolean .*float32"),
        ({"mask": torch.ones(3, dtype=torch.bool)}, r"mask of shape \(3,\) does not fit \(2, 2\)"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_bad_input_is_named(change, message):
    good = {"w": torch.ones(2, 2), "x": torch.full((2, 2), 0.5), "eps": 1.0, "p": 1.5}
    with pytest.raises(ValueError, match=message):
        lmo(**(good | change))
