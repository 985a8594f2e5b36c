"""What has become of each instance of a request: its state, the reason, its best candidate."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import torch
from torch import Tensor

from ..models.classifier import Array
from ..models.verdict import Verdict, lead


class State(IntEnum):
    """Where an instance stands.

    PENDING instances are to be worked on, and stay pending when all goes well. DONE instances need
    no search. FAILED ones broke down with an error. REFUSED ones cannot be given (all of) what was
    asked. EXHAUSTED ones ran out of budget; a search may still have found something for them.
    """

    PENDING = 0
    DONE = 1
    FAILED = 2
    REFUSED = 3
    EXHAUSTED = 4


class RowStates:
    """The state of every instance, the reason for it, and the best candidate tried so far.

    The best candidate is the smallest one that passed every test where there are some, or else the
    smallest one in the target class, or else the closest to it; until something was tried, an
    instance is its own best candidate.

    Parameters
    ----------
    x : Tensor of shape (n, *shape)
        The instances.

    Attributes
    ----------
    state : array of State, shape (n,)
    reason : list of str
        Empty where there is nothing to say.
    shortage : list of str
        Which budget denied a question; empty where none did.
    exceptions : dict of int to Exception
        By instance, for those that failed with one.
    any_failed : bool
        Whether some instance failed.
    best_x_cf : Tensor of shape (n, *shape)
        The best candidates.
    """

    def __init__(self, x: Tensor) -> None:
        n = len(x)
        self.best_x_cf = x.clone()
        self._best_merit = torch.full((n,), -torch.inf, dtype=torch.float64)
        self.state: Array = np.full(n, State.PENDING, dtype=np.int8)
        self.reason = [""] * n
        self.shortage = [""] * n
        self.exceptions: dict[int, Exception] = {}
        self.any_failed = False

    def is_in(self, state: State) -> Array:
        """Return the mask of the instances in a state."""
        return np.asarray(self.state == state)

    def pending(self) -> Tensor:
        """Return the mask of the instances that are to be worked on."""
        return torch.from_numpy(self.is_in(State.PENDING))

    def finish(self, rows: Tensor) -> None:
        """Mark instances that need no search."""
        for row in rows.tolist():
            if self.state[row] == State.PENDING:
                self.state[row] = State.DONE

    def fail(
        self,
        rows: Tensor,
        reason: str,
        exception: Exception | None = None,
    ) -> None:
        """Mark instances whose work broke down; the first reason is kept, the others go on."""
        for row in rows.tolist():
            if self.state[row] == State.FAILED:
                continue
            self.any_failed = True
            self.state[row] = State.FAILED
            self.reason[row] = reason
            if exception is not None:
                self.exceptions[row] = exception

    def refuse(self, rows: Tensor, reason: str) -> None:
        """Mark instances for which not all that was asked can be done; the first reason is kept."""
        for row in rows.tolist():
            if self.state[row] in (State.FAILED, State.DONE):
                continue
            self.reason[row] = self.reason[row] or reason
            if self.state[row] == State.PENDING:
                self.state[row] = State.REFUSED

    def exhaust(self, rows: Tensor, why: str) -> None:
        """Mark instances that were denied a question for lack of budget; `why`: of what."""
        for row in rows.unique().tolist():
            self.shortage[row] = self.shortage[row] or why
            if self.state[row] in (State.PENDING, State.REFUSED):
                self.state[row] = State.EXHAUSTED

    def remember(
        self,
        x_cf: Tensor,
        row: Tensor,
        x: Tensor,
        verdict: Verdict,
        target: Tensor,
    ) -> None:
        """Keep candidates that are better than the best of their instance so far.

        Parameters
        ----------
        x_cf : Tensor of shape (m, *shape)
            Candidates.
        row : Tensor of shape (m,)
            Instance of each candidate.
        x : Tensor of shape (m, *shape)
            The instances themselves.
        verdict : Verdict
            What the model says of the candidates.
        target : Tensor of shape (m,)
            Class wanted for each.
        """
        closeness = lead(verdict.score, target).sigmoid()
        reached = verdict.label == target
        merit = torch.where(reached, 1 + _smallness(x_cf, x), closeness)
        self._keep_best(x_cf, row, merit)

    def remember_accepted(
        self,
        x_cf: Tensor,
        row: Tensor,
        x: Tensor,
    ) -> None:
        """Prefer candidates that passed every test to all that did not.

        Parameters
        ----------
        x_cf : Tensor of shape (m, *shape)
            Candidates.
        row : Tensor of shape (m,)
            Instance of each candidate.
        x : Tensor of shape (m, *shape)
            The instances themselves.
        """
        self._keep_best(x_cf, row, 2 + _smallness(x_cf, x))

    def _keep_best(self, x_cf: Tensor, row: Tensor, merit: Tensor) -> None:
        merit = merit.cpu()
        row = row.cpu()
        best = torch.full_like(self._best_merit, -torch.inf)
        best = best.scatter_reduce(0, row, merit, "amax")
        is_best = merit == best[row]
        is_better = merit > self._best_merit[row]
        winners = (is_best & is_better).nonzero().flatten()
        self._best_merit = torch.maximum(self._best_merit, best)
        improved = row[winners].to(self.best_x_cf.device)
        self.best_x_cf[improved] = x_cf[winners.to(x_cf.device)]


def _smallness(x_cf: Tensor, x: Tensor) -> Tensor:
    """Return 1 / (1 + d), where d is the mean of |x' - x|."""
    distance = (x_cf - x).double().flatten(1).abs().mean(1)
    return 1 / (1 + distance)
