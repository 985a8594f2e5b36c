"""Parts of a grid, and the choice of instances."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from small_grid import toy

import contrafact as cf
from contrafact.benchmark.parts import select_instances


def test_selection_is_stratified_by_margin():
    data = toy(0)
    model = cf.as_classifier(LogisticRegression().fit(data.X_train[:, 0], data.y_train))
    X = np.concatenate([data.X_train, data.X_test])
    rows, target = select_instances(model, X, 12, "stratified", 0)
    proba = np.sort(model.predict_proba(X), axis=1)
    quartile = np.argsort(np.argsort(proba[:, -1])) * 4 // len(X)
    assert np.bincount(quartile[rows]).tolist() == [3, 3, 3, 3]
    assert (target != model.predict(X[rows])).all()
    assert len(select_instances(model, X, None, "all", 0)[0]) == len(X)
    with pytest.raises(ValueError, match="selection must be"):
        select_instances(model, X, 3, "worst", 0)
