"""Displacements of rows of a table, whose values are rounded to the grids of its columns."""

from __future__ import annotations

import torch
from torch import Tensor

from ...engine import Tasks
from .displacements import displace
from .feasible_guides import table_limits

#: how much further along δ is tried where rounding to the values of a table undid the decision
FURTHER = (1.01, 1.03, 1.1, 1.2, 1.4, 1.8, 2.5)


def displace_onto_grid(tasks: Tasks, x_cf: Tensor) -> tuple[Tensor, Tensor]:
    """Go further along δ where the model does not accept a row as it was rounded.

    Parameters
    ----------
    tasks : Tasks
        Rows of a table, with their displacements `delta` attached.
    x_cf : Tensor of shape (n, *shape)
        The displaced rows, on the grid.

    Returns
    -------
    x_cf : Tensor of shape (n, *shape)
        The rows, those that were not accepted displaced by more.
    proves : Tensor of bool, shape (n,)
        Where a lower bound on numbers holds for all that is allowed: the row is accepted, and
        nothing but numbers may change.
    """
    x_cf = x_cf.clone()
    accepted = is_in_class(tasks, x_cf)
    for factor in FURTHER:
        left = (~accepted).nonzero().flatten()
        if len(left) == 0:
            break
        trying = tasks.take(left)
        trial = displace(trying, factor * trying["delta"])
        accepted[left] = is_in_class(trying, trial)
        x_cf[left[accepted[left]]] = trial[accepted[left]]
    limits = table_limits(tasks)
    movable = ~limits.frozen[limits.space.column]
    return x_cf, accepted & bool((limits.space.is_line | ~movable).all())


def is_in_class(tasks: Tasks, x_cf: Tensor) -> Tensor:
    """Ask which candidates the model puts in the target class, however close the decision is."""
    able = tasks.affords()
    reached = torch.zeros_like(able)
    asking = tasks.take(able)
    reached[able] = asking.ask(x_cf[able]).label == asking.target
    return reached
