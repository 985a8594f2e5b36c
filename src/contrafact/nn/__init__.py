"""Networks and their training: reference networks, autoencoders, plain and robust training."""

from .autoencoder_training import fit_autoencoder, reconstruction_report
from .autoencoders import Autoencoder, ConvAutoencoder, LSTMAutoencoder
from .diagnostics import robust_accuracy, spectral_report
from .model_files import load_model
from .networks import FCN, MLP, BiLSTM, ResNet8, SmallCNN, normalized
from .robust import RobustTrainer
from .training import fit_classifier

__all__ = [
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
]
