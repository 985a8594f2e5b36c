"""Wrapper: a classifier that asks another one, about rows in another form."""

from __future__ import annotations

from typing_extensions import override

from .classifier import Array, Classifier


class Wrapper(Classifier):
    """Base of classifiers that ask another one.

    Classes, names of columns and remarks are those of the classifier inside, whoever finds them.

    Parameters
    ----------
    inner : Classifier
        The classifier to ask.
    """

    def __init__(self, inner: Classifier) -> None:
        self.inner = inner
        super().__init__(inner._classes, inner.batch_size)
        self.rows_per_evaluation = inner.rows_per_evaluation
        self.rows_per_verdict = inner.rows_per_verdict
        self.rows_per_gradient = inner.rows_per_gradient
        self.n_threads = inner.n_threads
        self.remarks = inner.remarks

    @property
    def _classes(self) -> Array | None:
        return self.inner._classes

    @_classes.setter
    def _classes(self, classes: Array | None) -> None:
        self.inner._classes = classes

    @property
    @override
    def feature_names(self) -> list[str] | None:
        return self.inner.feature_names
