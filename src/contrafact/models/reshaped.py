"""Reshaped: a classifier asked in the shape it was trained on."""

from __future__ import annotations

from torch import Tensor
from typing_extensions import override

from .classifier import PROBE_ROWS, Array, Classifier, Rows
from .verdict import Verdict


class Reshaped(Classifier):
    """Ask a classifier in the shape it was trained on.

    Parameters
    ----------
    inner : Classifier
        The classifier to ask; its classes are shared.
    shape : tuple of int
        Shape of one instance there, e.g. (length,) where the caller holds (1, length).
    """

    def __init__(self, inner: Classifier, shape: tuple[int, ...]) -> None:
        self.inner = inner
        self.shape = shape
        super().__init__(inner._classes, inner.batch_size)
        self.differentiable = inner.differentiable
        self.dtype = inner.dtype
        self.device = inner.device
        self.rows_per_evaluation = inner.rows_per_evaluation
        self.rows_per_verdict = inner.rows_per_verdict
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

    def _inside(self, x: Tensor) -> Tensor:
        """Bring rows into the inner shape."""
        return x.reshape(len(x), *self.shape)

    @override
    def _evaluate(self, x: Tensor) -> Verdict:
        return self.inner.evaluate(self._inside(x))

    @override
    def _decide(self, x: Tensor) -> Verdict:
        return self.inner.verdict(self._inside(x))

    @override
    def probe(self, x: Rows) -> None:
        few = x[:PROBE_ROWS]
        self.inner.probe(few.reshape(len(few), *self.shape))
        # Found by asking: the precision that the model takes, and whether it has gradients.
        self.dtype = self.inner.dtype
        self.differentiable = self.inner.differentiable

    @override
    def infer_classes(self, x: Rows, y: Array | None) -> None:
        if self._classes is None:
            self.rows_evaluated += 1
            self.inner.infer_classes(self._inside(self.as_input(x)), y)
            self.order_in_doubt = self.inner.order_in_doubt

    @override
    def logits(self, x: Tensor) -> Tensor:
        self.rows_evaluated += len(x)
        return self.inner.logits(self._inside(x))
