"""Reshaped: a classifier asked in the shape it was trained on."""

from __future__ import annotations

from torch import Tensor
from typing_extensions import override

from .classifier import PROBE_ROWS, Array, Classifier, Rows
from .verdict import Verdict
from .wrapper import Wrapper


class Reshaped(Wrapper):
    """Ask a classifier in the shape it was trained on.

    Parameters
    ----------
    inner : Classifier
        The classifier to ask; its classes are shared.
    shape : tuple of int
        Shape of one instance there, e.g. (length,) where the caller holds (1, length).
    """

    checks_probabilities = False

    def __init__(self, inner: Classifier, shape: tuple[int, ...]) -> None:
        super().__init__(inner)
        self.shape = shape
        self.differentiable = inner.differentiable
        self.dtype = inner.dtype
        self.device = inner.device

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
        self.rows_evaluated += self.rows_per_gradient * len(x)
        return self.inner.logits(self._inside(x))
