"""The alignment that a model's distance makes."""

import numpy as np
import pytest
from aeon.distances import dtw_alignment_path, msm_alignment_path
from sklearn.base import clone

from contrafact.prototypes import GLVQ, GRLVQ, MedianLVQ, SoftDTW
from contrafact.prototypes.alignment import alignment_path

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 2, 15)).cumsum(-1)
Y = np.arange(12) % 2
FAST = {"max_iter": 2, "random_state": 0}


def cost(path, x, w, importance):
    i, j = path.T
    weight = (importance[i] + importance[j]) / 2
    return (weight * ((x[:, i] - w[:, j]) ** 2).sum(0)).sum()


@pytest.mark.parametrize("window", [None, 0.2])
@pytest.mark.parametrize("model", [MedianLVQ(metric="dtw"), GLVQ(distance_fn=SoftDTW(), **FAST)])
def test_path_of_dtw(model, window):
    key = "window" if isinstance(model, MedianLVQ) else "distance_fn"
    value = window if key == "window" else SoftDTW(window=window)
    model = clone(model).set_params(**{key: value}).fit(X, Y)
    path, least = dtw_alignment_path(X[0], X[5], window=window)
    ours = alignment_path(model, X[0], X[5])
    assert ours.tolist() == [list(pair) for pair in path]
    assert cost(ours, X[0], X[5], np.ones(15)) == pytest.approx(least)


def test_relevances_bend_the_path():
    model = GRLVQ(distance_fn=SoftDTW(0.0), metric_learning_rate=2.0, **FAST).fit(X, Y)
    path = alignment_path(model, X[0], model.prototypes_[0])
    d = model.distances(X[:1])[0, 0]
    assert cost(path, X[0], model.prototypes_[0], 15 * model.relevances_) == pytest.approx(d)
    assert np.ptp(model.relevances_) > 0.01


def test_other_metrics():
    model = MedianLVQ(metric="msm", metric_params={"c": 0.3}).fit(X, Y)
    path, _ = msm_alignment_path(X[0], X[5], c=0.3)
    assert alignment_path(model, X[0], X[5]).tolist() == [list(pair) for pair in path]
    plain = alignment_path(MedianLVQ().fit(X, Y), X[0], X[5])
    assert plain.tolist() == [[t, t] for t in range(15)]
