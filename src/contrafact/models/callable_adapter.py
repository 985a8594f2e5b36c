"""Adapter for plain functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from ..process_state import keeping_threads
from .answers import as_array, read_columns, read_labels
from .class_labels import label_index
from .classifier import Array, Classifier
from .verdict import Verdict

#: What to do about a function that gives P(second class) only.
TWO_COLUMNS = (
    "If it is the probability p of the second of two classes, return both: "
    "np.column_stack([1 - p, p])."
)


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
    """

    def __init__(
        self,
        function: Callable[[Array], Any],
        classes: Any,
        batch_size: int | None,
    ) -> None:
        super().__init__(classes, batch_size)
        _check_signature(function)
        self.function = function

    @override
    @keeping_threads()
    def _evaluate(self, x: Tensor) -> Verdict:
        # It may work in place. A frame is made for this question alone.
        out = self.function(x.cpu().numpy().copy() if isinstance(x, Tensor) else x)
        answer = as_array(out, "The function")
        if answer.ndim == 1:
            return self._of_labels(read_labels(answer, len(x), "The function"))
        proba = read_columns(out, len(x), "The function")
        if proba.shape[1] == 1:
            raise ValueError(
                f"The function must give one column per class, got shape {proba.shape}. "
                f"{TWO_COLUMNS}"
            )
        return Verdict.of_proba(torch.from_numpy(proba))

    def _of_labels(self, labels: Array) -> Verdict:
        """Read one label per row; refuse the probabilities of one class."""
        is_known = self._classes is not None and bool(np.isin(labels, self._classes).all())
        if labels.dtype.kind == "f" and not is_known:
            raise ValueError(
                f"The function gives one number per row, such as {labels[0]:.4g}, which is no "
                f"class. {TWO_COLUMNS}"
            )
        label = label_index(labels, self.classes)
        return Verdict.of_label(label, len(self.classes))


def _check_signature(function: Callable[[Array], Any]) -> None:
    """Raise TypeError where a function cannot be called with one array."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # compiled functions may have none
        return
    try:
        signature.bind(None)
    except TypeError as error:
        raise TypeError(
            f"model must be a function of one array X, got one that is not: {error}."
        ) from error
