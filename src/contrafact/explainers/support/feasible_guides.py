"""Guides for rows of tables: what remains of them within the constraints is of the class."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...engine import Tasks
from ...engine.table_limits import TableLimits
from ...guides import Guide
from ...guides.guide import nearness
from ...prototypes.diversity import select_diverse
from .exchanges import exchange_parts

#: decimal places of distances that decide which guide is nearer
TIE_DECIMALS = 9
#: candidates looked at first, and by what factor more are looked at where these do not do
FIRST_LOOK, GROWTH = 64, 4
#: pairs of row and candidate that are compared at once
MAX_PAIRS = 2**17
#: guides are chosen for diversity among this many times k of the nearest
POOL_FACTOR = 5
#: candidates that the model is asked about within the constraints, at once and in all
AT_ONCE, MOST_ASKED = 8, 48
#: guides that are enough, where more are asked for and the model has to be asked about each
ENOUGH = 8
#: donors whose columns are combined where no guide of the class remains: so many of the nearest
#: and of those that the model is surest of; columns that are combined at most
N_DONORS, LARGEST_SET = 16, 6


@dataclass(frozen=True)
class FoundGuides:
    """Guides of some tasks.

    Parameters
    ----------
    x : Tensor of shape (n, k, *shape)
        The points; where there are fewer than k, the instance itself fills up.
    index : Tensor of int, shape (n, k)
        Number of each among the reference rows, clusters or prototypes; -1 where there is none.
    """

    x: Tensor
    index: Tensor

    @property
    def found(self) -> Tensor:
        """Mask of the guides there are, (n, k)."""
        return self.index >= 0


def table_limits(tasks: Tasks) -> TableLimits:
    """Return the limits of tasks on rows of a table, which always have some."""
    limits = tasks.feasible_set
    assert isinstance(limits, TableLimits)
    return limits


def feasible_guides(
    tasks: Tasks,
    guide: Guide,
    k: int,
    *,
    preferred: Tensor | None = None,
    priority: Tensor | None = None,
) -> FoundGuides:
    """Find guides that are of the target class after they were brought within the constraints.

    Candidates that keep the constraints as they are come first, the nearest before the others.
    Where there are fewer than k, the model is asked about what the constraints leave of the nearest
    others. Where nothing of the class remains, single columns of the nearest candidates are
    exchanged, as few as change the class.

    Parameters
    ----------
    tasks : Tasks
        Rows of a table.
    guide : Guide
        A fitted guide.
    k : int
        Number of guides.
    preferred : Tensor of bool, shape (candidates,), optional
        Candidates that come before others.
    priority : Tensor of shape (n, candidates), optional
        In place of distances.

    Returns
    -------
    FoundGuides
        Points within the constraints, nearest first.
    """
    x = tasks.x[:, None].repeat(1, k, 1)
    index = torch.full((len(tasks), k), -1)
    for c in tasks.target.unique().tolist():
        members = (guide.candidate_class_ == c).nonzero().flatten()
        if len(members) == 0:
            continue
        rows = (tasks.target == c).nonzero().flatten()
        size = max(1, MAX_PAIRS // max(FIRST_LOOK, min(len(members), 1024)))
        for some in rows.split(size):
            own = None if priority is None else priority[some][:, members]
            search = _Search(tasks.take(some), guide, members, preferred, own)
            x[some], index[some] = search.run(k)
    return FoundGuides(x, index)


class _Search:
    """Candidates of one class for some tasks, in the order in which they are looked at."""

    def __init__(
        self,
        tasks: Tasks,
        guide: Guide,
        members: Tensor,
        preferred: Tensor | None,
        priority: Tensor | None,
    ) -> None:
        self.tasks = tasks
        self.limits = table_limits(tasks)
        self.space = self.limits.space
        self.diverse = bool(getattr(guide, "diverse", False))
        self.members = members
        self.points = guide.candidates_[members]
        self.codes = self.space.codes(self.points)
        # A point between rows is a guide like others; it is not asked about as it is.
        # Rows are known to the fineness of the grid that numbers are kept on.
        self.is_row = (self.space.embed(self.codes) - self.points).abs().amax(1) < 1e-6
        self.own = self.space.codes(tasks.x)
        distance = _distances(tasks.x, self.points) if priority is None else priority
        poor = torch.zeros(len(members), dtype=torch.bool)
        self.p_target = guide.candidate_proba_[members, int(tasks.target[0])]
        if tasks.confidence is not None:
            poor |= self.p_target < tasks.confidence
        if preferred is not None:
            poor |= ~preferred[members]
        self.distance, self.order = distance.sort(dim=1, stable=True)
        first = poor[self.order].long().sort(dim=1, stable=True).indices
        self.order = self.order.gather(1, first)
        self.distance = self.distance.gather(1, first)

    def run(self, k: int) -> tuple[Tensor, Tensor]:
        """Return k guides and their numbers for every task."""
        wanted = k * POOL_FACTOR if self.diverse and k > 1 else k
        exact, near = self._look(wanted)
        chosen = self._first_places(exact, wanted)
        chosen = self._choose_different(chosen, k)
        known = chosen >= 0
        short = (known.sum(1) < min(k, ENOUGH)).nonzero().flatten()
        chosen[short] = self._ask_about(short, chosen[short], exact[short], near[short], k)
        x = self.tasks.x[:, None].repeat(1, k, 1)
        index = torch.full_like(chosen, -1)
        row, slot = (chosen >= 0).nonzero(as_tuple=True)
        candidate = self.order[row, chosen[row, slot]]
        index[row, slot] = self.members[candidate]
        x[row, slot] = self.tasks.take(row).project(self.points[candidate])
        none = (chosen < 0).all(1).nonzero().flatten()
        if len(none):
            self._exchange(none, x, index)
        return x, index

    def _look(self, wanted: int) -> tuple[Tensor, Tensor]:
        """Find candidates that the limits leave as they are, until there are so many.

        Returns two masks in the order of the candidates, (n, members): those that are left as
        they are, and those of which only fixed values, linked ones and missing ones are replaced.
        """
        exact = torch.zeros(self.order.shape, dtype=torch.bool)
        near = torch.zeros_like(exact)
        start, width = 0, max(FIRST_LOOK, 2 * wanted)
        open_tasks = torch.arange(len(self.tasks))
        while start < self.order.shape[1] and len(open_tasks):
            places = slice(start, start + width)
            for some in open_tasks.split(max(1, MAX_PAIRS // width)):
                exact[some, places], near[some, places] = self._compare(some, places)
            start += width
            width *= GROWTH
            open_tasks = open_tasks[exact[open_tasks].sum(1) < wanted]
        return exact, near

    def _compare(self, which: Tensor, places: slice) -> tuple[Tensor, Tensor]:
        candidate = self.order[which, places]
        count = candidate.shape[1]
        new = self.codes[candidate].flatten(0, 1)
        own = self.own[which].repeat_interleave(count, dim=0)
        limits = self.limits.take(which.repeat_interleave(count))
        kept = limits.keep(new, own)
        same = (kept == new) | (kept.isnan() & new.isnan())
        replaced = same | (new.isnan() & ~own.isnan())
        replaced[:, self.space.fixed_columns] = True
        replaced[:, list(limits.linked)] = True
        exact = same.all(1).view_as(candidate) & self.is_row[candidate]
        return exact, replaced.all(1).view_as(candidate)

    def _first_places(self, mask: Tensor, count: int) -> Tensor:
        """Return the first places of a mask (n, members), -1 where there are fewer."""
        place = (~mask).long().sort(dim=1, stable=True).indices[:, :count]
        place = torch.where(mask.gather(1, place), place, -1)
        return torch.nn.functional.pad(place, (0, count - place.shape[1]), value=-1)

    def _choose_different(self, chosen: Tensor, k: int) -> Tensor:
        """Choose k of the places found, such that they differ where the guide asks for that."""
        if chosen.shape[1] == k:
            return chosen
        different = chosen[:, :k].clone()
        many = ((chosen >= 0).sum(1) > k).nonzero().flatten()
        for count in (chosen >= 0).sum(1)[many].unique().tolist():
            some = many[(chosen[many] >= 0).sum(1) == count]
            places = chosen[some, :count]
            points = self.points[self.order[some].gather(1, places)]
            quality = nearness(self.distance[some].gather(1, places))
            picked = select_diverse(points, k, quality=quality)
            different[some] = places.gather(1, picked)
        return different

    def _ask_about(
        self, which: Tensor, chosen: Tensor, exact: Tensor, near: Tensor, k: int
    ) -> Tensor:
        """Add candidates whose rest within the constraints the model accepts."""
        chosen = chosen.clone()
        # exact ones are known to the model; of the others the nearly exact come first
        rank = torch.where(exact, 2, torch.where(near, 0, 1))
        queue = rank.sort(dim=1, stable=True).indices[:, :MOST_ASKED]
        in_queue = ~exact.gather(1, queue)
        enough = min(k, ENOUGH)
        working = torch.arange(len(which))
        for places in torch.arange(queue.shape[1]).split(AT_ONCE):
            working = working[(chosen[working] >= 0).sum(1) < enough]
            if len(working) == 0:
                break
            block = queue[working][:, places]
            task = which[working].repeat_interleave(block.shape[1])
            asking = self.tasks.take(task)
            candidate = self.order[task, block.flatten()]
            trial = asking.project(self.points[candidate])
            moved = (trial != asking.x).any(1) & in_queue[working][:, places].flatten()
            accepted = torch.zeros_like(moved)
            accepted[moved] = asking.take(moved).accepted(trial[moved])
            found = torch.where(accepted.view_as(block), block, -1)
            merged = torch.cat([chosen[working], found], dim=1)
            order = (merged < 0).long().sort(dim=1, stable=True).indices[:, : chosen.shape[1]]
            chosen[working] = merged.gather(1, order)
        return chosen

    def _exchange(self, which: Tensor, x: Tensor, index: Tensor) -> None:
        """Exchange columns for those of several candidates, where none is a guide as a whole."""
        tasks = self.tasks.take(which)
        # The nearest may be too mild where few columns may change; the surest are not.
        surest = self.p_target.argsort(descending=True, stable=True)[:N_DONORS]
        nearest = self.order[which, :N_DONORS]
        donors = torch.cat([nearest, surest.expand(len(which), -1)], dim=1)
        rounds = self.limits.max_changed or LARGEST_SET
        found = exchange_parts(tasks, self.points[donors], min(rounds, LARGEST_SET))
        first = found.found.long().argmax(1)
        has_one = found.found.any(1)
        row = torch.arange(len(which))
        x[which[has_one], 0] = found.x_cf[row, first][has_one]
        donor = found.donor[row, first].clamp(min=0)
        index[which[has_one], 0] = self.members[donors[row, donor]][has_one]


def _distances(x: Tensor, points: Tensor) -> Tensor:
    """Return Euclidean distances, (n, points), rounded: ties are ties in any units."""
    exact = torch.cdist(x, points, compute_mode="donot_use_mm_for_euclid_dist")
    return exact.round(decimals=TIE_DECIMALS)
