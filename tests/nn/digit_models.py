"""Small classifiers of digits, trained in several ways, once for all tests that use them."""

import functools

import numpy as np
from sklearn.datasets import load_digits

from contrafact.nn import RobustTrainer, fit_classifier

DIGITS = load_digits()
ORDER = np.random.default_rng(0).permutation(len(DIGITS.target))
IMAGES = DIGITS.images[:, None] / 16
X, Y = IMAGES[ORDER[:700]], DIGITS.target[ORDER[:700]]
X_TEST, Y_TEST = IMAGES[ORDER[700:1000]], DIGITS.target[ORDER[700:1000]]
SHORT = {"max_epochs": 15, "batch_size": 64, "learning_rate": 1e-2}
ROBUST = {
    "fast": {"attack": "fast"},
    "linf": {"attack": "fast", "norm": np.inf, "eps": 0.1},
    "pgd": {"steps": 5},
    "trades": {"attack": "fast", "objective": "trades"},
    "fsr": {"attack": "fast", "regularizer": "fsr", "fsr_weight": 1e-3, "fsr_warmup": 5},
}


@functools.cache
def digit_model(way):
    """Train "standard", or one of the robust ways."""
    if way == "standard":
        return fit_classifier("smallcnn", X, Y, **SHORT)
    return RobustTrainer(**SHORT, **ROBUST[way]).fit("smallcnn", X, Y).classifier_


def accuracy(model):
    return (model.predict(X_TEST) == Y_TEST).mean()


def blobs(n=60, seed=0):
    """Two classes of rows in the unit square."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return (0.3 + 0.4 * y[:, None] + 0.08 * rng.normal(size=(n, 2))).clip(0, 1), y
