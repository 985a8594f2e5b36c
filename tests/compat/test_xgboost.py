"""XGBoost on rows and on flattened series."""

import pytest
from compat_checks import check_explained, rows_of_data, series_data

LIBRARY = "xgboost"
xgboost = pytest.importorskip(LIBRARY)


def test_rows(ledger):
    X, y = rows_of_data()
    model = xgboost.XGBClassifier(n_estimators=20).fit(X, y)
    check_explained(ledger, "XGBClassifier", model, X, y)


def test_series(ledger):
    X, y = series_data()
    number = (y == "fast").astype(int)
    model = xgboost.XGBRFClassifier(n_estimators=20).fit(X[:, 0], number)
    check_explained(
        ledger, "XGBRFClassifier, series", model, X, number, lambda x: model.predict(x[:, 0])
    )
