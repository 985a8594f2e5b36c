"""Check that model and reference labels have at least two classes, and the same ones."""

from __future__ import annotations

import numpy as np

from ...models.classifier import Array, Classifier


def check_classes(classifier: Classifier, labels: Array | None) -> None:
    """Raise ValueError unless model and labels have at least two classes, and the same ones.

    Parameters
    ----------
    classifier : Classifier
        The model.
    labels : array or None
        Labels of the reference rows.
    """
    classes = classifier.classes.tolist()
    if len(classes) < 2:
        raise ValueError(f"At least two classes are required; the model has one: {classes}.")
    if labels is None:
        return
    found = np.unique(labels).tolist()
    if len(found) < 2:
        raise ValueError(
            f"y holds one class only ({found}); reference data of two or more are needed."
        )
    unknown = set(found) - set(classes)
    if unknown:
        raise ValueError(
            f"y holds labels {sorted(unknown)} that the model does not know. Classes: {classes}."
        )
