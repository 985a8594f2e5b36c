"""Explain a part of the instances of a call: the first question, the search, the refinement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ...engine import Candidates, Request, Tasks
from ...engine.assembly import Part
from ...engine.budget import Meter
from ...engine.instances import Instances
from ...engine.isolation import describe_exception, isolate
from ...engine.limits import Limits
from ...engine.opening import open_request
from ...models.classifier import Array
from ...search.refinement import refiner
from .options import search_options

if TYPE_CHECKING:
    from .explainer import Explainer


@dataclass(frozen=True)
class Asked:
    """What a call of `explain` asks for some instances.

    Parameters
    ----------
    request : Request
        The options.
    instances : Instances
        What is to be explained.
    targets : array of int or None
        Columns wanted; None: the method's choice.
    limits : Limits or None
        The constraints.
    meter : Meter
        The budget of these instances.
    advance : function of int
        Called with the number of instances just finished.
    """

    request: Request
    instances: Instances
    targets: Array | None
    limits: Limits | None
    meter: Meter
    advance: Callable[[int], None]

    def take(self, rows: Array) -> Asked:
        """Return what is asked for some of the instances."""
        numbers = torch.from_numpy(rows)
        return replace(
            self,
            instances=self.instances.take(rows),
            targets=None if self.targets is None else self.targets[rows],
            limits=None if self.limits is None else self.limits.take(numbers),
            meter=self.meter.take(numbers),
        )


def explain_part(explainer: Explainer, asked: Asked) -> Part:
    """Explain some instances; one whose work raises does not cost the others their result.

    Parameters
    ----------
    explainer : Explainer
        A fitted method.
    asked : Asked
        The instances and what is wanted for them.

    Returns
    -------
    Part
        What was found, before the model is asked a last time.
    """
    request = asked.request
    oracle = open_request(
        request,
        explainer.classifier_,
        asked.instances,
        explainer._default_target if asked.targets is None else asked.targets,
        asked.limits,
        asked.meter,
        asked.advance,
    )
    searched = oracle.states.pending().to(oracle.question.x.device)
    pending = searched.nonzero().flatten()

    def search(tasks: Tasks) -> Candidates:
        candidates = explainer._explain(explainer._prepare(tasks))
        _check_info(explainer, candidates)
        if request.refinement is None:
            return candidates
        refine = refiner(request.refinement, explainer._real_differences(request))
        return replace(candidates, x=refine(candidates.tasks, candidates.x))

    def work(positions: Tensor) -> Candidates:
        tasks = Tasks.start(oracle, pending[positions])
        how = explainer._option_search()
        if tasks.space is None or tasks.k == 1 or how == "own":
            return search(tasks)
        return search_options(search, tasks, together=how == "together")

    done = isolate(work, len(pending), request.on_error)
    for position, error in done.exceptions.items():
        row = pending[position : position + 1]
        oracle.states.fail(row, describe_exception(error), error)
    found = [candidates for _, candidates in done.results]
    if not found:
        nothing = Tasks.start(oracle, pending[:0])
        found = [nothing.candidates(nothing.x)]
    return Part(oracle, asked.instances, searched, Candidates.concat(found))


def _check_info(explainer: Explainer, candidates: Candidates) -> None:
    """Check that a method declares what it reports."""
    undeclared = set(candidates.info) - set(explainer.info_keys)
    if undeclared:
        raise TypeError(
            f"{type(explainer).__name__} reports {', '.join(sorted(undeclared))} in info but does "
            "not declare it in info_keys."
        )
