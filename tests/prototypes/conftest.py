"""Data that the tests of the prototype models share."""

import numpy as np
import pytest
from sklearn.datasets import load_iris


@pytest.fixture(scope="session")
def blobs():
    """45 rows of three overlapping classes, four features."""
    rng = np.random.default_rng(0)
    y = np.arange(45) % 3
    return 1.2 * rng.normal(size=(3, 4))[y] + rng.normal(size=(45, 4)), y


@pytest.fixture(scope="session")
def iris():
    return load_iris(return_X_y=True)
