"""The adapters, one per kind of model; `as_classifier` chooses among them."""

from .aeon_adapter import AeonClassifier
from .callable_adapter import CallableClassifier
from .estimator_adapter import EstimatorClassifier
from .torch_adapter import TorchClassifier

__all__ = [
    "AeonClassifier",
    "CallableClassifier",
    "EstimatorClassifier",
    "TorchClassifier",
]
