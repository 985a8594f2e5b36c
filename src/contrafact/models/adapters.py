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
from .onnx_adapter import OnnxClassifier
from .torch_adapter import TorchClassifier

__all__ = [
    "AeonClassifier",
    "CallableClassifier",
    "EstimatorClassifier",
    "OnnxClassifier",
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
    model : torch module, scikit-learn or aeon classifier, ONNX session, function, or Classifier
        A module returns one column per class (logits or probabilities), as does a session of
        onnxruntime; a function of an array returns probabilities, or labels, in which case
        `classes` is needed.
    classes : array-like of labels, optional
        Names of the output columns; scikit-learn and aeon models bring their own, as do modules
        with an attribute `classes_`.
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
    if _is_of("aeon", model):
        return AeonClassifier(model, classes, batch_size)
    if _is_of("onnxruntime", model) and hasattr(model, "get_inputs"):
        return OnnxClassifier(model, classes, batch_size)
    if hasattr(model, "predict"):
        return EstimatorClassifier(model, classes, batch_size)
    if callable(model):
        return CallableClassifier(model, classes, batch_size)
    raise TypeError(
        "model must be a torch module, a scikit-learn or aeon classifier, a session of "
        f"onnxruntime, or a function, got {type(model).__name__}."
    )


def _is_of(library: str, model: Any) -> bool:
    """Return whether the type of a model, or one that it derives from, is of a library."""
    return any(base.__module__.partition(".")[0] == library for base in type(model).__mro__)
