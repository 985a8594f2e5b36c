"""Grafts of series from end to end: one after another, with and without the tests."""

import numpy as np
import pytest
import torch
from window_problems import (
    LENGTH,
    SINGLE_WINDOW,
    TWO_WINDOWS,
    WindowModel,
    graft_problem,
    smooth_series,
    way_to,
)

from contrafact.engine import Budget, Constraints
from contrafact.explainers.support.graft_tests import LooksReal, SurvivesNoise
from contrafact.explainers.support.grafting import Grafted, channel_subsets, graft_windows
from contrafact.explainers.support.guided import FoundGuides

NOISE = SurvivesNoise(torch.tensor([[0.4]]), 0.05, 6, 5)
#: the rows that one graft may cost beyond max_rows: noise, ends, whole donors
MORE_ROWS = 40


def donors_of(donor):
    """The donors as guides, all of them there."""
    n, n_donors = donor.shape[:2]
    return FoundGuides(donor, torch.arange(n_donors).expand(n, -1))


def graft(problem, *, noise=None, max_rows=250, n_turns=1):
    model, tasks, grafts, _, looks_real = problem
    donor = grafts.donor
    slope = model.slope().expand_as(donor)
    return graft_windows(
        tasks, donors_of(donor), way_to(slope), looks_real, noise, max_rows, n_turns
    )


def similarity(a, b):
    """Shared values over all values of two edits, (n,)."""
    return (a & b).flatten(1).sum(1) / (a | b).flatten(1).sum(1)


# --- one graft ------------------------------------------------------------------------------------


@pytest.mark.parametrize("windows", [SINGLE_WINDOW, TWO_WINDOWS])
def test_grafts_pass_all_tests(open_tasks, windows):
    problem = graft_problem(open_tasks, windows)
    tasks, looks_real = problem[1], problem[4]
    (grafted,) = graft(problem, noise=NOISE)
    assert grafted.found.all()
    assert grafted.passed.all()
    assert tasks.accepts(grafted.x_cf, tasks.ask(grafted.x_cf)).all()
    assert looks_real.passes(tasks, grafted.x_cf).all()
    probe = NOISE.probe(tasks, grafted.x_cf)
    assert probe.survived.all()
    torch.testing.assert_close(probe.share, grafted.noise_survival)


def test_noise_asks_for_more_than_the_decision(open_tasks):
    problem = graft_problem(open_tasks, SINGLE_WINDOW, n=12)
    tasks = problem[1]
    (plain,) = graft(problem)
    assert plain.noise_survival.isnan().all()
    shaky = ~NOISE.passes(tasks, plain.x_cf)
    loud = SurvivesNoise(torch.tensor([[0.4]]), 1.0, 12, 12)
    (steady,) = graft(problem, noise=loud)
    assert loud.passes(tasks, steady.x_cf)[steady.passed].all()
    assert steady.passed.any()
    size = [(g.x_cf != tasks.x).flatten(1).double().mean(1) for g in (plain, steady)]
    assert size[1].mean() > size[0].mean()
    assert (~loud.passes(tasks, plain.x_cf)).sum() > shaky.sum()


def test_donors_are_those_of_the_grafts(open_tasks):
    problem = graft_problem(open_tasks, TWO_WINDOWS)
    tasks, donor = problem[1], problem[2].donor
    (grafted,) = graft(problem)
    own = donor[torch.arange(len(tasks)), grafted.donor]
    changed = (grafted.x_cf != tasks.x)[:, 0]
    assert (grafted.second_donor >= 0).any()
    for i in range(len(tasks)):
        start = int(changed[i].int().argmax())
        end = start + int((~changed[i, start:]).int().argmax())
        bends = grafted.x_cf[i, 0, start:end].diff(n=2)
        of_donor = own[i, 0, start:end].diff(n=2)
        inner = slice(4, -4)  # ramps of a faded graft end before
        torch.testing.assert_close(bends[inner], of_donor[inner])


def test_rows_of_fillers_are_never_donors(open_tasks):
    model, tasks, grafts, _, looks_real = graft_problem(open_tasks, SINGLE_WINDOW)
    donor = grafts.donor.clone()
    donor[:, 3:] = tasks.x[:, None]
    index = torch.arange(5).expand(6, -1).clone()
    index[:, 3:] = -1
    slope = model.slope().expand_as(donor)
    (grafted,) = graft_windows(
        tasks, FoundGuides(donor, index), way_to(slope), looks_real, NOISE, 250
    )
    assert grafted.found.all()
    assert (grafted.donor < 3).all()


def test_nothing_is_found_without_donors(open_tasks):
    model, tasks, _, _, looks_real = graft_problem(open_tasks, SINGLE_WINDOW)
    nobody = FoundGuides(tasks.x[:, None], torch.full((6, 1), -1))
    slope = model.slope().expand_as(tasks.x[:, None])
    (grafted,) = graft_windows(tasks, nobody, way_to(slope), looks_real, NOISE, 250)
    assert not grafted.found.any()
    assert torch.equal(grafted.x_cf, tasks.x)
    assert (grafted.donor == -1).all()
    assert model.asked[0] == 0


def test_a_whole_donor_where_no_part_will_do(open_tasks):
    """A model that knows the donors by heart."""
    donor = smooth_series(5, SINGLE_WINDOW, seed=2)

    def by_heart(X):
        p = (np.abs(X[:, None] - donor).max((2, 3)) < 1e-9).any(1)
        return np.stack([1 - p, p], 1)

    X = smooth_series(3, seed=1)
    tasks = open_tasks(by_heart, X, [1] * 3, modality="series", classes=[0, 1])
    looks_real = LooksReal.of(torch.from_numpy(np.concatenate([smooth_series(50, seed=3), donor])))
    donors = torch.from_numpy(donor).expand(3, -1, -1, -1)
    slope = WindowModel(*SINGLE_WINDOW).slope().expand_as(donors)
    (grafted,) = graft_windows(tasks, donors_of(donors), way_to(slope), looks_real, None, 60)
    assert grafted.found.all()
    assert grafted.passed.all()
    assert torch.equal(grafted.x_cf, donors[torch.arange(3), grafted.donor])


def test_looks_and_noise_are_given_up_where_nothing_passes(open_tasks):
    """Frozen steps next to the only ones that matter force a seam that shows."""
    start, end = SINGLE_WINDOW[0]
    frozen = np.ones(LENGTH, bool)
    frozen[start + 1 : end - 1] = False
    problem = graft_problem(open_tasks, SINGLE_WINDOW, constraints=Constraints(frozen=frozen))
    tasks, looks_real = problem[1], problem[4]
    (grafted,) = graft(problem, noise=NOISE)
    assert grafted.found.all()
    shows = ~looks_real.passes(tasks, grafted.x_cf)
    assert shows.any()
    assert not grafted.passed[shows].any()
    assert (tasks.ask(grafted.x_cf).label == 1).all()


# --- cost -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_rows", [1, 8, 20, 100])
def test_max_rows_bounds_the_cost(open_tasks, max_rows):
    problem = graft_problem(open_tasks, TWO_WINDOWS, n=8)
    model = problem[0]
    (grafted,) = graft(problem, noise=NOISE, max_rows=max_rows)
    assert model.asked[0] <= 8 * (2 * max_rows + MORE_ROWS)
    assert grafted.found.all()


@pytest.mark.parametrize("calls", [3, 9, 20, 45, 90])
def test_budget_is_never_exceeded(open_tasks, calls):
    n = 5
    problem = graft_problem(open_tasks, TWO_WINDOWS, n=n, budget=Budget(calls=n * calls))
    model, tasks = problem[:2]
    graft(problem, noise=NOISE, n_turns=2)
    # the rows about the instances themselves and about the answers belong to the budget
    assert model.asked[0] <= n * (calls - 2)
    assert (tasks.oracle.meter.spent <= tasks.oracle.meter.allowance).all()


@pytest.mark.parametrize("windows", [SINGLE_WINDOW, TWO_WINDOWS])
@pytest.mark.parametrize("confidence", [None, 0.98, 0.999])
def test_next_to_nothing_is_asked_twice(open_tasks, windows, confidence):
    """Windows that were shortened, and pairs, may happen to be the same in two turns."""
    problem = graft_problem(open_tasks, windows, confidence=confidence)
    graft(problem, n_turns=3)
    total, different = problem[0].asked
    assert different >= 0.9 * total


def test_batch_equals_loop(open_tasks):
    model, tasks, grafts, _, looks_real = graft_problem(open_tasks, TWO_WINDOWS)
    slope = model.slope().expand_as(grafts.donor)
    together = graft_windows(tasks, donors_of(grafts.donor), way_to(slope), looks_real, NOISE, 250)[
        0
    ]
    for i in range(len(tasks)):
        one = torch.tensor([i])
        donors = donors_of(grafts.donor[one])
        alone = graft_windows(tasks.take(one), donors, way_to(slope[one]), looks_real, NOISE, 250)[
            0
        ]
        for name, values in vars(alone).items():
            torch.testing.assert_close(values, getattr(together, name)[one], equal_nan=True)


# --- several grafts -------------------------------------------------------------------------------


@pytest.mark.parametrize("windows", [SINGLE_WINDOW, TWO_WINDOWS])
def test_further_grafts_lie_elsewhere(open_tasks, windows):
    problem = graft_problem(open_tasks, windows, n=8)
    tasks = problem[1]
    grafted = graft(problem, noise=NOISE, n_turns=3)
    assert len(grafted) == 3
    changed = [entry.x_cf != tasks.x for entry in grafted]
    sizes = [entry.flatten(1).double().mean(1) for entry in changed]
    # the windows that matter can be reached by larger windows, too
    assert grafted[1].found.float().mean() > 0.8
    for later in (1, 2):
        found = grafted[later].found
        assert (tasks.ask(grafted[later].x_cf).label[found] == 1).all()
        assert grafted[later].passed[found].all()
        for earlier in range(later):
            alike = similarity(changed[later], changed[earlier])[found]
            assert (alike <= 0.5).all()
    both = grafted[1].found
    assert sizes[1][both].mean() > sizes[0][both].mean()


def test_the_first_graft_does_not_depend_on_how_many_are_wanted(open_tasks):
    problem = graft_problem(open_tasks, SINGLE_WINDOW)
    (alone,) = graft(problem)
    first = graft(problem, n_turns=3)[0]
    assert torch.equal(alone.x_cf, first.x_cf)


# --- the rest -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("channels", "sets"), [(1, 1), (2, 3), (3, 7), (6, 22), (7, 8), (16, 17), (17, 1)]
)
def test_sets_of_channels_are_all_then_each_alone_then_every_two(channels, sets):
    subsets = channel_subsets(channels)
    assert subsets.shape == (sets, channels)
    assert len(subsets.unique(dim=0)) == sets
    assert subsets[0].all()
    if sets > 1:
        assert torch.equal(subsets[1 : channels + 1], torch.eye(channels, dtype=torch.bool))
    assert (subsets[channels + 1 :].sum(1) == 2).all()


def test_grafted_is_taken_and_joined_by_task(open_tasks):
    (grafted,) = graft(graft_problem(open_tasks, SINGLE_WINDOW))
    parts = [grafted.take(torch.tensor([0, 1])), grafted.take(torch.tensor([2, 3, 4, 5]))]
    again = Grafted.concat(parts)
    for name, values in vars(grafted).items():
        torch.testing.assert_close(getattr(again, name), values, equal_nan=True)
