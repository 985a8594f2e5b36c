"""Metric: one question about every counterfactual; Reference: the rows it may be compared with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from ..data.dataset import as_labels
from ..engine.result import Counterfactuals
from ..models.classifier import Array

#: What a metric can need, and how to give it.
NEEDS = {
    "reference": "reference=X, rows of the same shape as those explained",
    "labels": "reference=(X, y), rows of the same shape as those explained and their classes",
}


class Metric(ABC):
    """One number per counterfactual.

    A metric scores every row it is given, failed ones too: a failure keeps its best attempt, and that is what
    is measured. The first line of a metric's docstring says what it means.

    name : the column it fills; no two definitions share one.
    direction : "min" when less is better, "max" when more is.
    needs : what has to be passed besides the result, keys of `NEEDS`.
    """

    name: ClassVar[str]
    direction: ClassVar[Literal["min", "max"]]
    needs: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def compute(self, result: Counterfactuals, reference: Any = None) -> Array:
        """Scores (n,), floats; NaN only where the metric's docstring says it is undefined."""


@dataclass(frozen=True)
class Reference:
    """Reference rows, flattened, and their labels where they were given."""

    rows: Array
    labels: Array | None

    @classmethod
    def read(cls, reference: Any, result: Counterfactuals) -> Reference:
        """Check `X`, or a pair `(X, y)`, against the instances of a result."""
        X, y = reference if is_labelled(reference) else (reference, None)
        rows, shape = as_array(X), _instance_shape(result)
        lifted = rows[:, None] if result.modality == "series" and rows.ndim == 2 else rows
        if lifted.shape[1:] != shape or not len(rows):
            raise ValueError(
                f"The reference has shape {rows.shape}; the instances of this result have shape {shape}, so "
                f"accepted is (m, {', '.join(map(str, shape))}) with at least one row."
            )
        labels = None if y is None else as_labels(as_array(y), "The reference's y", len(rows))
        if labels is not None and not set(labels.tolist()) & set(result.classes.tolist()):
            found, known = (", ".join(map(repr, np.unique(c)[:9].tolist())) for c in (labels, result.classes))
            raise ValueError(f"The reference's labels are {found}; the classes of this result are {known}.")
        return cls(lifted.reshape(len(rows), -1).astype(np.float64), labels)


def is_labelled(reference: Any) -> bool:
    """A tuple is a pair (X, y); anything else is X."""
    if isinstance(reference, tuple) and len(reference) != 2:
        raise ValueError(f"reference is a tuple of {len(reference)}; accepted: X, or the pair (X, y).")
    return isinstance(reference, tuple)


def as_array(values: Any) -> Array:
    """NumPy view of a NumPy or torch array."""
    return np.asarray(values.detach().cpu() if isinstance(values, torch.Tensor) else values)


def flat(result: Counterfactuals) -> tuple[Array, Array]:
    """Instances and counterfactuals as float64 (n, size), so that differences are not rounded twice."""
    size = int(np.prod(_instance_shape(result)))
    before, after = (as_array(x).reshape(len(result), size) for x in (result.X, result.X_cf))
    return before.astype(np.float64), after.astype(np.float64)


def _instance_shape(result: Counterfactuals) -> tuple[int, ...]:
    shape = tuple(result.X.shape[1:])
    return (1, *shape) if result.modality == "series" and len(shape) == 1 else shape
