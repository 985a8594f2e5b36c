"""Which models are prototype models, and what they look like in the units of the instances."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from contrafact.explainers.support.prototype_model import (
    is_prototype_model,
    unwrap_prototype_model,
)
from contrafact.models import as_classifier
from contrafact.models.reshaped import Reshaped
from contrafact.prototypes import GLVQ, GMLVQ, DeepLVQ, MedianLVQ, NearestMean

X, Y = load_iris(return_X_y=True)
X_TENSOR = torch.from_numpy(X)


def quick(cls=GLVQ, **options):
    return cls(max_iter=2, random_state=0, **options)


ACCEPTED = {
    "glvq": quick(),
    "gmlvq": quick(GMLVQ),
    "mean": NearestMean(),
    "median": MedianLVQ(1),
    "scaled": make_pipeline(StandardScaler(), quick()),
    "two scalers": make_pipeline(RobustScaler(), MinMaxScaler(), quick()),
    "skipped": Pipeline([("skipped", "passthrough"), ("model", quick())]),
    "search": GridSearchCV(
        make_pipeline(MaxAbsScaler(), quick()), {"glvq__n_prototypes": [1]}, cv=2
    ),
}
REFUSED = {
    "linear": LogisticRegression(max_iter=1000),
    "pca": make_pipeline(PCA(2), quick()),
    "clipping": make_pipeline(MinMaxScaler(clip=True), quick()),
}


@pytest.mark.parametrize("model", ACCEPTED.values(), ids=ACCEPTED)
def test_prototype_models_are_known(model):
    classifier = as_classifier(model.fit(X, Y))
    assert is_prototype_model(classifier)
    assert is_prototype_model(Reshaped(classifier, (4,)))
    assert unwrap_prototype_model(classifier, X_TENSOR).prototypes().shape[1] == 4


@pytest.mark.parametrize("model", REFUSED.values(), ids=REFUSED)
def test_other_models_are_not(model):
    classifier = as_classifier(model.fit(X, Y))
    assert not is_prototype_model(classifier)
    with pytest.raises(TypeError, match="model must be a fitted prototype model"):
        unwrap_prototype_model(classifier, X_TENSOR)


def test_distances_that_are_not_linear_are_not():
    """These have prototypes, but no metric; unwrapping finds out when the metric is asked for."""
    deep = quick(DeepLVQ).fit(X, Y)
    elastic = NearestMean(metric="dtw").fit(X, Y)
    for model in (deep, elastic):
        assert not is_prototype_model(as_classifier(model))
    unwrapped = unwrap_prototype_model(as_classifier(elastic), X_TENSOR)
    with pytest.raises(TypeError, match="no linear metric"):
        unwrapped.metric()


def test_functions_and_other_classifiers_are_not():
    function = as_classifier(lambda rows: np.tile([0.4, 0.6], (len(rows), 1)), classes=[0, 1])
    assert not is_prototype_model(function)


def test_the_model_is_not_asked(monkeypatch):
    classifier = as_classifier(quick().fit(X, Y))

    def refuse(*_):
        raise AssertionError("the model was asked")

    for name in ("evaluate", "verdict", "predict", "predict_proba"):
        monkeypatch.setattr(classifier, name, refuse)
    for name in ("predict", "predict_proba", "fit"):
        monkeypatch.setattr(classifier.model, name, refuse)
    assert is_prototype_model(classifier)


@pytest.mark.parametrize("cls", [GLVQ, GMLVQ])
@pytest.mark.parametrize(
    "scaler",
    [None, StandardScaler(), MinMaxScaler((-1, 3)), MaxAbsScaler(), RobustScaler()],
)
def test_distances_are_those_of_the_model(scaler, cls):
    pipeline = make_pipeline(scaler or "passthrough", quick(cls)).fit(X, Y)
    unwrapped = unwrap_prototype_model(as_classifier(pipeline), X_TENSOR)
    omega = unwrapped.metric()
    assert (omega is None) == (scaler is None and cls is GLVQ)
    away = X_TENSOR[:, None] - unwrapped.prototypes()
    if omega is not None:
        away = away @ omega.T
    scaled = X if scaler is None else pipeline[:-1].transform(X)
    expected = pipeline[-1].distances(scaled)
    np.testing.assert_allclose(away.square().sum(2), expected, rtol=1e-9)


def test_a_constant_feature_keeps_its_scale():
    """Its range is 0, so the scaler is looked at one unit farther."""
    rows = X.copy()
    rows[:, 2] = 5.0
    pipeline = make_pipeline(StandardScaler(), quick()).fit(rows, Y)
    unwrapped = unwrap_prototype_model(as_classifier(pipeline), torch.from_numpy(rows))
    scaled = torch.from_numpy(rows) * unwrapped.gain + unwrapped.shift
    np.testing.assert_allclose(scaled, pipeline[:-1].transform(rows), atol=1e-9)


def test_prototypes_of_another_size_are_refused():
    unwrapped = unwrap_prototype_model(as_classifier(quick().fit(X, Y)), X_TENSOR[:, :3])
    with pytest.raises(TypeError, match="prototypes of 4 numbers, but instances have 3"):
        unwrapped.prototypes()
