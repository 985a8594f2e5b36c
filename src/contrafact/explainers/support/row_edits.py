"""Make accepted edits of rows smaller: undo parts that are not needed, bring numbers nearer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...engine import Tasks
from ...search.row_edits import move_back
from .row_parts import RowParts


def undo_parts(
    tasks: Tasks,
    x_cf: Tensor,
    parts: RowParts,
    avoided: Tensor | None = None,
) -> Tensor:
    """Undo changed parts one by one, until none can be undone alone.

    In each round every changed part is tried. Of those that can go, the one goes that leaves the
    target the largest lead; parts to avoid go before all others.

    Parameters
    ----------
    tasks : Tasks
        What the edits are for.
    x_cf : Tensor of shape (n, coordinates)
        Edits that the model accepts.
    parts : RowParts
        The parts.
    avoided : Tensor of bool, shape (n, parts), optional
        Parts that should not be changed if others do.

    Returns
    -------
    Tensor of shape (n, coordinates)
        Edits that the model accepts.
    """
    x_cf = x_cf.clone()
    if avoided is None:
        avoided = torch.zeros(len(tasks), parts.count, dtype=torch.bool, device=x_cf.device)
    position = torch.arange(len(tasks), device=x_cf.device)
    while len(position):
        working = tasks.take(position).attach(x_cf=x_cf[position])
        merit, smaller = _undo_each(working, parts)
        squashed = merit / (1 + merit.abs())  # in (-1, 1), so that parts to avoid go first
        merit = torch.where(merit.isfinite(), squashed + 2 * avoided[position], -torch.inf)
        best = merit.argmax(1)
        entry = torch.arange(len(position), device=best.device)
        found = merit[entry, best].isfinite()
        position = position[found]
        x_cf[position] = smaller[entry, best][found]
    return x_cf


def _undo_each(tasks: Tasks, parts: RowParts) -> tuple[Tensor, Tensor]:
    """Undo every changed part alone: lead (n, parts), -inf where that is not accepted; edits."""
    x_cf = tasks["x_cf"]
    changed = parts.changed(x_cf, tasks.x)
    n_changed = changed.sum(1)
    # The last changed part cannot go: that is the instance.
    task, part = (changed & (n_changed > 1)[:, None]).nonzero(as_tuple=True)
    able = tasks.take(task).affords()
    task, part = task[able], part[able]
    trying = tasks.take(task)
    trial = trying.project(torch.where(parts.only(part), trying.x, trying["x_cf"]))
    # Constraints may bring a change back, or undo all of them.
    count = parts.changed(trial, trying.x).sum(1)
    useful = (count < n_changed[task]) & (count > 0)
    task, part, trying, trial = task[useful], part[useful], trying.take(useful), trial[useful]
    lead = torch.full(changed.shape, -torch.inf, dtype=torch.float64, device=x_cf.device)
    smaller = x_cf[:, None].repeat(1, parts.count, 1)
    if len(task):
        verdict = trying.ask(trial)
        accepted = trying.accepts(trial, verdict)
        lead[task, part] = torch.where(accepted, trying.lead(verdict).double(), -torch.inf)
        smaller[task, part] = trial
    return lead, smaller


def shrink_numbers(tasks: Tasks, x_cf: Tensor, parts: RowParts) -> Tensor:
    """Bring changed numbers as near as the model allows, one after another, farthest first.

    Parameters
    ----------
    tasks : Tasks
        What the edits are for.
    x_cf : Tensor of shape (n, coordinates)
        Edits that the model accepts.
    parts : RowParts
        The parts.

    Returns
    -------
    Tensor of shape (n, coordinates)
        Edits that the model accepts.
    """
    size = parts.distances(x_cf, tasks.x) * parts.is_number
    farthest_first = size.argsort(dim=1, descending=True, stable=True)
    return move_back(tasks, x_cf, parts.part, farthest_first, (size > 0).sum(1))


@dataclass(frozen=True)
class RowOptions:
    """Options of some instances.

    Parameters
    ----------
    position : Tensor of int, shape (m,)
        The instance of each option; those of an instance in a row, best first.
    x_cf : Tensor of shape (m, coordinates)
        The options.
    differs : Tensor of bool, shape (m,)
        Whether an option changes another set of parts than the options before it.
    """

    position: Tensor
    x_cf: Tensor
    differs: Tensor


def find_options(
    tasks: Tasks,
    pool: Tensor,
    usable: Tensor,
    parts: RowParts,
) -> RowOptions:
    """Make small edits that change different sets of parts.

    The edits of a pool give back what is not needed one after another, and first what earlier ones
    change. An instance is done when it has k options that change different sets of parts. Where
    there are fewer, options with equal sets and other values fill up. Last, the numbers of
    those that differ are brought nearer.

    Parameters
    ----------
    tasks : Tasks
        One task per instance.
    pool : Tensor of shape (n, m, coordinates)
        Edits within the constraints, best first.
    usable : Tensor of bool, shape (n, m)
        Those that the model accepts.
    parts : RowParts
        The parts.

    Returns
    -------
    RowOptions
        Up to k options of each instance; none where no edit of its pool is usable.
    """
    x = pool.clone()
    n, m = usable.shape
    sets = torch.zeros(n, m, parts.count, dtype=torch.bool, device=x.device)
    found = torch.zeros_like(usable)
    differs = torch.zeros_like(usable)
    for r in range(m):
        active = usable[:, r] & (differs.sum(1) < tasks.k)
        if not bool(active.any()):
            continue
        working = tasks.take(active)
        smaller = undo_parts(working, x[active, r], parts, sets[active].any(1))
        changed = parts.changed(smaller, working.x)
        known = ((sets[active] == changed[:, None]).all(2) & found[active]).any(1)
        x[active, r] = smaller
        sets[active, r] = changed
        found[active, r] = True
        differs[active, r] = ~known
    order = (differs.long() + found.long()).argsort(dim=1, descending=True, stable=True)
    order = order[:, : tasks.k]
    position, place = found.gather(1, order).nonzero(as_tuple=True)
    chosen = order[position, place]
    x_cf = x[position, chosen]
    is_new = differs[position, chosen]
    # Options that change the same parts would shrink to the same row.
    x_cf[is_new] = shrink_numbers(tasks.take(position[is_new]), x_cf[is_new], parts)
    return RowOptions(position, x_cf, is_new)
