"""Several counterfactuals of a row of a table that differ in the columns they change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from ...engine import Candidates, Tasks
from .feasible_guides import table_limits

#: ways to leave out a column of every earlier option that are tried, before any answer is taken
ATTEMPTS = 3

#: finds one counterfactual for each of some tasks, or none
Search = Callable[[Tasks], Candidates]


def search_options(search: Search, tasks: Tasks) -> Candidates:
    """Find k counterfactuals per row that change different sets of columns.

    Option by option: of every earlier option, one column that it changes has to stay as it is. So
    no option changes all that an earlier one does. Where no such option is found with any of a few
    choices of columns, the column that the first option changes most may go half as far, so that
    others have to help. Where that does not lead to another set of columns either, the message of
    the row says so.

    Parameters
    ----------
    search : function of tasks
        Finds one counterfactual per task.
    tasks : Tasks
        Rows of a table, k tasks for each.

    Returns
    -------
    Candidates
        Up to k per row, those of one row in the order in which they were found.
    """
    k = tasks.k
    instances = replace(tasks.per_instance(), k=1)
    found = [search(instances)]
    taken = _Taken(instances)
    taken.add(found[0])
    # Where nothing was found, less freedom will not help.
    taken.has_any &= torch.isin(instances.row, _accepted(found[0]).tasks.row)
    for _ in range(1, k):
        left = torch.arange(len(instances))[taken.has_any]
        for attempt in range(ATTEMPTS):
            if len(left) == 0:
                break
            possible, kept = taken.leave_out(left, attempt)
            trying = instances.take(left[possible]).keeping(kept[possible])
            left = left[~taken.search(search, trying, found)[left]]
        possible, kept, lower, upper = taken.go_half_way(left)
        trying = instances.take(left[possible]).keeping(kept[possible])
        trying = trying.within(lower[possible], upper[possible])
        left = left[~taken.search(search, trying, found)[left]]
        instances.refuse(left, "no other set of columns was found that changes the class")
        taken.has_any[left] = False
    return Candidates.concat(found)


def _accepted(option: Candidates) -> Candidates:
    """Return the candidates that the model accepts."""
    return _take(option, option.tasks.accepted(option.x))


def _take(option: Candidates, which: Tensor) -> Candidates:
    """Return some of the candidates."""
    info = {name: values[which] for name, values in option.info.items()}
    return Candidates(option.tasks.take(which), option.x[which], info)


class _Taken:
    """Columns that the options found so far change.

    Parameters
    ----------
    instances : Tasks
        One task per row.

    Attributes
    ----------
    has_any : Tensor of bool, shape (n,)
        Rows for which more options are worth looking for.
    """

    def __init__(self, instances: Tasks) -> None:
        self.instances = instances
        self.limits = table_limits(instances)
        self.has_any = torch.zeros(len(instances), dtype=torch.bool)
        #: for every option, how much it changes each part, (n, parts); 0 where there is none
        self.changes: list[Tensor] = []
        #: the first option, in values of the table
        self.first = torch.empty(0)

    def search(self, search: Search, tasks: Tasks, found: list[Candidates]) -> Tensor:
        """Add options that change other sets of columns; return which rows got one, (n,)."""
        has_new = torch.zeros(len(self.instances), dtype=torch.bool)
        if len(tasks) == 0:
            return has_new
        option = _accepted(search(tasks))
        position = torch.searchsorted(self.instances.row, option.tasks.row)
        changed = self._changed(option, position)
        is_new = torch.ones_like(position, dtype=torch.bool)
        for change in self.changes:
            is_new &= (changed != (change[position] > 0)).any(1)
        option = _take(option, is_new)
        has_new[position[is_new]] = True
        found.append(option)
        self.add(option)
        return has_new

    def add(self, option: Candidates) -> None:
        """Note what one more option of some rows changes."""
        space = self.limits.space
        position = torch.searchsorted(self.instances.row, option.tasks.row)
        x = self.instances.x[position]
        changed = self._changed(option, position)
        size = (option.x - x).abs().double()
        by_part = torch.zeros(changed.shape, dtype=torch.float64).index_add_(1, space.part, size)
        change = torch.zeros(len(self.instances), changed.shape[1], dtype=torch.float64)
        change[position] = torch.where(changed, by_part.clamp_min(1e-12), 0.0)
        self.changes.append(change)
        if len(self.changes) == 1:
            self.has_any = change.any(1)
            self.first = space.codes(self.instances.x)
            self.first[position] = space.codes(option.x)

    def _changed(self, option: Candidates, position: Tensor) -> Tensor:
        """Return which parts options of some rows change."""
        limits = table_limits(self.instances.take(position))
        return limits.changed_parts(option.x, self.instances.x[position])

    def leave_out(self, which: Tensor, attempt: int) -> tuple[Tensor, Tensor]:
        """Choose a part of every option so far that stays, the one changed most at first.

        Returns whether there is another choice, (m,), and the parts, (m, parts).
        """
        n_parts = self.changes[0].shape[1]
        kept = torch.zeros(len(which), n_parts, dtype=torch.bool)
        possible = torch.zeros(len(which), dtype=torch.bool)
        for change in self.changes:
            own = change[which]
            exists = own.any(1)
            done = (kept & (own > 0)).any(1)  # a part that stays already will do
            count = (own > 0).sum(1)
            possible |= attempt < count
            order = own.argsort(dim=1, descending=True, stable=True)
            place = (attempt % count.clamp(min=1))[:, None]
            part = order.gather(1, place)[:, 0]
            some = (exists & ~done).nonzero().flatten()
            kept[some, part[some]] = True
        return possible, kept

    def go_half_way(self, which: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Let the column that the first option changes most go half as far.

        Of every other option, another part stays. Returns whether there is a number to go half as
        far, (m,), the parts that stay, (m, parts), and the range of the columns, (m, columns).
        """
        space = self.limits.space
        main = self.changes[0][which].argmax(1)
        is_main = torch.arange(len(space.part_names)) == main[:, None]
        kept = torch.zeros_like(is_main)
        for change in self.changes[1:]:
            own = torch.where(is_main, 0.0, change[which])
            some = (own.any(1) & ~(kept & (own > 0)).any(1)).nonzero().flatten()
            kept[some, own[some].argmax(1)] = True
        x = self.instances.x[which]
        own = space.codes(x)
        end = self.first[which]
        has_middle = torch.tensor(
            [(c.is_numeric or c.kind == "ordered") and c.group is None for c in space.schema]
        )
        halved = is_main[:, space.part_of_column] & has_middle & (own - end).isfinite()
        middle = torch.where(halved, (own + end) / 2, own)
        # on the grid of the column, on the side of the row's own value
        middle = space.codes(space.embed(middle))
        too_far = (middle - own).abs() * 2 > (end - own).abs()
        middle = torch.where(too_far, own, middle)
        lower = torch.where(halved & (end < own), middle, -torch.inf)
        upper = torch.where(halved & (end > own), middle, torch.inf)
        return halved.any(1), kept, lower, upper
