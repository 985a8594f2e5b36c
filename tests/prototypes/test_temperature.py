"""The temperature of class probabilities."""

import numpy as np
import pytest
import torch
from scipy.special import softmax

from contrafact.prototypes import GLVQ
from contrafact.prototypes.temperature import likely_temperature


def test_temperature_is_the_most_likely(blobs):
    """Neither a lower nor a higher one explains the labels better."""
    X, y = blobs
    model = GLVQ(2, max_iter=5, random_state=0).fit(X, y)
    d = model.distances(X)
    nearest = np.stack([d[:, model.prototype_labels_ == c].min(1) for c in range(3)], axis=1)

    def likelihood(T):
        return np.log(softmax(-nearest / T, axis=1)[np.arange(len(y)), y]).sum()

    best = likelihood(model.temperature_)
    assert all(best > likelihood(model.temperature_ * factor) for factor in (0.5, 0.99, 1.01, 2))
    weight = np.where(y == 0, 3.0, 1.0)
    weighted = likely_temperature(
        torch.from_numpy(d), torch.from_numpy(y), torch.from_numpy(model.prototype_labels_), weight
    )
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    repeated = likely_temperature(
        torch.from_numpy(d[rows]),
        torch.from_numpy(y[rows]),
        torch.from_numpy(model.prototype_labels_),
    )
    # The unit of the search is another, so only nearly.
    assert weighted == pytest.approx(repeated, rel=1e-6)
    assert weighted != pytest.approx(model.temperature_, rel=1e-3)
