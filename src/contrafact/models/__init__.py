"""What decides: any classifier behind one interface, twins for gradients, small reference networks."""

from .classifier import Classifier, Verdict, as_classifier
from .networks import FCN, MLP, BiLSTM, SmallCNN
from .training import fit_classifier
from .zeroth_order import zeroth_order_gradient

__all__ = [
    "FCN",
    "MLP",
    "BiLSTM",
    "Classifier",
    "SmallCNN",
    "Verdict",
    "as_classifier",
    "fit_classifier",
    "zeroth_order_gradient",
]
