"""Bisection for all rows at once, held against a plain scan; segments of every kind of instance."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from contrafact.engine.budget import Budget
from contrafact.search.bisection import segment_ids, smallest_level

TOP = 37


def along(x, reach):
    """Candidates on a straight line: level TOP adds `reach` to every value."""

    def candidate(level, which):
        return x[which] + (reach[which] * level / TOP).reshape(-1, 1, 1)

    return candidate


@pytest.fixture
def walk(counting, open_request):
    rng = np.random.default_rng(0)
    batch = open_request(counting, rng.uniform(-2, -0.1, (25, 1, 4)), 1)
    reach = torch.from_numpy(rng.uniform(0, 4, 25))
    return batch, reach


def scan(batch, candidate, which):
    """Accepted or not, for every level of one row."""
    levels = torch.arange(1, TOP + 1)
    rows = torch.full((TOP,), which)
    return batch.accepts(batch.ask(candidate(levels, rows), rows), rows).tolist()


def test_smallest_level_equals_a_scan(walk):
    batch, reach = walk
    candidate = along(batch.x, reach)
    level, found = smallest_level(batch, batch.rows, candidate, TOP)
    accepted = [scan(batch, candidate, row) for row in range(len(batch))]
    expected = [1 + line.index(True) if any(line) else TOP for line in accepted]
    assert level.tolist() == expected and len(set(expected)) > 5
    torch.testing.assert_close(found, candidate(level, batch.rows))


def test_rows_may_occur_several_times(walk):
    batch, _ = walk
    rows = torch.tensor([3, 3, 8])
    scale = torch.tensor([1.0, 2.0, 1.0], dtype=torch.float64)
    both, _ = smallest_level(batch, rows, along(batch.x[rows], 8 * scale), TOP)
    single, _ = smallest_level(batch, rows[1:2], along(batch.x[rows[1:2]], 8 * scale[1:2]), TOP)
    assert both[1] == single[0] and both[0] > both[1]


def test_where_acceptance_comes_and_goes_the_answer_is_an_edge(open_request):
    def wavy(X):
        p = 0.5 + 0.4 * np.sin(5 * X.mean((1, 2)))
        return np.stack([1 - p, p], 1)

    X = np.linspace(3.2, 3.7, 20).reshape(-1, 1, 1) / 5 * np.ones((20, 1, 4))
    batch = open_request(wavy, X, 1)
    candidate = along(batch.x, torch.linspace(1, 6, 20, dtype=torch.float64))
    level, _ = smallest_level(batch, batch.rows, candidate, TOP)
    for row in range(20):
        accepted = [False, *scan(batch, candidate, row)]
        if accepted[TOP]:
            assert accepted[level[row]] and not accepted[level[row] - 1]
        else:
            assert level[row] == TOP


def test_knowing_the_top_saves_one_question_each(walk, counting):
    batch, _ = walk
    candidate = along(batch.x, torch.full((len(batch),), 4.0, dtype=torch.float64))
    seen = counting.seen
    asked, _ = smallest_level(batch, batch.rows, candidate, TOP)
    first = counting.seen - seen
    known, _ = smallest_level(batch, batch.rows, candidate, TOP, top_accepted=True)
    assert torch.equal(asked, known)
    assert first - (counting.seen - seen - first) == len(batch)


def test_a_spent_budget_stops_at_an_accepted_level(counting, open_request):
    batch = open_request(counting, np.full((3, 1, 4), -1.0), 1, budget=Budget(calls=3 * (2 + 3)))
    candidate = along(batch.x, torch.full((3,), 4.0, dtype=torch.float64))
    level, found = smallest_level(batch, batch.rows, candidate, TOP)
    assert batch.meter.spent.tolist() == [3, 3, 3] and batch.meter.exhausted.all()
    assert level.tolist() == [18, 18, 18]  # 37 and 18 were accepted, 9 was not
    torch.testing.assert_close(found, candidate(level, batch.rows))


def test_segments_of_series():
    assert segment_ids((2, 5), 2).tolist() == [[0, 0, 1, 1, 2], [3, 3, 4, 4, 5]]
    assert segment_ids((2, 5), 2, shared=True).tolist() == [[0, 0, 1, 1, 2]] * 2
    assert segment_ids((1, 3), 9).tolist() == [[0, 0, 0]]


def test_segments_of_rows():
    assert segment_ids((5,), 1).tolist() == [0, 1, 2, 3, 4]
    assert segment_ids((5,), 3).tolist() == [0, 0, 0, 1, 1]


def test_segments_of_images_are_patches_across_channels():
    patches = segment_ids((2, 3, 5), 2)
    assert patches[0].tolist() == [[0, 0, 1, 1, 2], [0, 0, 1, 1, 2], [3, 3, 4, 4, 5]]
    assert torch.equal(patches[0], patches[1])


@pytest.mark.parametrize("shape", [(7,), (3, 10), (2, 5, 7)])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_segments_are_numbered_without_gaps(shape, width):
    ids = segment_ids(shape, width)
    assert ids.shape == shape and ids.unique().tolist() == list(range(int(ids.max()) + 1))
