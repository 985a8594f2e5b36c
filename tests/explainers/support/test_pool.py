"""Pools: the smallest of each group, the best of each instance, and others that differ."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from contrafact.explainers.support.pool import Pool, measure_merit, smallest_in_groups


@pytest.fixture
def tasks(counting, open_tasks):
    X = np.full((3, 1, 4), -1.0)
    return open_tasks(counting, X, 1, classes=[0, 1], k=2)


def make_pool(tasks, rows, values, merit):
    """One candidate per entry: the instance of `rows`, with `values` everywhere."""
    instances = tasks.per_instance().take(torch.tensor(rows, dtype=torch.long))
    values = torch.tensor(values).double()
    x_cf = values[:, None, None].expand(-1, 1, 4)
    number = torch.arange(len(rows))
    return Pool(instances.candidates(x_cf, number=number), torch.tensor(merit).double())


@pytest.mark.parametrize("k", [1, 3, 100])
def test_smallest_in_groups_equals_a_loop(k):
    rng = np.random.default_rng(0)
    group = rng.integers(0, 7, 60)
    values = rng.integers(0, 9, 60).astype(float)  # with ties
    values[::10] = np.inf
    expected = []
    for number in range(7):
        members = [i for i in range(60) if group[i] == number and np.isfinite(values[i])]
        expected += sorted(members, key=lambda i: values[i])[:k]
    found = smallest_in_groups(torch.from_numpy(group), torch.from_numpy(values), k)
    assert found.tolist() == expected


def test_merit_counts_values_then_distance(tasks):
    instances = tasks.per_instance()
    x_cf = instances.x.clone()
    x_cf[0, 0, :2] = 5.0  # two values, far
    x_cf[1] = 0.5  # all four, near
    x_cf[2, 0, 0] = -0.9  # one value, but not accepted
    merit = measure_merit(instances, x_cf, instances.ask(x_cf))
    assert merit[:2].tolist() == pytest.approx([2 + 3 / 4, 4 + 1.5 / 2.5])
    assert merit[2] == torch.inf


def test_counterfactuals_are_counted_per_instance(tasks):
    pool = make_pool(tasks, [2, 0, 2], [1.0, 2.0, 3.0], [1.0, 1.0, 1.0])
    instances = tasks.per_instance()
    assert pool.count(instances).tolist() == [1, 0, 2]
    assert pool.count(instances.take(torch.tensor([2, 1]))).tolist() == [2, 0]


def test_what_is_not_accepted_does_not_join(tasks):
    pool = make_pool(tasks, [0], [1.0], [2.0])
    more = make_pool(tasks, [0, 1, 2], [2.0, 3.0, 4.0], [1.0, torch.inf, 3.0])
    both = pool.join(more.found, more.merit)
    assert both.merit.tolist() == [2.0, 1.0, 3.0]
    assert both.found.tasks.row.tolist() == [0, 0, 2]
    assert both.found.x[:, 0, 0].tolist() == [1.0, 2.0, 4.0]
    assert both.found.info["number"].tolist() == [0, 0, 2]


def test_the_best_of_each_instance_is_chosen(tasks):
    pool = make_pool(tasks, [2, 0, 2, 0], [1.0, 2.0, 3.0, 4.0], [5.0, 4.0, 3.0, 6.0])
    best = pool.choose(1)
    assert best.tasks.row.tolist() == [0, 2] and best.info["number"].tolist() == [1, 2]


def test_more_of_an_instance_differ_from_the_best(tasks):
    """Of instance 0 a near copy of the best has the better merit, yet the other one is chosen."""
    values = [1.0, 1.001, 3.0, 2.0]
    pool = make_pool(tasks, [0, 0, 0, 2], values, [1.0, 1.001, 1.01, 1.0])
    chosen = pool.choose(2)
    assert chosen.info["number"].tolist() == [0, 2, 3]
    assert chosen.tasks.row.tolist() == [0, 0, 2]


def test_a_choice_does_not_depend_on_other_instances(tasks):
    values = [1.0, 1.2, 3.0, 7.0, 9.0]
    merit = [1.0, 1.3, 1.1, 1.0, 2.0]
    alone = make_pool(tasks, [0, 0, 0], values[:3], merit[:3]).choose(3)
    beside = make_pool(tasks, [0, 0, 0, 2, 2], values, merit).choose(3)
    of_the_first = beside.tasks.row == 0
    assert beside.info["number"][of_the_first].tolist() == alone.info["number"].tolist()


def test_an_empty_pool_chooses_nothing(tasks):
    pool = make_pool(tasks, [], [], [])
    assert len(pool.choose(2)) == 0 and pool.count(tasks.per_instance()).tolist() == [0, 0, 0]
