"""pyts' classifiers take (n, length)."""

import pytest
from compat_checks import check_explained, series_data

LIBRARY = "pyts"
pytest.importorskip(LIBRARY)


def models():
    from pyts.classification import BOSSVS, SAXVSM, KNeighborsClassifier, TimeSeriesForest
    from pyts.multivariate.classification import MultivariateClassifier

    return {
        "KNeighborsClassifier": KNeighborsClassifier(),
        "TimeSeriesForest": TimeSeriesForest(n_estimators=10, random_state=0),
        "BOSSVS": BOSSVS(window_size=16),
        "SAXVSM": SAXVSM(window_size=16),
        "MultivariateClassifier": MultivariateClassifier(KNeighborsClassifier()),
    }


@pytest.mark.parametrize("name", ["KNeighborsClassifier", "TimeSeriesForest", "BOSSVS", "SAXVSM"])
def test_classifier(ledger, name):
    X, y = series_data()
    model = models()[name].fit(X[:, 0], y)
    check_explained(ledger, name, model, X, y, lambda x: model.predict(x[:, 0]))


def test_several_channels(ledger):
    X, y = series_data(channels=3)
    model = models()["MultivariateClassifier"].fit(X, y)
    check_explained(ledger, "MultivariateClassifier", model, X, y)
