"""Two windows where one will not do, and ends between the points of the grid."""

import numpy as np
import pytest
import torch
from window_problems import LENGTH, SINGLE_WINDOW, TWO_WINDOWS, graft_problem, graft_search

from contrafact.engine import Budget, Constraints
from contrafact.explainers.support.graft_tests import SurvivesNoise
from contrafact.explainers.support.window_pairs import move_ends, try_pairs
from contrafact.search.stretches import count_stretches, stretch_ids

NOISE = SurvivesNoise(torch.tensor([[0.4]]), 0.05, 6, 5)


def n_stretches(search):
    changed = search.best.x_cf != search.tasks.x
    return count_stretches(stretch_ids(changed, "series"))


# --- pairs ----------------------------------------------------------------------------------------


def test_two_distant_windows_are_found_and_change_less(open_tasks):
    problem = graft_problem(open_tasks, TWO_WINDOWS)
    search = graft_search(problem)
    search.run(24)
    alone = search.best.size.clone()
    assert search.found.all()
    try_pairs(search, problem[2], 4)
    assert (search.best.size <= alone).all()
    paired = search.best.second_cut >= 0
    assert paired.float().mean() > 0.5
    assert (n_stretches(search)[paired] == 2).all()
    assert (search.best.size[paired] < 0.85 * alone[paired]).all()
    actual = (search.best.x_cf != search.tasks.x).flatten(1).double().mean(1)
    torch.testing.assert_close(search.best.size, actual, atol=1e-6, rtol=0)
    assert (search.tasks.ask(search.best.x_cf).label == 1).all()
    assert search.looks_real.passes(search.tasks, search.best.x_cf).all()


def test_a_pair_is_both_grafts_in_one_series(open_tasks):
    problem = graft_problem(open_tasks, TWO_WINDOWS)
    search = graft_search(problem)
    search.run(24)
    try_pairs(search, problem[2], 4)
    best = search.best.take(search.best.second_cut >= 0)
    grafts = problem[2]
    x = search.tasks.x
    first = grafts.make(x, best.task, best.variant, best.cut)
    second = grafts.make(x, best.task, best.second_variant, best.second_cut)
    x = x[best.task]
    assert torch.equal(best.x_cf - x, (first - x) + (second - x))
    # "first" and "second" are meant in time, as the starts of the runs are
    assert (grafts.grid.end[best.cut] < grafts.grid.start[best.second_cut]).all()


def test_one_window_is_kept_where_it_is_enough(open_tasks):
    problem = graft_problem(open_tasks, SINGLE_WINDOW)
    search = graft_search(problem)
    search.run(24)
    try_pairs(search, problem[2], 4)
    assert search.found.all()
    assert (n_stretches(search) == 1).all()


def test_no_pair_is_asked_about_twice(open_tasks):
    """Predictions that promise too much make the same pairs look best again and again."""
    model, tasks, grafts, gains, looks_real = graft_problem(open_tasks, TWO_WINDOWS)
    search = graft_search((model, tasks, grafts, 3 * gains, looks_real))
    search.run(2)
    model.rows.clear()
    try_pairs(search, grafts, 8)
    total, different = model.asked
    assert total > 50
    assert total == different


# --- ends -----------------------------------------------------------------------------------------


def test_ends_only_move_inward_and_the_answer_stays_accepted(open_tasks):
    problem = graft_problem(open_tasks, SINGLE_WINDOW, n_cells=12)
    search = graft_search(problem)
    search.run(24)
    before = search.best.take(torch.arange(len(search.tasks)))
    move_ends(search, problem[2], 5)
    after = search.best
    assert (after.size <= before.size).all()
    assert (after.size < before.size - 1 / LENGTH / 2).any()
    changed_before = before.x_cf != search.tasks.x
    changed_after = after.x_cf != search.tasks.x
    assert (changed_after <= changed_before).all()
    actual = changed_after.flatten(1).double().mean(1)
    torch.testing.assert_close(after.size, actual, atol=1e-6, rtol=0)
    assert (search.tasks.ask(after.x_cf).label == 1).all()
    assert search.looks_real.passes(search.tasks, after.x_cf).all()


@pytest.mark.parametrize("windows", [SINGLE_WINDOW, ((0, 6),), ((58, 64),)])
def test_no_way_to_shorten_a_window_is_asked_about_twice(open_tasks, windows):
    problem = graft_problem(open_tasks, windows, n_cells=12)
    model = problem[0]
    search = graft_search(problem)
    search.run(24)
    assert search.found.all()
    move_ends(search, problem[2], 8)
    total, different = model.asked
    assert total == different


def test_ends_of_pairs_stay(open_tasks):
    problem = graft_problem(open_tasks, TWO_WINDOWS, n_cells=16)
    search = graft_search(problem)
    search.run(24)
    try_pairs(search, problem[2], 4)
    paired = search.best.second_cut >= 0
    assert paired.any()
    before = search.best.x_cf.clone()
    move_ends(search, problem[2], 5)
    assert torch.equal(search.best.x_cf[paired], before[paired])


def test_windows_that_shrink_into_frozen_steps_are_passed_over(open_tasks):
    """Shortened to steps that may not change, a window changes nothing at all."""
    free = 24
    frozen = np.arange(LENGTH) != free
    problem = graft_problem(
        open_tasks, ((free, free + 1),), n_cells=8, constraints=Constraints(frozen=frozen)
    )
    search = graft_search(problem)
    search.looks_real = None
    search.run(24)
    found = search.found
    assert found.float().mean() > 0.5
    move_ends(search, problem[2], 8)
    assert torch.equal(search.found, found)
    changed = (search.best.x_cf != search.tasks.x)[found, 0]
    assert (changed.numpy() == ~frozen).all()
    assert (search.tasks.ask(search.best.x_cf).label[found] == 1).all()


@pytest.mark.parametrize("calls", [30, 42, 50, 66])
def test_pairs_and_ends_keep_the_budget(open_tasks, calls):
    n = 4
    problem = graft_problem(
        open_tasks, TWO_WINDOWS, n=n, n_cells=16, budget=Budget(calls=n * calls)
    )
    search = graft_search(problem, noise=NOISE)
    search.run(24)
    try_pairs(search, problem[2], 4)
    move_ends(search, problem[2], 8)
    assert (search.spent <= calls).all()
    assert problem[0].asked[0] == search.spent.sum()
