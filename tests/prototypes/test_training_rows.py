"""Rows to train on: order, weights, classes, rows held out."""

import numpy as np
import pytest
import torch
from gradient_models import BASE, every_model, learned
from sklearn.utils.class_weight import compute_sample_weight

from contrafact.prototypes import GLVQ
from contrafact.prototypes.training_rows import TrainingRows


def test_held_out_rows_are_not_trained_on(blobs):
    """A share of every class is left out: the fit is the same as without those rows."""
    X, y = blobs
    model = GLVQ(validation_fraction=0.2, restore_best=False, max_iter=3, random_state=0)
    seen = []
    model._descend, descend = lambda *a: (seen.append(a), descend(*a)), model._descend
    model.fit(X, y)
    _, _, training, held = seen[0]
    assert len(training.x) == 36 and len(held.x) == 9
    assert torch.bincount(held.t).tolist() == [3, 3, 3]
    assert not (training.x[:, None] == held.x).all(2).any()


@every_model
@pytest.mark.parametrize("batch_size", [None, 10])
def test_order_of_rows_does_not_matter(kind, batch_size, blobs):
    X, y = blobs
    order = np.random.default_rng(5).permutation(len(X))
    models = [
        kind(**BASE, batch_size=batch_size).fit(X[rows], y[rows])
        for rows in (slice(None), order, slice(None, None, -1))
    ]
    assert all(np.array_equal(learned(models[0], X), learned(other, X)) for other in models[1:])


@every_model
@pytest.mark.parametrize("options", [{}, {"batch_size": 10}, {"class_weight": "balanced"}], ids=str)
def test_a_weight_is_a_number_of_repeats(kind, options, blobs):
    X, y = blobs
    weight = np.random.default_rng(5).integers(0, 4, len(X))
    weighted = kind(**BASE, **options).fit(X, y, sample_weight=weight)
    rows = np.repeat(np.arange(len(X)), weight)
    np.testing.assert_array_equal(
        learned(weighted, X), learned(kind(**BASE, **options).fit(X[rows], y[rows]), X)
    )
    assert not np.array_equal(learned(weighted, X), learned(kind(**BASE, **options).fit(X, y), X))


def test_balanced_classes_count_the_same(blobs):
    X, y = blobs
    rows = np.flatnonzero((y > 0) | (np.arange(45) < 15))
    X, y = X[rows], y[rows]
    balanced = GLVQ(**BASE, class_weight="balanced").fit(X, y)
    weighted = GLVQ(**BASE).fit(X, y, sample_weight=compute_sample_weight("balanced", y))
    np.testing.assert_allclose(learned(balanced, X), learned(weighted, X), rtol=1e-9)


def test_balanced_classes_count_repeats(blobs):
    """15 rows of each class, those of class 0 five distinct ones thrice: balanced already."""
    X, y = blobs
    rows = np.concatenate([np.repeat(np.flatnonzero(y == 0)[:5], 3), np.flatnonzero(y > 0)])
    X, y = X[rows], y[rows]
    balanced, plain = (GLVQ(**BASE, class_weight=w).fit(X, y) for w in ("balanced", None))
    np.testing.assert_allclose(learned(balanced, X), learned(plain, X), rtol=1e-9)


def test_weights_of_classes_that_do_not_exist_are_refused():
    rows = TrainingRows(np.zeros((4, 1)), np.array([0, 0, 1, 1]))
    with pytest.raises(ValueError, match=r"class_weight holds 'c'; the classes are \['a', 'b'\]"):
        rows.balanced({"a": 1.0, "c": 2.0}, np.array(["a", "b"]))
