"""Request: what was asked of `explain`, checked before any work starts."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, Literal

import torch

from ..models.classifier import Classifier
from ..models.committee import Committee
from ..models.tabular import Tabular
from ..validation import (
    Boolean,
    Instance,
    Integer,
    Nothing,
    OneOf,
    Real,
    Satisfies,
    check_parameters,
)
from .budget import Budget, Meter
from .constraints import KINDS, Constraints
from .deadline import Deadline
from .limits import Limits
from .table_constraints import table_limits

OnError = Literal["row", "raise"]
Refinement = Literal["minimal", "believable"]

#: largest k; every counterfactual wanted takes memory from the start
MOST_PER_INSTANCE = 10_000

SEED = Satisfies(
    Integer(at_least=-(2**63), below=2**63).accepts,
    "a whole number of at most 64 bits",
)
RULES = {
    "constraints": Nothing() | Instance(Constraints),
    "k": Integer(at_least=1, at_most=MOST_PER_INSTANCE),
    "budget": Nothing() | Instance(Budget),
    "refine": Boolean() | OneOf("minimal", "believable"),
    "confidence": Nothing() | Real(above=0, below=1),
    "committee": Nothing() | Instance(Committee),
    "on_error": OneOf("row", "raise"),
    "random_state": Nothing() | SEED,
    "progress": Boolean(),
}


@dataclass(frozen=True)
class Request:
    """Hold the options of one call of `explain`; never changed once made.

    Parameters
    ----------
    constraints : Constraints, optional
        Limits on the counterfactuals.
    k : int, default=1
        Counterfactuals wanted per instance.
    budget : Budget, optional
        Limits on the cost; None: 2,000 model rows for each counterfactual.
    refine : bool, "minimal" or "believable", default=False
        Whether and how edits are made smaller after the search; True is "minimal".
    confidence : float, optional
        Least P(target) to aim for; None asks for the decision alone.
    committee : Committee, optional
        Models that have to agree with the one that is explained.
    on_error : {"row", "raise"}, default="row"
        Whether an exception ends as the status of its row or is raised.
    seed : int, default=0
        Seed of all random numbers.
    """

    constraints: Constraints | None = None
    k: int = 1
    budget: Budget | None = None
    refine: bool | Refinement = False
    confidence: float | None = None
    committee: Committee | None = None
    on_error: OnError = "row"
    seed: int = 0

    def __post_init__(self) -> None:
        # Users call the seed random_state.
        rules = {**RULES, "random_state": SEED}
        check_parameters("explain", rules, {**vars(self), "random_state": self.seed})

    @property
    def goal(self) -> float:
        """Least P(target) to aim for; 0 where the decision alone is asked for."""
        return 0.0 if self.confidence is None else float(self.confidence)

    @property
    def refinement(self) -> Refinement | None:
        """The form of refinement; None where none is asked for."""
        if isinstance(self.refine, str):
            return self.refine
        return "minimal" if self.refine else None

    def check_supported(self, supported: frozenset[str] = KINDS) -> None:
        """Raise ValueError if a kind of constraint in force is not among those supported."""
        if self.constraints is None:
            return
        missing = self.constraints.kinds - supported
        if missing:
            raise ValueError(
                f"This method cannot keep {', '.join(sorted(missing))}; "
                f"it supports {', '.join(sorted(supported)) or 'no constraints'}."
            )

    def feasible_set(self, shape: tuple[int, ...], classifier: Classifier) -> Limits | None:
        """Express the constraints, and the schema of a table, as limits on candidates.

        Parameters
        ----------
        shape : tuple of int
            Shape of one instance.
        classifier : Classifier
            The model, whose precision and device are used.

        Returns
        -------
        Limits or None
            None where there are no constraints; a table always has those of its schema.
        """
        if isinstance(classifier, Tabular):
            return table_limits(self.constraints, classifier.space)
        if self.constraints is None:
            return None
        return self.constraints.resolve(shape, classifier.dtype, classifier.device)

    def meter(
        self,
        n: int,
        rows_per_verdict: int,
        start: float | None = None,
    ) -> Meter:
        """Make the meter of a request.

        Every instance may spend the same share of the budget, less what the first and the last
        question about it cost.

        Parameters
        ----------
        n : int
            Number of instances.
        rows_per_verdict : int
            Model rows that the class of one instance costs.
        start : float, optional
            Value of `time.perf_counter` when the request began; default: now.

        Returns
        -------
        Meter
            A meter that has counted nothing yet.
        """
        budget = self.budget or Budget()
        deadline = Deadline()
        if budget.seconds is not None:
            deadline = Deadline((time.perf_counter() if start is None else start) + budget.seconds)
        share = budget.share(n, self.k)
        if share is None:
            return Meter(n, None, deadline)
        reserved = rows_per_verdict * (1 + self.k)
        if n and share < reserved:
            raise ValueError(
                f"budget.calls={budget.calls} is too small for {n} instances with k={self.k}: "
                f"asking for each one's class before and after alone takes {n * reserved}."
            )
        allowance = torch.full((n,), share - reserved)
        return Meter(n, allowance, deadline, budget.describe_spent(self.k))

    def describe(self) -> dict[str, Any]:
        """Return the options as plain values, for the provenance of a result."""
        budget: dict[str, Any] | None = None
        if self.budget is not None:
            budget = {"calls": self.budget.calls, "seconds": self.budget.seconds}
            if self.budget.calls == math.inf:
                budget["calls"] = "unlimited"  # a file of results has no number for it
        return {
            "k": self.k,
            "refine": self.refinement or False,
            "confidence": self.confidence,
            "committee": None if self.committee is None else repr(self.committee),
            "constraints": sorted(self.constraints.kinds) if self.constraints else [],
            "budget": budget,
        }
