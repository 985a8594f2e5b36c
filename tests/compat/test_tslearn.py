"""tslearn's classifiers take (n, length) or (n, length, channels)."""

import pytest
from compat_checks import check_explained, series_data

import contrafact as cf

LIBRARY = "tslearn"
pytest.importorskip(LIBRARY)


def models():
    from tslearn.early_classification import NonMyopicEarlyClassifier
    from tslearn.neighbors import KNeighborsTimeSeriesClassifier
    from tslearn.neural_network import TimeSeriesMLPClassifier
    from tslearn.svm import TimeSeriesSVC

    return {
        "KNeighborsTimeSeriesClassifier": KNeighborsTimeSeriesClassifier(n_neighbors=3),
        "TimeSeriesSVC": TimeSeriesSVC(kernel="gak", gamma="auto"),
        "TimeSeriesMLPClassifier": TimeSeriesMLPClassifier((8,), max_iter=300, random_state=0),
        "NonMyopicEarlyClassifier": NonMyopicEarlyClassifier(n_clusters=2, random_state=0),
    }


NAMES = (
    "KNeighborsTimeSeriesClassifier",
    "TimeSeriesSVC",
    "TimeSeriesMLPClassifier",
    "NonMyopicEarlyClassifier",
)


@pytest.mark.parametrize("name", NAMES)
def test_classifier(ledger, name):
    X, y = series_data()
    model = models()[name].fit(X[:, 0], y)
    check_explained(ledger, name, model, X, y, lambda x: model.predict(x[:, 0]))


def test_several_channels_need_a_wrapper(ledger):
    X, y = series_data(channels=3)
    model = models()["KNeighborsTimeSeriesClassifier"].fit(X.transpose(0, 2, 1), y)
    with pytest.raises(ValueError, match=r"series as \(n, length, channels\)"):
        cf.as_classifier(model).predict(X)

    def transposed(x):
        return model.predict_proba(x.transpose(0, 2, 1))

    check_explained(
        ledger,
        "KNeighborsTimeSeriesClassifier, 3 channels, as a function",
        model,
        X,
        y,
        lambda x: model.predict(x.transpose(0, 2, 1)),
        wrap=cf.as_classifier(transposed, classes=model.classes_),
    )
