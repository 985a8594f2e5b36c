"""Series of one point have no steps along time: no method and no metric may divide by them."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.explainers.registry import explainer_classes

#: metrics that are undefined here for reasons of their own: one value; one counterfactual each
UNDEFINED = {1: {"hoyer", "diversity"}, 2: {"diversity"}}


def problem(channels):
    X = np.random.default_rng(0).normal(size=(40, channels, 1))
    y = (X[:, 0, 0] > 0).astype(int)
    return LogisticRegression().fit(X.reshape(40, -1), y), X, y


METHODS = [
    method
    for method in explainer_classes().values()
    if "series" in method.tags.modalities and not method.tags.prototype_model
]


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_no_method_gives_nan(method, channels):
    model, X, y = problem(channels)
    explainer = method(**method._get_test_params()[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        explainer.fit(model, X, y, modality="series")
        for refine in (False, "minimal", "believable"):
            result = explainer.explain(X[:4], refine=refine)
            assert np.isfinite(result.X_cf).all()
            assert result.valid.all(), result.message


@pytest.mark.parametrize("channels", [1, 2])
def test_no_metric_gives_nan(channels):
    model, X, y = problem(channels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = cf.LineSearch().fit(model, X, y, modality="series").explain(X[:4])
        scores = result.evaluate(model=model, reference=(X, y)).select_dtypes("number")
    undefined = {name for name in scores if not np.isfinite(scores[name]).all()}
    assert undefined == UNDEFINED[channels]
