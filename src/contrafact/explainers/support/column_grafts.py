"""Grafts of rows of tables: the fewest columns of donors that change the class."""

from __future__ import annotations

import torch
from torch import Tensor

from ...engine import Tasks
from ...search.refinement import Edits
from .exchanges import exchange_parts
from .feasible_guides import FoundGuides, table_limits
from .graft_tests import SurvivesNoise
from .value_grafts import ValueGrafts, WithinBudget

#: most columns that are exchanged one by one; a whole donor is made smaller where more are needed
LARGEST_SET = 5


def graft_columns(
    tasks: Tasks,
    donors: FoundGuides,
    values: Tensor,
    survives_noise: SurvivesNoise | None = None,
) -> ValueGrafts:
    """Exchange the fewest columns for those of donors, then move numbers back toward the row.

    Every column alone is tried with several values of the donors, then sets of two and more, see
    `exchange_parts`. What is not needed of the cheapest sets is undone, and their numbers go back
    toward the row's own while the class holds, noise included. Where no small set is accepted, the
    same is done with a whole donor.

    Parameters
    ----------
    tasks : Tasks
        One task per row.
    donors : FoundGuides
        Donors of each, within the constraints.
    values : Tensor of shape (n, donors, coordinates)
        The donors as they are, whose values are exchanged.
    survives_noise : SurvivesNoise, optional
        Test of the class under noise.

    Returns
    -------
    ValueGrafts
        One for every task.
    """
    test = None if survives_noise is None else WithinBudget(survives_noise)
    rounds = table_limits(tasks).max_changed or LARGEST_SET
    sets = exchange_parts(tasks, values, min(rounds, LARGEST_SET), test)
    task, slot = sets.found.nonzero(as_tuple=True)
    x_cf, found, survived, donor = (
        sets.x_cf[task, slot],
        sets.found[task, slot],
        sets.passed[task, slot],
        sets.donor[task, slot],
    )
    whole = (~sets.found.any(1) & donors.found[:, 0]).nonzero().flatten()
    if len(whole):
        x_whole = donors.x[whole, 0]
        accepted, steady = _judge(tasks.take(whole), x_whole, test)
        task = torch.cat([task, whole])
        x_cf = torch.cat([x_cf, x_whole])
        found = torch.cat([found, accepted])
        survived = torch.cat([survived, steady])
        donor = torch.cat([donor, torch.zeros_like(whole)])
    for required in (True, False):
        some = (found & (survived == required)).nonzero().flatten()
        trying = tasks.take(task[some])
        if required and test is not None:
            trying = trying.requiring(test)
        x_cf[some] = _shrink(trying, x_cf[some])
    return _choose(tasks, task, ValueGrafts(x_cf, donor, found, survived))


def _judge(tasks: Tasks, x_cf: Tensor, test: WithinBudget | None) -> tuple[Tensor, Tensor]:
    """Return which rows are accepted, and which of them pass the test."""
    accepted = tasks.accepted(x_cf)
    steady = accepted.clone()
    if test is not None:
        steady[accepted] = test.passes(tasks.take(accepted), x_cf[accepted])
    return accepted, steady


def _shrink(tasks: Tasks, x_cf: Tensor) -> Tensor:
    """Undo columns that are not needed, and move the numbers of the others back."""
    edits = Edits(tasks, x_cf)
    edits.undo_values()
    edits.reduce_amplitude()
    return edits.x_cf


def _choose(tasks: Tasks, task: Tensor, grafts: ValueGrafts) -> ValueGrafts:
    """Choose the best graft of every task: one that survives, of few columns, and small."""
    space = tasks.space
    assert space is not None
    edit = (grafts.x_cf - tasks.x[task]).abs()
    count = space.any_coordinate(edit > 0).sum(1)
    size = edit.sum(1)
    missed = (~grafts.survived).double() + (~grafts.found).double()
    cost = missed * (len(space.part_names) + 1) + count + size / (1 + size)
    order = cost.argsort(stable=True)
    best = torch.full((len(tasks),), -1)
    # the cheapest is written last
    best[task[order.flip(0)]] = order.flip(0)
    has_one = best >= 0
    chosen = best.clamp(min=0)
    if len(task) == 0:
        nothing = torch.zeros(len(tasks), dtype=torch.bool)
        return ValueGrafts(tasks.x.clone(), best, nothing, nothing.clone())
    return ValueGrafts(
        torch.where(has_one[:, None], grafts.x_cf[chosen], tasks.x),
        torch.where(has_one, grafts.donor[chosen], -1),
        has_one & grafts.found[chosen],
        has_one & grafts.survived[chosen],
    )
