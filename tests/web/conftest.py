"""A small network on GunPoint, trained once for the tests of the web package."""

import pytest

import contrafact as cf


@pytest.fixture(scope="session")
def gunpoint():
    """An FCN, the training part, and the test instances of GunPoint."""
    data = cf.load_dataset("GunPoint")
    model = cf.fit_classifier("fcn", data.X_train, data.y_train, max_epochs=5)
    return model, data.X_train, data.y_train, data.X_test


@pytest.fixture(autouse=True)
def searches_in_threads(own_warning_filters):
    """Let tests search in threads of the server."""
