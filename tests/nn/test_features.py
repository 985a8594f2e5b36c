"""Features of a network: what its last layer sees."""

import numpy as np
import pytest
import torch
from digit_models import blobs
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from torch import nn

from contrafact.nn import FeatureExtractor, fit_classifier


def test_features_times_the_last_layer_are_the_logits():
    X, y = blobs()
    extractor = FeatureExtractor("mlp", max_epochs=2).fit(X, y)
    module = extractor.classifier_.module
    features = extractor.transform(X)
    assert features.shape == (len(X), 64)
    with torch.no_grad():
        logits = module.head(torch.from_numpy(features))
        expected = module(torch.as_tensor(X, dtype=torch.float32))
    np.testing.assert_allclose(logits, expected, atol=1e-5)


def test_options_reach_the_training():
    X, y = blobs()
    extractor = clone(FeatureExtractor("mlp", max_epochs=3, learning_rate=0.01, random_state=4))
    same = fit_classifier(
        "mlp", X, y, max_epochs=3, batch_size=64, learning_rate=0.01, random_state=4
    )
    assert extractor.fit(X, y).classifier_.history == same.history
    assert extractor.set_params(batch_size=4).fit(X, y).classifier_.history != same.history


@pytest.mark.usefixtures("own_random_numbers")
def test_of_a_trained_network_uses_it_as_it_is():
    module = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 2)).eval()
    X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    with torch.no_grad():
        expected = module[:2](torch.from_numpy(X))
    np.testing.assert_allclose(FeatureExtractor.of(module).transform(X), expected, atol=1e-6)


def test_refuses():
    X, y = blobs()
    with pytest.raises(NotFittedError):
        FeatureExtractor().transform(X)
    with pytest.raises(ValueError, match="max_epochs"):
        FeatureExtractor(max_epochs=0).fit(X, y)
    with pytest.raises(TypeError, match="torch module"):
        FeatureExtractor.of(LogisticRegression().fit(X, y))
