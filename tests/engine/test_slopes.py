"""The slope limit, held against a linear program that knows what is possible."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog

from contrafact.engine.constraints import Constraints

CPU = torch.device("cpu")
LENGTH = 6
tenths = st.integers(-30, 30).map(lambda v: v / 10)


def least_max_step(x, lower, upper, frozen):
    """The smallest slope limit that some series within the bounds keeps, frozen values given; inf
    if none."""
    n = len(x)
    difference = np.eye(n, k=1)[: n - 1] - np.eye(n)[: n - 1]
    limit = -np.ones((n - 1, 1))
    bounds = [
        (v, v) if f else (lo, hi) for v, lo, hi, f in zip(x, lower, upper, frozen, strict=True)
    ]
    if any(f and not lo <= v <= hi for v, lo, hi, f in zip(x, lower, upper, frozen, strict=True)):
        return np.inf
    solution = linprog(
        np.r_[np.zeros(n), 1.0],
        A_ub=np.block([[difference, limit], [-difference, limit]]),
        b_ub=np.zeros(2 * (n - 1)),
        bounds=[*bounds, (0, None)],
    )
    return solution.fun if solution.success else np.inf


@settings(deadline=None, max_examples=120)
@given(
    x=arrays(np.float64, LENGTH, elements=tenths),
    x_cf=arrays(np.float64, LENGTH, elements=tenths),
    box=st.tuples(arrays(np.float64, LENGTH, elements=tenths), st.sampled_from([0.5, 1.5, np.inf])),
    frozen=arrays(bool, LENGTH),
    max_step=st.sampled_from([0.1, 0.25, 0.7, 1.0]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_feasible_exactly_when_a_series_exists(x, x_cf, box, frozen, max_step, dtype):
    lower, upper = box[0], box[0] + box[1]
    constraints = Constraints(lower, upper, frozen & ~frozen.all(), max_step)
    feasible = constraints.resolve((1, LENGTH), dtype, CPU)
    x, x_cf = (torch.from_numpy(v).to(dtype).reshape(1, 1, -1) for v in (x, x_cf))
    # A frozen value cannot move off a bound that rounding put it beyond: bounds are compared as
    # rounded.
    rounded = (torch.from_numpy(bound).to(dtype).double().numpy() for bound in (lower, upper))
    needed = least_max_step(x.double().flatten().numpy(), *rounded, constraints.frozen)
    if abs(needed - max_step) <= 1e-4 * max_step:
        return  # rounding decides
    (reason,) = feasible.impossible(x)
    assert bool(reason) == (needed > max_step)
    if reason:
        return
    projected = feasible.project(x_cf, x)
    assert feasible.allows(projected, x).all()
    values = projected.double().numpy()[0, 0]
    assert (np.abs(np.diff(values)) <= max_step).all()
    free = ~constraints.frozen
    own = (projected == x).numpy()[0, 0]
    assert (((values >= lower) & (values <= upper)) | own)[free].all()
    assert torch.equal(feasible.project(projected, x), projected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_frozen_values_that_leave_one_path_only_are_joined(dtype):
    x = torch.tensor([[[0.0, 9.0, -9.0, 3.0, 7.0, 5.0]]], dtype=dtype)
    feasible = Constraints(frozen=[True, False, False, True, False, True], max_step=1.0).resolve(
        (1, 6), dtype, CPU
    )
    assert feasible.impossible(x) == [""]
    projected = feasible.project(x, x)
    assert projected.flatten().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert feasible.allows(projected, x).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("max_step", [0.05, 0.5, 7.0])
def test_long_series_with_frozen_places_keep_the_limit(dtype, max_step):
    """Rounding must not add up along a thousand steps."""
    rng = np.random.default_rng(0)
    walk = torch.from_numpy(
        0.9 * np.cumsum(rng.uniform(-max_step, max_step, (20, 1, 1000)), -1)
    ).to(dtype)
    candidate = walk + torch.from_numpy(rng.normal(size=walk.shape)).to(dtype)
    frozen = np.arange(1000) % 7 == 0
    feasible = Constraints(frozen=frozen, max_step=max_step).resolve((1, 1000), dtype, CPU)
    projected = feasible.project(candidate, walk)
    assert projected.double().diff(dim=-1).abs().max() <= max_step
    assert torch.equal(projected[..., frozen], walk[..., frozen])


def test_one_row_never_changes_another():
    rng = np.random.default_rng(1)
    candidate = torch.from_numpy(rng.normal(size=(3, 2, 8))).float()
    x = torch.zeros_like(candidate)
    feasible = Constraints(max_step=0.3).resolve((2, 8), torch.float32, CPU)
    alone = feasible.project(candidate[1:2], x[1:2])
    candidate[0, 0, 0], candidate[2] = torch.nan, 1e6 * candidate[2]
    assert torch.equal(feasible.project(candidate, x)[1:2], alone)


def test_projection_stays_close_and_favors_no_direction():
    """A single spike is cut to a tent of the allowed slope; mirrored in time, so is the answer."""
    spike = torch.zeros(1, 1, 9, dtype=torch.float64)
    spike[..., 4] = 1.0
    feasible = Constraints(max_step=0.25).resolve((1, 9), torch.float64, CPU)
    projected = feasible.project(spike, torch.zeros_like(spike)).flatten()
    np.testing.assert_allclose(projected, projected.flip(0))
    assert (projected - spike.flatten()).norm() <= spike.norm()
    ramp = torch.linspace(0, 2, 9, dtype=torch.float64).reshape(1, 1, -1)
    assert torch.equal(
        feasible.project(ramp, torch.zeros_like(ramp)), ramp
    )  # keeps the limit: untouched


@settings(deadline=None, max_examples=60)
@given(
    values=arrays(np.float64, (2, 2, 3, LENGTH), elements=tenths),
    frozen=arrays(bool, (3, LENGTH)),
    max_step=st.lists(st.sampled_from([0.1, 0.7, 2.0, np.inf]), min_size=3, max_size=3),
    column=st.booleans(),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_a_limit_per_channel_is_that_of_each_channel_alone(values, frozen, max_step, column, dtype):
    x, x_cf = torch.from_numpy(values).to(dtype)
    limit = np.array(max_step)[:, None] if column else np.array(max_step)
    together = Constraints(frozen=frozen, max_step=limit).resolve((3, LENGTH), dtype, CPU)
    projected = together.project(x_cf, x)
    kept = together.check(projected, x)["max_step"]
    for c in range(3):
        own = slice(c, c + 1)
        alone = Constraints(frozen=frozen[own], max_step=max_step[c]).resolve(
            (1, LENGTH), dtype, CPU
        )
        steps = projected[:, c].double().diff(dim=-1).abs().numpy()
        assert (steps <= max_step[c])[kept.numpy()].all()
        assert alone.check(projected[:, own], x[:, own])["max_step"][kept].all()
        if max_step[c] == np.inf:
            assert torch.equal(projected[:, c], torch.where(together.frozen[c], x, x_cf)[:, c])
    if not any(together.impossible(x)):
        assert kept.all()


def test_gradients_pass_where_a_channel_has_no_limit():
    values = torch.tensor([[[0.0, 5.0, 0.0], [0.0, 5.0, 0.0]]], requires_grad=True)
    limits = Constraints(max_step=[1.0, np.inf]).resolve((2, 3), torch.float32, CPU)
    projected = limits.project(values, torch.zeros_like(values))
    (gradient,) = torch.autograd.grad(projected.sum(), values)
    assert gradient.isfinite().all()
    torch.testing.assert_close(gradient[0, 1], torch.ones(3))
