"""Budget: how many model rows and seconds a request may cost, and the meter that enforces it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..numerics import occurrence
from ..validation import Integer, Nothing, OneOf, Real, check_parameters
from .deadline import Deadline

#: model rows that a counterfactual may cost where the request does not say
DEFAULT_CALLS_PER_COUNTERFACTUAL = 2_000
#: why a search stopped that had no model rows left
BUDGET_SPENT = "the budget ran out"

RULES = {
    "calls": Nothing() | Integer(at_least=1, at_most=10**18) | OneOf(math.inf),
    "seconds": Nothing() | Real(above=0, finite=False),
}


@dataclass(frozen=True)
class Budget:
    """Limit the cost of one call of `explain`.

    Every method keeps its best attempt and stops in time.

    Parameters
    ----------
    calls : int or math.inf, optional
        Rows the model may be asked about, all instances together. Every instance may spend the
        same share, so that its result does not depend on the other instances. None: 2,000 for each
        counterfactual asked for; `math.inf`: no limit.
    seconds : float, optional
        Wall time in seconds. No model batch is started after it, and batches get smaller toward
        its end; the model's class of every instance and of every counterfactual is asked for in
        any case.

    Examples
    --------
    >>> Budget(calls=2_000, seconds=10.0)
    Budget(calls=2000, seconds=10.0)
    """

    calls: int | float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        check_parameters("Budget", RULES, vars(self))

    def share(self, n: int, k: int) -> int | None:
        """Divide the budget among the instances.

        Parameters
        ----------
        n : int
            Number of instances.
        k : int
            Counterfactuals wanted for each.

        Returns
        -------
        int or None
            Model rows that each instance may cost; None: no limit.
        """
        if self.calls is None:
            return k * DEFAULT_CALLS_PER_COUNTERFACTUAL
        return None if math.isinf(self.calls) else int(self.calls) // max(n, 1)

    def describe_spent(self, k: int) -> str:
        """Say why a search stopped that had no model rows left.

        Parameters
        ----------
        k : int
            Counterfactuals wanted for each instance.

        Returns
        -------
        str
            The reason, for the message of a row.
        """
        if self.calls is not None:
            return BUDGET_SPENT
        default = k * DEFAULT_CALLS_PER_COUNTERFACTUAL
        return (
            f"stopped at the default budget of {default:,} model rows; "
            "budget=Budget(calls=...) allows more"
        )


class Meter:
    """Count model rows per instance and decide which instances may still ask.

    Parameters
    ----------
    n : int
        Number of instances.
    allowance : Tensor of shape (n,), optional
        Model rows each instance may spend during the search; None: no limit.
    deadline : Deadline, optional
        From when on nobody may ask; default: never, until it is made to expire.
    why_spent : str
        What to say of an instance that has no model rows left.
    """

    def __init__(
        self,
        n: int,
        allowance: Tensor | None = None,
        deadline: Deadline | None = None,
        why_spent: str = BUDGET_SPENT,
    ) -> None:
        self.allowance = allowance
        self.deadline = deadline or Deadline()
        self.why_spent = why_spent
        self.spent = torch.zeros(n, dtype=torch.long)

    @property
    def limited(self) -> bool:
        """Whether there is anything to look at before asking."""
        return self.allowance is not None or self.deadline.in_force

    @property
    def shortage(self) -> str:
        """Why a question is denied now."""
        return self.deadline.reason if self.deadline.expired else self.why_spent

    def take(self, rows: Tensor) -> Meter:
        """Return a fresh meter for some instances, with what is left of their allowance."""
        left = None
        if self.allowance is not None:
            left = self.allowance[rows] - self.spent[rows]
        return Meter(len(rows), left, self.deadline, self.why_spent)

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
        # NumPy: these arrays are small and on the host, where torch takes longer to start.
        count = np.bincount(rows.cpu().numpy(), minlength=len(self.spent))
        spent = self.spent.numpy() + cost * count
        if self.allowance is not None and (spent > self.allowance.numpy()).any():
            raise RuntimeError(
                "A method asked the model beyond its budget; check Tasks.affords before asking."
            )
        self.spent = torch.from_numpy(spent)

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
        if self.deadline.expired:
            return torch.zeros(len(rows), dtype=torch.bool)
        if self.allowance is None:
            return torch.ones(len(rows), dtype=torch.bool)
        row = rows.numpy()
        left = self.allowance.numpy()[row] - self.spent.numpy()[row]
        # Each instance once, as in most questions.
        if len(row) == 1 or (row[1:] > row[:-1]).all():
            return torch.from_numpy(left >= cost)
        return torch.from_numpy(left) >= cost * (1 + occurrence(rows))
