"""Opening a request: the model's first word on every instance. And `judge`: a result from given arrays."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..models.classifier import Array, Classifier, Reshaped, Verdict, as_classifier
from ..numerics.randomness import row_seeds
from .assembly import Outcome, assemble
from .batch import Batch, Candidates
from .budget import Budget, Meter
from .constraints import KINDS, Constraints, FeasibleSet
from .instances import DIMENSIONS, Instances, Modality, read_instances, read_targets
from .isolation import gather, isolate
from .options import Options
from .result import Counterfactuals

#: chooses target classes (columns) from instances and the model's verdict on them
ChooseTarget = Callable[[Tensor, Verdict], Tensor]


def wrap_model(model: Any, instances: Instances) -> Classifier:
    """The model as a Classifier that takes instances as the engine holds them."""
    classifier = as_classifier(model)
    return Reshaped(classifier, instances.shape[1:]) if instances.lifted else classifier


def open_batch(
    classifier: Classifier,
    instances: Instances,
    targets: Array | ChooseTarget,
    feasible: FeasibleSet | None,
    options: Options,
    meter: Meter,
    advance: Callable[[int], None] = lambda finished: None,
) -> tuple[Batch, Tensor, list[str]]:
    """Ask the model about the instances themselves.

    Returns the batch, the mask of rows already in their target class, and per row why the constraints leave
    no way out (or an empty string). Rows the model could not answer for are marked failed.
    """
    x = classifier.as_input(instances.values)
    answers, failures = isolate(lambda rows: classifier.verdict(x[rows]), len(x))
    verdict = gather(answers, len(x), len(classifier.classes), x.device)
    target = targets(x, verdict) if callable(targets) else torch.from_numpy(targets).to(x.device)
    seeds = row_seeds(instances.values, options.seed, target.cpu().numpy())
    batch = Batch(
        x=x,
        target=target,
        verdict=verdict,
        classifier=classifier,
        feasible=feasible,
        meter=meter,
        k=options.k,
        confidence=options.confidence,
        seeds=seeds,
        modality=instances.modality,
        seed=options.seed,
        progress=advance,
    )
    for row, reason in failures.items():
        batch.failures[row] = reason
    unusable = ~(verdict.proba.isfinite().all(1) & verdict.score.isfinite().all(1))
    batch.fail(
        unusable.nonzero().flatten(), "the model returned NaN or inf for the instance itself"
    )
    reasons = [""] * len(x) if feasible is None else feasible.impossible(x)
    return batch, verdict.label == target, reasons


def judge(
    model: Any,
    X: Any,
    X_cf: Any,
    target: Any = None,
    *,
    method: str = "given",
    modality: Modality | None = None,
    improve: Callable[[Batch, Tensor, Tensor], Tensor] | None = None,
    constraints: Constraints | None = None,
    confidence: float | None = None,
    budget: Budget | None = None,
) -> Counterfactuals:
    """A Counterfactuals of arrays that came from elsewhere: the model is asked what they are worth.

    Parameters
    ----------
    model, X, X_cf : the model, the instances and one counterfactual each.
    target : the classes wanted; None takes whatever the model says of `X_cf`.
    method : name for the provenance.
    improve : works on the edits before the verdict, with the rows they belong to; not on rows that the
        constraints leave no way out.
    """
    start = time.perf_counter()
    options = Options.checked(constraints, 1, budget, False, confidence, None, KINDS)
    instances = read_instances(X, "X", modality, tuple(DIMENSIONS))
    edited = read_instances(X_cf, "X_cf", instances.modality, tuple(DIMENSIONS))
    if edited.values.shape != instances.values.shape:
        raise ValueError(
            f"X_cf has shape {np.shape(X_cf)}, X {np.shape(X)}; give one counterfactual each."
        )
    classifier = wrap_model(model, instances)
    n = len(instances.values)
    feasible = options.feasible(instances.shape, classifier)
    meter = options.meter(n, classifier.rows_per_verdict, start)
    if target is None:
        target = classifier.predict(edited.values)
        meter.charge(torch.arange(n), classifier.rows_per_verdict)
    classifier.infer_classes(instances.values, None)
    targets = read_targets(target, classifier.classes, n)
    assert targets is not None
    batch, already, reasons = open_batch(classifier, instances, targets, feasible, options, meter)
    x_cf = classifier.as_input(edited.values)
    if improve is not None:
        free = batch.rows[
            torch.tensor([not reason for reason in reasons], dtype=torch.bool).to(x_cf.device)
        ]
        x_cf = x_cf.clone()
        x_cf[free] = improve(batch, x_cf[free], free)
    found = Candidates(x_cf, batch.rows)
    provenance = {"method": method, "options": options.describe()}
    outcome = Outcome(batch, instances, found, already, reasons)
    return assemble(
        [outcome], instances, classifier, provenance, seconds=time.perf_counter() - start
    )
