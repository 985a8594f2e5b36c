"""Any trained classifier behind one interface: adapters, and twins that give gradients."""

from .classifier import Classifier, Verdict, as_classifier

__all__ = ["Classifier", "Verdict", "as_classifier"]
