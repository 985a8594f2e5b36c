"""Tasks as methods get them, opened as the base class does."""

import torch

from contrafact.engine import Request, Tasks
from contrafact.engine.instances import read_instances, wrap_model
from contrafact.engine.opening import open_request
from contrafact.models import as_classifier
from contrafact.models.class_labels import read_targets


def open_tasks(model, X, target=None, *, modality=None, classes=None, **options):
    """Open a request; return the tasks of all its instances."""
    request = Request(**options)
    instances = read_instances(X, "X", modality)
    classifier = model
    if not hasattr(model, "rows_evaluated"):
        classifier = as_classifier(model, classes=classes)
    classifier = wrap_model(classifier, instances)
    classifier.infer_classes(instances.values, None)
    targets = read_targets(target, classifier.classes, len(instances))
    if targets is None:
        targets = lambda x, verdict: 1 - verdict.label  # noqa: E731
    oracle = open_request(
        request,
        classifier,
        instances,
        targets,
        request.feasible_set(instances.shape, classifier),
        request.meter(len(instances), classifier.rows_per_verdict),
    )
    return Tasks.start(oracle, torch.arange(len(instances)))
