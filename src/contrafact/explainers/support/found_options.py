"""Options of rows of a table found so far: which columns they change, and how far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ...engine import Candidates, Tasks
from .feasible_guides import table_limits

#: least difference of a number to be another value, and what is searched for, in scales
LEAST_STEP, STEP = 0.25, 0.5

#: finds counterfactuals of some tasks, or none
Search = Callable[[Tasks], Candidates]


def take_candidates(candidates: Candidates, which: Tensor) -> Candidates:
    """Return some of the candidates."""
    info = {name: values[which] for name, values in candidates.info.items()}
    return Candidates(candidates.tasks.take(which), candidates.x[which], info)


@dataclass(frozen=True)
class Narrowing:
    """Narrower limits of some rows, for one more search.

    Parameters
    ----------
    possible : Tensor of bool, shape (m,)
        Rows for which there are such limits.
    kept : Tensor of bool, shape (m, parts)
        What stays as it is.
    lower, upper : Tensor of float64, shape (m, columns), optional
        Range of changed values.
    """

    possible: Tensor
    kept: Tensor
    lower: Tensor | None = None
    upper: Tensor | None = None

    def apply(self, tasks: Tasks) -> Tasks:
        """Return the tasks for which there are such limits, within them."""
        narrowed = tasks.take(self.possible).keeping(self.kept[self.possible])
        if self.lower is None or self.upper is None:
            return narrowed
        return narrowed.within(self.lower[self.possible], self.upper[self.possible])


class FoundOptions:
    """Options found so far; every search adds at most one to each row.

    Parameters
    ----------
    instances : Tasks
        One task per row.
    k : int
        Options wanted for each.

    Attributes
    ----------
    candidates : list of Candidates
        What each search added.
    """

    def __init__(self, instances: Tasks, k: int) -> None:
        self.instances = instances
        self.k = k
        self.limits = table_limits(instances)
        self.space = self.limits.space
        self.own = self.space.codes(instances.x)
        self.candidates: list[Candidates] = []
        #: for every search, how much its options change each part, (n, parts); 0: there is none
        self.changes: list[Tensor] = []
        #: and their values, (n, columns); the row's own where there is none
        self.codes: list[Tensor] = []
        #: accepted candidates that change the same columns as an option before them
        self.repeating: list[Candidates] = []
        self._count = torch.zeros(len(instances), dtype=torch.long)
        self._is_worth = torch.ones(len(instances), dtype=torch.bool)
        columns = self.space.schema
        self._scale = torch.tensor([column.scale for column in columns], dtype=torch.float64)
        self._is_number = torch.tensor([column.is_numeric for column in columns])

    def incomplete(self) -> Tensor:
        """Return the positions of the rows that more options are wanted for."""
        return (self._is_worth & (self._count < self.k)).nonzero().flatten()

    # --- what is found

    def add(self, found: Candidates) -> None:
        """Add candidates whose columns are new to their row, and note the others."""
        position = self._position(found)
        changed = self._changed_parts(found.x, position)
        is_new = ~self._same_columns(changed, position).any(0)
        self._append(take_candidates(found, is_new))
        self.repeating.append(take_candidates(found, ~is_new))

    def check_first(self) -> None:
        """Give up rows whose first option is not accepted: less freedom will not help."""
        first = self.candidates[0]
        accepted = first.tasks.accepted(first.x)
        self._is_worth[:] = False
        self._is_worth[self._position(first)[accepted]] = True
        self._is_worth &= self.changes[0].any(1)

    def search(
        self,
        search: Search,
        rows: Tensor,
        limits: Narrowing,
        *,
        repeating: bool = False,
    ) -> Tensor:
        """Search once more for some rows.

        Parameters
        ----------
        search : function of tasks
            Finds one counterfactual per task.
        rows : Tensor of int, shape (m,)
            Positions of the rows.
        limits : Narrowing
            Limits of this search.
        repeating : bool, default=False
            Whether clearly other values of the columns of an earlier option will do.

        Returns
        -------
        Tensor of int
            Positions of the rows that got no new option.
        """
        tasks = limits.apply(self.instances.take(rows))
        if len(tasks) == 0:
            return rows
        before = self._count.clone()
        found = search(tasks)
        self.add(take_candidates(found, found.tasks.accepted(found.x)))
        if repeating:
            self.add_repeating()
        return rows[self._count[rows] == before[rows]]

    def add_repeating(self) -> None:
        """Complete rows with candidates that have clearly other values in the same columns."""
        noted, self.repeating = self.repeating, []
        for found in noted:
            position = self._position(found)
            is_other = self._has_other_values(found.x, position)
            wanted = is_other & torch.isin(position, self.incomplete())
            self._append(_marked_as_repeating(take_candidates(found, wanted)))

    def _append(self, found: Candidates) -> None:
        """Add candidates, at most one of each row."""
        if len(found) == 0 and self.candidates:
            return
        position = self._position(found)
        x = self.instances.x[position]
        changed = self._changed_parts(found.x, position)
        size = (found.x - x).abs().double()
        by_part = torch.zeros(changed.shape, dtype=torch.float64)
        by_part.index_add_(1, self.space.part, size)
        change = torch.zeros(len(self.instances), changed.shape[1], dtype=torch.float64)
        change[position] = torch.where(changed, by_part.clamp_min(1e-12), 0.0)
        codes = self.own.clone()
        codes[position] = self.space.codes(found.x)
        self.candidates.append(found)
        self.changes.append(change)
        self.codes.append(codes)
        self._count[position] += 1

    def _position(self, found: Candidates) -> Tensor:
        """Return the row of each candidate, by its place among the instances."""
        return torch.searchsorted(self.instances.row, found.tasks.row)

    def _changed_parts(self, x_cf: Tensor, position: Tensor) -> Tensor:
        """Return which parts candidates of some rows change, (m, parts)."""
        limits = table_limits(self.instances.take(position))
        return limits.changed_parts(x_cf, self.instances.x[position])

    def _same_columns(self, changed: Tensor, position: Tensor) -> Tensor:
        """Return which options change the same parts as candidates do, (searches, m)."""
        same = [
            (changed == (change[position] > 0)).all(1) & change[position].any(1)
            for change in self.changes
        ]
        return torch.stack(same) if same else torch.zeros(1, len(position), dtype=torch.bool)

    def _has_other_values(self, x_cf: Tensor, position: Tensor) -> Tensor:
        """Return which candidates differ clearly from all options with the same columns, (m,)."""
        new = self.space.codes(x_cf)
        same_columns = self._same_columns(self._changed_parts(x_cf, position), position)
        is_other = torch.ones(len(position), dtype=torch.bool)
        for codes, is_same in zip(self.codes, same_columns, strict=True):
            old = codes[position]
            differs = (new != old) & ~(new.isnan() & old.isnan())
            is_near = (new - old).abs() < LEAST_STEP * self._scale
            is_other &= (differs & ~(self._is_number & is_near)).any(1) | ~is_same
        return is_other

    # --- limits of the next search

    def leave_out(self, rows: Tensor, attempt: int) -> Narrowing:
        """Let a part of every option stay, the one changed most at first, then the next."""
        kept = torch.zeros(len(rows), len(self.space.part_names), dtype=torch.bool)
        possible = torch.zeros(len(rows), dtype=torch.bool)
        for change in self.changes:
            own = change[rows]
            exists = own.any(1)
            done = (kept & (own > 0)).any(1)  # a part that stays already will do
            count = (own > 0).sum(1)
            possible |= attempt < count
            order = own.argsort(dim=1, descending=True, stable=True)
            place = (attempt % count.clamp(min=1))[:, None]
            part = order.gather(1, place)[:, 0]
            some = (exists & ~done).nonzero().flatten()
            kept[some, part[some]] = True
        return Narrowing(possible, kept)

    def go_part_way(self, rows: Tensor, share: float, *, only_first: bool = False) -> Narrowing:
        """Let the columns that options change most go a part of the way, so that others help.

        Where there is nothing in between, as with categories, the column stays. With `only_first`
        it is the column of the first option, and of every other option another column stays.
        """
        is_graded = self.space.graded
        own = self.own[rows]
        lower = torch.full_like(own, -torch.inf)
        upper = torch.full_like(own, torch.inf)
        possible = torch.zeros(len(rows), dtype=torch.bool)
        kept = torch.zeros(len(rows), len(self.space.part_names), dtype=torch.bool)
        is_main = torch.zeros_like(kept)
        for number, (change, codes) in enumerate(zip(self.changes, self.codes, strict=True)):
            size = change[rows]
            exists = size.any(1)
            if only_first and number > 0:
                size = torch.where(is_main, 0.0, size)
                some = (size.any(1) & ~(kept & (size > 0)).any(1)).nonzero().flatten()
                kept[some, size[some].argmax(1)] = True
                continue
            main = torch.nn.functional.one_hot(size.argmax(1), size.shape[1]).bool()
            main &= exists[:, None]
            is_main |= main
            end = codes[rows]
            moved = (main & is_graded)[:, self.space.part_of_column] & (end - own).isfinite()
            part_way = self._toward(own, end, share)
            lower = torch.where(moved & (end < own), torch.maximum(lower, part_way), lower)
            upper = torch.where(moved & (end > own), torch.minimum(upper, part_way), upper)
            possible |= moved.any(1)
            kept |= main & ~self.space.any_by_part(moved)
        return Narrowing(possible, kept, lower, upper)

    def _toward(self, own: Tensor, end: Tensor, share: float) -> Tensor:
        """Return values a part of the way from the rows' own, on the grids of their columns."""
        value = own + share * (end - own)
        up, down = (self.space.inward(value, up=is_up) for is_up in (True, False))
        level = own + (share * (end - own)).trunc()
        return torch.where(self._is_number, torch.where(end < own, up, down), level)

    def go_farther(self, rows: Tensor, number: int, nth_column: int) -> Narrowing:
        """Let a column go clearly farther than in options before; only their columns may change.

        Parameters
        ----------
        rows : Tensor of int, shape (m,)
            Positions of the rows.
        number : int
            Search whose options are taken.
        nth_column : int
            Which of the columns of the option, by how much it changes them.

        Returns
        -------
        Narrowing
            Not possible where the column is a category or was missing.
        """
        change = self.changes[number][rows]
        size = torch.where(self.space.graded, change, 0.0)
        part = size.argsort(dim=1, descending=True, stable=True)[:, nth_column : nth_column + 1]
        possible = (size.gather(1, part) > 0).any(1)
        own = self.own[rows]
        is_main = (self.space.part_of_column == part) & possible[:, None]
        sign = (self.codes[number][rows] - own).sign()
        farthest = sign * own
        for codes, is_same in zip(self.codes, self._same_columns(change > 0, rows), strict=True):
            there = torch.where(is_same[:, None], codes[rows], own)
            farthest = torch.maximum(farthest, sign * there)
        step = torch.where(self._is_number, STEP * self._scale, 1.0)
        bound = sign * (farthest + step)
        lower = torch.where(is_main & (sign > 0), self.space.inward(bound, up=True), -torch.inf)
        upper = torch.where(is_main & (sign < 0), self.space.inward(bound, up=False), torch.inf)
        possible &= (lower.isfinite() | upper.isfinite()).any(1)
        return Narrowing(possible, change == 0, lower, upper)


def _marked_as_repeating(found: Candidates) -> Candidates:
    """Say in the info of a method that tells it that the columns are those of another option."""
    if "differs" not in found.info:
        return found
    info = {**found.info, "differs": torch.zeros_like(found.info["differs"])}
    return replace(found, info=info)
