"""Populations: the best live on, and the model is asked only where its answer can matter."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import contrafact as cf
from contrafact.explainers.support.population import Population

SIZE = 4


@pytest.fixture
def open_population(counting, open_tasks):
    """Instances of 1 x 4 at −1; class 1 from a mean of 0 upward."""

    def build(n=2, **options):
        X = np.full((n, 1, 4), -1.0) - 0.01 * np.arange(n)[:, None, None]
        tasks = open_tasks(counting, X, 1, classes=[0, 1], **options)
        counting.seen = 0
        return Population.empty(tasks.per_instance(), SIZE)

    return build


def add(population, values, of=0):
    """Offspring of population `of`: the instance with the first values replaced."""
    offspring = population.tasks.take(torch.full((len(values),), of))
    x = offspring.x.clone()
    for individual, changed in zip(x, values, strict=True):
        individual[0, : len(changed)] = torch.tensor(changed).double()
    return population.evolve(offspring, x)


def test_objectives_are_shortfall_distance_and_size(open_population):
    population = add(open_population(1), [[3.0, 3.0], [0.0]])
    by_size = population.objectives[0, :, 2].argsort()
    near, accepted = population.objectives[0, by_size][:2].tolist()
    lead = 4 * -0.75  # of class 1, in log-odds
    assert accepted == pytest.approx([0, 2.0, 2])
    assert near == pytest.approx([1 - 1 / (1 + np.exp(-lead)), 0.25, 1])
    assert population.reached[0, by_size[:2]].tolist() == [False, True]


def test_absent_individuals_fill_up_and_never_live_on(open_population):
    population = add(open_population(2), [[0.0]])
    assert population.x.shape == (2, SIZE, 1, 4)
    assert population.objectives.isfinite().all(2).sum(1).tolist() == [1, 0]
    population = add(population, [[3.0, 3.0], [0.5], [-0.5], [-0.8]])
    assert population.objectives[0].isfinite().all()
    assert population.front_size[0] >= 1


def test_a_generation_without_offspring_changes_nothing(open_population):
    population = add(open_population(), [[3.0, 3.0], [0.0], [5.0, 5.0, 5.0]])
    again = add(population, [])
    assert torch.equal(again.x, population.x)
    assert torch.equal(again.objectives, population.objectives)


def test_merit_orders_by_size_then_distance(open_population):
    population = add(open_population(1), [[3.0, 3.0], [9.0], [0.0]])
    best = population.choose(1)
    assert population.individuals(best)[0, 0, 0].tolist() == [9.0, -1.0, -1.0, -1.0]
    assert population.merit.isfinite().sum() == population.reached.sum() == 2
    assert population.merit.amin() == pytest.approx(1 + 2.5 / 3.5)


def test_the_best_is_never_crowded_out(open_population):
    """Many individuals between the extremes of the front: the sparsest accepted one stays."""
    population = add(open_population(1), [[8.0]])
    for step in range(1, 8):
        values = [[8.0 - step, 0.5], [step / 2, 0.0, 0.0], [-1.0 + step / 20]]
        population = add(population, values)
        best = population.choose(1)
        assert population.individuals(best)[0, 0, 0, 0] == 8.0


def test_dominated_offspring_are_not_asked_about(open_population, counting):
    population = add(open_population(1), [[3.0, 3.0]])
    before = counting.seen
    grown = add(population, [[4.0, 4.0], [3.0, 3.0, 3.0]])
    assert counting.seen == before and torch.equal(grown.x, population.x)
    add(population, [[2.0, 3.0], [0.0]])
    assert counting.seen == before + 2


def test_nothing_is_asked_twice(open_population, counting):
    population = add(open_population(1), [[0.0], [0.0], [0.1]])
    assert counting.seen == 2
    add(population, [[0.1]])
    assert counting.seen == 2


def test_offspring_beyond_the_budget_are_dropped(open_population, counting):
    population = open_population(2, budget=cf.Budget(calls=2 * 5))
    allowance = population.tasks.oracle.meter.allowance
    values = [[0.1 * i] for i in range(9)]
    population = add(population, values)
    assert counting.seen == int(allowance[0]) < 9
    population = add(population, values, of=1)
    assert counting.seen == int(allowance.sum())


def test_offspring_are_brought_within_the_constraints(open_population):
    population = open_population(1, constraints=cf.Constraints(upper=2.0))
    population = add(population, [[3.0, 3.0]])
    assert population.x.max() == 2.0


def test_k_individuals_differ_and_begin_with_the_best(open_population):
    population = add(open_population(1), [[9.0], [8.999, 0.0], [3.0, 3.0], [1.4, 1.4, 1.4]])
    assert population.reached.all()
    best, other = population.individuals(population.choose(2))[0, :, 0].tolist()
    assert best == [9.0, -1.0, -1.0, -1.0] and other[0] != 8.999
    assert population.choose(9).shape == (1, SIZE)


def test_numbers_follow_the_instance(open_population):
    population = open_population(3)
    numbers = population.draw(5, stream=2)
    assert numbers.shape == (3, SIZE, 5) and numbers.dtype == torch.float64
    assert len(numbers.unique()) == 3 * SIZE * 5
    alone = Population.empty(population.tasks.take(torch.tensor([1])), SIZE)
    assert torch.equal(alone.draw(5, stream=2)[0], numbers[1])
    assert not torch.equal(population.draw(5, stream=3), numbers)
