"""The pieces of NSGA-II (Deb, Pratap, Agarwal, Meyarivan 2002), for many populations at once."""

from __future__ import annotations

import torch
from torch import Tensor


def front_ranks(F: Tensor, enough: int | None = None) -> Tensor:
    """Which front each individual is in: 0 if none dominates it, 1 if only those of front 0 do, and so on.

        i dominates j   ⇔   F_i ≤ F_j in every objective,  and F_i ≠ F_j or i < j

    Of equal individuals the first counts as the better one, so that copies do not crowd out the others.

    Parameters
    ----------
    F : (populations, m, objectives), all to be minimized.
    enough : stop once every population has this many ranked; the rest share the last rank. Default: all.

    Returns
    -------
    ranks (populations, m).

    Examples
    --------
    >>> front_ranks(torch.tensor([[[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [2.0, 2.0]]])).tolist()
    [[0, 0, 1, 2]]
    """
    n, m = F.shape[:2]
    beaten = torch.ones(n, m, m, dtype=torch.bool, device=F.device)  # [j, i]: i dominates j
    for f in F.unbind(2):
        beaten &= f[:, None, :] <= f[:, :, None]
    place = torch.arange(m, device=F.device)
    beaten &= ~beaten.transpose(1, 2) | (place < place[:, None])
    beaten_by = beaten.float()
    left = beaten_by.sum(2)
    rank = torch.full((n, m), m, dtype=torch.long, device=F.device)
    for level in range(m):
        front = (left == 0) & (rank == m)
        rank[front] = level
        if bool(((rank < m).sum(1) >= (enough or m)).all()):
            return rank.clamp_max(level + 1)
        left -= (beaten_by @ front.float()[:, :, None])[:, :, 0]
    return rank


def crowding_distance(F: Tensor, rank: Tensor) -> Tensor:
    """How much room an individual has in its front: per objective the gap between its two neighbors.

        crowding_i = Σ over objectives  (f_next(i) − f_previous(i)) / (max f − min f)

    with the extremes over the population; infinite at the ends of a front. Individuals with infinite
    objectives count as absent.

    Examples
    --------
    >>> F = torch.tensor([[[0.0, 1.0], [0.25, 0.5], [1.0, 0.0]]])
    >>> crowding_distance(F, torch.zeros(1, 3)).tolist()
    [[inf, 2.0, inf]]
    """
    crowding = torch.zeros(F.shape[:2], dtype=F.dtype, device=F.device)
    for f in F.unbind(2):
        order = f.argsort(dim=1, stable=True)
        order = order.gather(1, rank.gather(1, order).argsort(dim=1, stable=True))
        value, front = f.gather(1, order), rank.gather(1, order)
        inner = (front[:, 2:] == front[:, 1:-1]) & (front[:, 1:-1] == front[:, :-2])
        here = f.isfinite()
        spread = f.masked_fill(~here, -torch.inf).amax(1) - f.masked_fill(~here, torch.inf).amin(1)
        spread = spread.clamp_min(torch.finfo(f.dtype).tiny)[:, None]
        gap = torch.full_like(value, torch.inf)
        gap[:, 1:-1] = torch.where(
            inner, ((value[:, 2:] - value[:, :-2]) / spread).nan_to_num(0.0), torch.inf
        )
        crowding.scatter_add_(1, order, gap)
    return crowding


def survivors(F: Tensor, count: int, elite: Tensor | None = None) -> Tensor:
    """The `count` individuals that live on, best first: lower fronts, in a front those with more room.

    `elite` names one individual of each population that is never crowded out of its front.

    Returns
    -------
    indices (populations, count).

    Examples
    --------
    >>> F = torch.tensor([[[0.0, 1.0], [0.1, 0.9], [0.5, 0.5], [1.0, 0.0]]])
    >>> survivors(F, 3).sort().values.tolist()
    [[0, 2, 3]]
    """
    rank = front_ranks(F, count)
    room = crowding_distance(F, rank)
    if elite is not None:
        room.scatter_(1, elite[:, None], torch.inf)
    order = room.argsort(dim=1, descending=True, stable=True)
    order = order.gather(1, rank.gather(1, order).argsort(dim=1, stable=True))
    return order[:, :count]
