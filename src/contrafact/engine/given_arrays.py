"""Results from arrays that were not made by an explainer of ours."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..models.class_labels import read_targets
from ..models.classifier import Array, Classifier
from ..numerics import broadcast_rows
from ..tables import Schema, Table, TableSpace, is_frame, join_frames
from ..validation import Instance, check_parameters
from .assembly import Part, assemble
from .instances import Instances, Modality, read_instances, wrap_model
from .opening import open_request
from .request import Request
from .result import Counterfactuals
from .tasks import Tasks

#: changes counterfactuals before they are evaluated, one per task
Improve = Callable[[Tasks, Tensor], Tensor]


def from_arrays(
    model: Any,
    X: Any,
    X_cf: Any,
    target: Any = None,
    *,
    method: str = "given",
    modality: Modality | None = None,
    schema: Schema | None = None,
    request: Request | None = None,
    improve: Improve | None = None,
    source: Array | None = None,
) -> Counterfactuals:
    """Make a Counterfactuals of given arrays by asking the model about them.

    Parameters
    ----------
    model : object
        Anything `as_classifier` takes.
    X, X_cf : array of shape (n, *shape), or data frame
        Instances and one counterfactual each.
    target : label, or one label per instance, optional
        Classes wanted; None: any class other than that of the instance.
    method : str, default="given"
        Name for the provenance.
    modality : {"series", "image", "row"}, optional
        Kind of data.
    schema : Schema, optional
        What the columns of data frames hold; default: it is inferred from both.
    request : Request, optional
        Constraints, budget and confidence for `improve`.
    improve : function of tasks and counterfactuals, optional
        Works on the counterfactuals before the model is asked about them.
    source : array of int, optional
        The instances of the request that the rows belong to, where limits are given by instance.

    Returns
    -------
    Counterfactuals
        One row per instance.
    """
    start = time.perf_counter()
    check_parameters("from_arrays", {"method": Instance(str, "a text")}, {"method": method})
    request = request or Request()
    space = None
    if is_frame(X) and is_frame(X_cf) and modality in (None, "row"):
        # Of both, so that the types and levels of X_cf are known, too.
        space = TableSpace(Table.read(join_frames(X, X_cf), schema, argument="X and X_cf"))
    instances = read_instances(X, "X", modality, schema=schema, space=space)
    edited = read_instances(X_cf, "X_cf", instances.modality, space=instances.space)
    if edited.values.shape != instances.values.shape:
        raise ValueError(
            f"X_cf has shape {edited.values.shape}, X {instances.values.shape}; "
            "give one counterfactual each."
        )
    classifier = wrap_model(model, instances)
    classifier.infer_classes(instances.values, None)
    n = len(instances)
    meter = request.meter(n, classifier.rows_per_verdict, start)
    targets = read_targets(target, classifier.classes, n)
    if targets is None:
        targets = _claimed_classes(classifier, instances, edited)
        meter.charge(torch.arange(n), 2 * classifier.rows_per_verdict)
    feasible_set = None
    if improve is not None:
        feasible_set = request.feasible_set(instances.shape, classifier)
    if feasible_set is not None and source is not None:
        feasible_set.check_size(int(source.max(initial=-1)) + 1)
        feasible_set = feasible_set.take(torch.from_numpy(source))
    oracle = open_request(
        request,
        classifier,
        instances,
        targets,
        feasible_set,
        meter,
    )
    pending = oracle.states.pending().to(oracle.question.x.device)
    x_cf = classifier.as_input(edited.values)
    tasks = Tasks.start(oracle, torch.arange(n, device=x_cf.device))
    if improve is not None:
        x_cf = torch.where(broadcast_rows(pending, x_cf), x_cf, oracle.question.x)
        x_cf[pending] = improve(tasks.take(pending), x_cf[pending])
    given = None
    if improve is None and edited.table is not None:
        given = edited.table.codes
    part = Part(oracle, instances, pending, tasks.candidates(x_cf), given)
    provenance = {"method": method, "options": request.describe()}
    return assemble(
        [part],
        instances,
        classifier,
        provenance,
        seconds=time.perf_counter() - start,
    )


def _claimed_classes(
    classifier: Classifier,
    instances: Instances,
    edited: Instances,
) -> Array:
    """Return the class of each counterfactual, or the next best one where it did not change."""
    before = classifier.verdict(instances.values).label
    after = classifier.verdict(edited.values)
    others = after.score.scatter(1, before[:, None], -torch.inf)
    changed = after.label != before
    return torch.where(changed, after.label, others.argmax(1)).cpu().numpy()
