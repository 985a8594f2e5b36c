"""What decides: any classifier behind one interface, twins for gradients, small reference networks."""

from .autoencoders import Autoencoder, ConvAutoencoder, LSTMAutoencoder
from .classifier import Classifier, Verdict, as_classifier
from .diagnostics import robust_accuracy, spectral_report
from .files import load_model
from .networks import FCN, MLP, BiLSTM, ResNet8, SmallCNN, normalised
from .reconstruction import fit_autoencoder, reconstruction_report
from .robust import RobustTrainer
from .training import fit_classifier
from .zeroth_order import zeroth_order_gradient

__all__ = [
    "FCN",
    "MLP",
    "Autoencoder",
    "BiLSTM",
    "Classifier",
    "ConvAutoencoder",
    "LSTMAutoencoder",
    "ResNet8",
    "RobustTrainer",
    "SmallCNN",
    "Verdict",
    "as_classifier",
    "fit_autoencoder",
    "fit_classifier",
    "load_model",
    "normalised",
    "reconstruction_report",
    "robust_accuracy",
    "spectral_report",
    "zeroth_order_gradient",
]
