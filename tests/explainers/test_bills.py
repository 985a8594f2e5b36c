"""No default setting spends more than the default budget, and a search that it ended says so."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import contrafact as cf
from contrafact.engine.budget import DEFAULT_CALLS_PER_COUNTERFACTUAL
from contrafact.explainers.registry import explainer_classes

METHODS = sorted(set(explainer_classes()) - {"PrototypeCounterfactual"})
DATA = cf.load_dataset("ItalyPowerDemand")
X_TRAIN = DATA.X_train[:40]
Y_TRAIN = DATA.y_train[:40]


class Counted:
    """A function of a model that counts its rows and answers as a service would."""

    def __init__(self, estimator):
        self.estimator = estimator
        self.rows = 0

    def __call__(self, X):
        self.rows += len(X)
        return self.estimator.predict_proba(X.reshape(len(X), -1))


@pytest.fixture(scope="module")
def models():
    rows = X_TRAIN.reshape(len(X_TRAIN), -1)
    smooth = SVC(probability=True, random_state=0).fit(rows, Y_TRAIN)
    steps = RandomForestClassifier(20, random_state=0).fit(rows, Y_TRAIN)
    return {"smooth": smooth, "steps": steps}


def defaults(method):
    """The method with its defaults; autoencoders are trained briefly."""
    kind = explainer_classes()[method]
    brief = {"max_epochs": 2} if method in ("LatentCF", "TSNUC") else {}
    return kind(**brief)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", ["smooth", "steps"])
@pytest.mark.parametrize("method", METHODS)
def test_defaults_keep_to_the_default_budget(method, model, models):
    counted = Counted(models[model])
    takes_series = "series" in explainer_classes()[method].tags.modalities
    X, rows = (x if takes_series else x[:, 0] for x in (X_TRAIN, DATA.X_test))
    explainer = defaults(method).fit(
        cf.as_classifier(counted, classes=models[model].classes_), X, Y_TRAIN
    )
    if method == "Graft":
        explainer.explain(rows[:1])  # makes its committee, which is part of fitting
    before = counted.rows
    result = explainer.explain(rows[:2], refine=True)
    assert counted.rows - before == result.calls.sum()
    assert result.calls.max() <= DEFAULT_CALLS_PER_COUNTERFACTUAL
    assert not (result.status == "error").any(), result.message
    unlimited = explainer.explain(rows[:2], refine=True, budget=cf.Budget(calls=np.inf))
    cut = result.calls != unlimited.calls
    told = np.array(["default budget" in message for message in result.message])
    np.testing.assert_array_equal(told, cut)


def test_an_instance_outside_the_box_does_not_halve_its_radius_for_ever():
    rows = X_TRAIN.reshape(len(X_TRAIN), -1)
    logistic = LogisticRegression(max_iter=1000).fit(rows, Y_TRAIN)
    explainer = cf.SVCE(restarts=2, n_iter=20).fit(logistic, X_TRAIN, Y_TRAIN)
    far = DATA.X_test[:3].copy()
    far[:, 0, 3] = 50.0
    limits = cf.Constraints(lower=-4.0, upper=4.0)
    result = explainer.explain(far, constraints=limits, budget=cf.Budget(calls=np.inf))
    assert (result.calls < 2000).all()
    assert result.valid.all()
    assert np.abs(result.X_cf).max() <= 4.0
