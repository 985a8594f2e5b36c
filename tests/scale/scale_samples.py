"""Small data in every form that a source may have, and comparison of results."""

from __future__ import annotations

from functools import cache

import numpy as np
from sklearn.linear_model import LogisticRegression

import contrafact as cf

#: fields of a result that do not depend on how the work was divided; not so calls, for an answer
#: that another row of the chunk paid for costs nothing
EXACT = ("source", "labels", "cf_labels", "target", "valid", "status", "message")


@cache
def power():
    """Series of 24 steps, and a model of them."""
    data = cf.load_dataset("ItalyPowerDemand")
    model = LogisticRegression(max_iter=1000).fit(data.X_train[:, 0], data.y_train)
    return data, model


def channels(n=40):
    """Series of three channels, and a model of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3, 10))
    y = (X[:, 0].mean(1) > 0).astype(int)
    return X, y, lambda X: _probabilities(3 * X[:, 0].mean(1))


def _probabilities(score):
    p = 1 / (1 + np.exp(-score))
    return np.stack([1 - p, p], axis=1)


def check_same(one, two):
    """Check that two results are the same, but for the time they took."""
    assert len(one) == len(two)
    for name in EXACT:
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    for name in ("X", "X_cf"):
        assert getattr(one, name).dtype == getattr(two, name).dtype
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    # A model may round otherwise in another batch.
    for name in ("proba", "cf_proba"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), atol=1e-6)
    for name, values in two.info.items():
        np.testing.assert_allclose(one.info[name], values, atol=1e-6, err_msg=name)
    assert one.classes.tolist() == two.classes.tolist()
    assert one.provenance == two.provenance
