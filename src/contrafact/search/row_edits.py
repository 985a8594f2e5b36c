"""Edits of rows of a table: numbers moved back toward the instance, each on its own grid."""

from __future__ import annotations

import torch
from torch import Tensor

from ..engine import Tasks
from .bisection import smallest_level

#: resolution of the way from an instance to its edit
LEVELS = 64


def reduce_numbers(tasks: Tasks, x_cf: Tensor) -> Tensor:
    """Move changed numbers and levels in an order back toward the instance, one after another.

    Those that matter least for the size of their change come first, since they can be moved back
    most.

    Parameters
    ----------
    tasks : Tasks
        What the edits are for; rows of a table.
    x_cf : Tensor of shape (n, coordinates)
        Edits that are accepted.

    Returns
    -------
    Tensor of shape (n, coordinates)
        Accepted edits, at most as large.
    """
    assert tasks.space is not None
    changed = tasks.space.any_coordinate(x_cf != tasks.x) & tasks.space.graded
    order = _by_importance(tasks, x_cf, changed).argsort(dim=1, stable=True)
    return move_back(tasks, x_cf, tasks.space.part, order, changed.sum(1))


def move_back(tasks: Tasks, x_cf: Tensor, part: Tensor, order: Tensor, count: Tensor) -> Tensor:
    """Move parts of edits back toward the instance, one after another, as far as is accepted.

    Parameters
    ----------
    tasks : Tasks
        What the edits are for.
    x_cf : Tensor of shape (n, coordinates)
        Edits that are accepted.
    part : Tensor of int, shape (coordinates,)
        The part of each coordinate.
    order : Tensor of int, shape (n, parts)
        The parts of each edit, those first that are moved first.
    count : Tensor of int, shape (n,)
        How many of them are moved.

    Returns
    -------
    Tensor of shape (n, coordinates)
        Accepted edits, at most as large.
    """
    x_cf = x_cf.clone()
    for turn in range(int(count.max()) if len(tasks) else 0):
        which = (count > turn).nonzero().flatten()
        moved = part == order[which, turn, None]
        trying = tasks.take(which).attach(x_cf=x_cf[which], moved=moved)
        x_cf[which] = smallest_level(trying, _part_of_the_way, LEVELS, top_accepted=True)[1]
    return x_cf


def _part_of_the_way(tasks: Tasks, level: Tensor) -> Tensor:
    """Level 0 undoes the change of one part, level `LEVELS` keeps all of it."""
    share = (level.to(tasks.x) / LEVELS)[:, None]
    moved = torch.lerp(tasks.x, tasks["x_cf"], share)
    trial = tasks.project(torch.where(tasks["moved"], moved, tasks["x_cf"]))
    return torch.where((level == LEVELS)[:, None], tasks["x_cf"], trial)


def _by_importance(tasks: Tasks, x_cf: Tensor, changed: Tensor) -> Tensor:
    """Return what half of each change matters to the target's lead, per size; inf: no change."""
    assert tasks.space is not None
    worth = torch.full(changed.shape, torch.inf, dtype=torch.float64)
    several = changed & (changed.sum(1) > 1)[:, None]
    task, part = several.nonzero(as_tuple=True)
    worth[changed] = 0.0
    able = tasks.take(task).affords()
    task, part = task[able], part[able]
    if len(task) == 0:
        return worth
    trying = tasks.take(task)
    moved = tasks.space.part == part[:, None]
    edit = x_cf[task]
    half = trying.project(torch.where(moved, torch.lerp(trying.x, edit, 0.5), edit))
    size = ((edit - trying.x).abs() * moved).sum(1)
    lead = trying.lead(trying.ask(half))
    # Compared with the part that matters least, which saves asking about the whole edit.
    highest = torch.full((len(tasks),), -torch.inf, dtype=torch.float64)
    highest = highest.scatter_reduce(0, task, lead.double(), "amax")
    worth[task, part] = (highest[task] - lead) / size
    return worth
