import math

import cvxpy as cp
import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from polyhedra import INF, KINDS, NORMS, by_cvxpy, check_kept, problems, solve
from scipy.optimize import linprog

from bad_inputs import NOT_NUMBERS, bad_arrays, refuses
from contrafact.geometry import dual_newton, nearest_point, polyhedron

# --- optimal --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", NORMS)
def test_equals_cvxpy(norm, kind):
    given = problems(kind)
    found = solve(norm, *given)
    expected = np.array([by_cvxpy(norm, *(v[i] for v in given)) for i in range(len(given[0]))])
    np.testing.assert_array_equal(found.infeasible.numpy(), np.isinf(expected))
    size = 1 + np.abs(given[0]).max()
    np.testing.assert_allclose(found.value / size, expected / size, atol=1e-6)
    assert found.gap.abs().max() <= 1e-9 * size
    check_kept(found, *given)


@pytest.mark.parametrize("seed", range(6))
def test_many_sizes(seed):
    """Gap and feasibility need no reference; which problems have no solution, HiGHS tells."""
    rng = np.random.default_rng(seed)
    given = problems(KINDS[seed], 6, int(rng.integers(1, 40)), int(rng.integers(1, 40)), seed)
    x, A, b, lo, hi, frozen = given
    lo_, hi_ = np.where(frozen, x, lo), np.where(frozen, x, hi)
    length = np.linalg.norm(A, axis=2)
    none = [
        linprog(
            0 * x[i],
            A[i] / length[i][:, None],
            b[i] / length[i],
            bounds=np.stack([lo_[i], hi_[i]], 1),
        ).status
        == 2
        for i in range(6)
    ]
    for norm in NORMS:
        found = solve(norm, *given)
        np.testing.assert_array_equal(found.infeasible.numpy(), none)
        assert (found.gap.abs() <= 1e-9 * (1 + np.abs(x).max())).all()
        check_kept(found, *given)


@pytest.mark.parametrize("norm", NORMS)
def test_a_point_inside_stays_where_it_is(norm):
    x, A, b, *_ = problems("plain")
    b = np.einsum("nmd,nd->nm", A, x)  # every constraint is met exactly
    found = solve(norm, x, A, b + 1e-12)
    assert (found.delta == 0).all() and (found.value == 0).all() and (found.lower_bound == 0).all()


def test_one_half_space_by_hand():
    """l2: along the normal; l1: the coordinate with the largest weight alone."""
    x, A, b = [[1.0, 1.0, 1.0]], [[2.0, -1.0, 2.5]], [-1.0]
    np.testing.assert_allclose(solve("l2", x, A, b).delta, -4.5 / 11.25 * np.array(A), atol=1e-12)
    np.testing.assert_allclose(solve("l1", x, A, b).delta, [[0, 0, -1.8]], atol=1e-12)
    np.testing.assert_allclose(solve("l1", x, A, b, lo=0.0).delta, [[-1, 0, -1]], atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_rows_of_zeros_hold_or_not(norm):
    A, b = [[0.0, 0.0], [-1.0, 0.0]], [[0.0, -2.0], [-1e-12, -2.0]]
    found = solve(norm, np.zeros((2, 2)), A, b)
    assert found.infeasible.tolist() == [False, True]
    np.testing.assert_allclose(found.delta[0], [2, 0], atol=1e-12)


def test_x_outside_its_bounds_is_brought_in():
    x, A, b = [[3.0, -4.0, 0.0]], [[0.0, 0.0, 1.0]], [5.0]
    for norm in NORMS:
        np.testing.assert_allclose(solve(norm, x, A, b, -1.0, 1.0).delta, [[-2, 3, 0]])


# --- the certificate ------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORMS)
def test_no_solution_comes_with_a_proof(norm):
    """y ≥ 0 with min over the box of ⟨y, A x'⟩ above ⟨y, b⟩."""
    x, A, b, lo, hi, _ = problems("box", 60, 4, 8)
    found = solve(norm, x, A, b, lo, hi)
    none = found.infeasible.numpy()
    assert (
        5 < none.sum() < 55
        and (found.lower_bound[none] == INF).all()
        and found.delta[none].isnan().all()
    )
    for i in np.flatnonzero(none):
        y = found.y[i].numpy()
        u = y @ A[i]
        assert (y >= 0).all()
        ends = np.where(u > 0, lo[i], hi[i])
        bounded = np.isfinite(ends)
        assert np.abs(u[~bounded]).max(initial=0) < 1e-9
        assert u[bounded] @ ends[bounded] - y @ b[i] > 0


@pytest.mark.parametrize("norm", NORMS)
def test_the_bound_is_that_of_y(norm):
    """g(y) by cvxpy: minimize the Lagrangian over the box."""
    x, A, b, lo, hi, _ = problems("box", 4)
    lo, hi = np.maximum(lo, -9), np.minimum(hi, 9)
    found = solve(norm, x, A, b, lo, hi)
    for i in (~found.infeasible).nonzero().flatten().tolist():
        delta = cp.Variable(9)
        objective = cp.norm(delta, 1) if norm == "l1" else cp.sum_squares(delta) / 2
        lagrangian = objective + found.y[i].numpy() @ (A[i] @ (x[i] + delta) - b[i])
        g = cp.Problem(
            cp.Minimize(lagrangian), [x[i] + delta >= lo[i], x[i] + delta <= hi[i]]
        ).solve("CLARABEL")
        bound = g if norm == "l1" else math.sqrt(2 * max(g, 0))
        assert bound == pytest.approx(found.lower_bound[i].item(), abs=1e-4)


@settings(max_examples=60, deadline=None)
# A sliver: y is 4e10 there, and rounding of Aᵀy once made the bound too good.
@example(25961, "box", 5, 5)
@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.integers(1, 12), st.integers(1, 12))
def test_no_solution_is_below_its_bound(seed, kind, d, m):
    if kind == "dependent":
        d, m = d + 2, m + 2
    given_ = problems(kind, 3, d, m, seed)
    for norm in NORMS:
        found = solve(norm, *given_)
        size = 1 + np.abs(given_[0]).max()
        assert (
            (found.gap >= -1e-8 * size).all()
            and (found.lower_bound >= 0).all()
            and (found.y >= 0).all()
        )
        assert found.value.isfinite().logical_xor(found.infeasible).all()
        check_kept(found, *given_)


def test_a_method_that_gives_up_does_not_pretend(monkeypatch):
    x, A, b, *_ = problems("plain")
    expected = solve("l2", x, A, b)
    monkeypatch.setattr(dual_newton, "_newton_direction", lambda A, s, y, free: 0 * y)
    found = solve("l2", x, A, b)
    lost = (expected.value > 0) & ~expected.infeasible
    assert lost.any() and (found.value[lost] == INF).all() and (found.gap[lost] == INF).all()
    assert not found.infeasible[lost].any() and (found.lower_bound <= expected.value).all()


# --- in batches -----------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORMS)
def test_batch_equals_loop(norm, monkeypatch):
    given = problems("box", 20)
    together = solve(norm, *given)
    alone = [solve(norm, *(v[i : i + 1] for v in given)) for i in range(20)]
    has = ~together.infeasible  # proofs that there is none may differ
    for name in ("delta", "y", "lower_bound"):
        one = torch.cat([getattr(a, name) for a in alone])
        torch.testing.assert_close(getattr(together, name)[has], one[has], atol=1e-9, rtol=1e-9)
    assert (torch.cat([a.infeasible for a in alone]) != has).all() and 0 < has.sum() < 20
    monkeypatch.setattr(polyhedron, "_BLOCK", 200)
    torch.testing.assert_close(
        solve(norm, *given).delta, together.delta, atol=1e-9, rtol=1e-9, equal_nan=True
    )


@pytest.mark.parametrize("norm", NORMS)
def test_shared_half_spaces(norm):
    x, A, b, *_ = problems("plain", 12)
    which = torch.arange(12) % 3
    apart = solve(norm, x, A[which], b)
    torch.testing.assert_close(
        solve(norm, x, A[:3], b, which=which).delta, apart.delta, equal_nan=True
    )
    one = solve(norm, x, A[0], b[0])
    repeated = solve(norm, x, np.repeat(A[:1], 12, 0), np.repeat(b[:1], 12, 0))
    torch.testing.assert_close(one.delta, repeated.delta, equal_nan=True)


def test_nothing_asked_nothing_answered():
    found = solve("l1", np.empty((0, 3)), np.ones((2, 3)), np.ones(2))
    assert found.delta.shape == (0, 3) and found.y.shape == (0, 2) and len(found.gap) == 0


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="norm must be 'l1' or 'l2', got 'linf'"):
        solve("linf", [[0.0]], [[1.0]], [1.0])
    with pytest.raises(ValueError, match="bounds"):
        solve("l2", [[0.0]], [[1.0]], [1.0], 1.0, -1.0)


GOOD = {"x": np.zeros((3, 2)), "A": -np.ones((2, 2)), "b": np.array([-1.0, -2.0])}


def test_arrays_in_arrays_out():
    from_arrays = nearest_point(**GOOD, bounds=(np.zeros(2), 5))
    tensors = {name: torch.as_tensor(value) for name, value in GOOD.items()}
    from_tensors = nearest_point(**tensors, bounds=(torch.zeros(2), 5))
    for name, value in vars(from_tensors).items():
        found = getattr(from_arrays, name)
        assert isinstance(found, np.ndarray) and isinstance(value, torch.Tensor)
        np.testing.assert_array_equal(found, value.numpy())
    np.testing.assert_array_equal(from_arrays.gap, from_tensors.gap.numpy())


def test_gap_of_arrays_is_0_where_no_point_exists():
    found = nearest_point(np.zeros((1, 1)), np.array([[1.0], [-1.0]]), np.array([-1.0, -1.0]))
    assert found.infeasible.tolist() == [True] and found.gap.tolist() == [0]


@pytest.mark.parametrize("bad", bad_arrays(np.zeros((3, 2))))
@pytest.mark.parametrize("name", ["x", "A", "b"])
def test_bad_arrays_are_named(name, bad):
    refuses(name, nearest_point, **GOOD | {name: bad_arrays(GOOD[name])[bad]})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("norm", value) for value in NOT_NUMBERS.values()),
        ("x", np.zeros((3, 3))),
        ("x", np.zeros(3)),
        ("A", np.zeros((0, 2))),
        ("A", np.zeros((4, 2, 2))),
        ("b", np.zeros(3)),
        ("bounds", None),
        ("bounds", (0, 1, 2)),
        ("bounds", (math.nan, 1)),
        ("bounds", ("a", 1)),
        ("bounds", (np.zeros(5), 1)),
        ("frozen", np.zeros((3, 2))),
        ("frozen", np.zeros((3, 5), bool)),
        ("frozen", "x"),
        ("which", [0, 0, 1]),
    ],
)
def test_bad_arguments_are_named(name, value):
    refuses(name if name != "which" else "A", nearest_point, **GOOD | {name: value})


@pytest.mark.parametrize("which", [[0, 0], [0, 0, 9], [0, 0, -1], [0.0, 0.0, 0.0], "abc"])
def test_bad_positions_of_sets_are_named(which):
    sets = GOOD | {"A": -np.ones((2, 2, 2)), "b": np.ones((3, 2))}
    refuses("which", nearest_point, **sets, which=which)
