"""Copy parts of rows of the target class into instances, greedily, until the model accepts."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ...engine import Tasks
from .row_parts import RowParts

#: (tasks, trials, gains of the target's lead) → rewards; the largest wins.
#: `tasks["now"]` are the rows before the copy.
Reward = Callable[[Tasks, Tensor, Tensor], Tensor]


def gain_alone(tasks: Tasks, trial: Tensor, gain: Tensor) -> Tensor:
    """Reward what a copy adds to the target's lead."""
    return gain


def copy_parts(
    tasks: Tasks,
    guides: Tensor,
    parts: RowParts,
    reward: Reward = gain_alone,
    avoided: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Copy one part after another from guides into the instances.

    Each round tries every part of every guide that has not been copied and keeps the best: parts
    that need not be avoided before others, copies that the model accepts before others, then the
    one with the largest reward. An instance is done when the model accepts it, or no copy changes
    one more part.

    Parameters
    ----------
    tasks : Tasks
        What to find counterfactuals for.
    guides : Tensor of shape (n, m, coordinates)
        Rows to copy from.
    parts : RowParts
        The parts.
    reward : function, optional
        What makes a copy good; default: what it adds to the target's lead.
    avoided : Tensor of bool, shape (n, parts), optional
        Parts that should not be changed if others do.

    Returns
    -------
    x_cf : Tensor of shape (n, coordinates)
        The instances with the copies.
    accepted : Tensor of bool, shape (n,)
        Whether the model accepts them.
    """
    device = tasks.x.device
    x_cf = tasks.x.clone()
    lead = tasks.lead(tasks.before).double()
    accepted = torch.zeros(len(tasks), dtype=torch.bool, device=device)
    tasks = tasks.attach(
        guides=guides,
        avoided=torch.zeros(len(tasks), parts.count, dtype=torch.bool, device=device)
        if avoided is None
        else avoided,
    )
    position = torch.arange(len(tasks), device=device)
    for _ in range(parts.count):
        working = tasks.take(position).attach(now=x_cf[position], lead=lead[position])
        task, part, trial = _make_copies(working, parts)
        if len(task) == 0:
            break
        trying = working.take(task)
        verdict = trying.ask(trial)
        good = trying.accepts(trial, verdict)
        after = trying.lead(verdict).double()
        value = reward(trying, trial, after - trying["lead"])
        is_new = ~trying["avoided"].gather(1, part[:, None])[:, 0]
        merit = value / (1 + value.abs()) + 2 * good + 4 * is_new
        moved, best = _best_of_each(task, merit)
        position = position[moved]
        x_cf[position] = trial[best]
        lead[position] = after[best]
        accepted[position] = good[best]
        position = position[~good[best]]
    return x_cf, accepted


def _make_copies(tasks: Tasks, parts: RowParts) -> tuple[Tensor, Tensor, Tensor]:
    """Copy every part of every guide alone: task, part and row of each copy that changes more."""
    unchanged = ~parts.changed(tasks["now"], tasks.x)
    differs = parts.changed(tasks["guides"], tasks["now"][:, None]) & unchanged[:, None]
    task, guide, part = differs.nonzero(as_tuple=True)
    able = tasks.take(task).affords()
    task, guide, part = task[able], guide[able], part[able]
    trying = tasks.take(task)
    source = tasks["guides"][task, guide]
    trial = trying.project(torch.where(parts.only(part), source, trying["now"]))
    # Constraints may undo a copy, or another one for it.
    count = parts.changed(trial, trying.x).sum(1)
    more = count > parts.changed(trying["now"], trying.x).sum(1)
    return task[more], part[more], trial[more]


def _best_of_each(task: Tensor, merit: Tensor) -> tuple[Tensor, Tensor]:
    """Return the tasks that have an entry, and the first of their entries of the largest merit."""
    order = merit.argsort(descending=True, stable=True)
    order = order[task[order].argsort(stable=True)]
    sorted_task = task[order]
    is_first = torch.ones_like(sorted_task, dtype=torch.bool)
    is_first[1:] = sorted_task[1:] != sorted_task[:-1]
    return sorted_task[is_first], order[is_first]
