"""Merged explanations: requests that wait with the same options are explained in one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..engine import Budget, Constraints, Counterfactuals
from ..engine.request import Refinement
from ..explainers.support.explainer import Explainer
from ..models.classifier import Array
from .merging import MergingThread


@dataclass(frozen=True)
class ExplainOptions:
    """Hold what is asked of `explain` besides instances and targets.

    Parameters
    ----------
    constraints : Constraints or None
        Limits on the counterfactuals.
    words : str
        The limits as they were given; requests are merged where these are equal.
    k : int
        Counterfactuals per instance.
    confidence : float or None
        Least P(target) to aim for.
    refine : bool, "minimal" or "believable"
        How changes are made smaller after the search.
    calls : int or None
        Model rows for all instances of the request together.
    seconds : float
        Time of the search.
    seed : int
        Seed of all random numbers.
    """

    constraints: Constraints | None = None
    words: str = ""
    k: int = 1
    confidence: float | None = None
    refine: bool | Refinement = False
    calls: int | None = None
    seconds: float | None = None
    seed: int = 0

    def share(self, n: int) -> int | None:
        """Return the model rows of each of n instances; None where the default is asked for."""
        return None if self.calls is None else self.calls // max(n, 1)


@dataclass(frozen=True)
class Asked:
    """Hold the instances of a request, their targets (None: the method's choice) and options."""

    x: Array
    target: tuple[Any, ...] | None
    options: ExplainOptions

    @property
    def key(self) -> tuple[Any, ...]:
        """What has to be equal in requests that are explained in one call.

        The budget counts by instance: an instance may then spend what it could in a call alone.
        """
        one = replace(self.options, constraints=None, calls=self.options.share(len(self.x)))
        return (self.target is None, one)


class ExplanationMerger:
    """Explain for many who ask at once, with one method.

    A row's result does not depend on the other rows of a call: its random numbers follow from its
    values, and its share of the budget is its own. So every request gets the answer of a lone call.

    Parameters
    ----------
    make_explainer : function
        Returns the fitted method; called in the thread of the merger, by the first request.
    as_input : function of an array
        Returns instances as `explain` takes them.
    max_rows : int
        Instances that are explained in one call, and at most in one request.
    max_waiting : int
        Requests that may wait.
    patience : float
        Seconds after which a request without an answer is refused.
    on_batch : function of two ints
        Called after every call of `explain` with its number of requests and of instances.
    """

    def __init__(
        self,
        make_explainer: Callable[[], Explainer],
        as_input: Callable[[Array], Any],
        *,
        max_rows: int,
        max_waiting: int,
        patience: float,
        on_batch: Callable[[int, int], None],
    ) -> None:
        self._make_explainer = make_explainer
        self._explainer: Explainer | None = None
        self._as_input = as_input
        self._on_batch = on_batch
        self._thread: MergingThread[Asked, Counterfactuals] = MergingThread(
            "The search",
            self._explain,
            max_size=max_rows,
            max_waiting=max_waiting,
            patience=patience,
        )

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return self._thread.waiting

    async def explain(self, asked: Asked) -> Counterfactuals:
        """Explain the instances of one request, together with whatever else waits.

        Parameters
        ----------
        asked : Asked
            The request.

        Returns
        -------
        Counterfactuals
            As `Explainer.explain` gives for this request alone.
        """
        return await self._thread.ask(asked, asked.key, len(asked.x))

    def close(self) -> None:
        """Refuse what waits and end the thread."""
        self._thread.close()

    def _explain(self, requests: list[Asked]) -> list[Counterfactuals | Exception]:
        """Explain the instances of several requests in one call."""
        if self._explainer is None:
            self._explainer = self._make_explainer()
        options = requests[0].options
        sizes = [len(asked.x) for asked in requests]
        share = options.share(sizes[0])
        result = self._explainer.explain(
            self._as_input(np.concatenate([asked.x for asked in requests])),
            _joined_targets(requests),
            constraints=options.constraints,
            k=options.k,
            confidence=options.confidence,
            refine=options.refine,
            budget=Budget(
                calls=None if share is None else share * sum(sizes),
                seconds=options.seconds,
            ),
            random_state=options.seed,
        )
        self._on_batch(len(requests), sum(sizes))
        return _split(result, sizes)


def _joined_targets(requests: list[Asked]) -> list[Any] | None:
    """Return one target per instance; None where the method chooses."""
    if requests[0].target is None:
        return None
    return [label for asked in requests for label in asked.target or ()]


def _split(result: Counterfactuals, sizes: list[int]) -> list[Counterfactuals | Exception]:
    """Divide a result among the requests; `source` counts within each."""
    parts: list[Counterfactuals | Exception] = []
    start = 0
    for size in sizes:
        part = result[(result.source >= start) & (result.source < start + size)]
        exceptions = {
            row - start: error
            for row, error in result.exceptions.items()
            if start <= row < start + size
        }
        parts.append(replace(part, source=part.source - start, exceptions=exceptions))
        start += size
    return parts
