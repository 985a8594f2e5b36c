"""Models that learn by gradient descent, and short ways to fit and compare them."""

import numpy as np
import pytest

from contrafact import prototypes
from contrafact.prototypes.gradient import GradientLVQ

PUBLIC = [getattr(prototypes, name) for name in prototypes.__all__]
MODELS = [kind for kind in PUBLIC if isinstance(kind, type) and issubclass(kind, GradientLVQ)]
every_model = pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)
BASE = {"n_prototypes": 2, "max_iter": 6, "random_state": 0}


def learned(model, X):
    return np.concatenate(
        [model.prototypes_.ravel(), model.predict_proba(X).ravel(), [model.loss_]]
    )


def after_two(history):
    return len(history["train_loss"]) == 2
