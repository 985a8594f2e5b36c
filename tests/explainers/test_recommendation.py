"""One policy: which method is recommended for which model, data and constraints."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cityblock
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler

import contrafact as cf
from contrafact.explainers import Recommendation
from contrafact.prototypes import GLVQ, GMLVQ, MedianLVQ, NearestMean

X, y = load_iris(return_X_y=True)


def name_of(recommendation: Recommendation) -> str:
    return type(recommendation.method).__name__


def fitted(model):
    return model.fit(X, y)


@pytest.fixture(scope="module")
def forest():
    return fitted(RandomForestClassifier(5, random_state=0))


@pytest.fixture(scope="module")
def network():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 3))


@pytest.mark.parametrize("modality", ["series", "image", "row"])
def test_everything_else_gets_a_graft(modality, forest, network):
    for model in (forest, network):
        recommendation = cf.recommend(model, modality)
        assert name_of(recommendation) == "Graft" and recommendation.options == {}
        assert recommendation.method.level == "steady"
        assert modality in recommendation.reason and "noise of 5 %" in recommendation.reason


def test_images_get_more_donors(network):
    donors = {kind: cf.recommend(network, kind).method.n_donors for kind in ("image", "series")}
    assert donors["image"] > donors["series"]


def test_a_classifier_is_taken_as_well(network):
    classifier = cf.as_classifier(network)
    assert name_of(cf.recommend(classifier, "image")) == "Graft"
    assert classifier.rows_evaluated == 0  # the model is not asked


@pytest.mark.parametrize(
    "model",
    [
        GLVQ(max_iter=5, random_state=0),
        GMLVQ(max_iter=5, random_state=0),
        MedianLVQ(random_state=0),
        NearestMean(),
        make_pipeline(StandardScaler(), GLVQ(max_iter=5, random_state=0)),
        make_pipeline(MinMaxScaler(), "passthrough", GLVQ(max_iter=5, random_state=0)),
        GridSearchCV(GLVQ(max_iter=5, random_state=0), {"n_prototypes": [1]}, cv=2),
    ],
    ids=lambda model: repr(model)[:40],
)
def test_prototype_models_get_the_exact_method(model):
    recommendation = cf.recommend(fitted(model), "row")
    assert name_of(recommendation) == "PrototypeCounterfactual"
    assert recommendation.options == {}
    recommendation.method.fit(model, X, y)  # it takes what is recommended for it


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(max_iter=500),
        make_pipeline(PolynomialFeatures(2), GLVQ(max_iter=5, random_state=0)),
        make_pipeline(MinMaxScaler(clip=True), GLVQ(max_iter=5, random_state=0)),
        MedianLVQ(metric=cityblock, random_state=0),
    ],
    ids=lambda model: repr(model)[:40],
)
def test_other_models_do_not(model):
    assert name_of(cf.recommend(fitted(model), "row")) == "Graft"
    with pytest.raises(TypeError):
        cf.PrototypeCounterfactual().fit(model, X, y)


def test_the_method_can_keep_the_constraints():
    model = fitted(GLVQ(max_iter=5, random_state=0))
    frozen = cf.Constraints(frozen=np.array([True, False, False, False]))
    assert name_of(cf.recommend(model, "series", frozen)) == "PrototypeCounterfactual"
    steady = cf.Constraints(max_step=1.0)
    recommendation = cf.recommend(model, "series", steady)
    assert name_of(recommendation) == "Graft"
    assert steady.kinds <= recommendation.method.tags.constraints


def test_nothing_is_fitted(network, monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("fit was called")

    model = fitted(GLVQ(max_iter=5, random_state=0))
    monkeypatch.setattr(cf.PrototypeCounterfactual, "_fit", refuse)
    assert not hasattr(cf.recommend(model, "row").method, "classifier_")


def test_each_has_a_reason_and_a_repr(network):
    recommendation = cf.recommend(network, "series")
    text = recommendation.reason
    assert text.endswith(".") and ". " not in text  # one sentence
    assert repr(recommendation) == f"<Recommendation: Graft(). {text}>"
    with pytest.raises(FrozenInstanceError):
        recommendation.reason = "another"


def test_wrong_arguments_are_named(network):
    with pytest.raises(ValueError, match=r"modality must be 'series', .* got 'text'"):
        cf.recommend(network, "text")
    with pytest.raises(TypeError, match="constraints must be None or a Constraints object"):
        cf.recommend(network, "row", {"lower": 0})
    with pytest.raises(TypeError, match="model must be a torch module"):
        cf.recommend(3, "row")
