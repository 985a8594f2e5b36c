"""Mutation: one window of one channel, from the target class or back from the instance."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from contrafact.explainers.support.class_series import ClassSeries
from contrafact.explainers.support.mutation import MUTATIONS, RESTORED, Mutation
from contrafact.explainers.support.population import Population

N, SIZE, CHANNELS, LENGTH = 20, 10, 2, 24
OTHER = 50.0


@pytest.fixture
def population(counting, open_tasks):
    X = np.random.default_rng(0).normal(-5, 1, (N, CHANNELS, LENGTH))
    return Population.empty(open_tasks(counting, X, 1, classes=[0, 1]), SIZE)


@pytest.fixture
def offspring(population):
    return population.tasks.repeat(SIZE).attach(slot=torch.arange(SIZE).repeat(N))


def reference():
    """Five series of each class; those of class 1 are near 100."""
    X = np.random.default_rng(1).normal(size=(10, CHANNELS, LENGTH))
    column = np.arange(10) % 2
    X[column == 1] += 100
    return X, ClassSeries(torch.from_numpy(X), torch.from_numpy(column), 2)


def mutation(kinds=("authentic_opposing",), rate=1.0, max_window=0.25):
    return Mutation(reference()[1], kinds, rate, max_window)


def spans(changed):
    """First and last position that changed, and how many did."""
    length = changed.sum(1)
    first = changed.int().argmax(1)
    last = changed.shape[1] - 1 - changed.flip(1).int().argmax(1)
    return first, last, length


def test_the_first_generation_takes_windows_of_the_target_class(population, offspring):
    x = mutation(rate=0.0)(population, offspring, offspring.x, 0)
    changed = x != offspring.x
    assert (changed.any(2).sum(1) == 1).all()  # every individual, in one channel
    assert changed.any(2)[:, 0].double().mean() == pytest.approx(0.5, abs=0.15)
    first, last, length = spans(changed.any(1))
    assert (last - first + 1 == length).all() and length.max() > LENGTH / 2
    of_class = torch.from_numpy(reference()[0][1::2])
    for individual, mask in zip(x, changed, strict=True):
        assert (of_class[:, mask] == individual[mask]).all(1).any()


def test_later_generations_also_restore_the_instance(population, offspring):
    x = torch.full_like(offspring.x, OTHER)
    mutated = mutation()(population, offspring, x, 3)
    changed = mutated != OTHER
    first, last, length = spans(changed.any(1))
    assert (last - first + 1 == length).all() and length.max() == LENGTH // 4
    restored = (mutated == offspring.x).any((1, 2))
    assert restored.double().mean() == pytest.approx(RESTORED, abs=0.1)
    assert torch.equal(
        mutated[restored][changed[restored]], offspring.x[restored][changed[restored]]
    )
    assert (mutated[~restored][changed[~restored]] > 90).all()


def test_the_rate_is_how_often_individuals_mutate(population, offspring):
    x = torch.full_like(offspring.x, OTHER)
    for rate in (0.0, 0.3, 1.0):
        mutated = mutation(rate=rate)(population, offspring, x, 1)
        share = (mutated != x).any(2).any(1).double().mean()
        assert float(share) == pytest.approx(rate, abs=0.1 if 0 < rate < 1 else 0)
    assert (x == OTHER).all()


def test_bands_of_the_spectrum_are_replaced(population, offspring):
    x = mutation(("frequency",))(population, offspring, offspring.x, 0)
    before, after = torch.fft.rfft(offspring.x), torch.fft.rfft(x)
    moved = (after - before).abs() > 1e-8
    assert (moved.any(2).sum(1) == 1).all()
    first, last, length = spans(moved.any(1))
    assert (last - first + 1 == length).all() and (length < LENGTH // 2).any()


def test_mean_draws_around_the_mean_of_the_class(population, offspring):
    X, _ = reference()
    mean, spread = X[1::2].mean(0), X[1::2].std(0)
    x = mutation(("mean",))(population, offspring, offspring.x, 0)
    changed = x != offspring.x
    mean, spread = (torch.from_numpy(value).expand_as(x) for value in (mean, spread))
    z = (x - mean)[changed] / spread[changed]
    assert float(z.mean()) == pytest.approx(0, abs=0.1)
    assert float(z.std()) == pytest.approx(1, abs=0.1)
    assert len(z.unique()) > 0.99 * len(z)


def test_all_kinds_occur_and_numbers_follow_the_slot(population, offspring):
    mutate = mutation(MUTATIONS)
    x = mutate(population, offspring, offspring.x, 0)
    changed = (x != offspring.x).sum((1, 2))
    assert 0.2 < (changed == LENGTH).double().mean() < 0.6  # a band moves the whole series
    some = torch.arange(N * SIZE)[::3]
    again = mutate(population, offspring.take(some), offspring.x[some], 0)
    torch.testing.assert_close(again, x[some])
