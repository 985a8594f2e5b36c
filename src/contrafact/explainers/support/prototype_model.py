"""The prototype model inside a classifier, in the units of the instances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from torch import Tensor

from ...models.adapters import EstimatorClassifier
from ...models.classifier import Array, Classifier
from ...models.reshaped import Reshaped
from ...models.tabular import Tabular

#: scalers that map each feature linearly: distances behind them are still quadratic in the instance
LINEAR_SCALERS = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)


@runtime_checkable
class PrototypeModel(Protocol):
    """A model that predicts the class of the nearest prototype: d_k = ‖Ω (x − w_k)‖².

    Of equally near prototypes the first counts.
    """

    classes_: Array
    prototypes_: Array
    prototype_labels_: Array

    def metric_(self) -> Array | None:
        """Return Ω, (rank, D), or (K, rank, D) with one per prototype; None: the Euclidean metric.

        Raises
        ------
        TypeError
            If the distance is of another kind.
        """
        ...


@dataclass(frozen=True)
class UnwrappedModel:
    """A prototype model and what the scalers before it do: x ↦ gain · x + shift.

    Parameters
    ----------
    model : PrototypeModel
        The prototype model.
    gain, shift : Tensor of float64, shape (D,)
        What the scalers do to each feature; 1 and 0 where there are none.
    """

    model: PrototypeModel
    gain: Tensor
    shift: Tensor

    def prototypes(self) -> Tensor:
        """Return the prototypes in the units of the instances, (K, D).

        Raises
        ------
        TypeError
            If the prototypes have another size than the instances.
        """
        prototypes = torch.from_numpy(self.model.prototypes_).double().flatten(1)
        size = prototypes.shape[1]
        if size != len(self.gain):
            raise TypeError(
                f"{type(self.model).__name__} holds prototypes of {size} numbers, but instances "
                f"have {len(self.gain)}: its distances are not taken in the space of X."
            )
        return (prototypes - self.shift) / self.gain

    def metric(self) -> Tensor | None:
        """Return Ω for the units of the instances; None where it is Euclidean there."""
        omega = self.model.metric_()
        if omega is not None:
            return torch.from_numpy(omega).double() * self.gain
        is_scaled = bool((self.gain != 1).any())
        return self.gain.diag() if is_scaled else None


def is_prototype_model(classifier: Classifier) -> bool:
    """Return whether `PrototypeCounterfactual` takes the model.

    Only attributes of the fitted model are looked at; it is not asked about any instance.

    Parameters
    ----------
    classifier : Classifier
        The model.

    Returns
    -------
    bool
        True for a prototype model with a linear metric, alone or in a pipeline behind linear
        scalers.

    Examples
    --------
    >>> from contrafact.models import as_classifier
    >>> from contrafact.prototypes import GLVQ
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.eye(4), [0, 0, 1, 1]
    >>> is_prototype_model(as_classifier(GLVQ().fit(X, y)))
    True
    >>> is_prototype_model(as_classifier(LogisticRegression().fit(X, y)))
    False
    """
    model = _find_prototype_model(_wrapped_model(classifier))
    if model is None:
        return False
    try:
        model.metric_()
    except TypeError:  # the distance of a network, or an elastic one
        return False
    return True


def unwrap_prototype_model(classifier: Classifier, X: Tensor) -> UnwrappedModel:
    """Find the prototype model behind a classifier.

    Parameters
    ----------
    classifier : Classifier
        A prototype model, alone or in a pipeline behind linear scalers.
    X : Tensor of shape (n, D)
        Reference instances, flat; their range shows what the scalers do.

    Returns
    -------
    UnwrappedModel
        The prototype model, and gain and shift of the scalers.

    Raises
    ------
    TypeError
        If the classifier is anything else.
    """
    if isinstance(classifier, Tabular):
        return _unwrap_tabular(classifier, X)
    wrapped = _wrapped_model(classifier)
    model = _find_prototype_model(wrapped)
    if model is None:
        raise TypeError(
            "model must be a fitted prototype model (contrafact.prototypes: GLVQ, GMLVQ, …, which "
            "have prototypes_, prototype_labels_ and metric_()), alone or in a Pipeline behind "
            "StandardScaler, MinMaxScaler, MaxAbsScaler or RobustScaler without clipping; got "
            f"{wrapped!r}."
        )
    if len(_steps(wrapped)) == 1:
        gain = torch.ones_like(X[0])
        return UnwrappedModel(model, gain, torch.zeros_like(gain))
    low = X.amin(0)
    high = X.amax(0)
    high = torch.where(high > low, high, low + 1)
    inner = _without_reshaping(classifier)
    assert isinstance(inner, EstimatorClassifier)
    ends = inner.as_model_input(torch.stack([low, high]))
    scaled = wrapped[:-1].transform(ends)
    at_low, at_high = torch.from_numpy(np.asarray(scaled))
    gain = (at_high - at_low) / (high - low)
    return UnwrappedModel(model, gain, at_low - gain * low)


def _unwrap_tabular(classifier: Tabular, X: Tensor) -> UnwrappedModel:
    """Find the prototype model of a table, in the coordinates of its rows.

    Each column must be one number, which is then a linear function of one coordinate.
    """
    space = classifier.space
    for column in space.schema:
        if column.missing or not (column.is_numeric or column.kind == "boolean"):
            raise TypeError(
                f"PrototypeCounterfactual takes tables of numbers without missing values; the "
                f"column {column.name!r} is {column.describe()}."
            )
    codes = space.codes(X)
    inner = unwrap_prototype_model(classifier.inner, codes)
    at_zero, at_one = space.embed(torch.stack([torch.zeros_like(X[0]), torch.ones_like(X[0])]))
    unit = 1 / (at_one - at_zero)
    center = -at_zero * unit
    return UnwrappedModel(inner.model, inner.gain * unit, inner.gain * center + inner.shift)


def _without_reshaping(classifier: Classifier) -> Classifier:
    return classifier.inner if isinstance(classifier, Reshaped) else classifier


def _wrapped_model(classifier: Classifier) -> Any:
    """Return the model that an adapter wraps; of a parameter search, its best."""
    if isinstance(classifier, Tabular):
        classifier = classifier.inner
    inner = _without_reshaping(classifier)
    model = inner.model if isinstance(inner, EstimatorClassifier) else inner
    return getattr(model, "best_estimator_", model)


def _steps(model: Any) -> list[Any]:
    """Return the steps of a pipeline that do something; any other model is its own only step."""
    if not isinstance(model, Pipeline):
        return [model]
    return [step for _, step in model.steps if step not in (None, "passthrough")]


def _find_prototype_model(model: Any) -> PrototypeModel | None:
    """Return the last step of a model if it is a prototype model behind linear scalers only."""
    *scalers, final = _steps(model)
    if not all(_is_linear(step) for step in scalers):
        return None
    return final if isinstance(final, PrototypeModel) else None


def _is_linear(step: Any) -> bool:
    return isinstance(step, LINEAR_SCALERS) and not getattr(step, "clip", False)
