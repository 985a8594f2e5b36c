"""The model as other libraries get it: scikit-learn's interface, every row counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from typing_extensions import Self

from ..engine import Tasks
from ..models.classifier import Array, Classifier


class OutOfBudget(Exception):
    """Ends a search of another library that asks for more than the request allows."""


class CountedModel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Stand in for the model: scikit-learn's interface, any shape, every row on the meter.

    Parameters
    ----------
    classifier : Classifier
        The model.
    shape : tuple of int
        Shape of one instance.

    Attributes
    ----------
    classes_ : array
        Labels of the columns of `predict_proba`.
    n_features_in_, n_timesteps_in_, n_dims_in_ : int
        Values, steps and channels of an instance, which other libraries look for.
    """

    def __init__(self, classifier: Classifier, shape: tuple[int, ...]) -> None:
        self.classifier = classifier
        self.shape = shape
        self.classes_ = classifier.classes
        self.n_features_in_ = prod(shape)
        self.n_timesteps_in_ = shape[-1]
        self.n_dims_in_ = self.n_features_in_ // self.n_timesteps_in_
        self._payer: Tasks | None = None

    def __deepcopy__(self, memo: Any) -> Self:
        # A copy would ask the same model, and nobody would count what it asks.
        return self

    def fit(self, X: Any, y: Any = None) -> Self:
        """Return the model as it is: it was trained before."""
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, (n, classes)."""
        x = self._read(X)
        self._charge(len(x))
        return self.classifier.predict_proba(x)

    def predict(self, X: Any) -> Array:
        """Return the labels, (n,)."""
        x = self._read(X)
        self._charge(len(x))
        verdict = self.classifier.evaluate(x)
        column = verdict.label.cpu().numpy()
        return np.asarray(self.classes_[column])

    @contextmanager
    def paid_by(self, task: Tasks) -> Iterator[None]:
        """Charge what is asked inside the context to the instance of one task.

        Outside of it nothing is charged and nothing refused.
        """
        self._payer = task
        try:
            yield
        finally:
            self._payer = None

    def _read(self, X: Any) -> Array:
        """Return X in the shape of the instances."""
        values = np.asarray(X, dtype=np.float64)
        return values.reshape(-1, *self.shape)

    def _charge(self, n: int) -> None:
        """Charge for n model rows, or end the search where they are not affordable."""
        task = self._payer
        if task is None:
            return
        affordable = task.affords(n)
        if not bool(affordable.all()):
            raise OutOfBudget
        rows = task.row.repeat(n)
        task.oracle.charge(rows)
