"""Models that the gradient methods are tried on."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

import contrafact as cf

ITALY = cf.load_dataset("ItalyPowerDemand")


@pytest.fixture(scope="session")
def linear():
    return LogisticRegression(max_iter=1000).fit(ITALY.X_train[:, 0], ITALY.y_train)


@pytest.fixture(scope="session")
def network():
    return MLPClassifier((16,), max_iter=400, random_state=0).fit(
        ITALY.X_train[:, 0], ITALY.y_train
    )
