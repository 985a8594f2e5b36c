"""What a candidate has to pass besides convincing the model: tests, then the committee."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

if TYPE_CHECKING:
    from .tasks import Tasks


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
