"""The first question of a request: what the model says of the instances themselves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from ..models.classifier import Array, Classifier
from ..models.verdict import Verdict
from ..numerics import row_seeds
from .acceptance import accepts
from .budget import Meter
from .instances import Instances
from .isolation import describe_exception, gather_verdicts, isolate
from .limits import Limits
from .oracle import Oracle, Question
from .request import Request

#: decimal places of the coordinates of a table that the seed of a row depends on
SEED_DECIMALS = 6

#: chooses target classes (columns) from instances and the model's verdict on them
ChooseTarget = Callable[[Tensor, Verdict], Tensor]


def open_request(
    request: Request,
    classifier: Classifier,
    instances: Instances,
    targets: Array | ChooseTarget,
    feasible_set: Limits | None,
    meter: Meter,
    progress: Callable[[int], None] = lambda finished: None,
) -> Oracle:
    """Ask the model about the instances themselves and set the state of each.

    Parameters
    ----------
    request : Request
        The options of the call.
    classifier : Classifier
        The model.
    instances : Instances
        What is to be explained.
    targets : array of int or function
        Columns wanted, or a function that chooses them from instances and verdict.
    feasible_set : Limits or None
        The constraints.
    meter : Meter
        The budget of these instances.
    progress : function of int, optional
        Called with the number of instances just finished.

    Returns
    -------
    Oracle
        Ready for the search. Instances that the model could not answer for have failed, those in
        their target class at the confidence asked for (and for all members of the committee) are
        done, and those for which the constraints allow no change at all are refused.
    """
    x = classifier.as_input(instances.values)
    with meter.deadline.timing(classifier, len(x)):
        answers = isolate(
            lambda rows: _first_verdict(classifier, instances, x, rows),
            len(x),
            request.on_error,
        )
    before = gather_verdicts(
        answers.results,
        len(x),
        len(classifier.classes),
        x.device,
    )
    target = targets(x, before) if callable(targets) else torch.from_numpy(targets).to(x.device)
    seeds = row_seeds(_seeding(instances), request.seed, target.cpu().numpy())
    question = Question(x, target, before, seeds, instances.modality, instances.space)
    oracle = Oracle(classifier, question, request, feasible_set, meter, progress)
    states = oracle.states
    for row, error in answers.exceptions.items():
        states.fail(torch.tensor([row]), describe_exception(error), error)
    unusable = ~before.is_finite()
    if bool(unusable.any()):
        reason = "the model returned NaN or inf for the instance itself"
        states.fail(unusable.nonzero().flatten(), reason)
    done = accepts(before, target, request.goal, margin=-torch.inf)
    states.finish(done.nonzero().flatten())
    if feasible_set is not None:
        for row, reason in enumerate(feasible_set.impossible(x)):
            if reason:
                states.refuse(torch.tensor([row]), reason)
    return oracle


def _first_verdict(
    classifier: Classifier,
    instances: Instances,
    x: Tensor,
    rows: Tensor,
) -> Verdict:
    """Ask about instances as they were given: those of a table may lie off its schema's grids."""
    if instances.table is None:
        return classifier.verdict(x[rows])
    return classifier.final_verdict(instances.table.codes[rows.cpu().numpy()])


def _seeding(instances: Instances) -> Array:
    """Return the numbers that seeds depend on.

    Those of a table are rounded, so that units do not matter, and without those that stand for
    fixed values, which depend on what was read before.
    """
    if instances.space is None:
        return instances.values
    rounded = instances.values.round(SEED_DECIMALS) + 0.0  # without negative zeros
    return np.where(instances.space.is_fixed.numpy(), 0.0, rounded)
