"""Labels of classes and output columns."""

import numpy as np
import pytest
import torch

from contrafact.models import as_classifier
from contrafact.models.class_labels import name_outputs

X = np.random.default_rng(0).normal(size=(30, 6))


def linear(n_features=6, n_classes=3, seed=0):
    module = torch.nn.Linear(n_features, n_classes)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(generator=generator)
    return module


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize(
    ("n_outputs", "y", "names"),
    [
        (2, ["point", "gun", "gun"], ["gun", "point"]),
        (2, [5, -3, 5], [-3, 5]),
        (2, [True, False], [False, True]),
        (3, [0, 2, 2], [0, 1, 2]),  # a class without rows
        (4, [1, 2], [0, 1, 2, 3]),
        (3, [1, 2, 3], [1, 2, 3]),  # as many as outputs: the labels themselves
    ],
)
def test_outputs_are_named_after_the_labels(n_outputs, y, names):
    named = name_outputs(n_outputs, np.asarray(y))
    assert named.tolist() == names
    classifier = as_classifier(linear(6, n_outputs))
    classifier.infer_classes(X, np.asarray(y))
    assert classifier.classes.tolist() == names
    assert set(classifier.predict(X).tolist()) <= set(names)


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize("y", [["a", "b"], [1, 5], [-1, 1], [0.0, 1.0], [0, 1, 2, 3]])
def test_labels_that_cannot_name_the_outputs(y):
    classifier = as_classifier(linear())
    with pytest.raises(ValueError, match=f"3 outputs per row, but y has {len(y)} classes") as error:
        classifier.infer_classes(X, np.asarray(y))
    assert str(y) in str(error.value) and "as_classifier(model, classes=[...])" in str(error.value)
    with pytest.raises(ValueError, match="not known yet"):
        _ = classifier.classes  # nothing was settled by the failure
    assert "unknown" in repr(classifier)
