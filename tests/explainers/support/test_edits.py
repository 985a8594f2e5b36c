"""Edits: what shapelets remove and insert, and how several are combined."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import contrafact as cf
from contrafact.explainers.support.edits import (
    NEVER,
    apply_edits,
    make_edits,
    rank_channels,
    stack_edits,
)
from contrafact.explainers.support.shapelets import Shapelet

WAVE = torch.tensor([0.0, 2.0, -2.0, 1.0, -1.0]).double()
#: occurs in the instance at 3, in channel 0
OLD = Shapelet(WAVE, channel=0, start=10, threshold=0.1, column=0)
#: does not occur in channel 1, and belongs at 12
NEW = Shapelet(-WAVE, channel=1, start=12, threshold=0.1, column=1)
GUIDE = 100.0


def series(n=2):
    """Series of class 0: the wave in channel 0 at 3, noise around 7 in channel 1."""
    rng = np.random.default_rng(0)
    X = np.zeros((n, 2, 20))
    X[:, 0, 3:8] = WAVE.numpy()
    X[:, 1] = 7 + rng.uniform(-1, 1, (n, 20))
    return X


def always_zero(X):
    return np.tile([0.9, 0.1], (len(X), 1))


@pytest.fixture
def open_series(open_tasks):
    def build(shapelets, n=2, **options):
        tasks = open_tasks(always_zero, series(n), 1, classes=[0, 1], **options)
        tasks = tasks.attach(guide=torch.full_like(tasks.x, GUIDE))
        return tasks, make_edits(tasks, shapelets)

    return build


def test_shapelets_of_the_old_class_are_replaced_by_the_guide(open_series):
    tasks, edits = open_series([OLD])
    x_cf = apply_edits(edits)
    expected = tasks.x.clone()
    expected[:, 0, 3:8] = GUIDE
    assert torch.equal(x_cf, expected)


def test_shapelets_of_the_target_are_inserted_at_the_local_level(open_series):
    tasks, edits = open_series([NEW])
    x_cf = apply_edits(edits)
    expected = tasks.x.clone()
    level = expected[:, 1, 12:17].mean(1, keepdim=True)
    expected[:, 1, 12:17] = level - WAVE
    torch.testing.assert_close(x_cf, expected)


def test_what_does_not_bring_the_target_closer_is_no_edit(open_series):
    absent = Shapelet(-WAVE, channel=1, start=0, threshold=0.1, column=0)
    present = Shapelet(WAVE, channel=0, start=0, threshold=0.1, column=1)
    of_a_third_class = Shapelet(WAVE, channel=0, start=0, threshold=0.1, column=2)
    _, edits = open_series([absent, present, of_a_third_class])
    assert len(edits) == 0 and apply_edits(edits).shape == (0, 2, 20)


def test_edits_carry_their_shapelet_and_instance(open_series):
    tasks, edits = open_series([NEW, OLD], n=3)
    assert edits["shapelet"].tolist() == [0, 0, 0, 1, 1, 1]
    assert edits["channel"].tolist() == [1, 1, 1, 0, 0, 0]
    assert edits.row.tolist() == [0, 1, 2, 0, 1, 2]
    assert torch.equal(edits.x[:3], tasks.x)


def test_no_shapelets_make_no_edits(open_series):
    _, edits = open_series([])
    assert len(edits) == 0 and {"shapelet", "channel", "window", "values"} <= set(edits.attached)


def test_edits_stay_within_the_constraints(open_series):
    _, edits = open_series([OLD], constraints=cf.Constraints(upper=50.0))
    assert apply_edits(edits).max() == 50


def test_the_most_helpful_edit_lies_on_top(open_series):
    """Two edits of one channel overlap; a third one, harmful, and one never tried are left out."""
    first = Shapelet(WAVE, channel=1, start=10, threshold=0.0, column=1)
    second = Shapelet(WAVE, channel=1, start=13, threshold=0.0, column=1)
    harmful = Shapelet(WAVE, channel=1, start=0, threshold=0.0, column=1)
    unknown = Shapelet(-WAVE, channel=0, start=0, threshold=0.0, column=1)
    tasks, edits = open_series([first, second, harmful, unknown], n=1)
    edits = edits.attach(gain=torch.tensor([1.0, 2.0, -1.0, -torch.inf]).double())
    stack = stack_edits(tasks, edits)
    rank = stack["rank"][0]
    assert rank[1, 10:13].tolist() == [1, 1, 1] and rank[1, 13:18].tolist() == [0] * 5
    assert (rank[1, :10] == NEVER).all() and (rank[0] == NEVER).all()
    alone = apply_edits(edits)
    torch.testing.assert_close(stack["edited"][0, 1, 10:13], alone[0, 1, 10:13])
    torch.testing.assert_close(stack["edited"][0, 1, 13:18], alone[1, 1, 13:18])
    untouched = rank == NEVER
    assert torch.equal(stack["edited"][0][untouched], tasks.x[0][untouched])


def test_ranks_count_per_instance_and_channel(open_series):
    tasks, edits = open_series([OLD, NEW], n=2)
    edits = edits.attach(gain=torch.tensor([1.0, 5.0, 3.0, 2.0]).double())
    rank = stack_edits(tasks, edits)["rank"]
    assert set(rank[rank < NEVER].tolist()) == {0}
    assert rank_channels(tasks, edits).tolist() == [[1, 0], [0, 1]]


def test_a_channel_without_edits_comes_last(open_series):
    tasks, edits = open_series([NEW], n=1)
    edits = edits.attach(gain=torch.tensor([-3.0]).double())
    assert rank_channels(tasks, edits).tolist() == [[1, 0]]
