"""The pieces of NSGA-II, for many populations at once.

References
----------
Deb, Pratap, Agarwal, Meyarivan: A fast and elitist multiobjective genetic algorithm: NSGA-II. IEEE
Transactions on Evolutionary Computation 2002. https://doi.org/10.1109/4235.996017
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..numerics.tensors import read_integers, read_tensor
from ..validation import Integer, Nothing, check_parameters

_RULES = {
    "enough": Integer(at_least=1, at_most=2**31) | Nothing(),
    "count": Integer(at_least=1, at_most=2**31),
}


def front_ranks(F: Tensor, enough: int | None = None) -> Tensor:
    """Compute which front each individual is in.

    Front 0 holds those that none dominates, front 1 those that only front 0 dominates, and so on:

        i dominates j   ⇔   F_i ≤ F_j in every objective,  and F_i ≠ F_j or i < j

    Of equal individuals the first counts as the better one, so that copies do not crowd out the
    others.

    Parameters
    ----------
    F : Tensor of shape (populations, m, objectives)
        Objectives, all to be minimized.
    enough : int, optional
        Stop once every population has this many ranked; the rest share the last rank. Default: all.

    Returns
    -------
    Tensor of int, shape (populations, m)
        The fronts.

    Examples
    --------
    >>> front_ranks(torch.tensor([[[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [2.0, 2.0]]])).tolist()
    [[0, 0, 1, 2]]
    """
    check_parameters("front_ranks", _RULES, {"enough": enough})
    F = _read_objectives(F)
    n, m = F.shape[:2]
    enough = m if enough is None else enough
    dominated_by = _domination(F).float()
    remaining = dominated_by.sum(2)
    rank = torch.full((n, m), m, dtype=torch.long, device=F.device)
    for level in range(m):
        front = (remaining == 0) & (rank == m)
        rank[front] = level
        if bool(((rank < m).sum(1) >= enough).all()):
            return rank.clamp_max(level + 1)
        remaining -= (dominated_by @ front.float()[:, :, None])[:, :, 0]
    return rank


def _domination(F: Tensor) -> Tensor:
    """Return, at [p, j, i], whether i dominates j in population p."""
    n, m = F.shape[:2]
    dominated = torch.ones(n, m, m, dtype=torch.bool, device=F.device)
    for objective in F.unbind(2):
        dominated &= objective[:, None, :] <= objective[:, :, None]
    place = torch.arange(m, device=F.device)
    is_earlier = place < place[:, None]
    is_mutual = dominated.transpose(1, 2)
    return dominated & (~is_mutual | is_earlier)


def crowding_distance(F: Tensor, rank: Tensor) -> Tensor:
    """Compute how much room an individual has in its front.

        crowding_i = Σ over objectives  (f_next(i) − f_previous(i)) / (max f − min f)

    with the extremes over the population; infinite at the ends of a front. Individuals with
    infinite objectives count as absent.

    Parameters
    ----------
    F : Tensor of shape (populations, m, objectives)
        Objectives.
    rank : Tensor of int, shape (populations, m)
        Fronts, see `front_ranks`.

    Returns
    -------
    Tensor of shape (populations, m)
        The crowding distances.

    Examples
    --------
    >>> F = torch.tensor([[[0.0, 1.0], [0.25, 0.5], [1.0, 0.0]]])
    >>> crowding_distance(F, torch.tensor([[0, 0, 0]])).tolist()
    [[inf, 2.0, inf]]
    """
    F = _read_objectives(F)
    rank = read_integers(rank, "rank", tuple(F.shape[:2]), beside=f"F of shape {tuple(F.shape)}")
    rank = rank.to(F.device)
    crowding = torch.zeros(F.shape[:2], dtype=F.dtype, device=F.device)
    for objective in F.unbind(2):
        order = _by_rank(objective.argsort(dim=1, stable=True), rank)
        value = objective.gather(1, order)
        front = rank.gather(1, order)
        is_inner = (front[:, 2:] == front[:, 1:-1]) & (front[:, 1:-1] == front[:, :-2])
        between = ((value[:, 2:] - value[:, :-2]) / _spread(objective)).nan_to_num(0.0)
        gap = torch.full_like(value, torch.inf)
        gap[:, 1:-1] = torch.where(is_inner, between, torch.inf)
        crowding.scatter_add_(1, order, gap)
    return crowding


def _by_rank(order: Tensor, rank: Tensor) -> Tensor:
    """Sort an order by front, keeping it within each front."""
    return order.gather(1, rank.gather(1, order).argsort(dim=1, stable=True))


def _spread(objective: Tensor) -> Tensor:
    """Return largest less smallest finite value of each population, (populations, 1)."""
    absent = ~objective.isfinite()
    largest = objective.masked_fill(absent, -torch.inf).amax(1)
    smallest = objective.masked_fill(absent, torch.inf).amin(1)
    tiny = torch.finfo(objective.dtype).tiny
    return (largest - smallest).clamp_min(tiny)[:, None]


def survivors(F: Tensor, count: int, elite: Tensor | None = None) -> Tensor:
    """Select the individuals that live on, best first.

    Lower fronts come first, and within a front those with more room.

    Parameters
    ----------
    F : Tensor of shape (populations, m, objectives)
        Objectives.
    count : int
        How many of each population.
    elite : Tensor of int, shape (populations,), optional
        One individual of each population that is never crowded out of its front.

    Returns
    -------
    Tensor of int, shape (populations, count)
        Positions of the survivors.

    Examples
    --------
    >>> F = torch.tensor([[[0.0, 1.0], [0.1, 0.9], [0.5, 0.5], [1.0, 0.0]]])
    >>> survivors(F, 3).sort().values.tolist()
    [[0, 2, 3]]
    """
    check_parameters("survivors", _RULES, {"count": count})
    F = _read_objectives(F)
    rank = front_ranks(F, count)
    room = crowding_distance(F, rank)
    if elite is not None:
        room.scatter_(1, _read_elite(elite, F), torch.inf)
    order = _by_rank(room.argsort(dim=1, descending=True, stable=True), rank)
    return order[:, :count]


def _read_objectives(F: Any) -> Tensor:
    """Check the objectives; infinite ones are of individuals that count as absent."""
    values = read_tensor(F, "F", ("populations", "m", "objectives"), finite=False)
    n_missing = int(values.isnan().sum())
    if values.shape[1] == 0 or n_missing:
        raise ValueError(
            f"F has shape {tuple(values.shape)} and {n_missing} NaN. "
            "Accepted: one individual or more in each population, and no NaN."
        )
    return values


def _read_elite(elite: Any, F: Tensor) -> Tensor:
    """Check one position for each population; returns a column."""
    n, m = F.shape[:2]
    chosen = read_integers(elite, "elite", (n,), beside=f"F of shape {tuple(F.shape)}")
    if bool(((chosen < 0) | (chosen >= m)).any()):
        raise ValueError(f"elite must hold positions from 0 to {m - 1}, got {chosen.tolist()}.")
    return chosen.long().to(F.device)[:, None]
