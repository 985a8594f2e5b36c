"""Two windows where they change less than one, and ends between the points of the grid."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from .graft_search import PAIR_STREAM, GraftSearch
from .graft_trials import Trial
from .joins import make_grafts
from .window_grafts import SHORTEST_WINDOW, WindowGrafts

#: single grafts that pairs are made of
N_PARTS = 48
#: steps between two windows at least
LEAST_GAP = 3
#: two windows have to change less than this share of what one changes
WORTH_A_SECOND = 0.85
#: a part changes at most this share of what the best graft changes
LARGEST_PART = 0.8
#: numbers of shortened windows that are made at once; more tasks are worked on in turn
MAX_ELEMENTS = 2**23


def try_pairs(search: GraftSearch, grafts: WindowGrafts, rounds: int) -> None:
    """Ask about pairs of windows whose first-order gains add up.

    Parameters
    ----------
    search : GraftSearch
        The search, after single windows were tried.
    grafts : WindowGrafts
        The grafts it chooses from.
    rounds : int
        Rounds of questions.
    """
    n_cuts = search.leads.prior.shape[2]
    everything = torch.arange(len(search.tasks), device=search.tasks.row.device)
    before = search.before[:, None, None].to(search.leads.prior)
    for turn in range(rounds):
        gain = search.leads.first_order_gains(everything)
        part, is_useful = _promising_parts(search, grafts, gain)  # (n, parts)
        variant = part // n_cuts
        cut = part % n_cuts
        size = search.size[variant, cut]
        gain = gain.flatten(1).gather(1, part)
        total = size[:, :, None] + size[:, None, :]
        predicted = before + gain[:, :, None] + gain[:, None, :]
        improvement = search.expected_improvement(everything, predicted, total, WORTH_A_SECOND)
        improvement *= is_useful[:, :, None] & is_useful[:, None, :]
        improvement *= _can_be_joined(grafts, variant, cut)
        n_grafts = search.leads.prior[0].numel()
        number = _pair_numbers(part, n_grafts)
        improvement *= ~torch.isin(number, search.pairs_asked)
        improvement = improvement.flatten(1)
        active, chosen = search.draw(
            everything, improvement, turn, PAIR_STREAM, identity=number.flatten(1) % n_grafts**2
        )
        if len(active) == 0:
            return
        useful = improvement[active].gather(1, chosen) > 0
        task = active[:, None].expand_as(chosen)[useful]
        pair = number.flatten(1)[task, chosen[useful]]
        search.pairs_asked = torch.cat([search.pairs_asked, pair])
        n_parts = part.shape[1]
        first = chosen[useful] // n_parts
        second = chosen[useful] % n_parts
        search.ask(
            Trial(
                task,
                _join_pair(
                    search.tasks.x,
                    grafts,
                    task,
                    (variant[task, first], cut[task, first]),
                    (variant[task, second], cut[task, second]),
                ),
                total[task, first, second],
                variant[task, first],
                cut[task, first],
                variant[task, second],
                cut[task, second],
            )
        )


def _promising_parts(
    search: GraftSearch,
    grafts: WindowGrafts,
    gain: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return the grafts with the largest gain for their size, and which are useful, (n, parts)."""
    small = search.size < LARGEST_PART * search.size_to_beat[:, None, None]
    useful = grafts.hidden & small & (gain > 0) & ~search.closed[:, None]
    merit = torch.where(useful, gain / search.size.sqrt(), -torch.inf).flatten(1)
    best = merit.topk(min(N_PARTS, merit.shape[1]), dim=1)
    return best.indices, best.values.isfinite()


def _pair_numbers(part: Tensor, n_grafts: int) -> Tensor:
    """Give a number to every pair of parts (n, parts) of every task, (n, parts, parts)."""
    task = torch.arange(len(part), device=part.device)[:, None, None]
    return (task * n_grafts + part[:, :, None]) * n_grafts + part[:, None, :]


def _can_be_joined(grafts: WindowGrafts, variant: Tensor, cut: Tensor) -> Tensor:
    """Return which pairs of parts (n, parts) do not touch, the first before the second."""
    start = grafts.grid.start[cut]
    end = grafts.grid.end[cut]
    apart = start[:, None, :] >= end[:, :, None] + LEAST_GAP
    # of two that start at the same step, the one that is listed first
    n_parts = cut.shape[1]
    place = start * n_parts + torch.arange(n_parts, device=cut.device)
    is_before = place[:, :, None] < place[:, None, :]
    return apart | (is_before & _share_no_channel(grafts, variant))


def _share_no_channel(grafts: WindowGrafts, variant: Tensor) -> Tensor:
    """Return which pairs of variants (n, parts) change different channels, (n, parts, parts)."""
    _, subset, _ = grafts.split_variant(variant)
    channels = grafts.subsets[subset].float()
    return (channels @ channels.transpose(1, 2)) == 0


def _join_pair(
    x: Tensor,
    grafts: WindowGrafts,
    task: Tensor,
    first: tuple[Tensor, Tensor],
    second: tuple[Tensor, Tensor],
) -> Tensor:
    """Make both grafts (variant, cut) in the same series."""
    with_first = grafts.make(x, task, *first)
    with_second = grafts.make(x, task, *second)
    return torch.where(with_first != x[task], with_first, with_second)


def halve_windows(search: GraftSearch, grafts: WindowGrafts, rounds: int) -> None:
    """Ask about parts of the best windows: halves, three quarters, the middle.

    A search that had to take a long window has no good predictions; its parts are then the best
    guess.

    Parameters
    ----------
    search : GraftSearch
        The search with its best grafts.
    grafts : WindowGrafts
        The grafts it chooses from.
    rounds : int
        Rounds of questions; a task whose window was not shortened is done.
    """
    single = search.found & (search.best.second_cut < 0) & ~search.resting
    task = single.nonzero().flatten()
    for _ in range(rounds):
        best = search.best.take(task)
        parts = grafts.grid.parts(best.cut)
        long_enough = grafts.grid.last[best.cut] - grafts.grid.first[best.cut] >= 2
        long_enough &= search.spent[task] + parts.shape[1] <= search.effort.max_rows
        long_enough &= search.tasks.take(task).affords(parts.shape[1])
        task = task[long_enough]
        if len(task) == 0:
            return
        before = search.best.size[task]
        n_cuts = search.open.shape[2]
        search.ask_about(task, best.variant[long_enough, None] * n_cuts + parts[long_enough])
        task = task[search.best.size[task] < before]


def move_ends(search: GraftSearch, grafts: WindowGrafts, questions: int) -> None:
    """Move the ends of the best windows inward, between the points of the grid.

    All ways to shorten a window by a little more than a cell at each end, without a join that
    shows, are sorted by size; the smallest that is accepted is found by bisection.

    Parameters
    ----------
    search : GraftSearch
        The search with its best grafts; those of one window are shortened.
    grafts : WindowGrafts
        The grafts it chooses from.
    questions : int
        Steps of the bisection.
    """
    length = search.tasks.shape[-1]
    n_cells = len(grafts.grid.edges) - 1
    reach = round(1.5 * length / n_cells)
    single = search.found & (search.best.second_cut < 0) & ~search.resting
    task = single.nonzero().flatten()
    if reach < 2:
        return
    values = (reach + 1) ** 2 * math.prod(search.tasks.shape)
    for some in task.split(max(1, MAX_ELEMENTS // values)):
        _move_ends_of(search, grafts, some, reach, questions)


def _move_ends_of(
    search: GraftSearch,
    grafts: WindowGrafts,
    task: Tensor,
    reach: int,
    questions: int,
) -> None:
    """Move the ends of the windows of some tasks by up to `reach` steps, by bisection."""
    ways = _shortened(search, grafts, task, reach)
    count = ways.size.isfinite().sum(1)
    low = torch.full_like(count, -1)
    high = count.clone()
    best = search.best.take(task)
    lead = torch.zeros_like(best.size)
    for _ in range(questions):
        undecided = (high - low > 1).nonzero().flatten()
        undecided = undecided[search.tasks.take(task[undecided]).affords()]
        if len(undecided) == 0:
            break
        middle = (low[undecided] + high[undecided]) // 2
        answers = search.judge(ways.pick(undecided, middle, best.take(undecided)))
        accepted = answers.accepted
        good = torch.zeros_like(answers.asked)
        good[answers.asked] = accepted
        shorter = undecided[good]
        high[shorter] = middle[good]
        low[undecided[~good]] = middle[~good]
        lead[shorter] = answers.lead[accepted]
        best.x_cf[shorter] = answers.trial.x_cf[accepted]
        best.size[shorter] = answers.trial.size[accepted]
    moved = high < count
    search.keep(best.take(moved), lead[moved])


class _Ways:
    """Ways to shorten a window, sorted by size; inf where a way is not open."""

    def __init__(self, x_cf: Tensor, size: Tensor) -> None:
        self.size, self.order = size.sort(dim=1, stable=True)
        self.x_cf = x_cf

    def pick(self, entry: Tensor, place: Tensor, best: Trial) -> Trial:
        """Return the ways at a place in the order, as candidates in place of `best`."""
        way = self.order[entry, place]
        return replace(best, x_cf=self.x_cf[entry, way], size=self.size[entry, place])


def _shortened(
    search: GraftSearch,
    grafts: WindowGrafts,
    task: Tensor,
    reach: int,
) -> _Ways:
    """Make the best graft of some tasks with both ends up to `reach` steps further in."""
    best = search.best.take(task)
    steps = torch.arange(reach + 1, device=task.device)
    inward_start, inward_end = torch.cartesian_prod(steps, steps).T
    n_ways = len(inward_start)
    entry = torch.arange(len(task), device=task.device).repeat_interleave(n_ways)
    joins = grafts.describe(task, best.variant, best.cut).take(entry)
    length = search.tasks.shape[-1]
    start = joins.start + inward_start.repeat(len(task))
    end = joins.end - inward_end.repeat(len(task))
    stays_at_border = (joins.start > 0) | (start == 0)
    stays_at_border &= (joins.end < length) | (end == length)
    is_shorter = end - start < joins.end - joins.start
    joins = replace(joins, start=start, end=end)
    tasks = search.tasks.take(task).take(entry)
    donor, _, _ = grafts.split_variant(best.variant)
    donors = grafts.donor[task, donor].to(tasks.x)[entry]
    x_cf = tasks.project(make_grafts(tasks.x, donors, joins))
    size = (x_cf != tasks.x).flatten(1).double().mean(1)
    is_open = (end - start >= SHORTEST_WINDOW) & is_shorter & stays_at_border
    is_open &= (size > 0) & (size < best.size[entry])
    if search.looks_real is not None:
        is_open &= search.looks_real.passes(tasks, x_cf)
    size = torch.where(is_open, size, torch.inf)
    shape = (len(task), n_ways)
    return _Ways(x_cf.view(*shape, *search.tasks.shape), size.view(shape))
