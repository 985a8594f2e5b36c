"""Opening a request: the model is asked about the instances, targets are chosen, seeds derived."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..models.classifier import Array, Classifier, Reshaped, Verdict, as_classifier
from ..numerics import row_seeds
from .budget import Meter
from .feasible_set import FeasibleSet
from .instances import Instances
from .isolation import describe_exception, gather_verdicts, isolate
from .oracle import Oracle, Question
from .request import Request
from .verdicts import is_finite, target_value

#: chooses target classes (columns) from instances and the model's verdict on them
ChooseTarget = Callable[[Tensor, Verdict], Tensor]


def wrap_model(model: Any, instances: Instances) -> Classifier:
    """Wrap a model as a Classifier that takes instances as the engine holds them.

    Parameters
    ----------
    model : object
        Anything `as_classifier` takes.
    instances : Instances
        Instances of the shape the model will be asked about.

    Returns
    -------
    Classifier
        The model; where a channel axis was added to series, it is removed again before asking.
    """
    classifier = as_classifier(model)
    if not instances.channel_added:
        return classifier
    return Reshaped(classifier, instances.shape[1:])


def open_request(
    request: Request,
    classifier: Classifier,
    instances: Instances,
    targets: Array | ChooseTarget,
    feasible_set: FeasibleSet | None,
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
    feasible_set : FeasibleSet or None
        The constraints.
    meter : Meter
        The budget of these instances.
    progress : function of int, optional
        Called with the number of instances just finished.

    Returns
    -------
    Oracle
        Ready for the search. Instances that the model could not answer for have failed, those in
        their target class at the confidence asked for are done, and those for which the
        constraints allow no change at all are refused.
    """
    x = classifier.as_input(instances.values)
    answers = isolate(lambda rows: classifier.verdict(x[rows]), len(x), request.on_error)
    before = gather_verdicts(answers.results, len(x), len(classifier.classes), x.device)
    target = targets(x, before) if callable(targets) else torch.from_numpy(targets).to(x.device)
    seeds = row_seeds(instances.values, request.seed, target.cpu().numpy())
    question = Question(x, target, before, seeds, instances.modality)
    oracle = Oracle(classifier, question, request, feasible_set, meter, progress)
    for row, error in answers.exceptions.items():
        oracle.states.fail(torch.tensor([row]), describe_exception(error), error)
    _mark_unusable(oracle)
    _mark_done(oracle)
    _mark_impossible(oracle)
    return oracle


def _mark_unusable(oracle: Oracle) -> None:
    unusable = ~is_finite(oracle.question.before)
    reason = "the model returned NaN or inf for the instance itself"
    oracle.states.fail(unusable.nonzero().flatten(), reason)


def _mark_done(oracle: Oracle) -> None:
    """Instances already in their target class, with the confidence asked for, need no search."""
    before = oracle.question.before
    target = oracle.question.target
    firm = target_value(before.proba, target) >= oracle.request.goal
    done = (before.label == target) & firm
    oracle.states.finish(done.nonzero().flatten())


def _mark_impossible(oracle: Oracle) -> None:
    if oracle.feasible_set is None:
        return
    for row, reason in enumerate(oracle.feasible_set.impossible(oracle.question.x)):
        if reason:
            oracle.states.refuse(torch.tensor([row]), reason)
