"""The prototype model inside a classifier, in the units of the instances."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from torch import Tensor

from ...models.adapters import EstimatorClassifier
from ...models.classifier import Array, Classifier, Reshaped


@runtime_checkable
class PrototypeModel(Protocol):
    """Names the class of the nearest prototype: d_k = ‖Ω (x − w_k)‖², of equally near ones the first."""

    classes_: Array
    prototypes_: Array
    prototype_labels_: Array

    def metric_(self) -> Array | None:
        """Ω as (rank, D), or (K, rank, D) where every prototype has its own; None: plainly Euclidean."""
        ...


def unfold(classifier: Classifier, X: Tensor) -> tuple[PrototypeModel, Tensor, Tensor]:
    """The prototype model behind a classifier, and gain, shift of the scalers before it: gain·x + shift."""
    inner = classifier.inner if isinstance(classifier, Reshaped) else classifier
    model: Any = inner.model if isinstance(inner, EstimatorClassifier) else inner
    model = getattr(model, "best_estimator_", model)
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    *scalers, final = (step for step in steps if step not in (None, "passthrough"))
    known = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)
    linear = all(isinstance(step, known) and not getattr(step, "clip", False) for step in scalers)
    if not linear or not isinstance(final, PrototypeModel):
        raise TypeError(
            "model must be a fitted prototype model (contrafact.prototypes: GLVQ, GMLVQ, …, which have "
            "prototypes_, prototype_labels_ and metric_()), alone or in a Pipeline behind StandardScaler, "
            f"MinMaxScaler, MaxAbsScaler or RobustScaler without clipping; got {model!r}."
        )
    if not scalers:
        return final, torch.ones_like(X[0]), torch.zeros_like(X[0])
    assert isinstance(inner, EstimatorClassifier)
    low, high = X.amin(0), X.amax(0)
    high = torch.where(high > low, high, low + 1)
    ends = model[:-1].transform(inner._as_model_input(torch.stack([low, high])))
    at_low, at_high = torch.from_numpy(np.asarray(ends))
    gain = (at_high - at_low) / (high - low)
    return final, gain, at_low - gain * low
