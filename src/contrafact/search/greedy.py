"""Greedy growth of a mask, for models whose answers are steps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..engine import Tasks
from ..validation import Integer, Real, check_parameters
from .arguments import TASKS, read_segments
from .segments import count_segments, sum_by_segment

_RULES = {
    "tasks": TASKS,
    "spare": Integer(at_least=0, at_most=2**31),
    "share": Real(above=0, at_most=1),
}


@dataclass(frozen=True)
class GrownMask:
    """What `grow_mask` found.

    Parameters
    ----------
    copied_in : Tensor of int, shape (n, segments)
        The round in which a segment was copied; -1: never.
    gain_alone : Tensor of float64, shape (n, segments)
        What copying a segment alone adds to the target's lead; 0 where it was not tried.
    """

    copied_in: Tensor
    gain_alone: Tensor


def grow_mask(
    tasks: Tasks,
    segment: Tensor,
    spare: int = 0,
    share: float = 1.0,
) -> GrownMask:
    """Copy segments of the guides into the instances, greedily, until the model accepts.

    Each round tries every segment not yet copied, or a share, for all tasks in one model batch, and
    keeps the one with the largest gain in the target's lead; where nothing gains, the one that
    differs most.

    Parameters
    ----------
    tasks : Tasks
        What to find counterfactuals for, with guides.
    segment : Tensor of int, shape of one instance
        The segment of each value.
    spare : int, default=0
        Model rows of the budget to leave for what follows.
    share : float, default=1
        Share of the segments not yet copied that a round tries, drawn from the tasks' seeds.

    Returns
    -------
    GrownMask
        Which segments were copied when, and what each is worth alone.
    """
    given = {"tasks": tasks, "spare": spare, "share": share}
    check_parameters("grow_mask", _RULES, given)
    if "guide" not in tasks.attached:
        raise ValueError("tasks has no guides; attach them: tasks.attach(guide=...).")
    segment = read_segments(segment, tasks)
    n_segments = count_segments(segment)
    shape = (len(tasks), n_segments)
    device = tasks.row.device
    tie_break = _differences(tasks, segment)
    copied_in = torch.full(shape, -1, dtype=torch.long, device=device)
    gain_alone = torch.zeros(shape, dtype=torch.float64, device=device)
    lead_before = tasks.lead(tasks.before)
    position = torch.arange(len(tasks), device=device)
    working = tasks
    for turn in range(n_segments):
        n_tried = math.ceil(share * (n_segments - turn))
        able = working.affords(n_tried + spare)
        position = position[able]
        working = working.take(able)
        if len(working) == 0:
            break
        copied = copied_in[position] >= 0
        trial = _try_each(working, segment, copied, _draw(working, copied, n_tried, turn))
        if turn == 0:
            gain = trial.lead - lead_before[position, None]
            gain_alone[position] = torch.where(gain.isfinite(), gain, 0.0)
        best = (trial.lead + tie_break[position]).argmax(1)
        copied_in[position, best] = turn
        accepted = trial.accepted.gather(1, best[:, None])[:, 0]
        position = position[~accepted]
        working = working.take(~accepted)
    return GrownMask(copied_in, gain_alone)


@dataclass(frozen=True)
class _Trial:
    """The target's lead and acceptance with one more segment copied, (n, segments)."""

    lead: Tensor
    accepted: Tensor


def _draw(tasks: Tasks, copied: Tensor, n_tried: int, turn: int) -> Tensor:
    """Draw which segments of each task to try, among those not copied yet, (n, segments)."""
    if n_tried == copied.shape[1] - turn:
        return ~copied
    order = tasks.uniform(copied.shape[1], turn).masked_fill(copied, torch.inf)
    drawn = order.argsort(1)[:, :n_tried]
    return torch.zeros_like(copied).scatter_(1, drawn, True)


def _try_each(tasks: Tasks, segment: Tensor, copied: Tensor, tried: Tensor) -> _Trial:
    """Copy each segment that is to be tried, one at a time."""
    task, new = tried.nonzero(as_tuple=True)
    trying = tasks.take(task)
    mask = copied[task]
    mask[torch.arange(len(task)), new] = True
    x_cf = torch.where(mask[:, segment], trying.guide, trying.x)
    x_cf = trying.project(x_cf)
    verdict = trying.ask(x_cf)
    lead = torch.full(
        copied.shape,
        -torch.inf,
        dtype=torch.float64,
        device=copied.device,
    )
    lead[task, new] = trying.lead(verdict)
    accepted = torch.zeros_like(copied)
    accepted[task, new] = trying.accepts(x_cf, verdict)
    return _Trial(lead, accepted)


def _differences(tasks: Tasks, segment: Tensor) -> Tensor:
    """Return how much guide and instance differ per segment, far below any gain, to break ties."""
    size = sum_by_segment((tasks.guide - tasks.x).abs(), segment)
    tiny = torch.finfo(size.dtype).tiny
    return 1e-9 * size / size.amax(1, keepdim=True).clamp_min(tiny)
