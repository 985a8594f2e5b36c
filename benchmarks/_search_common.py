"""Models, methods and measures shared by the parts of search_methods.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from _common import Array, fit_fcn, fit_forest, fit_rocket, flatten_rows

#: a value counts as changed when it moved by more than this
TOLERANCE = 1e-8


def fit_logistic(data: cf.Dataset) -> Any:
    """Train a logistic regression on flattened rows."""
    model = LogisticRegression(max_iter=1000)
    return model.fit(flatten_rows(data.X_train), data.y_train)


MODELS: dict[str, Callable[[cf.Dataset], Any]] = {
    "logistic regression": fit_logistic,
    "random forest": fit_forest,
    "ROCKET(500)": fit_rocket,
    "FCN": fit_fcn,
}
METHODS: dict[str, Callable[[], cf.Explainer]] = {
    "NativeGuide window": cf.NativeGuide,
    "NativeGuide blend": partial(cf.NativeGuide, mode="blend"),
    "NativeGuide cam": partial(cf.NativeGuide, mode="cam"),
    "CoMTE greedy": cf.CoMTE,
    "CoMTE hill climbing": partial(cf.CoMTE, method="hill_climbing"),
    "SETS": cf.SETS,
    "TSEvo": cf.TSEvo,
    "NearestUnlike": cf.NearestUnlike,
    "LineSearch": cf.LineSearch,
    "RandomMask": cf.RandomMask,
    "RandomTarget": cf.RandomTarget,
}


def is_changed(X: Array, X_cf: Array) -> Array:
    """Return a mask of the values that moved by more than the tolerance."""
    return np.abs(X_cf - X) > TOLERANCE


def changed_fraction(X: Array, X_cf: Array) -> Array:
    """Return the share of changed values of each series."""
    return is_changed(X, X_cf).mean((1, 2))


def count_segments(changed: Array) -> Array:
    """Return the number of runs of changed values per row, summed over the channels."""
    before = np.pad(changed, ((0, 0), (0, 0), (1, 0)))[:, :, :-1]
    starts = changed & ~before
    return starts.sum((1, 2))
