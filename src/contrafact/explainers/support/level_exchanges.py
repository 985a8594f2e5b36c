"""Exchange of levels: what a gradient cannot do for categories, booleans and one-hot groups."""

from __future__ import annotations

import torch
from torch import Tensor

from ...engine import Tasks

#: levels that are exchanged one after another, at most
MOST_EXCHANGES = 4


def exchange_levels(tasks: Tasks) -> Tensor:
    """Exchange single levels of rows while that brings the target closer, the best one first.

    Every level of every category, order, boolean and one-hot group is tried in one model batch;
    numbers stay. A row that is accepted is done.

    Parameters
    ----------
    tasks : Tasks
        Rows of a table.

    Returns
    -------
    Tensor of shape (n, coordinates)
        The rows, within the constraints; an instance itself where no exchange helps.
    """
    row = tasks.x.clone()
    lead = tasks.lead(tasks.before).double()
    working = torch.arange(len(tasks))
    for _ in range(MOST_EXCHANGES):
        if len(working) == 0:
            break
        asking = tasks.take(working)
        trial = _single_exchanges(asking, row[working])
        n_trials = trial.shape[1]
        every = asking.repeat(n_trials)
        trial = every.project(trial.flatten(0, 1))
        asked = (trial != row[working].repeat_interleave(n_trials, 0)).any(1)
        place = asked.nonzero().flatten()
        place = place[every.take(place).affords()]
        if len(place) == 0:
            break
        answering = every.take(place)
        verdict = answering.ask(trial[place])
        found = torch.full((len(every),), -torch.inf, dtype=torch.float64)
        found[place] = answering.lead(verdict).double()
        accepted = torch.zeros(len(every), dtype=torch.bool)
        accepted[place] = answering.accepts(trial[place], verdict)
        best_lead, best = found.view(-1, n_trials).max(1)
        helps = best_lead > lead[working]
        chosen = torch.arange(len(working)) * n_trials + best
        moved = working[helps]
        row[moved] = trial[chosen[helps]]
        lead[moved] = best_lead[helps]
        working = moved[~accepted[chosen[helps]]]
    return row


def _single_exchanges(tasks: Tasks, row: Tensor) -> Tensor:
    """Return rows with one level exchanged, (n, exchanges, coordinates)."""
    space = tasks.space
    assert space is not None
    own = space.codes(row)
    exchanged = [own]
    for i, column in enumerate(space.schema):
        for level in range(len(column.levels)):
            new = own.clone()
            new[:, i] = level
            exchanged.append(new)
    for columns in space.group_columns:
        for member in columns:
            new = own.clone()
            new[:, columns] = 0.0
            new[:, member] = 1.0
            exchanged.append(new)
    return torch.stack([space.embed(codes) for codes in exchanged], dim=1)
