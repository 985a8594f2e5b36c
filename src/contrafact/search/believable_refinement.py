"""Refinement that keeps an edit believable: whole stretches, their ends, their amplitude."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..engine import Tasks
from ..engine.acceptance import AcceptanceTest
from ..numerics import broadcast_rows
from ..numerics.differences import RealDifferences
from .bisection import MakeCandidate, smallest_level
from .row_edits import reduce_numbers
from .segments import as_rows
from .stretches import changed_values, count_stretches, stretch_ids, stretch_lengths

#: no stretch of a series is left shorter than this, unless it was
SHORTEST_STRETCH = 3
#: resolution of the amplitude
AMPLITUDE_LEVELS = 64
#: places tried for an end of a stretch, evenly spaced where there are more
MAX_CUTS = 64
#: numbers built at once; more trials are made in turn
MAX_ELEMENTS = 2**23


@dataclass(frozen=True)
class KeepsBelievable(AcceptanceTest):
    """Accept edits that keep the constraints and look no less real than the one they come from.

    The edit is no larger, in l2. In series it has no more stretches and none below three steps
    (or the length it had), and neither its seam nor its kink ratio is above 1, or above that of
    the edit it comes from where that is larger.

    Parameters
    ----------
    limits : RealDifferences or None
        What real series show; None for images and rows.
    """

    limits: RealDifferences | None

    def start(self, tasks: Tasks, x_cf: Tensor) -> Tasks:
        """Attach to the tasks what their first edits show, and require that it does not get worse.

        Parameters
        ----------
        tasks : Tasks
            What the edits are for.
        x_cf : Tensor of shape (n, *shape)
            The edits that refinement starts from.

        Returns
        -------
        Tasks
            The tasks with this test.
        """
        tasks = tasks.attach(largest_size=_size(tasks, x_cf))
        if tasks.modality == "series":
            ids = _ids(tasks, x_cf)
            tasks = tasks.attach(
                most_stretches=count_stretches(ids),
                least_length=stretch_lengths(ids).clamp_max(SHORTEST_STRETCH),
            )
        if self.limits is not None:
            tasks = tasks.attach(
                largest_seam=self.limits.seam(x_cf, tasks.x).clamp_min(1),
                largest_kink=self.limits.kink(x_cf, tasks.x).clamp_min(1),
            )
        return tasks.requiring(self)

    def passes(self, tasks: Tasks, x_cf: Tensor) -> Tensor:
        """Find the edits that pass, see the class."""
        good = _size(tasks, x_cf) <= tasks["largest_size"]
        if tasks.feasible_set is not None:
            good &= tasks.feasible_set.allows(x_cf, tasks.x)
        if tasks.modality == "series":
            ids = _ids(tasks, x_cf)
            lengths = stretch_lengths(ids)
            long_enough = (ids == 0) | (lengths >= tasks["least_length"])
            good &= long_enough.flatten(1).all(1)
            good &= count_stretches(ids) <= tasks["most_stretches"]
        if self.limits is not None:
            good &= self.limits.seam(x_cf, tasks.x) <= tasks["largest_seam"]
            good &= self.limits.kink(x_cf, tasks.x) <= tasks["largest_kink"]
        return good


def shrink_stretches(tasks: Tasks, x_cf: Tensor, limits: RealDifferences | None = None) -> Tensor:
    """Make one edit per task smaller, and keep it believable.

    Whole stretches that are not needed are dropped, those that matter least first. In series the
    ends of those that remain move inward. With δ the edit, what is kept of it on [s, e) is

        δ'[t] = δ[t] − the straight line from δ[s−1] to δ[e],

    which is 0 just outside: it joins x without a jump, and its bends are those of δ. At the border
    of the series the line is constant, and meets the inner end only. Last, the amplitude is
    reduced.

    Parameters
    ----------
    tasks : Tasks
        What the edits are for.
    x_cf : Tensor of shape (n, *shape)
        The edits.
    limits : RealDifferences, optional
        First and second differences of real series; None: jumps and kinks are not looked at.

    Returns
    -------
    Tensor of shape (n, *shape)
        Smaller edits; those that are not accepted are only projected.
    """
    x_cf = tasks.project(x_cf).clone()
    if len(tasks) == 0:
        return x_cf
    changed = changed_values(x_cf, tasks.x, tasks.modality)
    cleared = torch.where(changed, x_cf, tasks.x)
    test = KeepsBelievable(limits)
    working = test.start(tasks, cleared)
    accepted = working.accepted(cleared)
    if not bool(accepted.any()):
        return x_cf
    working = working.take(accepted)
    smaller = _drop_stretches(working, cleared[accepted])
    if tasks.modality == "series":
        smaller = _move_ends(working, smaller, test)
    x_cf[accepted] = _reduce_amplitude(working, smaller)
    return x_cf


# --- whole stretches


def _drop_stretches(tasks: Tasks, x_cf: Tensor) -> Tensor:
    """Drop whole stretches until no single one can be dropped."""
    x_cf = x_cf.clone()
    which = torch.arange(len(tasks), device=x_cf.device)
    while len(which):
        part = tasks.take(which)
        ids = _ids(part, x_cf[which])
        part = part.attach(x_cf=x_cf[which], stretch=ids)
        place, count = _expendable_stretches(part)
        some = count > 0
        which = which[some]
        part = part.take(some).attach(place=place[some], count=count[some])
        _, x_cf[which] = smallest_level(part, _drop_most, part["count"], top_accepted=True)
    return x_cf


def _drop_most(tasks: Tasks, level: Tensor) -> Tensor:
    """Level 1 drops all expendable stretches, level `count` only the first."""
    dropped = tasks["place"] <= (tasks["count"] - level)[:, None]
    ids = tasks["stretch"]
    at_places = dropped.gather(1, ids.flatten(1)).reshape(ids.shape)
    return as_rows(tasks, torch.where(at_places, tasks.x, tasks["x_cf"]))


def _expendable_stretches(tasks: Tasks) -> tuple[Tensor, Tensor]:
    """Drop every stretch alone; first comes the one that costs the target least.

    Returns
    -------
    place : Tensor of int, shape (n, 1 + stretches)
        Place of each stretch in that order; the last where it cannot be dropped. Column 0 is for
        what is in no stretch.
    count : Tensor of int, shape (n,)
        How many can be dropped alone.
    """
    ids = tasks["stretch"]
    n_stretches = count_stretches(ids)
    columns = torch.arange(int(n_stretches.max()) + 1, device=ids.device)
    # An only stretch cannot be dropped: what would be left is the instance.
    exists = (columns > 0) & (columns <= n_stretches[:, None]) & (n_stretches > 1)[:, None]
    task, stretch = exists.nonzero(as_tuple=True)
    lead = torch.full(exists.shape, -torch.inf, dtype=torch.float64, device=ids.device)
    lead[task, stretch] = _lead_without(tasks, task, stretch)
    can_go = lead > -torch.inf
    order = lead.argsort(dim=1, descending=True, stable=True)
    place = torch.where(can_go, order.argsort(dim=1), lead.shape[1])
    return place, can_go.sum(1)


def _lead_without(tasks: Tasks, task: Tensor, stretch: Tensor) -> Tensor:
    """Return the target's lead without a stretch, for each pair; -inf where not accepted."""
    lead = torch.full((len(task),), -torch.inf, dtype=torch.float64, device=task.device)
    able = tasks.take(task).affords().nonzero().flatten()
    for part in able.split(max(1, MAX_ELEMENTS // tasks.x[0].numel())):
        trying = tasks.take(task[part])
        dropped = trying["stretch"] == broadcast_rows(stretch[part], trying["stretch"])
        trial = as_rows(trying, torch.where(dropped, trying.x, trying["x_cf"]))
        # A linked column follows the others again: it cannot be undone alone.
        undoes = (trial != trying["x_cf"]).flatten(1).any(1)
        part, trial, trying = part[undoes], trial[undoes], trying.take(undoes)
        verdict = trying.ask(trial)
        accepted = trying.accepts(trial, verdict)
        lead[part] = torch.where(accepted, trying.lead(verdict), -torch.inf)
    return lead


# --- the ends of stretches


def _move_ends(tasks: Tasks, x_cf: Tensor, test: KeepsBelievable) -> Tensor:
    """Move the ends of every stretch of a series inward."""
    x_cf = x_cf.clone()
    ids = _ids(tasks, x_cf)
    for stretch in range(1, int(count_stretches(ids).max()) + 1):
        inside = (ids == stretch)[:, 0]  # (n, length)
        least = (inside * tasks["least_length"][:, 0]).amax(1)
        # Where the right end has moved, the left one often can move again.
        for cut in (_from_left, _from_right) * 2:
            start, end = _first_and_end(inside & (x_cf != tasks.x).any(1))
            top = end - start - least + 1
            movable = (top > 1).nonzero().flatten()
            part = tasks.take(movable).attach(
                x_cf=x_cf[movable],
                start=start[movable],
                end=end[movable],
                least=least[movable],
                top=top[movable],
            )
            x_cf[movable] = _shortest(part, cut, test)
    return x_cf


def _shortest(tasks: Tasks, cut: MakeCandidate, test: KeepsBelievable) -> Tensor:
    """Find by bisection the shortest stretch that is accepted, among those that pass the test.

    Whether a cut makes a kink says nothing about the cuts beside it, so bisection would go astray
    there; and it costs no question to the model. Such cuts are left out beforehand.
    """
    if len(tasks) == 0:
        return tasks["x_cf"]
    levels = _passing_levels(tasks, cut, test)  # (n, cuts), ascending; the top level fills up
    tasks = tasks.attach(levels=levels)
    n_levels = (levels < tasks["top"][:, None]).sum(1)

    def cut_at(tasks: Tasks, rank: Tensor) -> Tensor:
        level = tasks["levels"].gather(1, rank[:, None] - 1)[:, 0]
        return cut(tasks, level)

    _, shortest = smallest_level(tasks, cut_at, n_levels + 1, top_accepted=True)
    return shortest


def _passing_levels(tasks: Tasks, cut: MakeCandidate, test: KeepsBelievable) -> Tensor:
    """Return the levels whose cuts pass the test, ascending, then the top level; (n, cuts + 1)."""
    top = tasks["top"]
    n_cuts = min(MAX_CUTS, int(top.max()) - 1)
    step = torch.arange(n_cuts, device=top.device)
    levels = 1 + (step * (top[:, None] - 1)) // n_cuts  # from 1 to below the top, evenly
    passes = torch.zeros_like(levels, dtype=torch.bool)
    task = torch.arange(len(tasks), device=top.device).repeat_interleave(n_cuts)
    size = max(1, MAX_ELEMENTS // tasks.x[0].numel())
    for part in torch.arange(levels.numel(), device=top.device).split(size):
        trying = tasks.take(task[part])
        trial = cut(trying, levels.flatten()[part])
        passes.view(-1)[part] = test.passes(trying, trial)
    levels = torch.where(passes, levels, top[:, None]).sort(1).values
    return torch.cat([levels, top[:, None]], dim=1)


def _from_left(tasks: Tasks, level: Tensor) -> Tensor:
    """Level 1 leaves the shortest stretch, the top level all of it."""
    start = tasks["end"] - tasks["least"] - level + 1
    return _joined(tasks, start, tasks["end"])


def _from_right(tasks: Tasks, level: Tensor) -> Tensor:
    """Level 1 leaves the shortest stretch, the top level all of it."""
    end = tasks["start"] + tasks["least"] + level - 1
    return _joined(tasks, tasks["start"], end)


def _joined(tasks: Tasks, start: Tensor, end: Tensor) -> Tensor:
    """Keep of a stretch what is in [start, end), joined to the instance without a jump."""
    x, x_cf = tasks.x, tasks["x_cf"]
    delta = x_cf - x
    length = x.shape[-1]
    time = torch.arange(length, device=x.device)
    old_start, old_end = tasks["start"][:, None], tasks["end"][:, None]
    in_old = ((time >= old_start) & (time < old_end))[:, None]
    in_new = ((time >= start[:, None]) & (time < end[:, None]))[:, None]
    # Outside of this stretch its edit is 0, whatever other stretches do there.
    delta = torch.where(in_old, delta, torch.zeros_like(delta))
    left = _value_at(delta, start - 1)
    right = _value_at(delta, end)
    at_left_border = (start == 0)[:, None, None]
    at_right_border = (end == length)[:, None, None]
    left, right = (
        torch.where(at_left_border, right, left),
        torch.where(at_right_border, left, right),
    )
    steps = (time - start[:, None] + 1).to(x.dtype)
    share = steps / (end - start + 1)[:, None]
    line = left + (right - left) * share[:, None]
    # A channel that was not changed at some time, or is frozen there, stays as it is.
    kept = in_new & (delta != 0)
    shortened = torch.where(kept, x + (delta - line), x)
    unmoved = (start[:, None] == old_start) & (end[:, None] == old_end)
    return torch.where(in_old & ~unmoved[:, None], shortened, x_cf)


def _value_at(delta: Tensor, time: Tensor) -> Tensor:
    """Return the edit at one time of each task, (n, channels, 1); 0 outside of the series."""
    length = delta.shape[-1]
    index = time.clamp(0, length - 1)[:, None, None].expand(-1, delta.shape[1], 1)
    exists = (time >= 0) & (time < length)
    return delta.gather(2, index) * exists[:, None, None]


def _first_and_end(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first true place of every row and the one after the last; equal if there is none.

    Takes a mask (n, length).
    """
    length = mask.shape[1]
    some = mask.any(1)
    start = mask.int().argmax(1)
    end = length - mask.flip(1).int().argmax(1)
    return torch.where(some, start, 0), torch.where(some, end, 0)


# --- amplitude


def _reduce_amplitude(tasks: Tasks, x_cf: Tensor) -> Tensor:
    """Scale each edit down by bisection; in rows of tables, each number."""
    if tasks.space is not None:
        return reduce_numbers(tasks, x_cf)

    def scaled(tasks: Tasks, level: Tensor) -> Tensor:
        share = broadcast_rows(level.to(tasks.x) / AMPLITUDE_LEVELS, tasks.x)
        smaller = torch.lerp(tasks.x, tasks["x_cf"], share)
        is_all = broadcast_rows(level == AMPLITUDE_LEVELS, tasks.x)
        return torch.where(is_all, tasks["x_cf"], smaller)

    tasks = tasks.attach(x_cf=x_cf)
    _, smallest = smallest_level(tasks, scaled, AMPLITUDE_LEVELS, top_accepted=True)
    return smallest


# --- measures


def _ids(tasks: Tasks, x_cf: Tensor) -> Tensor:
    """Give numbers to the stretches of edits."""
    changed = changed_values(x_cf, tasks.x, tasks.modality)
    part = None if tasks.space is None else tasks.space.part
    return stretch_ids(changed, tasks.modality, part)


def _size(tasks: Tasks, x_cf: Tensor) -> Tensor:
    """Return the l2 size of edits, (n,)."""
    size: Tensor = (x_cf.double() - tasks.x.double()).flatten(1).norm(dim=1)
    return size
