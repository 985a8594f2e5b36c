"""On real data, neighbors of the target class and points on the way to them are always valid."""

from __future__ import annotations

import numpy as np
import pytest
from aeon.classification.convolution_based import RocketClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import contrafact as cf

DATASETS = ("GunPoint", "ItalyPowerDemand", "ArrowHead", "BasicMotions")
MODELS = {
    "linear": lambda: LogisticRegression(max_iter=500),
    "forest": lambda: RandomForestClassifier(50, random_state=0),
    "rocket": lambda: RocketClassifier(n_kernels=500, random_state=0),
}


def assert_always_valid(name, kind, labels=str, n=60):
    data = cf.load_dataset(name)
    y = data.y_train.astype(labels)
    rows = np.random.default_rng(0).permutation(len(data.X_test))[:n]
    X = data.X_test[rows]

    def shaped(series):
        return series if kind == "rocket" else series.reshape(len(series), -1)

    model = MODELS[kind]().fit(shaped(data.X_train), y)
    for method in (cf.NearestUnlike(), cf.LineSearch()):
        result = method.fit(model, data.X_train, y).explain(X)
        said = model.predict(shaped(result.X_cf))
        assert result.valid.mean() == 1.0 and set(result.status) == {"valid"}
        np.testing.assert_array_equal(said, result.target)
        assert (result.target != result.labels).all() and result.target.dtype.kind == y.dtype.kind


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", DATASETS)
def test_validity_is_one(name, kind):
    assert_always_valid(name, kind)


@pytest.mark.parametrize("kind", MODELS)
def test_validity_is_one_with_whole_numbers_as_labels(kind):
    assert_always_valid("ItalyPowerDemand", kind, labels=int)
