"""The rule by which a candidate is accepted: it convinces the model, tests and the committee."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from ..models.verdict import Verdict

if TYPE_CHECKING:
    from .tasks import Tasks

#: A candidate is accepted only when the target leads by this much probability, so that the same
#: row in another batch, where floating point may round differently, gets the same class.
CLEAR_MARGIN = 1e-4


def accepts(
    verdict: Verdict,
    target: Tensor,
    goal: Tensor | float = 0.0,
    margin: float = CLEAR_MARGIN,
) -> Tensor:
    """Apply the acceptance rule: the model clearly decides for the target, with P(target) >= goal.

    Parameters
    ----------
    verdict : Verdict
        What the model says of n candidates.
    target : Tensor of shape (n,)
        Class wanted for each.
    goal : Tensor of shape (n,) or float, default=0
        Least P(target).
    margin : float
        Least lead of P(target) over the other classes.

    Returns
    -------
    Tensor of bool, shape (n,)
        Which candidates are accepted.
    """
    column = target[:, None]
    p_target = verdict.proba.gather(1, column)[:, 0]
    others = verdict.proba.scatter(1, column, -torch.inf).amax(1)
    return (verdict.label == target) & (p_target - others >= margin) & (p_target >= goal)


class AcceptanceTest(Protocol):
    """Decide which candidates are acceptable, apart from their class."""

    def passes(self, tasks: Tasks, x_cf: Tensor) -> Tensor:
        """Find the candidates that pass.

        Parameters
        ----------
        tasks : Tasks
            What the candidates are for.
        x_cf : Tensor of shape (n, *shape)
            One candidate per task; the model accepts each.

        Returns
        -------
        Tensor of bool, shape (n,)
            True for those that pass.
        """
        ...


def endorse(tasks: Tasks, x_cf: Tensor, passed: Tensor) -> Tensor:
    """Find the candidates that pass every test of the tasks and convince the whole committee.

    Each test, and each member, is asked only about what passed before it: the costly come last.

    Parameters
    ----------
    tasks : Tasks
        What the candidates are for.
    x_cf : Tensor of shape (n, *shape)
        One candidate per task.
    passed : Tensor of bool, shape (n,)
        Candidates that the model accepts.

    Returns
    -------
    Tensor of bool, shape (n,)
        Those of them that pass all else.
    """
    oracle = tasks.oracle
    has_committee = oracle.committee is not None and tasks.asks_committee
    if not tasks.tests and not has_committee:
        return passed
    x_cf = x_cf.detach()
    which = passed.nonzero().flatten()
    for test in tasks.tests:
        if len(which) == 0:
            break
        which = which[test.passes(tasks.take(which), x_cf[which])]
    if has_committee:
        which = which[oracle.agrees(x_cf[which], tasks.row[which])]
    oracle.states.remember_accepted(x_cf[which], tasks.row[which], tasks.x[which])
    endorsed = torch.zeros_like(passed)
    endorsed[which] = True
    return endorsed
