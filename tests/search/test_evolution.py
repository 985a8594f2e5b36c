"""The pieces of NSGA-II against plain loops, and many populations at once against one by one."""

from __future__ import annotations

import pytest
import torch

from contrafact.search import crowding_distance, front_ranks, survivors


def populations(n=6, m=25, levels=6, seed=0):
    """Objectives on a coarse grid, so that there are ties and copies."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(levels, (n, m, 3), generator=generator).double()


def dominates(F, i, j):
    better, equal = (F[i] <= F[j]).all(), (F[i] == F[j]).all()
    return bool(better and (not equal or i < j))


def ranks_one_by_one(F):
    left, ranks, level = set(range(len(F))), [0] * len(F), 0
    while left:
        front = {j for j in left if not any(dominates(F, i, j) for i in left)}
        for j in front:
            ranks[j] = level
        left, level = left - front, level + 1
    return ranks


def crowding_one_by_one(F, ranks):
    crowding = [0.0] * len(F)
    for c in range(F.shape[1]):
        f = F[:, c].tolist()
        for level in set(ranks):
            front = sorted((j for j in range(len(f)) if ranks[j] == level), key=lambda j: f[j])
            for place, j in enumerate(front):
                if place in (0, len(front) - 1):
                    crowding[j] = float("inf")
                else:
                    crowding[j] += (f[front[place + 1]] - f[front[place - 1]]) / (max(f) - min(f))
    return crowding


@pytest.mark.parametrize("levels", [2, 6, 1000])
def test_ranks_are_those_of_peeling_front_by_front(levels):
    F = populations(levels=levels)
    assert front_ranks(F).tolist() == [ranks_one_by_one(each) for each in F]


def test_ranks_beyond_enough_share_one_level():
    F = populations()
    full, short = front_ranks(F), front_ranks(F, enough=10)
    last = short.amax(1, keepdim=True)
    assert torch.equal(short, torch.minimum(full, last)) and bool(
        (last < full.amax(1, keepdim=True)).any()
    )
    assert bool(((short < last).sum(1) >= 10).all())


def test_of_equal_individuals_the_first_is_the_better():
    F = torch.tensor([[[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [1.0, 2.0]]])
    assert front_ranks(F).tolist() == [[0, 0, 1, 2]]


def test_crowding_is_the_gap_between_neighbors_of_a_front():
    F = populations(levels=1000)
    rank = front_ranks(F)
    expected = torch.tensor(
        [crowding_one_by_one(f, r.tolist()) for f, r in zip(F, rank, strict=True)], dtype=F.dtype
    )
    torch.testing.assert_close(crowding_distance(F, rank), expected)
    assert 0 < int(expected.isfinite().sum()) < expected.numel()


def test_survivors_come_best_first_and_by_front_then_room():
    F = populations(levels=1000)
    kept, rank = survivors(F, 10), front_ranks(F)
    room = crowding_distance(F, rank)
    for f, k, r, c in zip(F, kept, rank, room, strict=True):
        order = sorted(range(len(f)), key=lambda j: (r[j].item(), -c[j].item()))
        assert k.tolist() == order[:10]


def test_elite_is_never_crowded_out_of_its_front():
    line = torch.linspace(0, 1, 30, dtype=torch.float64)
    F = torch.stack([line, 1 - line], 1)[None]
    assert (
        14 not in survivors(F, 2)[0].tolist()
        and 14 in survivors(F, 3, elite=torch.tensor([14]))[0].tolist()
    )


def test_absent_individuals_change_nothing():
    F = populations(levels=1000)
    absent = torch.full((len(F), 7, 3), torch.inf, dtype=F.dtype)
    assert torch.equal(survivors(torch.cat([F, absent], 1), 12), survivors(F, 12))
    assert torch.equal(
        survivors(torch.cat([F[:, :5], absent], 1), 6)[:, 5], torch.full((len(F),), 5)
    )


def test_populations_do_not_depend_on_each_other():
    F = populations(n=8, levels=20)
    alone = torch.cat([survivors(each[None], 9) for each in F])
    assert torch.equal(survivors(F, 9), alone) and torch.equal(
        survivors(F.flip(0), 9).flip(0), alone
    )
