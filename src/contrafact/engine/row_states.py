"""What has become of each instance of a request: its state, the reason, its best candidate."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..models.classifier import Array
from ..models.verdict import Verdict, lead

#: numbers of candidates that are held before the best of them is found
MOST_HELD = 2**20


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
    remark : list of str
        What else there is to say of the counterfactuals, whatever became of them.
    exceptions : dict of int to Exception
        By instance, for those that failed with one.
    any_failed : bool
        Whether some instance failed.
    """

    def __init__(self, x: Tensor) -> None:
        n = len(x)
        self._best_x_cf = x.clone()
        self._best_merit: Array = np.full(n, -np.inf)
        self._tried: list[_Tried] = []
        self._held = 0
        self.state: Array = np.full(n, State.PENDING, dtype=np.int8)
        self.reason = [""] * n
        self.shortage = [""] * n
        self.remark = [""] * n
        self.exceptions: dict[int, Exception] = {}
        self.any_failed = False

    @property
    def best_x_cf(self) -> Tensor:
        """The best candidate of each instance so far, (n, *shape)."""
        self._settle()
        return self._best_x_cf

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
        self._tried.append(_Tried(x_cf.detach().clone(), row, x, verdict, target))
        self._held += x_cf.numel() + x.numel()
        if self._held > MOST_HELD:
            self._settle()

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
        self._settle()
        self._keep_best(x_cf, row, 2 + _smallness(x_cf, x))

    def _settle(self) -> None:
        """Find the best of all candidates that were tried since the last time.

        Together, since for one instance the arithmetic takes less time than its start.
        """
        if not self._tried:
            return
        tried, self._tried, self._held = _Tried.concat(self._tried), [], 0
        closeness = lead(tried.verdict.score, tried.target).sigmoid()
        reached = tried.verdict.label == tried.target
        merit = torch.where(reached, 1 + _smallness(tried.x_cf, tried.x), closeness)
        self._keep_best(tried.x_cf, tried.row, merit)

    def _keep_best(self, x_cf: Tensor, row: Tensor, merit: Tensor) -> None:
        value = merit.detach().cpu().numpy()
        owner = row.cpu().numpy()
        better = np.flatnonzero(value > self._best_merit[owner])
        if len(better) == 0:
            return
        # Of each instance the best one comes first, of equal ones the one that was tried first.
        better = better[np.lexsort((-value[better], owner[better]))]
        winners = better[np.append(True, owner[better[1:]] != owner[better[:-1]])]
        self._best_merit[owner[winners]] = value[winners]
        device = x_cf.device
        improved = torch.from_numpy(owner[winners]).to(device)
        self._best_x_cf[improved] = x_cf.detach()[torch.from_numpy(winners).to(device)]


class _Tried(NamedTuple):
    """Candidates that the model was asked about; fields as the parameters of `remember`."""

    x_cf: Tensor
    row: Tensor
    x: Tensor
    verdict: Verdict
    target: Tensor

    @classmethod
    def concat(cls, parts: Sequence[_Tried]) -> _Tried:
        """Join candidates in the order in which they were tried."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            torch.cat([part.x_cf for part in parts]),
            torch.cat([part.row for part in parts]),
            torch.cat([part.x for part in parts]),
            Verdict.concat([part.verdict for part in parts]),
            torch.cat([part.target for part in parts]),
        )


def _smallness(x_cf: Tensor, x: Tensor) -> Tensor:
    """Return 1 / (1 + d), where d is the mean of |x' - x|."""
    difference = (x_cf - x).flatten(1)
    total = torch.linalg.vector_norm(difference, 1, dim=1, dtype=torch.float64)
    smallness: Tensor = 1 / (1 + total / difference.shape[1])
    return smallness
