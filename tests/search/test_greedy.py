"""Greedy growth of a mask, compared with a plain loop."""

import numpy as np
import torch

import contrafact as cf
from contrafact.search import grow_mask, segment_ids

WEIGHT = np.array([1.0, 4.0, 2.0, 0.0, 3.0, 0.5])


def steps(X):
    """Class 1 from a weighted sum of 5 on; answers in whole steps."""
    total = np.floor(X.reshape(len(X), -1) @ np.repeat(WEIGHT, 2))
    p = 1 / (1 + np.exp(-(total - 9.5)))
    return np.stack([1 - p, p], 1)


def with_guides(tasks):
    return tasks.attach(guide=torch.ones_like(tasks.x))


def test_growth_takes_the_most_helpful_segment_each_time(open_tasks):
    tasks = with_guides(open_tasks(steps, np.zeros((2, 1, 12)), 1))
    grown = grow_mask(tasks, segment_ids((1, 12), 2))
    # 2·4 = 8 is not enough, 2·(4 + 3) = 14 is.
    assert grown.copied_in.tolist() == [[-1, 0, -1, -1, 1, -1]] * 2
    gain = grown.gain_alone[0]
    assert gain.argsort(descending=True)[:3].tolist() == [1, 4, 2] and gain[3] == 0


def test_a_share_of_the_segments_is_tried_in_each_round(open_tasks):
    tasks = with_guides(open_tasks(steps, np.zeros((2, 1, 12)), 1))
    grown = grow_mask(tasks, segment_ids((1, 12), 2), share=0.5)
    rounds = (grown.copied_in >= 0).sum(1)
    for row in range(2):
        # half of 6, of 5, of 4, ... rounded up
        asked = sum(-(-(6 - turn) // 2) for turn in range(int(rounds[row])))
        assert int(tasks.oracle.meter.spent[row]) == asked
        assert (grown.gain_alone[row] == 0).sum() >= 3


def test_growth_stops_where_the_budget_does(open_tasks):
    budget = cf.Budget(calls=2 * (2 + 6))  # one round of six segments each
    tasks = with_guides(open_tasks(steps, np.zeros((2, 1, 12)), 1, budget=budget))
    grown = grow_mask(tasks, segment_ids((1, 12), 2))
    assert (grown.copied_in >= 0).sum(1).tolist() == [1, 1]
    assert tasks.oracle.meter.spent.tolist() == [6, 6]


def test_where_nothing_gains_what_differs_most_is_copied(open_tasks):
    flat = lambda X: np.tile([0.9, 0.1], (len(X), 1))  # noqa: E731
    tasks = open_tasks(flat, np.zeros((1, 1, 4)), 1, classes=[0, 1])
    tasks = tasks.attach(guide=torch.tensor([[[1.0, 7.0, 2.0, 3.0]]], dtype=tasks.x.dtype))
    grown = grow_mask(tasks, segment_ids((1, 4), 1))
    assert grown.copied_in.tolist() == [[3, 0, 2, 1]]
