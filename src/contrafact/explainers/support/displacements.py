"""Displacements of instances, flat and in float64: their bounds, lengths, and the shortest ones."""

from __future__ import annotations

import torch
from torch import Tensor

from ...engine import Tasks
from ...geometry.dual_problem import Norm
from ...numerics import occurrence


def displacement_bounds(tasks: Tasks, x: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the box of the constraints relative to the instances; frozen values do not move.

    Parameters
    ----------
    tasks : Tasks
        The tasks.
    x : Tensor of float64, shape (n, D)
        Their instances, flat.

    Returns
    -------
    lower, upper : Tensor of float64, shape (n, D)
        Bounds on δ.
    """
    limits = tasks.feasible_set
    if limits is None:
        unlimited = torch.full_like(x, torch.inf)
        return -unlimited, unlimited
    lower, upper, free = (side.expand_as(tasks.x).flatten(1) for side in limits.box(tasks.x))
    return (lower.double() - x).masked_fill(~free, 0), (upper.double() - x).masked_fill(~free, 0)


def displace(tasks: Tasks, delta: Tensor) -> Tensor:
    """Add displacements to the instances, within the constraints.

    Parameters
    ----------
    tasks : Tasks
        The tasks.
    delta : Tensor of float64, shape (n, D)
        One displacement per task.

    Returns
    -------
    Tensor of shape (n, *shape)
        Candidates in the precision of the model.
    """
    x = tasks.x
    moved = x.double().flatten(1) + delta
    x_cf = moved.reshape(x.shape).to(x)
    return tasks.project(x_cf)


def length(delta: Tensor, norm: Norm) -> Tensor:
    """Compute the norm of each row.

    Parameters
    ----------
    delta : Tensor of shape (n, D)
        Displacements.
    norm : {"l1", "l2"}
        Which norm.

    Returns
    -------
    Tensor of shape (n,)
        Their lengths.
    """
    order = 1 if norm == "l1" else 2
    norms: Tensor = torch.linalg.vector_norm(delta, order, dim=1)
    return norms


def choose_shortest(
    delta: Tensor,
    norm: Norm,
    group: Tensor,
    k: int,
) -> tuple[Tensor, Tensor]:
    """Choose the k shortest displacements of each group; those with NaN are never chosen.

    Parameters
    ----------
    delta : Tensor of shape (n, D)
        Displacements.
    norm : {"l1", "l2"}
        What is shortest.
    group : Tensor of int, shape (n,)
        Group of each.
    k : int
        How many of each group, at most.

    Returns
    -------
    chosen : Tensor of int
        Their positions, by group, then by length.
    rank : Tensor of int
        The rank of each within its group, from 0 on.
    """
    size = length(delta, norm).nan_to_num(torch.inf)
    by_size = size.argsort(stable=True)
    by_group = group[by_size].argsort(stable=True)
    order = by_size[by_group]
    rank = occurrence(group[order])
    is_chosen = (rank < k) & size[order].isfinite()
    return order[is_chosen], rank[is_chosen]


def least_of_group(values: Tensor, group: Tensor) -> Tensor:
    """Find for every entry the least value of its group.

    Parameters
    ----------
    values : Tensor of shape (n,)
        One value per entry.
    group : Tensor of int, shape (n,)
        Group of each entry.

    Returns
    -------
    Tensor of shape (n,)
        The least values.
    """
    groups, member = group.unique(return_inverse=True)
    least = values.new_full(groups.shape, torch.inf)
    least = least.scatter_reduce(0, member, values, "amin")
    return least[member]


def kth_of_group(values: Tensor, group: Tensor, k: int) -> Tensor:
    """Find for every entry the k-th least value of its group.

    Parameters
    ----------
    values : Tensor of shape (n,)
        One value per entry; NaN counts as infinite.
    group : Tensor of int, shape (n,)
        Group of each entry.
    k : int
        Which value, from 1 on.

    Returns
    -------
    Tensor of shape (n,)
        The values; inf where the group has fewer.
    """
    chosen, rank = choose_shortest(values[:, None], "l2", group, k)
    kth = values.new_full((int(group.max()) + 1 if len(group) else 0,), torch.inf)
    is_kth = rank == k - 1
    kth[group[chosen[is_kth]]] = values[chosen[is_kth]]
    return kth[group]
