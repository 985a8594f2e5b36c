"""Networks and their training: reference networks, autoencoders, plain and robust training."""

from .autoencoder_training import fit_autoencoder, reconstruction_report
from .autoencoders import Autoencoder, ConvAutoencoder, LSTMAutoencoder
from .diagnostics import spectral_report
from .features import FeatureExtractor
from .image_networks import ResNet8, SmallCNN
from .inception import InceptionTime
from .networks import FCN, MLP, BiLSTM
from .retraining import committee
from .robust import RobustTrainer
from .scaling import normalized
from .training import fit_classifier
from .under_attack import robust_accuracy, robust_report
from .weights import load_model, save_weights

__all__ = [
    "FCN",
    "MLP",
    "Autoencoder",
    "BiLSTM",
    "ConvAutoencoder",
    "FeatureExtractor",
    "InceptionTime",
    "LSTMAutoencoder",
    "ResNet8",
    "RobustTrainer",
    "SmallCNN",
    "committee",
    "fit_autoencoder",
    "fit_classifier",
    "load_model",
    "normalized",
    "reconstruction_report",
    "robust_accuracy",
    "robust_report",
    "save_weights",
    "spectral_report",
]
