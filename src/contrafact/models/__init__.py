"""Trained models behind one interface: adapters, differentiable twins, reading of model files."""

from ..deprecation import renamed_attributes
from .adapters import as_classifier
from .classifier import Classifier
from .committee import Committee
from .ensemble import Ensemble
from .verdict import Verdict

__all__ = ["Classifier", "Committee", "Ensemble", "Verdict", "as_classifier"]

# Networks and training were part of this package; the old names work until version 0.3.
_MOVED_TO_NN = (
    "FCN",
    "MLP",
    "Autoencoder",
    "BiLSTM",
    "ConvAutoencoder",
    "LSTMAutoencoder",
    "ResNet8",
    "RobustTrainer",
    "SmallCNN",
    "fit_autoencoder",
    "fit_classifier",
    "load_model",
    "normalized",
    "reconstruction_report",
    "robust_accuracy",
    "spectral_report",
)
__getattr__ = renamed_attributes(
    __name__,
    {
        **{name: f"contrafact.nn.{name}" for name in _MOVED_TO_NN},
        "normalised": "contrafact.nn.normalized",
        "zeroth_order_gradient": "contrafact.numerics.zeroth_order_gradient",
    },
)
