"""Crossover: pairs of parents swap one window, and thrift spares pairs that will not get there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from contrafact.explainers.support.crossover import Crossover
from contrafact.explainers.support.population import Population

N, SIZE, CHANNELS, LENGTH = 30, 8, 3, 20


@pytest.fixture
def population(counting, open_tasks):
    """Every value of an individual is its number, so that one sees where values come from."""
    X = np.random.default_rng(0).normal(-5, 1, (N, CHANNELS, LENGTH))
    tasks = open_tasks(counting, X, 1, classes=[0, 1])
    number = torch.arange(SIZE).double()[:, None, None]
    x = number.expand(N, SIZE, CHANNELS, LENGTH)
    objectives = torch.ones(N, SIZE, 3).double()
    return replace(Population.empty(tasks, SIZE), x=x, objectives=objectives)


def test_without_crossover_offspring_are_copies_of_the_better_ones(population):
    offspring, x = Crossover(rate=0.0, thrifty=False)(population, 1)
    assert (x == x[:, :1, :1]).all()
    number = x[:, 0, 0]
    counts = torch.bincount(number.long(), minlength=SIZE).double() / len(x)
    # The better of two: individual i is drawn with probability (2 (m − i) − 1) / m².
    expected = (2 * (SIZE - torch.arange(SIZE)) - 1) / SIZE**2
    torch.testing.assert_close(counts, expected.double(), atol=0.08, rtol=0)
    assert offspring["slot"].tolist() == list(range(SIZE)) * N
    assert offspring.row.tolist() == [row for row in range(N) for _ in range(SIZE)]


def test_pairs_swap_one_window_in_one_channel_or_in_all(population):
    _, x = Crossover(rate=1.0, thrifty=False)(population, 1)
    copies = Crossover(rate=0.0, thrifty=False)(population, 1)[1]
    pairs, parents = x.unflatten(0, (-1, 2)), copies.unflatten(0, (-1, 2))
    swapped = pairs != parents
    partner = parents.flip(1)
    assert torch.equal(pairs[swapped], partner[swapped])
    assert torch.equal(swapped[:, 0], swapped[:, 1])
    differ = parents[:, 0, 0, 0] != parents[:, 1, 0, 0]
    swapped = swapped[differ, 0]
    channels = swapped.any(2).sum(1)
    assert set(channels.tolist()) == {1, CHANNELS}
    assert (channels == 1).double().mean() == pytest.approx(0.5, abs=0.15)
    window = swapped.any(1)
    length = window.sum(1)
    first = window.int().argmax(1)
    end = LENGTH - window.flip(1).int().argmax(1)
    assert (length == end - first).all() and len(length.unique()) > 5


def test_the_rate_is_how_often_pairs_swap(population):
    copies = Crossover(rate=0.0, thrifty=False)(population, 1)[1].unflatten(0, (-1, 2))
    _, x = Crossover(rate=0.3, thrifty=False)(population, 1)
    pairs = x.unflatten(0, (-1, 2))
    differ = copies[:, 0, 0, 0] != copies[:, 1, 0, 0]
    swapped = (pairs != copies).flatten(1).any(1)
    assert swapped[differ].double().mean() == pytest.approx(0.3, abs=0.12)


def test_thrift_spares_pairs_that_have_not_reached_the_target(population):
    objectives = population.objectives.clone()
    objectives[: N // 2, 5, 0] = 0.0  # individual 5 of half the populations is accepted
    population = replace(population, objectives=objectives)
    every, x = Crossover(rate=0.0, thrifty=False)(population, 1)
    offspring, kept = Crossover(rate=0.0, thrifty=True)(population, 1)
    pairs = x[:, 0, 0].reshape(N, -1, 2)
    promising = (pairs == 5).any(2)
    promising[N // 2 :] = True  # where none is accepted all have offspring
    promising = promising.flatten().repeat_interleave(2)
    assert torch.equal(kept, x[promising]) and 0 < promising[: N * SIZE // 2].sum() < N * SIZE // 4
    assert torch.equal(offspring["slot"], every["slot"][promising])
    assert torch.equal(offspring.row, every.row[promising])


def test_generations_differ_and_follow_the_instance(population):
    mate = Crossover(rate=1.0, thrifty=False)
    _, first = mate(population, 1)
    _, second = mate(population, 2)
    assert not torch.equal(first, second)
    one = torch.tensor([4])
    alone = Population.empty(population.tasks.take(one), SIZE)
    alone = replace(alone, x=population.x[one], objectives=population.objectives[one])
    assert torch.equal(mate(alone, 1)[1], first.unflatten(0, (N, SIZE))[4])
