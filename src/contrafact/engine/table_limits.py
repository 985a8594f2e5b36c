"""Limits on the rows of a table: its schema, and what people state about its columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from typing_extensions import Self, override

from ..models.classifier import Array
from ..tables import Relation, TableSpace
from .limits import Limits


@dataclass(frozen=True, eq=False)
class TableLimits(Limits):
    """The rows of a table that keep its schema and all constraints.

    Limits speak of changes: a value that is not changed keeps every limit, also where it breaks
    one. So a counterfactual never asks for a change that the model does not need.

    Parameters
    ----------
    space : TableSpace
        Coordinates of the table.
    lower, upper : Tensor of float64, shape (1, columns) or (n, columns)
        Range of changed values, for all instances or for each; levels in an order by their rank.
    frozen, rising, falling : Tensor of bool, shape (columns,)
        Columns that may not change, not fall, not rise.
    max_changed : int or None
        Most parts (columns, one-hot groups) that may change; linked columns do not count.
    relations : tuple of Relation
        Comparisons that changed rows keep.
    forbidden : dict of int to Tensor of bool, shape (levels, levels)
        By column, which level may not become which.
    linked : dict of int to function
        By column, how it follows from a frame.
    words : str
        What was asked for, for messages.
    kept : Tensor of bool, shape (n, columns), optional
        Values of each instance that a search leaves as they are, see `keeping`.
    """

    space: TableSpace
    lower: Tensor
    upper: Tensor
    frozen: Tensor
    rising: Tensor
    falling: Tensor
    max_changed: int | None
    relations: tuple[Relation, ...]
    forbidden: dict[int, Tensor]
    linked: dict[int, Callable[[Any], Any]]
    words: str
    kept: Tensor | None = None

    @override
    def take(self, rows: Tensor) -> Self:
        kept = None if self.kept is None else self.kept[rows]
        if len(self.lower) == 1:
            return self if kept is None else replace(self, kept=kept)
        return replace(self, lower=self.lower[rows], upper=self.upper[rows], kept=kept)

    def keeping(self, parts: Tensor) -> Self:
        """Return limits under which some parts of each instance stay as they are.

        Parameters
        ----------
        parts : Tensor of bool, shape (n, parts)
            Columns and one-hot groups, by instance.

        Returns
        -------
        TableLimits
            The narrower limits.
        """
        return replace(self, kept=parts[:, self.space.part_of_column])

    def within(self, lower: Tensor, upper: Tensor) -> Self:
        """Return limits under which the values of each instance have a narrower range.

        Parameters
        ----------
        lower, upper : Tensor of float64, shape (n, columns)
            Range of changed values, by instance; infinite where it is not narrower.

        Returns
        -------
        TableLimits
            The narrower limits.
        """
        return replace(
            self,
            lower=torch.maximum(self.lower, lower),
            upper=torch.minimum(self.upper, upper),
        )

    @override
    def check_size(self, n: int) -> None:
        if len(self.lower) not in (1, n):
            raise ValueError(
                f"constraints.bounds has arrays of {len(self.lower)} entries for {n} instances; "
                "give one entry per instance."
            )

    @override
    def describe(self) -> str:
        return self.words

    @override
    def finish(self, final: Array, original: Array, found: Array) -> Array:
        return final  # coordinates are in double precision: nothing is rounded again

    @override
    def impossible(self, x: Tensor) -> list[str]:
        movable = ~self.frozen
        movable[self.space.fixed_columns] = False
        movable[list(self.linked)] = False
        if bool(movable.any()):
            return [""] * len(x)
        return ["every column is frozen"] * len(x)

    @override
    def project(self, x_cf: Tensor, x: Tensor) -> Tensor:
        with torch.no_grad():
            own = self.space.codes(x)
            new = self.keep(self.space.codes(x_cf), own)
            moved = self.space.embed(new)
            unchanged = _same(new, own)[:, self.space.column]
            nearest = torch.where(unchanged, x, moved)
        if not x_cf.requires_grad:
            return nearest
        # The value is that of a row, the gradient that of the candidate.
        return nearest + (x_cf - x_cf.detach())

    @override
    def box(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        own = self.space.codes(x)
        low, high = self._range(own)
        stays = self._may_not_change(own, own) | own.isnan()
        # What an instance has is allowed, even outside of the range.
        lower = self.space.on_lines(torch.minimum(low, own), x)
        upper = self.space.on_lines(torch.maximum(high, own), x)
        lower = torch.where(lower.isnan(), x, lower)  # a missing value has no range
        upper = torch.where(upper.isnan(), x, upper)
        free = self.space.is_line & ~stays[:, self.space.column]
        # A missing number has no range.
        return torch.where(lower.isnan(), x, lower), torch.where(upper.isnan(), x, upper), free

    def keep(self, new: Tensor, own: Tensor) -> Tensor:
        """Bring rows within every limit, by undoing what breaks one.

        Parameters
        ----------
        new, own : Tensor of float64, shape (n, columns)
            Candidates and their instances, as rows of the table.

        Returns
        -------
        Tensor of float64, shape (n, columns)
            Rows that keep every limit; an instance itself where nothing else does.
        """
        new = self._into_range(new, own)
        new = torch.where(self._may_not_change(new, own), own, new)
        new = self._limit_count(new, own)
        new = self._keep_relations(new, own)
        new = self._follow_links(new, own)
        kept = torch.stack(list(self._check(new, own).values())).all(0)
        return torch.where(kept[:, None], new, own)

    @override
    def check(self, x_cf: Tensor, x: Tensor) -> dict[str, Tensor]:
        codes = self.space.codes(x_cf)
        own = self.space.codes(x)
        nearest = torch.where(_same(codes, own)[:, self.space.column], x, self.space.embed(codes))
        kept = self._check(codes, own)
        # A point between rows is not a row, however near; rounding apart.
        kept["schema"] = torch.isclose(nearest, x_cf, rtol=1e-9, atol=1e-12).all(1)
        return kept

    def check_rows(self, new: Array, own: Array) -> dict[str, Array]:
        """Check which rows keep which limit.

        Parameters
        ----------
        new, own : array of float64, shape (n, columns)
            Counterfactuals and their instances, as rows of the table.

        Returns
        -------
        dict of str to array of bool, shape (n,)
            By the name of the limit.
        """
        kept = self._check(torch.from_numpy(new), torch.from_numpy(own))
        return {name: rows.numpy() for name, rows in kept.items()}

    # --- single limits

    def _into_range(self, new: Tensor, own: Tensor) -> Tensor:
        """Clip changed values to their range, or leave the instance's own, whichever is nearer."""
        low, high = self._range(own)
        clipped = torch.minimum(torch.maximum(new, low), high)
        # NaN compares false: a value whose instance has none is clipped.
        stays = ((new - own).abs() < (new - clipped).abs()) | (low > high)
        moved = torch.where(stays, own, clipped)
        # A one-hot group is taken as a whole, or not at all.
        return torch.where(self._whole_groups((moved != new) & self._in_group()), own, moved)

    def _range(self, own: Tensor) -> tuple[Tensor, Tensor]:
        """Return the range of changed values, (n, columns)."""
        low = self.lower.expand_as(own)
        high = self.upper.expand_as(own)
        is_known = ~own.isnan()
        low = torch.where(self.rising & is_known, torch.maximum(low, own), low)
        high = torch.where(self.falling & is_known, torch.minimum(high, own), high)
        return low, high

    def _may_not_change(self, new: Tensor, own: Tensor) -> Tensor:
        """Return which values have to stay: frozen ones, and moves that are not allowed."""
        stays = self.frozen | (new.isnan() & ~own.isnan())
        if self.kept is not None:
            stays |= self.kept
        stays[:, self.space.fixed_columns] = True
        stays[:, list(self.linked)] = True
        for column, moves in self.forbidden.items():
            stays[:, column] |= _is_forbidden(moves, own[:, column], new[:, column])
        return self._whole_groups(stays)

    def _whole_groups(self, mask: Tensor) -> Tensor:
        """Extend a mask (n, columns) from a column of a one-hot group to all of them."""
        mask = mask.clone()
        for columns in self.space.group_columns:
            mask[:, columns] = mask[:, columns].any(1, keepdim=True)
        return mask

    def _in_group(self) -> Tensor:
        """Return the mask of the columns of one-hot groups, (columns,)."""
        mask = torch.zeros_like(self.frozen)
        for columns in self.space.group_columns:
            mask[columns] = True
        return mask

    def changed_parts(self, x_cf: Tensor, x: Tensor) -> Tensor:
        """Return which parts candidates change; linked columns do not count.

        Parameters
        ----------
        x_cf, x : Tensor of shape (n, coordinates)
            Candidates and their instances.

        Returns
        -------
        Tensor of bool, shape (n, parts)
            Columns and one-hot groups.
        """
        return self._changed_parts(self.space.codes(x_cf), self.space.codes(x))

    def _changed_parts(self, new: Tensor, own: Tensor) -> Tensor:
        """Return which parts were changed, (n, parts); linked columns do not count."""
        changed = ~_same(new, own)
        changed[:, list(self.linked)] = False
        return self.space.any_by_part(changed)

    def _limit_count(self, new: Tensor, own: Tensor) -> Tensor:
        """Undo the smallest changes where too many parts were changed."""
        if self.max_changed is None:
            return new
        changed = self._changed_parts(new, own)
        if not bool((changed.sum(1) > self.max_changed).any()):
            return new
        size = (self.space.embed(new) - self.space.embed(own)).abs()
        by_part = size.new_zeros(changed.shape).index_add_(1, self.space.part, size)
        order = torch.where(changed, by_part, -1.0).argsort(dim=1, descending=True, stable=True)
        place = order.argsort(1)
        undone = (place >= self.max_changed)[:, self.space.part_of_column]
        return torch.where(undone, own, new)

    def _keep_relations(self, new: Tensor, own: Tensor) -> Tensor:
        """Undo the changes of columns whose relation they break."""
        # What one relation undoes may break another one before it.
        for relation in self.relations * len(self.relations):
            columns = [self.space.schema.position(name) for name in relation.columns]
            broken = ~self._relation_kept(relation, new, own)
            undone = torch.zeros_like(new, dtype=torch.bool)
            undone[:, columns] = broken[:, None]
            new = torch.where(self._whole_groups(undone), own, new)
        return new

    def _relation_kept(self, relation: Relation, new: Tensor, own: Tensor) -> Tensor:
        """Return which rows keep a relation, or change nothing that it speaks of."""
        columns = [self.space.schema.position(name) for name in relation.columns]
        values = {name: new[:, i] for name, i in zip(relation.columns, columns, strict=True)}
        return relation.holds(values) | _same(new, own)[:, columns].all(1)

    def _follow_links(self, new: Tensor, own: Tensor) -> Tensor:
        """Compute linked columns from the others, where these were changed."""
        for column, function in self.linked.items():
            rows = (~_same(new, own)).any(1).nonzero().flatten()
            if len(rows) == 0:
                continue
            after = self._link(column, function, new[rows])
            before = self._link(column, function, own[rows])
            # A value that cannot be computed, such as one from a missing value, stays.
            stays = _same(after, before) | ~after.isfinite()
            new = new.clone()
            new[rows, column] = torch.where(stays, own[rows, column], after)
        return new

    def _link(self, column: int, function: Callable[[Any], Any], codes: Tensor) -> Tensor:
        """Return the values that a linked column has in some rows, on its grid."""
        name = self.space.schema.names[column]
        frame = self.space.table.with_codes(codes.numpy()).frame_without_index()
        values = np.asarray(function(frame), dtype=np.float64)
        if values.shape != (len(codes),):
            raise ValueError(
                f"constraints.linked[{name!r}] must return one number per row, {len(codes)} here, "
                f"got shape {values.shape}."
            )
        linked = codes.clone()
        linked[:, column] = torch.from_numpy(np.nan_to_num(values, posinf=0.0, neginf=0.0))
        on_grid = self.space.codes(self.space.embed(linked))[:, column]
        return torch.where(torch.from_numpy(np.isfinite(values)), on_grid, torch.nan)

    def _check(self, new: Tensor, own: Tensor) -> dict[str, Tensor]:
        """Check the limits of rows one by one."""
        same = _same(new, own)
        low, high = self._range(own)
        within = same | ((new >= low) & (new <= high)) | new.isnan()
        kept = {
            "bounds": within.all(1),
            "frozen": ~(self._may_not_change(new, own) & ~same & ~self._is_linked()).any(1),
        }
        if self.max_changed is not None:
            kept["max_changed"] = self._changed_parts(new, own).sum(1) <= self.max_changed
        for relation in self.relations:
            kept[relation.text] = self._relation_kept(relation, new, own)
        if self.linked:
            kept["linked"] = _same(self._follow_links(new, own), new).all(1)
        return kept

    def _is_linked(self) -> Tensor:
        """Return the mask of the linked columns, (columns,)."""
        mask = torch.zeros_like(self.frozen)
        mask[list(self.linked)] = True
        return mask


def _same(new: Tensor, own: Tensor) -> Tensor:
    """Return which values are equal; a missing value is equal to a missing one."""
    return (new == own) | (new.isnan() & own.isnan())


def _is_forbidden(moves: Tensor, before: Tensor, after: Tensor) -> Tensor:
    """Look up pairs of levels; a missing one is never forbidden."""
    known = ~(before.isnan() | after.isnan())
    pairs = moves[before.nan_to_num(0).long(), after.nan_to_num(0).long()]
    return pairs & known
