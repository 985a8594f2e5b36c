"""Small models that can be counted, and batches made by hand."""

from __future__ import annotations

import time

import numpy as np
import pytest

from contrafact.engine.instances import read_instances, read_targets
from contrafact.engine.options import Options
from contrafact.engine.request import open_batch, wrap_model
from contrafact.models import as_classifier

KINDS = frozenset({"bounds", "frozen", "max_step"})


class Counting:
    """A plain function of an array, and how many rows it saw."""

    def __init__(self, function):
        self.function, self.seen = function, 0

    def __call__(self, X):
        self.seen += len(X)
        return self.function(X)


def mean_model(X):
    """Two classes; the second is likelier the larger the mean of an instance."""
    p = 1 / (1 + np.exp(-4 * X.reshape(len(X), -1).mean(1)))
    return np.stack([1 - p, p], 1)


@pytest.fixture
def counting():
    """A counting model on instances of any shape: class 1 from a mean of 0 upward."""
    return Counting(mean_model)


@pytest.fixture
def open_request():
    """The batch of a request, as the base class opens it."""

    def build(
        model,
        X,
        target,
        *,
        constraints=None,
        k=1,
        budget=None,
        confidence=None,
        modality=None,
        classes=None,
    ):
        instances = read_instances(X, "X", modality, ("series", "image", "row"))
        classifier = wrap_model(as_classifier(model, classes=classes), instances)
        classifier.infer_classes(instances.values, None)
        options = Options.checked(constraints, k, budget, False, confidence, None, KINDS)
        meter = options.meter(
            len(instances.values), classifier.rows_per_verdict, time.perf_counter()
        )
        return open_batch(
            classifier,
            instances,
            read_targets(target, classifier.classes, len(instances.values)),
            options.feasible(instances.shape, classifier),
            options,
            meter,
        )[0]

    return build
