"""sktime's classifiers take series as (n, channels, length)."""

import pytest
from compat_checks import check_explained, series_data, time_limit

LIBRARY = "sktime"
pytest.importorskip(LIBRARY)


def models():
    from sktime.classification.distance_based import KNeighborsTimeSeriesClassifier
    from sktime.classification.dummy import DummyClassifier
    from sktime.classification.feature_based import SummaryClassifier
    from sktime.classification.interval_based import TimeSeriesForestClassifier
    from sktime.classification.kernel_based import RocketClassifier

    return {
        "TimeSeriesForestClassifier": TimeSeriesForestClassifier(n_estimators=10, random_state=0),
        "KNeighborsTimeSeriesClassifier": KNeighborsTimeSeriesClassifier(),
        "SummaryClassifier": SummaryClassifier(random_state=0),
        "RocketClassifier": RocketClassifier(num_kernels=100, random_state=0),
        "DummyClassifier": DummyClassifier(),
    }


@pytest.mark.parametrize(
    "name",
    [
        "TimeSeriesForestClassifier",
        "KNeighborsTimeSeriesClassifier",
        "SummaryClassifier",
        "RocketClassifier",
        "DummyClassifier",
    ],
)
def test_classifier(ledger, name):
    X, y = series_data()
    with time_limit():
        model = models()[name].fit(X, y)
        check_explained(ledger, name, model, X, y)
