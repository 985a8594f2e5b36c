"""LightGBM on rows and on flattened series."""

import pytest
from compat_checks import check_explained, rows_of_data, series_data

LIBRARY = "lightgbm"
lightgbm = pytest.importorskip(LIBRARY)


def make():
    return lightgbm.LGBMClassifier(n_estimators=20, min_child_samples=3, verbose=-1)


def test_rows(ledger):
    X, y = rows_of_data()
    check_explained(ledger, "LGBMClassifier", make().fit(X, y), X, y)


def test_series(ledger):
    X, y = series_data()
    model = make().fit(X[:, 0], y)
    check_explained(ledger, "LGBMClassifier, series", model, X, y, lambda x: model.predict(x[:, 0]))
