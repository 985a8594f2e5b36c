"""The acceptance rule: the model, then the tests, then the committee, each only about the rest."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from contrafact.engine import Tasks
from contrafact.engine.acceptance import CLEAR_MARGIN, accepts
from contrafact.models import Committee
from contrafact.models.verdict import Verdict
from contrafact.search import first_on_line
from contrafact.search.gradients import ModelGradient, with_temperature
from contrafact.search.refinement import undo_edits


class Voter:
    """A model of the mean whose boundary lies at `level`; it remembers what it was shown."""

    def __init__(self, level):
        self.level = level
        self.shown = []

    def __call__(self, X):
        mean = X.mean((1, 2))
        self.shown += mean.tolist()
        p = 1 / (1 + np.exp(-8 * (mean - self.level)))
        return np.stack([1 - p, p], 1)


class MeanBelow:
    """Pass candidates whose mean is below a limit."""

    def __init__(self, limit):
        self.limit = limit
        self.shown = []

    def passes(self, tasks, x_cf):
        mean = x_cf.mean((1, 2))
        assert len(tasks) == len(mean)
        self.shown += mean.tolist()
        return mean < self.limit


def at(*means):
    """Constant series with these means."""
    return torch.tensor(means, dtype=torch.float64).reshape(-1, 1, 1).expand(-1, 1, 5).clone()


@pytest.fixture
def voters():
    return Voter(0.5), Voter(1.0)


@pytest.fixture
def tasks(counting, open_tasks, voters):
    """Four series of class 0; the model wants a mean above 0, the committee above 0.5 and 1."""
    tasks = open_tasks(counting, np.full((4, 1, 5), -1.0), 1, committee=Committee(voters))
    for voter in voters:
        voter.shown.clear()
    return tasks


def verdict_of(*p):
    return Verdict.of_proba(torch.tensor([[1 - v, v] for v in p], dtype=torch.float64))


def test_acceptance_requires_a_clear_lead_and_the_confidence(open_tasks, counting):
    X = np.full((4, 1, 5), -1.0)
    tasks = open_tasks(counting, X, 1)
    said = verdict_of(0.5 + CLEAR_MARGIN / 4, 0.5 + CLEAR_MARGIN, 0.49, 0.97)
    x_cf = at(1.0, 1.0, 1.0, 1.0)
    assert tasks.accepts(x_cf, said).tolist() == [False, True, False, True]
    firm = open_tasks(counting, X, 1, confidence=0.9)
    said = verdict_of(0.89, 0.9, 0.6, 0.97)
    assert firm.accepts(x_cf, said).tolist() == [False, True, False, True]
    assert tasks.with_goal(0.9).accepts(x_cf, said).tolist() == [False, True, False, True]
    assert tasks.accepts(x_cf, said).all()  # aiming higher made new tasks and left these alone


def test_acceptance_goes_by_the_models_own_label():
    """A model may decide against its most probable class: probability alone is not enough."""
    proba = torch.tensor([[0.2, 0.8]], dtype=torch.float64)
    contrary = Verdict(proba, torch.tensor([0]), proba.log())
    assert not accepts(contrary, torch.tensor([1])).any()


def test_each_stage_sees_only_what_passed_before(tasks, voters):
    first, second = MeanBelow(9.0), MeanBelow(5.0)
    tested = tasks.requiring(first).requiring(second)
    six = tested.take(torch.tensor([0, 0, 1, 1, 2, 3]))
    x_cf = at(-0.5, 0.3, 0.7, 1.5, 7.0, 10.0)
    assert six.accepts(x_cf, six.ask(x_cf)).tolist() == [False, False, False, True, False, False]
    assert first.shown == pytest.approx([0.3, 0.7, 1.5, 7.0, 10.0])
    assert second.shown == pytest.approx([0.3, 0.7, 1.5, 7.0])
    assert voters[0].shown == pytest.approx([0.3, 0.7, 1.5])
    assert voters[1].shown == pytest.approx([0.7, 1.5])


def test_rows_of_the_members_are_counted_apart_from_the_models(tasks):
    pair = tasks.take(torch.tensor([0, 2]))
    pair.accepted(at(0.3, 1.5))
    assert tasks.oracle.committee_rows.tolist() == [1, 0, 2, 0]
    assert tasks.oracle.meter.spent.tolist() == [1, 0, 1, 0]


def test_tests_stay_with_the_tasks(tasks):
    tested = tasks.requiring(MeanBelow(5.0))
    others = [
        tested.take(torch.tensor([1])),
        tested.repeat(2),
        tested.attach(a=tested.x),
        tested.with_goal(0.9),
        Tasks.concat(tested.split(2)),
    ]
    for other in others:
        assert other.tests == tested.tests
    assert tasks.tests == ()


def test_searches_go_on_until_the_committee_agrees(tasks):
    _, x_cf = first_on_line(tasks, at(3.0, 3.0, 3.0, 3.0))
    assert x_cf.mean((1, 2)).tolist() == pytest.approx([1.0] * 4, abs=0.01)


def test_gradient_searches_take_an_iterate_for_reached_by_the_whole_rule(tasks):
    def size(point):
        return point.theta.flatten(1).square().sum(1)

    model = ModelGradient(tasks, lambda tasks, code: code, size, gradients="none")
    now = model.evaluate(with_temperature(tasks), at(-0.5, 0.3, 0.7, 1.5), 0)
    assert now.reached.tolist() == [False, False, False, True]


def test_refinement_stops_where_the_committee_would_disagree(tasks):
    x_cf = undo_edits(tasks, at(3.0, 2.0, 1.1, 0.7))
    assert tasks.oracle.agrees(x_cf, tasks.row).tolist() == [True, True, True, False]
    torch.testing.assert_close(x_cf[3:], at(0.7))  # was not accepted to begin with
    assert (x_cf[:3].mean((1, 2)) < 1.25).all()


def test_the_best_attempt_is_one_that_passed_everything(tasks):
    three = tasks.take(torch.tensor([0, 0, 1]))
    three.accepted(at(2.0, 0.3, 0.3))
    torch.testing.assert_close(tasks.best_attempts()[:2], at(2.0, 0.3))


def test_an_instance_in_the_target_class_is_done_whatever_the_committee_says(
    counting, open_tasks, voters
):
    X = at(0.3, 2.0).numpy()
    tasks = open_tasks(counting, X, 1, committee=Committee(voters))
    assert tasks.oracle.states.pending().tolist() == [False, False]
