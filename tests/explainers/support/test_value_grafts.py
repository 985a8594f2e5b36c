"""Donor values in feature rows: the fewest, the donor's own, and enough to survive noise."""

from itertools import product

import numpy as np
import pytest
import torch

from contrafact.engine import Budget, Constraints
from contrafact.explainers.support.graft_tests import SurvivesNoise
from contrafact.explainers.support.value_grafts import PREFIX_ROWS, graft_values

WEIGHTS = np.array([1.0, -2.0, 0.5, 1.5])
SCALE = torch.ones(4, dtype=torch.float64)


def linear(X):
    """Two classes; class 1 where the weighted sum is positive."""
    p = 1 / (1 + np.exp(-(X @ WEIGHTS)))
    return np.stack([1 - p, p], 1)


def rows_of(label, n, seed):
    """Draw n rows that the model puts in a class."""
    X = np.random.default_rng(seed).normal(size=(20 * n, 4)).astype(np.float32)
    return X[linear(X).argmax(1) == label][:n]


@pytest.fixture
def problem(open_tasks):
    """Tasks from class 0 to class 1, 5 donors each, the true slopes."""
    X = rows_of(0, 6, seed=0)
    tasks = open_tasks(linear, X, [1] * 6, modality="row", classes=[0, 1])
    donor = torch.from_numpy(rows_of(1, 30, seed=1)).view(6, 5, 4)
    return tasks, donor, torch.from_numpy(WEIGHTS).view(1, 1, 4)


def test_fewest_values_of_any_donor_by_brute_force(problem):
    tasks, donor, slope = problem
    found = graft_values(tasks, donor, slope, SCALE)
    assert found.found.all()
    for i, x in enumerate(tasks.x.numpy()):
        counts = [
            sum(chosen)
            for d in donor[i].numpy()
            for chosen in product([False, True], repeat=4)
            if linear(np.where(chosen, d, x)[None])[0, 1] > 0.5
        ]
        assert (found.x_cf[i] != tasks.x[i]).sum() == min(counts)


def test_values_are_the_donor_s_or_the_instance_s_own(problem):
    tasks, donor, slope = problem
    found = graft_values(tasks, donor, slope, SCALE)
    own = donor[torch.arange(6), found.donor]
    assert ((found.x_cf == own) | (found.x_cf == tasks.x)).all()
    assert (tasks.ask(found.x_cf).label == 1).all()


def test_ties_go_to_the_smaller_change(open_tasks):
    tasks = open_tasks(linear, np.zeros((1, 4), np.float32) - 0.1, [1], modality="row")
    donor = tasks.x[:, None].repeat(1, 3, 1)
    donor[0, :, 0] += torch.tensor([9.0, 3.0, 6.0])
    slope = torch.from_numpy(WEIGHTS).view(1, 1, 4)
    assert graft_values(tasks, donor, slope, SCALE).donor.tolist() == [1]
    # a feature that is constant in the reference has no unit of its own
    assert graft_values(tasks, donor, slope, 0 * SCALE).donor.tolist() == [1]


def test_values_that_are_not_needed_are_given_back(problem):
    tasks, donor, slope = problem
    wrong_order = 1 / slope
    found = graft_values(tasks, donor, wrong_order, SCALE)
    own = donor[torch.arange(6), found.donor]
    for feature in range(4):
        x_cf = found.x_cf.clone()
        x_cf[:, feature] = tasks.x[:, feature]
        given_back = found.x_cf[:, feature] != tasks.x[:, feature]
        label = tasks.ask(x_cf).label
        assert (label[given_back] == 0).all()
    assert (own != tasks.x).all()


def test_donors_that_change_nothing_are_not_used(problem):
    tasks, donor, slope = problem
    same = tasks.x[:, None]
    nothing = graft_values(tasks, same, slope, SCALE)
    assert not nothing.found.any()
    assert (nothing.x_cf == tasks.x).all()
    found = graft_values(tasks, torch.cat([same, donor], 1), slope, SCALE)
    alone = graft_values(tasks, donor, slope, SCALE)
    assert (found.x_cf == alone.x_cf).all()
    assert (found.donor == alone.donor + 1).all()


def test_equal_values_do_not_count(problem):
    tasks, donor, slope = problem
    donor = donor.clone()
    donor[:, :, 1] = tasks.x[:, None, 1]
    found = graft_values(tasks, donor, slope, SCALE)
    own = donor[torch.arange(6), found.donor]
    accepted = linear(donor.flatten(0, 1).numpy()).argmax(1).reshape(6, 5).any(1)
    assert (found.found.numpy() == accepted).all()
    assert ((found.x_cf == own) | (found.x_cf == tasks.x)).all()


def test_prefix_grows_until_the_class_survives_noise(open_tasks):
    x = np.array([[-1.0, 0.0, 0.0, 0.0]], np.float32)
    tasks = open_tasks(linear, x, [1], modality="row")
    # the first value alone is just enough, two are clear
    donor = torch.tensor([[[0.02, 0.0, 3.0, 0.0]]])
    slope = torch.tensor([9.0, 0.0, 1.0, 0.0]).view(1, 1, 4)
    plain = graft_values(tasks, donor, slope, SCALE)
    assert (plain.x_cf != tasks.x).sum() == 1
    noise = SurvivesNoise(SCALE.float(), 0.3, 12, 11)
    steady = graft_values(tasks, donor, slope, SCALE, noise)
    assert steady.survived.all()
    assert (steady.x_cf != tasks.x).sum() == 2
    too_much = SurvivesNoise(SCALE.float(), 50.0, 12, 12)
    shaky = graft_values(tasks, donor, slope, SCALE, too_much)
    assert shaky.found.all()
    assert not shaky.survived.any()
    assert (shaky.x_cf == plain.x_cf).all()


def test_batch_equals_loop(problem):
    tasks, donor, slope = problem
    noise = SurvivesNoise(SCALE.float(), 0.05, 6, 5)
    together = graft_values(tasks, donor, slope, SCALE, noise)
    for i in range(6):
        one = torch.tensor([i])
        alone = graft_values(tasks.take(one), donor[one], slope, SCALE, noise)
        assert (alone.x_cf == together.x_cf[one]).all()
        assert (alone.donor == together.donor[one]).all()


def test_frozen_features_stay_and_bounds_hold(open_tasks):
    X = rows_of(0, 6, seed=0)
    constraints = Constraints(frozen=np.array([False, True, False, False]), upper=1.0)
    tasks = open_tasks(linear, X, [1] * 6, modality="row", constraints=constraints)
    donor = torch.from_numpy(rows_of(1, 60, seed=1)).view(6, 10, 4)
    found = graft_values(tasks, donor, torch.from_numpy(WEIGHTS).view(1, 1, 4), SCALE)
    assert (found.x_cf[:, 1] == tasks.x[:, 1]).all()
    changed = found.x_cf != tasks.x
    assert (found.x_cf[changed] <= 1).all()
    assert found.found.any()


def test_model_rows_are_bounded(open_tasks, counting):
    X = np.full((1, 30), -1.0, np.float32)
    tasks = open_tasks(counting, X, [1], modality="row")
    donor = torch.rand(1, 200, 30, generator=torch.Generator().manual_seed(0)) + 0.5
    counting.seen = 0
    found = graft_values(tasks, donor, torch.ones(1, 1, 30), torch.ones(30))
    assert found.found.all()
    assert counting.seen <= PREFIX_ROWS + 40


@pytest.mark.parametrize("calls", [20, 110, 140])
def test_budget_is_kept(open_tasks, counting, calls):
    X = np.full((1, 30), -1.0, np.float32)
    counting.seen = 0
    tasks = open_tasks(counting, X, [1], modality="row", budget=Budget(calls=calls))
    donor = torch.rand(1, 200, 30, generator=torch.Generator().manual_seed(0)) + 0.5
    noise = SurvivesNoise(torch.ones(30), 0.05, 6, 5)
    found = graft_values(tasks, donor, torch.ones(1, 1, 30), torch.ones(30), noise)
    assert counting.seen <= calls
    assert found.found.all()
