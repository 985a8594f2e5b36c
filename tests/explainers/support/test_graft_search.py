"""The search for the smallest graft: against all grafts, within its rows, by predictions."""

import numpy as np
import pytest
import torch
from window_problems import SINGLE_WINDOW, TWO_WINDOWS, graft_problem, graft_search

from contrafact.engine import Budget
from contrafact.explainers.support.graft_predictions import LARGEST_LEAD
from contrafact.explainers.support.graft_search import SINGLE_STREAM
from contrafact.explainers.support.graft_tests import SurvivesNoise, log_lead
from contrafact.explainers.support.graft_trials import Trial

ROUNDS = 40
LOUD = SurvivesNoise(torch.tensor([[0.4]]), 1.0, 12, 12)


def smallest_of_all(problem):
    """Ask about every graft that does not show; return the smallest accepted size, (n,)."""
    _, tasks, grafts, _, looks_real = problem
    best = torch.full((len(tasks),), torch.inf, dtype=torch.float64)
    size = grafts.sizes()
    for i in range(len(tasks)):
        variant, window = grafts.hidden[i].nonzero().T
        own = tasks.take(torch.full_like(variant, i))
        x_cf = grafts.make(tasks.x, torch.full_like(variant, i), variant, window)
        accepted = own.accepts(x_cf, own.ask(x_cf, remember=False))
        accepted &= looks_real.passes(own, x_cf)
        best[i] = size[variant, window][accepted].min()
    return best


def weak_predictions(problem):
    """The same problem with first-order gains that say nothing about where to look."""
    model, tasks, grafts, gains, looks_real = problem
    average = gains.mean((1, 2), keepdim=True).expand_as(gains).clone()
    return model, tasks, grafts, average, looks_real


# --- what is found --------------------------------------------------------------------------------


def test_near_the_smallest_of_all_grafts_within_few_rows(open_tasks):
    problem = graft_problem(open_tasks, SINGLE_WINDOW, n=12)
    search = graft_search(problem)
    search.run(ROUNDS)
    spent = search.spent.double()
    optimum = smallest_of_all(problem)
    assert search.found.all()
    assert (search.best.size >= optimum - 1e-6).all()
    assert (search.best.size / optimum).mean() <= 1.15
    assert spent.mean() < 0.1 * problem[2].hidden.flatten(1).sum(1).double().mean()


def test_the_best_is_what_it_says(open_tasks):
    problem = graft_problem(open_tasks, SINGLE_WINDOW)
    _, tasks, grafts, _, looks_real = problem
    search = graft_search(problem)
    search.run(ROUNDS)
    best = search.best
    made = grafts.make(tasks.x, best.task, best.variant, best.cut)
    assert torch.equal(best.x_cf, made)
    assert torch.equal(best.task, torch.arange(len(tasks)))
    size = (best.x_cf != tasks.x).flatten(1).double().mean(1)
    torch.testing.assert_close(best.size, size, atol=1e-6, rtol=0)
    assert tasks.accepts(best.x_cf, tasks.ask(best.x_cf)).all()
    assert looks_real.passes(tasks, best.x_cf).all()
    assert (best.second_cut == -1).all()


def test_only_the_goal_asked_for_is_accepted(open_tasks):
    problem = graft_problem(open_tasks, SINGLE_WINDOW, confidence=0.9)
    search = graft_search(problem)
    search.run(ROUNDS)
    p = problem[1].ask(search.best.x_cf).proba[:, 1]
    assert search.found.any()
    assert (p[search.found] >= 0.9).all()
    assert (search.refused_by_rule > 0).any()


def test_nothing_is_found_where_nothing_is_open(open_tasks):
    problem = graft_problem(open_tasks, SINGLE_WINDOW)
    problem[2].hidden.zero_()
    search = graft_search(problem)
    search.run(ROUNDS)
    assert not search.found.any()
    assert torch.equal(search.best.x_cf, problem[1].x)
    assert (search.size_to_beat == 1).all()
    assert problem[0].asked[0] == 0


# --- cost -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_rows", [7, 8, 24, 60])
def test_no_round_goes_beyond_max_rows(open_tasks, max_rows):
    problem = graft_problem(open_tasks, TWO_WINDOWS)
    search = graft_search(problem, max_rows=max_rows)
    search.run(ROUNDS)
    assert (search.spent <= max_rows).all()
    assert problem[0].asked[0] == search.spent.sum()
    assert (search.spent > 0).all() == (max_rows >= 8)


@pytest.mark.parametrize("calls", [4, 11, 30])
def test_budget_is_kept(open_tasks, calls):
    problem = graft_problem(open_tasks, TWO_WINDOWS, budget=Budget(calls=6 * calls))
    search = graft_search(problem, noise=LOUD)
    search.run(ROUNDS)
    search.try_cut(problem[2].grid.whole, 10, 2)
    assert problem[0].asked[0] == search.spent.sum()
    assert (search.spent <= calls - 2).all()


def test_no_graft_is_asked_about_twice(open_tasks):
    problem = weak_predictions(graft_problem(open_tasks, TWO_WINDOWS))
    search = graft_search(problem, max_rows=400)
    search.run(50)
    total, different = problem[0].asked
    assert total > 500
    assert total == different


def test_nothing_larger_than_the_best_is_asked_about(open_tasks, monkeypatch):
    problem = graft_problem(open_tasks, SINGLE_WINDOW)
    search = graft_search(problem)
    judge = search.judge
    useless = []

    def watched(trial: Trial):
        useless.append((trial.size >= search.best.size[trial.task]).sum().item())
        return judge(trial)

    monkeypatch.setattr(search, "judge", watched)
    search.run(ROUNDS)
    assert sum(useless) == 0


def test_it_ends_where_nothing_better_is_expected(open_tasks):
    problem = graft_problem(open_tasks, SINGLE_WINDOW)
    search = graft_search(problem, max_rows=10**6)
    search.run(200)
    assert (search.spent < 150).all()
    everything = torch.arange(len(problem[1]))
    left = search.expected_improvement(everything, search.leads.of(everything), search.size)
    assert (left * search.open).amax() < 0.01


# --- predictions ----------------------------------------------------------------------------------


def leads_of_all(problem):
    """The true lead after every graft that does not show."""
    _, tasks, grafts, _, _ = problem
    number, variant, window = grafts.hidden.nonzero().T
    x_cf = grafts.make(tasks.x, number, variant, window)
    own = tasks.take(number)
    return (number, variant, window), log_lead(own.ask(x_cf, remember=False), own.target)


def test_predictions_start_at_first_order_and_learn(open_tasks):
    model, tasks, grafts, gains, looks_real = graft_problem(open_tasks, SINGLE_WINDOW)
    problem = (model, tasks, grafts, 0.3 * gains, looks_real)
    search = graft_search(problem)
    everything = torch.arange(len(tasks))
    place, lead = leads_of_all(problem)
    before = log_lead(tasks.before, tasks.target)
    start = search.leads.of(everything)
    here = before[:, None, None].float()
    first_order = LARGEST_LEAD * torch.tanh((here + 0.3 * gains) / LARGEST_LEAD)
    on_the_way = here + (LARGEST_LEAD - here) * search.size
    torch.testing.assert_close(start, 0.5 * (first_order + on_the_way))
    first_guess = start[place] - lead
    search.run(6)
    asked = search.answered[place]
    assert asked.sum() > 50
    error = search.leads.of(everything)[place] - lead
    assert error[asked].square().mean() < 0.5 * first_guess[asked].square().mean()


def test_an_answer_moves_its_neighbors_by_their_similarity(open_tasks):
    model, tasks, grafts, gains, looks_real = graft_problem(open_tasks, SINGLE_WINDOW)
    search = graft_search((model, tasks, grafts, 0 * gains, looks_real))
    first = torch.tensor([0])
    cut = int(((grafts.grid.start == 20) & (grafts.grid.end == 28)).nonzero())
    before = search.leads.of(first)
    search.open[0, 0, cut] = True
    search.looks_real = None
    search.ask_about(first, torch.tensor([[cut]]))
    moved = (search.leads.of(first) - before)[0]
    assert moved[0, cut] > 0
    similarity = grafts.grid.similarity(torch.tensor(cut))
    assert (moved[:, similarity == 0] == 0).all()
    order = similarity.argsort()
    assert (moved[0, order].diff() >= -1e-6).all()
    assert (moved[1:, cut] < moved[0, cut]).all()
    others = search.leads.of(torch.arange(1, len(tasks)))
    assert torch.equal(others, search.leads.prior[1:])


def test_small_and_likely_grafts_are_expected_to_improve_most(open_tasks):
    search = graft_search(graft_problem(open_tasks, SINGLE_WINDOW))
    task = torch.tensor([0])
    prediction = torch.tensor([[[-3.0, 0.0, 3.0, 3.0, 3.0]]])
    size = torch.tensor([0.5, 0.5, 0.5, 0.2, 1.0])
    gain = search.expected_improvement(task, prediction, size)[0, 0]
    assert gain[0] < gain[1] < gain[2] < gain[3]
    assert gain[4] == 0
    assert gain[1] == pytest.approx(0.25)
    search.need[0] = 2.0
    assert search.expected_improvement(task, prediction, size)[0, 0, 1] < 0.25


def test_draws_prefer_what_improves_and_belong_to_the_task(open_tasks):
    search = graft_search(graft_problem(open_tasks, SINGLE_WINDOW))
    everything = torch.arange(6)
    improvement = torch.zeros(6, 200)
    improvement[:, 30:50] = 0.5
    improvement[:, 50:70] = 0.05
    improvement[5] = 0
    active, chosen = search.draw(everything, improvement, 0, SINGLE_STREAM)
    assert active.tolist() == [0, 1, 2, 3, 4]
    assert chosen.shape == (5, 8)
    assert all(len(set(row)) == 8 for row in chosen.tolist())
    assert ((chosen >= 30) & (chosen < 70)).all()
    assert ((chosen >= 30) & (chosen < 50)).float().mean() > 0.9
    alone = search.draw(torch.tensor([3]), improvement[3:4], 0, SINGLE_STREAM)[1]
    assert torch.equal(alone[0], chosen[3])
    assert not torch.equal(chosen[0], chosen[1])
    later = search.draw(everything, improvement, 1, SINGLE_STREAM)[1]
    assert not torch.equal(later, chosen)


# --- noise ----------------------------------------------------------------------------------------


def test_what_noise_kills_is_not_the_first_answer(open_tasks):
    problem = graft_problem(open_tasks, SINGLE_WINDOW, n=10)
    tasks = problem[1]
    search = graft_search(problem, noise=LOUD)
    search.run(1)
    found = search.found
    assert (search.refused_by_noise > 0).any()
    assert LOUD.passes(tasks, search.best.x_cf)[found].all()
    # whoever was refused once needs a larger lead from then on
    refused = search.refused_by_noise > 0
    assert (search.need[refused] > 0).all()


def test_candidates_below_the_lead_that_noise_asks_for_are_refused(open_tasks):
    problem = graft_problem(open_tasks, SINGLE_WINDOW)
    _, tasks, grafts, _, _ = problem
    search = graft_search(problem)
    search.looks_real = None
    whole = grafts.grid.whole
    nothing = torch.full((1,), -1)
    one = torch.tensor([0])
    x_cf = grafts.make(tasks.x, one, one, torch.tensor([whole]))
    trial = Trial(one, x_cf, torch.ones(1), one, torch.tensor([whole]), nothing, nothing)
    answers = search.judge(trial)
    assert answers.accepted.all()
    search.need[0] = float(answers.lead[0]) + 0.1
    assert not search.judge(trial).accepted.any()
    assert search.refused_by_rule[0] == 0


# --- other places ---------------------------------------------------------------------------------


def test_start_over_closes_what_is_similar(open_tasks):
    problem = graft_problem(open_tasks, SINGLE_WINDOW)
    tasks, grafts = problem[1:3]
    search = graft_search(problem)
    search.run(ROUNDS)
    first = search.best.take(torch.arange(len(tasks)))
    search.start_over(0.5)
    assert not search.found.any()
    similar = grafts.grid.similarity(first.cut) > 0.5
    assert not (search.open & similar[:, None]).any()
    search.run(ROUNDS)
    assert search.found.all()
    changed = [x_cf != tasks.x for x_cf in (first.x_cf, search.best.x_cf)]
    shared = (changed[0] & changed[1]).flatten(1).sum(1)
    either = (changed[0] | changed[1]).flatten(1).sum(1)
    assert (shared / either <= 0.5).all()


def test_whole_donors_are_tried_for_tasks_without_an_answer(open_tasks):
    problem = graft_problem(open_tasks, SINGLE_WINDOW)
    grafts = problem[2]
    search = graft_search(problem)
    search.run(ROUNDS)
    search.best.size[:3] = torch.inf
    rest = search.best.x_cf[3:].clone()
    spent = search.spent.clone()
    search.try_cut(grafts.grid.whole, 6, 2)
    assert (search.spent - spent).tolist() == [3, 3, 3, 0, 0, 0]
    assert search.found.all()
    donor = search.best.variant[:3] // 2
    assert torch.equal(search.best.x_cf[:3], grafts.donor[torch.arange(3), donor])
    assert torch.equal(search.best.x_cf[3:], rest)


def test_order_of_the_tasks_does_not_matter(open_tasks):
    model, tasks, grafts, gains, looks_real = graft_problem(open_tasks, SINGLE_WINDOW)
    search = graft_search((model, tasks, grafts, gains, looks_real))
    search.run(ROUNDS)
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(tasks)))
    shuffled = type(grafts)(
        grafts.grid,
        grafts.donor[order],
        grafts.subsets,
        grafts.ramp_in[order],
        grafts.ramp_out[order],
        grafts.hidden[order],
    )
    again = graft_search((model, tasks.take(order), shuffled, gains[order], looks_real))
    again.run(ROUNDS)
    assert torch.equal(again.best.x_cf, search.best.x_cf[order])
