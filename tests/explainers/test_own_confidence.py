"""A confidence that a method was made with counts as one that is asked of `explain`."""

import numpy as np
import pytest

import contrafact as cf

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 1, 12))
METHODS = [
    pytest.param(cf.SVCE(confidence=0.9, n_iter=10, restarts=1), id="SVCE"),
    pytest.param(cf.Glacier(tau=0.9, max_iter=60, learning_rate=0.1), id="Glacier"),
    pytest.param(cf.LatentCF(tau=0.9, max_epochs=2, max_iter=30), id="LatentCF"),
]


def model(X):
    """P of the second class: a logistic function of the mean."""
    p = 1 / (1 + np.exp(-6 * X.mean(axis=(1, 2))))
    return np.stack([1 - p, p], 1)


@pytest.mark.parametrize("method", METHODS)
def test_instances_in_the_class_below_the_confidence_are_searched(method):
    labels = model(X).argmax(1)
    p_before = model(X).max(1)
    result = method.fit(model, X, labels).explain(X[:12], target=labels[:12])
    already = result.status == "already_target"
    assert (already == (p_before[:12] >= 0.9)).all() and 0 < already.sum() < 12
    p_after = model(result.X_cf)[np.arange(12), labels[:12]]
    assert (p_after[~already] > p_before[:12][~already]).all()
    assert result.provenance["options"]["confidence"] == 0.9


def test_what_is_asked_of_explain_takes_precedence():
    labels = model(X).argmax(1)
    explainer = cf.SVCE(confidence=0.99, n_iter=10, restarts=1).fit(model, X, labels)
    result = explainer.explain(X[:12], target=labels[:12], confidence=0.5)
    assert set(result.status) == {"already_target"}
