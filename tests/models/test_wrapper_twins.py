"""Twins behind wrappers compute what the wrappers compute, and save model rows."""

import numpy as np
import pytest
import torch
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import contrafact as cf
from contrafact.models.twins import make_twin

IRIS = load_iris(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)


def logistic():
    return make_pipeline(StandardScaler(), LogisticRegression())


def network():
    return make_pipeline(StandardScaler(), MLPClassifier((5,), max_iter=60, random_state=0))


def margins():
    return make_pipeline(StandardScaler(), LinearSVC())


WRAPPED = {
    "search": lambda: GridSearchCV(logistic(), {"logisticregression__C": [0.1, 1]}, cv=2),
    "random search": lambda: RandomizedSearchCV(
        logistic(), {"logisticregression__C": [0.1, 1]}, n_iter=2, cv=2
    ),
    "one-vs-rest": lambda: OneVsRestClassifier(logistic()),
    "one-vs-rest, margins": lambda: OneVsRestClassifier(
        make_pipeline(StandardScaler(), LinearSVC())
    ),
    "calibrated": lambda: CalibratedClassifierCV(logistic(), cv=2),
    "calibrated margins": lambda: CalibratedClassifierCV(LinearSVC(), cv=2),
    "calibrated probabilities": lambda: CalibratedClassifierCV(network(), cv=2),
    "vote": lambda: VotingClassifier(
        [("a", logistic()), ("b", network())], voting="soft", weights=[1, 3]
    ),
    "pipeline of a search": lambda: make_pipeline(
        StandardScaler(), GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, cv=2)
    ),
    "search of calibrated": lambda: GridSearchCV(
        CalibratedClassifierCV(logistic(), cv=2), {"cv": [2]}, cv=2
    ),
}


def outputs(model, X):
    """What the twin should give, as the softmax or as decision values."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)
    values = model.decision_function(X)
    return values if values.ndim == 2 else np.column_stack([np.zeros_like(values), values])


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize("data", [IRIS, CANCER], ids=["three classes", "two classes"])
@pytest.mark.parametrize("name", WRAPPED)
@pytest.mark.filterwarnings("ignore")
def test_the_twin_computes_what_the_wrapper_does(name, data):
    X, y = data
    model = WRAPPED[name]().fit(X, y)
    logits = make_twin(model)(torch.from_numpy(X))
    ours = logits.softmax(1) if hasattr(model, "predict_proba") else logits
    np.testing.assert_allclose(ours, outputs(model, X), atol=1e-9)


@pytest.mark.parametrize("kind", [FixedThresholdClassifier, TunedThresholdClassifierCV, "frozen"])
def test_a_threshold_leaves_the_probabilities(kind):
    X, y = CANCER
    inner = logistic().fit(X, y)
    if kind == "frozen":
        model = FrozenEstimator(inner)
    elif kind is FixedThresholdClassifier:
        model = kind(inner, threshold=0.9).fit(X, y)
    else:
        model = kind(inner).fit(X, y)
    proba = make_twin(model)(torch.from_numpy(X)).softmax(1)
    np.testing.assert_allclose(proba, model.predict_proba(X), atol=1e-9)


def test_the_threshold_decides_what_is_valid():
    X, y = CANCER
    model = FixedThresholdClassifier(logistic(), threshold=0.9).fit(X, y)
    classifier = cf.as_classifier(model)
    np.testing.assert_array_equal(classifier.predict(X), model.predict(X))
    assert (classifier.predict(X) != model.predict_proba(X).argmax(1)).any()
    result = cf.LineSearch().fit(model, X, y).explain(X[:20])
    assert result.valid.all()
    np.testing.assert_array_equal(model.predict(result.X_cf), result.target)


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize(
    "model",
    [
        CalibratedClassifierCV(logistic(), method="isotonic", cv=2),
        VotingClassifier([("a", logistic())], voting="hard"),
        VotingClassifier([("a", logistic()), ("b", "drop")], voting="soft"),
        GridSearchCV(RandomForestClassifier(5), {"max_depth": [2]}, cv=2),
        OneVsRestClassifier(RandomForestClassifier(5)),
    ],
    ids=["isotonic", "hard vote", "dropped member", "search of a forest", "forests"],
)
def test_what_has_no_exact_gradient_has_no_twin(model):
    assert make_twin(model.fit(*IRIS)) is None


def test_a_search_costs_no_more_than_its_best_estimator():
    data = cf.load_dataset("ItalyPowerDemand")
    X = data.X_train[:, 0]
    search = GridSearchCV(LogisticRegression(max_iter=1000), {"C": [0.1, 1]}, cv=2)
    search.fit(X, data.y_train)
    calls = [
        cf.CELS().fit(model, data.X_train, data.y_train).explain(data.X_test[:5]).calls.tolist()
        for model in (search, search.best_estimator_)
    ]
    assert calls[0] == calls[1]
