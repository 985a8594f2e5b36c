"""Metric: one question about every counterfactual."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from torch import Tensor

from ..engine.result import Counterfactuals
from ..models.classifier import Array

if TYPE_CHECKING:
    from .inputs import MetricInputs

#: What a metric can need, and how to give it.
NEEDS = {
    "reference": "reference=X, rows of the same shape as those explained",
    "labels": "reference=(X, y), rows of the same shape as those explained and their classes",
    "model": "model=, the model that was explained",
    "explainer": "explainer=, the fitted explainer",
    "other_model": "other_model=, a model for the same classes that was trained independently",
    "autoencoder": 'autoencoder=, a fitted Autoencoder, or "cnn" or "lstm" to fit one to the reference',
    "saliency": 'a result whose info has "saliency" or "importance", as CELS and NativeGuide give',
}


class Metric(ABC):
    """One number per counterfactual.

    A metric scores every row it is given, failed ones too: a failure keeps its best attempt, and that is what
    is measured. The first line of a metric's docstring says what it means.

    name : the column it fills; no two definitions share one.
    direction : "min" when less is better, "max" when more is.
    needs : what it takes besides the result, keys of `NEEDS`.
    modalities : the kinds of data for which it makes sense.
    """

    name: ClassVar[str]
    direction: ClassVar[Literal["min", "max"]]
    needs: ClassVar[frozenset[str]] = frozenset()
    modalities: ClassVar[tuple[str, ...]] = ("series", "image", "row")

    @abstractmethod
    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        """Scores (n,), floats; NaN only where the metric's docstring says it is undefined."""

    def lacks(self, result: Counterfactuals, given: MetricInputs) -> str:
        """Why it can't be computed here; empty where it can."""
        if result.modality not in self.modalities:
            return f"is for {' and '.join(self.modalities)} data; this result holds {result.modality} data"
        missing = self.needs - given.kinds(result)
        if missing:
            hints = [NEEDS.get(need, need) for need in sorted(missing - _told_by(missing))]
            return f"needs more than the result: pass {' and '.join(hints)}"
        return ""


def _told_by(missing: frozenset[str]) -> frozenset[str]:
    """The hint for labels tells how to give a reference too."""
    return frozenset({"reference"}) if "labels" in missing else frozenset()


def as_array(values: Any) -> Array:
    """NumPy view of a NumPy or torch array."""
    return np.asarray(values.detach().cpu() if isinstance(values, Tensor) else values)


def flat(result: Counterfactuals) -> tuple[Array, Array]:
    """Instances and counterfactuals as float64 (n, size), so that differences are not rounded twice."""
    size = int(np.prod(instance_shape(result)))
    before, after = (as_array(x).reshape(len(result), size) for x in (result.X, result.X_cf))
    return before.astype(np.float64), after.astype(np.float64)


def moved(result: Counterfactuals) -> Array:
    """|x' − x|, (n, d)."""
    before, after = flat(result)
    return np.asarray(np.abs(after - before))


def instance_shape(result: Counterfactuals) -> tuple[int, ...]:
    """Of one instance, series with their channel axis."""
    shape = tuple(result.X.shape[1:])
    return (1, *shape) if result.modality == "series" and len(shape) == 1 else shape
