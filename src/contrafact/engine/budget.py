"""Budget: how many model rows and seconds a request may cost, and the meter that enforces it."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor

from ..numerics import occurrence
from ..validation import Integer, Nothing, Real, check_parameters

RULES = {
    "calls": Nothing() | Integer(at_least=1),
    "seconds": Nothing() | Real(above=0, finite=False),
}


@dataclass(frozen=True)
class Budget:
    """Limit the cost of one call of `explain`.

    Every method keeps its best attempt and stops in time.

    Parameters
    ----------
    calls : int, optional
        Rows the model may be asked about, all instances together. Every instance may spend the
        same share, so that its result does not depend on the other instances.
    seconds : float, optional
        Wall time in seconds. A model batch that has started is finished.

    Examples
    --------
    >>> Budget(calls=2_000, seconds=10.0)
    Budget(calls=2000, seconds=10.0)
    """

    calls: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        check_parameters("Budget", RULES, vars(self))


class Meter:
    """Count model rows per instance and decide which instances may still ask.

    Parameters
    ----------
    n : int
        Number of instances.
    allowance : Tensor of shape (n,), optional
        Model rows each instance may spend during the search; None: no limit.
    deadline : float, optional
        Value of `time.perf_counter` from which on nobody may ask; None: no deadline.
    """

    def __init__(
        self,
        n: int,
        allowance: Tensor | None = None,
        deadline: float | None = None,
    ) -> None:
        self.allowance = allowance
        self.deadline = deadline
        self.spent = torch.zeros(n, dtype=torch.long)
        self.limited = allowance is not None or deadline is not None

    def take(self, rows: Tensor) -> Meter:
        """Return a fresh meter for some instances, with what is left of their allowance."""
        left = None
        if self.allowance is not None:
            left = self.allowance[rows] - self.spent[rows]
        return Meter(len(rows), left, self.deadline)

    def charge(self, rows: Tensor, cost: int = 1) -> None:
        """Charge `cost` model rows for every entry of `rows`.

        Parameters
        ----------
        rows : Tensor of shape (m,)
            Instance of each entry; an instance may occur several times.
        cost : int, default=1
            Model rows per entry.

        Raises
        ------
        RuntimeError
            If an instance exceeds its allowance; nothing is charged then.
        """
        spent = self.spent + cost * torch.bincount(rows.cpu(), minlength=len(self.spent))
        if self.allowance is not None and bool((spent > self.allowance).any()):
            raise RuntimeError(
                "A method asked the model beyond its budget; check Tasks.affords before asking."
            )
        self.spent = spent

    def charge_share(self, rows: Tensor, cost: int = 1) -> None:
        """Reduce the allowance for answers that another instance paid for.

        Such an answer costs no model row. It counts toward the allowance all the same: otherwise
        how far an instance gets would depend on the other instances of the request.
        """
        if self.allowance is not None:
            count = torch.bincount(rows, minlength=len(self.spent))
            self.allowance = self.allowance - cost * count

    def can_pay(self, rows: Tensor, cost: int) -> Tensor:
        """Find the entries whose instance can pay `cost` more model rows.

        Parameters
        ----------
        rows : Tensor of shape (m,)
            Instance of each entry; one that occurs twice pays twice.
        cost : int
            Model rows per entry.

        Returns
        -------
        Tensor of bool, shape (m,)
            True for entries that can pay.
        """
        rows = rows.cpu()
        if self.deadline is not None and time.perf_counter() >= self.deadline:
            return torch.zeros(len(rows), dtype=torch.bool)
        if self.allowance is None:
            return torch.ones(len(rows), dtype=torch.bool)
        needed = cost * (1 + occurrence(rows))
        return self.spent[rows] + needed <= self.allowance[rows]
