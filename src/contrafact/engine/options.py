"""The options of one call of `explain`, checked before any work starts."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import torch

from ..models.classifier import Classifier
from .budget import Budget, Meter
from .constraints import Constraints, FeasibleSet


@dataclass(frozen=True)
class Options:
    """What was asked for, besides instances and targets."""

    constraints: Constraints | None
    k: int
    budget: Budget | None
    refine: bool
    confidence: float | None
    seed: int

    @classmethod
    def checked(
        cls,
        constraints: Constraints | None,
        k: int,
        budget: Budget | None,
        refine: bool,
        confidence: float | None,
        random_state: int | None,
        supported: frozenset[str],
    ) -> Options:
        if constraints is not None and not isinstance(constraints, Constraints):
            raise TypeError(
                f"constraints must be a Constraints object, got {type(constraints).__name__}."
            )
        if constraints is not None and constraints.kinds - supported:
            raise ValueError(
                f"This method cannot keep {', '.join(sorted(constraints.kinds - supported))}; "
                f"it supports {', '.join(sorted(supported)) or 'no constraints'}."
            )
        if isinstance(k, bool) or not isinstance(k, numbers.Integral) or k < 1:
            raise ValueError(f"k must be a whole number of at least 1, got {k!r}.")
        if budget is not None and not isinstance(budget, Budget):
            raise TypeError(f"budget must be a Budget object, got {type(budget).__name__}.")
        if confidence is not None and not 0 < confidence < 1:
            raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence!r}.")
        if random_state is not None and not isinstance(random_state, numbers.Integral):
            raise TypeError(
                f"random_state must be an int or None, got {type(random_state).__name__}."
            )
        return cls(constraints, int(k), budget, bool(refine), confidence, int(random_state or 0))

    def feasible(self, shape: tuple[int, ...], classifier: Classifier) -> FeasibleSet | None:
        """The constraints as tensors the model's instances can be held against."""
        if self.constraints is None:
            return None
        return self.constraints.resolve(shape, classifier.dtype, classifier.device)

    def meter(self, n: int, rows_per_verdict: int, start: float) -> Meter:
        """Counts for n instances; each may spend its share of the calls, less the first and last question."""
        budget = self.budget or Budget()
        deadline = None if budget.seconds is None else start + budget.seconds
        if budget.calls is None:
            return Meter(n, None, deadline)
        share = budget.calls // max(n, 1)
        reserved = rows_per_verdict * (1 + self.k)
        if n and share < reserved:
            raise ValueError(
                f"budget.calls={budget.calls} is too small for {n} instances with k={self.k}: asking for "
                f"each one's class before and after alone takes {n * reserved}."
            )
        return Meter(n, torch.full((n,), share - reserved), deadline)

    def describe(self) -> dict[str, Any]:
        """For the provenance: plain values only."""
        return {
            "k": self.k,
            "refine": self.refine,
            "confidence": self.confidence,
            "constraints": sorted(self.constraints.kinds) if self.constraints else [],
            "budget": None
            if self.budget is None
            else {"calls": self.budget.calls, "seconds": self.budget.seconds},
        }
