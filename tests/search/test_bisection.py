"""Bisection for all tasks at once, compared with a plain scan."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from contrafact.engine import Budget
from contrafact.engine.row_states import State
from contrafact.search.bisection import accepted_from, first_on_line, smallest_level

TOP = 37


def move(tasks, level):
    """Candidates on a straight line: level TOP adds `reach` to every value."""
    return tasks.x + (tasks["reach"] * level / TOP).reshape(-1, 1, 1)


@pytest.fixture
def walk(counting, open_tasks):
    rng = np.random.default_rng(0)
    tasks = open_tasks(counting, rng.uniform(-2, -0.1, (25, 1, 4)), 1)
    return tasks.attach(reach=torch.from_numpy(rng.uniform(0, 4, 25)))


def scan(tasks, position):
    """Accepted or not, for every level of one task."""
    levels = torch.arange(1, TOP + 1)
    repeated = tasks.take(torch.full((TOP,), position))
    x_cf = move(repeated, levels)
    return repeated.accepts(x_cf, repeated.ask(x_cf)).tolist()


def test_smallest_level_equals_a_scan(walk):
    level, found = smallest_level(walk, move, TOP)
    accepted = [scan(walk, position) for position in range(len(walk))]
    expected = [1 + line.index(True) if any(line) else TOP for line in accepted]
    assert level.tolist() == expected and len(set(expected)) > 5
    torch.testing.assert_close(found, move(walk, level))


def test_an_instance_may_have_several_tasks(walk):
    tasks = walk.take(torch.tensor([3, 3, 8]))
    scale = torch.tensor([8.0, 16.0, 8.0], dtype=torch.float64)
    both, _ = smallest_level(tasks.attach(reach=scale), move, TOP)
    alone = tasks.take(torch.tensor([1])).attach(reach=scale[1:2])
    single, _ = smallest_level(alone, move, TOP)
    assert both[1] == single[0] and both[0] > both[1]


def test_where_acceptance_comes_and_goes_the_answer_is_an_edge(open_tasks):
    def wavy(X):
        p = 0.5 + 0.4 * np.sin(5 * X.mean((1, 2)))
        return np.stack([1 - p, p], 1)

    X = np.linspace(3.2, 3.7, 20).reshape(-1, 1, 1) / 5 * np.ones((20, 1, 4))
    tasks = open_tasks(wavy, X, 1).attach(reach=torch.linspace(1, 6, 20, dtype=torch.float64))
    level, _ = smallest_level(tasks, move, TOP)
    for position in range(20):
        accepted = [False, *scan(tasks, position)]
        if accepted[TOP]:
            assert accepted[level[position]] and not accepted[level[position] - 1]
        else:
            assert level[position] == TOP


def test_knowing_the_top_saves_one_question_each(walk, counting):
    tasks = walk.attach(reach=torch.full((len(walk),), 4.0, dtype=torch.float64))
    seen = counting.seen
    asked, _ = smallest_level(tasks, move, TOP)
    first = counting.seen - seen
    known, _ = smallest_level(tasks, move, TOP, top_accepted=True)
    assert torch.equal(asked, known)
    assert first - (counting.seen - seen - first) == len(tasks)


def test_a_spent_budget_stops_at_an_accepted_level(counting, open_tasks):
    budget = Budget(calls=3 * (2 + 3))
    tasks = open_tasks(counting, np.full((3, 1, 4), -1.0), 1, budget=budget)
    tasks = tasks.attach(reach=torch.full((3,), 4.0, dtype=torch.float64))
    level, found = smallest_level(tasks, move, TOP)
    assert tasks.oracle.meter.spent.tolist() == [3, 3, 3]
    assert tasks.oracle.states.is_in(State.EXHAUSTED).all()
    assert level.tolist() == [18, 18, 18]  # 37 and 18 were accepted, 9 was not
    torch.testing.assert_close(found, move(tasks, level))


def test_rising_starts_where_it_stands(walk):
    reached, _ = smallest_level(walk, move, TOP)
    start = torch.full_like(reached, 12)
    level, x_cf = accepted_from(walk, move, start, TOP)
    assert torch.equal(level, torch.maximum(reached, start))
    torch.testing.assert_close(x_cf, move(walk, level))


def test_the_first_point_on_a_line_is_at_the_boundary(walk):
    end = torch.ones_like(walk.x)
    share, x_cf = first_on_line(walk, end, steps=12)
    torch.testing.assert_close(x_cf, torch.lerp(walk.x, end, share.reshape(-1, 1, 1)))
    mean = x_cf.mean((1, 2))
    assert (mean > 0).all() and (mean < 2 * 3 / 2**12 + 1e-4).all()


def test_a_nearest_neighbor_model_is_not_asked_about_a_tie(open_tasks):
    """Half way between two of its rows, rounding would decide, which depends on the batch."""
    rows = np.random.default_rng(0).normal(size=(2, 30))
    gaps = []

    def nearest(X):
        distance = np.linalg.norm(X[:, None] - rows, axis=-1)
        gaps.extend(np.abs(distance[:, 0] - distance[:, 1]))
        return np.eye(2)[distance.argmin(1)]

    tasks = open_tasks(nearest, rows[:1], 1)
    share, _ = first_on_line(tasks, torch.from_numpy(rows[1:]))
    assert 0.5 < share.item() < 0.5 + 2**-10
    assert min(gaps) > 1e-4 * np.linalg.norm(rows[0] - rows[1])
