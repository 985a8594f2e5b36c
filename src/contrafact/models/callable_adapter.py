"""Adapter for plain functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from .class_labels import label_index
from .classifier import Array, Classifier
from .verdict import Verdict


class CallableClassifier(Classifier):
    """Wrap a function of a NumPy array of instances.

    Parameters
    ----------
    function : callable
        Takes an array (n, ...) and returns probabilities (n, classes) or labels (n,).
    classes : array-like of labels or None
        Names of the output columns; needed where the function returns labels.
    batch_size : int or None
        Rows handed to the function at once.

    Attributes
    ----------
    tolerance : float
        How far from 1 a row of probabilities may sum, since some services round theirs.
    """

    tolerance = 0.05

    def __init__(
        self,
        function: Callable[[Array], Any],
        classes: Any,
        batch_size: int | None,
    ) -> None:
        super().__init__(classes, batch_size)
        self.function = function

    @override
    def _evaluate(self, x: Tensor) -> Verdict:
        out = self.function(x.cpu().numpy().copy())  # it may work in place
        if isinstance(out, Tensor):
            out = out.detach().cpu()
        out = np.asarray(out)
        self._check_shape(out, len(x))
        if out.ndim == 1:
            label = label_index(out, self.classes)
            return Verdict.of_label(label, len(self.classes))
        proba = out.astype(np.float64)
        self._check_probabilities(proba)
        return Verdict.of_proba(torch.from_numpy(proba))

    def _check_shape(self, out: Array, n_rows: int) -> None:
        """Refuse answers that are neither (rows,) nor (rows, classes)."""
        per_row = out.ndim in (1, 2) and len(out) == n_rows
        if not per_row or out.shape[1:] == (1,):
            raise ValueError(
                "The function must give (rows, classes) probabilities or (rows,) labels "
                f"for {n_rows} rows, got shape {out.shape}."
            )

    def _check_probabilities(self, proba: Array) -> None:
        """Refuse rows that cannot be probabilities; NaN may stand for a row that failed."""
        negative = (proba < 0).any(1)
        wrong_sum = np.abs(proba.sum(1) - 1) > self.tolerance
        wrong = negative | wrong_sum
        if wrong.any():
            example = proba[wrong][0].tolist()
            raise ValueError(
                "The function must give probabilities, one column per class, "
                f"but a row is {example}; apply a softmax to logits."
            )
