"""The adapters, one per kind of model; `as_classifier` chooses among them."""

from __future__ import annotations

from typing import Any

import torch

from ..validation import brief, check_parameters
from .aeon_adapter import AeonClassifier
from .arguments import RULES, check_device
from .callable_adapter import CallableClassifier
from .classifier import Classifier
from .estimator_adapter import EstimatorClassifier
from .torch_adapter import TorchClassifier

__all__ = [
    "AeonClassifier",
    "CallableClassifier",
    "EstimatorClassifier",
    "TorchClassifier",
    "as_classifier",
]


def as_classifier(
    model: Any,
    *,
    classes: Any = None,
    batch_size: int | None = None,
    device: Any = None,
    n_threads: int | None = None,
) -> Classifier:
    """Wrap any trained classifier.

    Parameters
    ----------
    model : torch module, scikit-learn or aeon classifier, function of an array, or Classifier
        A module returns one column per class (logits or probabilities); a function returns
        probabilities, or labels, in which case `classes` is needed.
    classes : array-like of labels, optional
        Names of the output columns; scikit-learn and aeon models bring their own.
    batch_size : int, optional
        Rows handed to the model at once; default: as many as fit in a few MB.
    device : str or torch.device, optional
        Run a torch module there (on a copy; the module itself is never moved).
    n_threads : int, optional
        Threads that torch, BLAS, OpenMP and numba use while the model is asked; gradients are
        computed with torch's own number. Default: as many as they use at that time.

    Returns
    -------
    Classifier
        The model behind the common interface; a Classifier is returned as it is.

    Raises
    ------
    TypeError
        If `model` is of none of these kinds.
    ValueError
        If an option does not apply to this kind of model, or the model is not fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = as_classifier(LogisticRegression(max_iter=500).fit(X, y))
    >>> classifier.differentiable, classifier.predict(X[:2]).tolist()
    (True, [0, 0])
    """
    check_parameters("as_classifier", RULES, {"batch_size": batch_size, "n_threads": n_threads})
    if isinstance(model, Classifier):
        if classes is None and batch_size is None and device is None and n_threads is None:
            return model
        raise ValueError(
            "model is a Classifier already; give classes, batch_size, device and n_threads when "
            "making it."
        )
    classifier = _wrap(model, classes, batch_size, device)
    classifier.n_threads = None if n_threads is None else int(n_threads)
    return classifier


def _wrap(model: Any, classes: Any, batch_size: int | None, device: Any) -> Classifier:
    """Choose the adapter by the kind of model; parameters as of `as_classifier`."""
    if isinstance(model, type):
        raise TypeError(
            f"model must be a trained model, got the class {model.__name__}; create and fit it."
        )
    if isinstance(model, torch.nn.Module):
        check_device(device)
        return TorchClassifier(model, classes, batch_size, device)
    if device is not None:
        raise ValueError(
            f"device applies to torch modules only, got device={brief(device)} for {brief(model)}."
        )
    if any(base.__module__.startswith("aeon.") for base in type(model).__mro__):
        return AeonClassifier(model, classes, batch_size)
    if hasattr(model, "predict"):
        return EstimatorClassifier(model, classes, batch_size)
    if callable(model):
        return CallableClassifier(model, classes, batch_size)
    raise TypeError(
        "model must be a torch module, a scikit-learn or aeon classifier, or a function, "
        f"got {type(model).__name__}."
    )
