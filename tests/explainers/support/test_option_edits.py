"""Giving back parts and bringing numbers nearer, beside brute force."""

from itertools import combinations

import numpy as np
import pytest
import torch

import contrafact as cf
from contrafact.explainers.support.row_copies import copy_parts
from contrafact.explainers.support.row_edits import find_options, shrink_numbers, undo_parts
from contrafact.explainers.support.row_explainer import RowExplainer

WEIGHT = np.array([3.0, 1.0, 1.0, 0.5, -1.0])
X = np.random.default_rng(0).normal(size=(40, 5))


def p_positive(rows):
    p = 1 / (1 + np.exp(-(rows @ WEIGHT - 2)))
    return np.stack([1 - p, p], 1)


def run(work, rows, k=1, constraints=None):
    """Call work(tasks, parts) inside a request."""
    seen = []

    class Probe(RowExplainer):
        def _explain(self, tasks):
            instances = tasks.per_instance()
            seen.append(work(instances, self.parts_))
            return instances.candidates(instances.x)

    model = cf.as_classifier(p_positive, classes=[0, 1])
    explainer = Probe().fit(model, X, (X @ WEIGHT > 2).astype(int))
    explainer.explain(rows, target=1, k=k, constraints=constraints, on_error="raise")
    return seen[0]


@pytest.fixture
def rows():
    return X[X @ WEIGHT < 1][:12]


def is_positive(row):
    return row @ WEIGHT > 2


def test_nothing_more_can_be_undone(rows):
    edit = torch.from_numpy(rows) + torch.tensor([1.5, 1.5, 1.5, 1.5, -1.5]).double()
    smaller = run(lambda tasks, parts: undo_parts(tasks, edit, parts), rows).numpy()
    for x, before, after in zip(rows, edit.numpy(), smaller, strict=True):
        if not is_positive(before):
            continue
        changed = np.flatnonzero(x != after)
        assert is_positive(after) and np.array_equal(after[changed], before[changed])
        for j in changed if len(changed) > 1 else []:
            trial = after.copy()
            trial[j] = x[j]
            assert not is_positive(trial)


def test_parts_to_avoid_go_first(rows):
    edit = torch.from_numpy(rows) + torch.tensor([3.0, 3.0, 3.0, 3.0, -3.0]).double()
    avoided = torch.zeros(len(rows), 5, dtype=torch.bool)
    avoided[:, 0] = True
    plain = run(lambda tasks, parts: undo_parts(tasks, edit, parts), rows).numpy()
    other = run(lambda tasks, parts: undo_parts(tasks, edit, parts, avoided), rows).numpy()
    assert (plain[:, 0] != rows[:, 0]).mean() > 0.9
    free = np.array(
        [is_positive(np.where(np.arange(5) == 0, x, e)) for x, e in zip(rows, edit, strict=True)]
    )
    assert free.any() and (other[free, 0] == rows[free, 0]).all()


def test_numbers_stop_at_the_boundary(rows):
    edit = torch.from_numpy(rows).clone()
    edit[:, 0] += 4.0
    nearer = run(lambda tasks, parts: shrink_numbers(tasks, edit, parts), rows).numpy()
    exact = rows[:, 0] + (2 - rows @ WEIGHT) / 3
    assert (nearer[:, 0] >= exact).all()
    assert (nearer[:, 0] <= exact + 4.0 / 64 + 1e-3).all()
    assert np.array_equal(nearer[:, 1:], rows[:, 1:])


def test_options_change_different_sets_where_there_are_such(rows):
    rng = np.random.default_rng(1)
    pool = torch.from_numpy(rows[:, None] + rng.normal(3, 1, size=(len(rows), 8, 5)) * WEIGHT)
    usable = torch.from_numpy(pool.numpy() @ WEIGHT > 2.1)
    options = run(lambda tasks, parts: find_options(tasks, pool, usable, parts), rows, k=3)
    assert options.differs.double().mean() > 0.9
    for i, x in enumerate(rows):
        own = options.position == i
        sets = [frozenset(np.flatnonzero(row != x)) for row in options.x_cf[own].numpy()]
        assert len(set(sets)) == int(options.differs[own].sum()) >= 2 and len(sets) == 3
        assert all(is_positive(row) for row in options.x_cf[own].numpy())


def test_copies_are_the_fewest_where_gains_add_up(rows):
    guides = X[X @ WEIGHT > 4][: len(rows)]
    rows = rows[: len(guides)]
    sources = torch.from_numpy(guides)[:, None]
    x_cf, accepted = run(lambda tasks, parts: copy_parts(tasks, sources, parts), rows)
    assert bool(accepted.all())
    for x, n, found in zip(rows, guides, x_cf.numpy(), strict=True):
        fewest = next(
            size
            for size in range(1, 6)
            for chosen in combinations(range(5), size)
            if is_positive(np.where(np.isin(np.arange(5), chosen), n, x))
        )
        assert (found != x).sum() == fewest


def test_several_sources_and_parts_to_avoid(rows):
    guides = torch.from_numpy(X[X @ WEIGHT > 3])
    sources = guides.expand(len(rows), -1, -1)
    avoided = torch.zeros(len(rows), 5, dtype=torch.bool)
    avoided[:, 0] = True
    one, _ = run(lambda tasks, parts: copy_parts(tasks, sources, parts), rows)
    other, accepted = run(
        lambda tasks, parts: copy_parts(tasks, sources, parts, avoided=avoided), rows
    )
    assert (one[:, 0].numpy() != rows[:, 0]).mean() > 0.8
    assert bool(accepted.all())
    assert (other[:, 0].numpy() == rows[:, 0]).any()
    values = {(j, float(value)) for j in range(5) for value in guides[:, j]}
    moved = np.argwhere(one.numpy() != rows)
    assert all((int(j), float(one[i, j])) in values for i, j in moved)
