"""Steps inside a ball and a box: they stay inside, find the optimum, and look back when they
should."""

import math
from dataclasses import replace

import cvxpy as cp
import pytest
import torch

from contrafact.search.ball import Ball
from contrafact.search.ball_steps import ball_step, checkpoints

INF = math.inf
WAYS = [
    ("afw", 1.0),
    ("afw", 1.5),
    ("afw", 2.0),
    ("afw", INF),
    ("apgd", 1.0),
    ("apgd", 1.5),
    ("apgd-l2", 1.5),
    ("apgd", 2.0),
    ("apgd", INF),
]
#: radii at which both the ball and the box bind
SCALE = {1.0: 2.0, 1.5: 1.2, 2.0: 1.0, INF: 0.4}
#: retractions end near the best point, not at it
EXACT = [way for way in WAYS if way[1] != 1.5 or way[0] == "afw"]
every_way = pytest.mark.parametrize(("optimizer", "p"), WAYS)


def problem(p, seed=0, n=4, d=12, frozen=0.2):
    """A ball around points of the unit cube, and a concave quadratic whose peak lies outside."""
    random = torch.Generator().manual_seed(seed)
    x0 = torch.rand(n, d, generator=random, dtype=torch.float64)
    free = torch.rand(n, d, generator=random) > frozen
    matrix = torch.randn(d, d, generator=random, dtype=torch.float64) / d**0.5 + torch.eye(d)
    peak = 2 * torch.rand(d, generator=random, dtype=torch.float64) - 0.5
    eps = SCALE[p] * torch.linspace(0.4, 1.2, n, dtype=torch.float64)
    return Ball(x0, eps, p, torch.zeros_like(peak), torch.ones_like(peak), free), matrix, peak


def quadratic(matrix, peak):
    return lambda x: -0.5 * ((x - peak) @ matrix.T).square().sum(1)


def exact(ball, matrix, peak):
    """The largest value of the quadratic in the ball, by a conic solver."""
    best = []
    for x0, eps, free in zip(ball.x0.numpy(), ball.eps.numpy(), ball.free.numpy(), strict=True):
        x = cp.Variable(len(x0))
        inside = [cp.pnorm(x - x0, ball.p) <= eps, x >= 0, x <= 1, cp.multiply(~free, x - x0) == 0]
        loss = cp.Problem(
            cp.Minimize(0.5 * cp.sum_squares(matrix.numpy() @ (x - peak.numpy()))), inside
        )
        best.append(-loss.solve(solver="CLARABEL"))
    return torch.tensor(best, dtype=torch.float64)


def start_of(ball, seed=1):
    direction = torch.randn(
        ball.x0.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    return ball.farthest(direction)


def climb(step, f, x, n):
    """Every point that was visited."""
    visited = []
    for _ in range(n):
        x = x.detach().requires_grad_()
        value = f(x)
        (gradient,) = torch.autograd.grad(-value.sum(), x)
        visited.append(x.detach())
        x = step(x.detach(), gradient, -value.detach())
    return torch.stack(visited)


# --- the schedule ---------------------------------------------------------------------------------


def test_checkpoints_are_the_papers():
    assert checkpoints(75) == [16, 30, 42, 52, 60, 66, 70, 74]


def test_checkpoints_of_short_runs_lie_within_them():
    assert checkpoints(0) == [] and checkpoints(1) == [1]
    for n in range(1, 40):
        points = checkpoints(n)
        assert points and points == sorted(set(points)) and points[0] >= 1 and points[-1] <= n


def scripted(losses, n_iter=75, seed=0):
    """AFW told which losses it met, at random points with random gradients: points, answers, step
    sizes."""
    ball, _, _ = problem(2.0, n=1, frozen=0.0)
    step, points, answers, sizes = ball_step("afw", ball, n_iter), [], [], []
    for t, loss in enumerate(losses):
        theta, gradient = start_of(ball, 100 + t), start_of(ball, 500 + t) - ball.x0
        answers.append(step(theta, gradient, torch.tensor([loss], dtype=torch.float64)))
        points.append((theta, gradient))
        sizes.append(step.size.item())
    return ball, points, answers, sizes


def test_a_run_that_only_rises_is_never_cut():
    assert set(scripted([-float(t) for t in range(75)])[3]) == {0.75}


def test_a_run_that_only_falls_is_cut_at_every_checkpoint_and_nowhere_else():
    sizes = scripted([float(t) for t in range(75)])[3]
    cut = [t for t in range(1, 75) if sizes[t] < sizes[t - 1]]
    assert cut == checkpoints(75)
    assert sizes[-1] == 0.75 / 2**8


@pytest.mark.parametrize(("rises", "cut"), [(11, True), (12, False)], ids=["11-of-16", "12-of-16"])
def test_fewer_than_three_quarters_of_rises_are_too_few(rises, cut):
    losses = [float(-t) for t in range(rises + 1)] + [float(t) for t in range(16 - rises)]
    assert (scripted(losses)[3][16] == 0.375) is cut


def test_no_new_best_in_a_window_is_a_cut_unless_the_last_was_one():
    """From step 17 on every step but the first rises, yet stays below the best of before."""
    losses = [-100.0 - t for t in range(17)] + [50.0 - t for t in range(44)]
    sizes = scripted(losses)[3]
    assert [sizes[t] for t in (16, 29, 30, 41, 42, 51, 52)] == [
        0.75,
        0.75,
        0.375,
        0.375,
        0.375,
        0.375,
        0.1875,
    ]


def test_a_cut_goes_on_from_the_best_point_and_its_gradient():
    losses = [3.0, 2.0, 1.0, 0.0] + [float(t) for t in range(1, 20)]
    ball, points, answers, _ = scripted(losses)
    for t in range(20):
        theta, gradient = points[3] if t == 16 else points[t]
        size = 0.75 if t < 16 else 0.375
        torch.testing.assert_close(answers[t], theta + size * (ball.farthest(-gradient) - theta))


# --- feasible, optimal ----------------------------------------------------------------------------


@every_way
def test_every_iterate_keeps_ball_box_and_mask(optimizer, p):
    for seed in range(2):
        ball, matrix, peak = problem(p, seed)
        visited = climb(ball_step(optimizer, ball, 60), quadratic(matrix, peak), start_of(ball), 60)
        assert all((ball.norm(x) <= ball.eps * (1 + 1e-12)).all() for x in visited)
        assert visited.min() >= 0 and visited.max() <= 1
        still = (~ball.free).expand(visited.shape)
        assert torch.equal(visited[still], ball.x0.expand(visited.shape)[still])
        assert (visited[-1] != ball.x0).any(1).all()


def missed_of_linear(optimizer, p, room=0.0):
    """Which share of the oracle's gain a run does not find; the box is wider by `room`."""
    ball, _, w = problem(p, frozen=0.0)
    ball = replace(ball, low=ball.low - room, high=ball.high + room)
    step = ball_step(optimizer, ball, 100)
    climb(step, lambda x: x @ w, start_of(ball), 100)
    return 1 - (step.best - ball.x0) @ w / ((ball.farthest(w.expand(ball.x0.shape)) - ball.x0) @ w)


@pytest.mark.parametrize(("optimizer", "p"), [way for way in EXACT if way != ("apgd", 1.0)])
def test_the_best_point_of_a_linear_function_is_the_oracles(optimizer, p):
    missed = missed_of_linear(optimizer, p)
    assert missed.max() < 1e-3 and missed.min() > -1e-9


@pytest.mark.parametrize("room", [0.0, 10.0], ids=["box", "ball"])
def test_sparse_steps_find_the_best_point_of_a_linear_function(room):
    assert missed_of_linear("apgd", 1.0, room).max() < 1e-2


@pytest.mark.parametrize("optimizer", ["apgd", "apgd-l2"])
def test_retracted_steps_come_near_the_best_point_of_a_concave_function(optimizer):
    for seed in range(2):
        ball, matrix, peak = problem(1.5, seed)
        f, best = quadratic(matrix, peak), exact(ball, matrix, peak)
        step = ball_step(optimizer, ball, 150)
        climb(step, f, start_of(ball), 150)
        assert ((best + step.best_loss) / (best - f(ball.x0))).max() < 0.05


@pytest.mark.parametrize(("optimizer", "p"), EXACT)
def test_the_best_point_of_a_concave_function_is_the_optimum(optimizer, p):
    for seed in range(2):
        ball, matrix, peak = problem(p, seed)
        f, best = quadratic(matrix, peak), exact(ball, matrix, peak)
        step = ball_step(optimizer, ball, 150)
        climb(step, f, start_of(ball), 150)
        missing = (best + step.best_loss) / (best - f(ball.x0))
        assert missing.max() < 1e-3 and missing.min() > -1e-6


def test_sparse_steps_do_not_rest_on_frozen_places():
    ball, matrix, peak = problem(1.0, seed=1)
    f, best = quadratic(matrix, peak), exact(ball, matrix, peak)
    step = ball_step("apgd", ball, 150)
    climb(step, f, start_of(ball), 150)
    assert ((best + step.best_loss) / (best - f(ball.x0))).max() < 2e-2


def test_a_stationary_start_stays_the_best():
    ball, matrix, _ = problem(2.0)
    f = quadratic(matrix, torch.zeros(12, dtype=torch.float64))
    ball = replace(ball, x0=torch.zeros_like(ball.x0))
    step = ball_step("afw", ball, 30)
    climb(step, f, ball.x0, 30)
    assert (step.best_loss == 0).all() and (ball.gap(step.best, -step.best_gradient) == 0).all()


# --- the Frank-Wolfe gap --------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, INF])
def test_the_gap_bounds_what_is_missing_and_shrinks(p):
    ball, matrix, peak = problem(p)
    f, best = quadratic(matrix, peak), exact(ball, matrix, peak)
    visited = climb(ball_step("afw", ball, 300), f, start_of(ball), 300)
    gaps = torch.stack([ball.gap(x, (peak - x) @ matrix.T @ matrix) for x in visited])
    missing = torch.stack([best - f(x) for x in visited])
    assert (gaps >= missing - 1e-6).all()
    assert (gaps[0] > 10 * missing.abs().amin(0)).all()
    assert (gaps.amin(0) < 5e-3 * (best - f(ball.x0))).all()


# --- a batch is as many separate runs -------------------------------------------------------------


@every_way
def test_rows_that_leave_do_not_disturb_the_others(optimizer, p):
    ball, matrix, peak = problem(p, n=5)
    f, start = quadratic(matrix, peak), start_of(ball)
    step = ball_step(optimizer, ball, 40)
    x = start
    left = torch.arange(5)
    # Later, where runs have come to rest, rounding decides which steps rise.
    for t in range(24):
        x = x.detach().requires_grad_()
        value = f(x)
        (gradient,) = torch.autograd.grad(-value.sum(), x)
        x = step(x.detach(), gradient, -value.detach())
        # Before the first checkpoint and between two later ones.
        leaving = {3: 1, 14: 3}.get(t)
        if leaving is not None:
            stays = left != leaving
            x, left = x[stays], left[stays]
            step.keep(stays)
    assert left.tolist() == [0, 2, 4]
    for place, row in enumerate(left.tolist()):
        alone = ball_step(optimizer, ball.take(torch.tensor([row])), 40)
        climb(alone, f, start[[row]], 24)
        torch.testing.assert_close(step.best[[place]], alone.best, rtol=0, atol=1e-6)
        torch.testing.assert_close(step.size[[place]], alone.size)
        torch.testing.assert_close(step.best_loss[[place]], alone.best_loss, rtol=0, atol=1e-6)
