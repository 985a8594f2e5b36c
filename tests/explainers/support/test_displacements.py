"""Displacements: bounds seen from the instance, the shortest of each group, and the way back."""

from __future__ import annotations

import numpy as np
import torch

import contrafact as cf
from contrafact.explainers.support.displacements import (
    choose_shortest,
    displace,
    displacement_bounds,
    least_of_group,
    length,
)


def test_lengths_are_norms():
    delta = torch.tensor([[3.0, -4.0], [0.0, 0.0]])
    assert length(delta, "l1").tolist() == [7.0, 0.0]
    assert length(delta, "l2").tolist() == [5.0, 0.0]


def test_displaced_instances_keep_shape_and_constraints(counting, open_tasks):
    X = np.zeros((2, 1, 3))
    limits = cf.Constraints(upper=0.5, frozen=np.array([[True, False, False]]))
    tasks = open_tasks(counting, X, constraints=limits)
    delta = torch.tensor([[1.0, 2.0, -3.0], [0.0, 0.25, 0.0]], dtype=torch.float64)
    x_cf = displace(tasks, delta)
    assert x_cf.dtype == tasks.x.dtype
    assert x_cf.tolist() == [[[0.0, 0.5, -3.0]], [[0.0, 0.25, 0.0]]]


def test_shortest_of_each_group():
    size = [3.0, 1.0, np.nan, 2.0, 1.0, np.nan]
    delta = torch.tensor(size, dtype=torch.float64)[:, None]
    group = torch.tensor([0, 0, 0, 0, 4, 2])
    chosen, rank = choose_shortest(delta, "l2", group, k=2)
    assert chosen.tolist() == [1, 3, 4] and rank.tolist() == [0, 1, 0]
    chosen, _ = choose_shortest(delta, "l2", group, k=9)
    assert chosen.tolist() == [1, 3, 0, 4]


def test_least_of_each_group():
    least = least_of_group(torch.tensor([3.0, 1.0, 5.0, 2.0]), torch.tensor([7, 7, 2, 2]))
    assert least.tolist() == [1.0, 1.0, 2.0, 2.0]
    assert len(least_of_group(torch.zeros(0), torch.zeros(0, dtype=torch.long))) == 0


def test_bounds_are_relative_and_frozen_values_stay(counting, open_tasks):
    X = np.array([[0.5, -1.0, 2.0]])
    limits = cf.Constraints(lower=-2.0, upper=3.0, frozen=np.array([False, True, False]))
    tasks = open_tasks(counting, X, modality="row", constraints=limits)
    lower, upper = displacement_bounds(tasks, tasks.x.double())
    np.testing.assert_allclose(lower, [[-2.5, 0.0, -4.0]])
    np.testing.assert_allclose(upper, [[2.5, 0.0, 1.0]])
    free = open_tasks(counting, X, modality="row")
    lower, upper = displacement_bounds(free, free.x.double())
    assert (lower == -torch.inf).all() and (upper == torch.inf).all()
