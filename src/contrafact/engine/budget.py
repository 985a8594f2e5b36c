"""Budget: how many model rows and seconds a request may cost, and the meter that keeps to it."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Budget:
    """A limit on one call of `explain`; every method keeps its best attempt and stops in time.

    Parameters
    ----------
    calls : int, optional
        Rows the model may be asked about, all instances together. Every instance may spend the same share,
        so that its result does not depend on its neighbors.
    seconds : float, optional
        Wall time. Model batches under way are finished.

    Examples
    --------
    >>> Budget(calls=2_000, seconds=10.0)
    Budget(calls=2000, seconds=10.0)
    """

    calls: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.calls is not None and self.calls < 1:
            raise ValueError(f"budget.calls must be at least 1, got {self.calls}.")
        if self.seconds is not None and not self.seconds > 0:
            raise ValueError(f"budget.seconds must be positive, got {self.seconds}.")


class Meter:
    """Counts model rows per instance and says which instances may still ask.

    `allowance` is what each instance may spend while searching; `exhausted` marks those that were refused.
    """

    def __init__(
        self, n: int, allowance: Tensor | None = None, deadline: float | None = None
    ) -> None:
        self.allowance, self.deadline = allowance, deadline
        self.spent = torch.zeros(n, dtype=torch.long)
        self.exhausted = torch.zeros(n, dtype=torch.bool)

    def take(self, rows: Tensor) -> Meter:
        """A fresh meter for some rows, with what is left of their allowance."""
        left = None if self.allowance is None else self.allowance[rows] - self.spent[rows]
        return Meter(len(rows), left, self.deadline)

    def charge(self, rows: Tensor, cost: int = 1) -> None:
        """`cost` model rows for every entry of `rows`; refused, and nothing charged, beyond the allowance."""
        spent = self.spent + cost * torch.bincount(rows.cpu(), minlength=len(self.spent))
        if self.allowance is not None and bool((spent > self.allowance).any()):
            raise RuntimeError(
                "A method asked the model beyond its budget; ask Batch.affords first."
            )
        self.spent = spent

    def can_pay(self, rows: Tensor, cost: int) -> Tensor:
        """Mask over `rows`: which can pay `cost` more model rows, a row that occurs twice paying twice.

        The others are marked exhausted.
        """
        rows = rows.cpu()
        if self.deadline is not None and time.perf_counter() >= self.deadline:
            able = torch.zeros(len(rows), dtype=torch.bool)
        elif self.allowance is None:
            return torch.ones(len(rows), dtype=torch.bool)
        else:
            able = self.spent[rows] + cost * (1 + occurrence(rows)) <= self.allowance[rows]
        self.exhausted[rows[~able]] = True
        return able


def occurrence(rows: Tensor) -> Tensor:
    """For each entry, how often its value occurs before it."""
    ordered, order = rows.sort(stable=True)
    count = torch.empty_like(rows)
    count[order] = torch.arange(len(rows)) - torch.searchsorted(ordered, ordered)
    return count
