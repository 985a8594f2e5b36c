"""Twins of pipelines: the logits of the model, exactly, with gradients."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    StandardScaler,
)

import contrafact as cf
from contrafact.engine.instances import read_instances, wrap_model

NUMBERS = ["age", "bmi", "hba1c"]
LEVELS = ["sex", "ward", "risk"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 120
    levels = ["low", "middle", "high"]
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "sex": rng.choice(["f", "m"], n),
            "bmi": rng.normal(27, 4, n),
            "hba1c": np.where(rng.random(n) < 0.2, np.nan, rng.normal(6.5, 1, n).round(1)),
            "ward": rng.choice(["A", "B", None], n),
            "smokes": rng.random(n) < 0.4,
            "risk": pd.Categorical(rng.choice(levels, n), levels, ordered=True),
        }
    )
    score = frame["age"] / 20 + frame["bmi"] / 5 + frame["smokes"] + rng.normal(0, 1, n)
    return frame, np.digitize(score, np.quantile(score, [0.4, 0.7]))


def columns(levels=None, numbers=None):
    return ColumnTransformer(
        [
            ("levels", levels or OneHotEncoder(handle_unknown="ignore"), LEVELS),
            ("numbers", numbers or make_pipeline(SimpleImputer(), StandardScaler()), NUMBERS),
            ("flags", "passthrough", ["smokes"]),
        ]
    )


def mlp():
    return MLPClassifier((8,), max_iter=60, random_state=0)


def logistic():
    return LogisticRegression(max_iter=500)


RISKS = [["f", "m"], ["A", "B", None], ["low", "middle", "high"]]
WITH_TWIN = {
    "logistic": lambda: make_pipeline(columns(), logistic()),
    "mlp": lambda: make_pipeline(columns(), mlp()),
    "pca": lambda: make_pipeline(columns(), PCA(4), logistic()),
    "indicator": lambda: make_pipeline(
        columns(numbers=make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())), mlp()
    ),
    "dropped level": lambda: make_pipeline(
        columns(OneHotEncoder(drop="first", handle_unknown="ignore")), logistic()
    ),
    "search": lambda: GridSearchCV(
        make_pipeline(columns(), logistic()), {"logisticregression__C": [0.1, 1.0]}, cv=2
    ),
}
WITHOUT = {
    "forest": lambda: make_pipeline(columns(), RandomForestClassifier(5, random_state=0)),
    "boosting": lambda: make_pipeline(
        columns(), HistGradientBoostingClassifier(max_iter=5, random_state=0)
    ),
    "bins": lambda: make_pipeline(
        columns(
            numbers=make_pipeline(
                SimpleImputer(), KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf")
            )
        ),
        logistic(),
    ),
    "products": lambda: make_pipeline(columns(), PolynomialFeatures(2), logistic()),
    "power": lambda: make_pipeline(
        columns(numbers=make_pipeline(SimpleImputer(), PowerTransformer())), logistic()
    ),
    "neighbors": lambda: make_pipeline(columns(numbers=KNNImputer(n_neighbors=3)), logistic()),
}


def wrapped(model, frame):
    instances = read_instances(frame, "X", None)
    classifier = wrap_model(model, instances)
    classifier.probe(instances.values)
    return classifier, torch.from_numpy(instances.values)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("name", WITH_TWIN)
def test_the_logits_are_those_of_the_model(table, name):
    frame, y = table
    model = WITH_TWIN[name]().fit(frame, y)
    classifier, x = wrapped(model, frame)
    assert classifier.differentiable
    proba = classifier.logits(x).softmax(1)
    np.testing.assert_allclose(proba, model.predict_proba(frame), rtol=1e-6, atol=1e-6)
    # Also on rows that were not seen: every column exchanged among the rows.
    rng = np.random.default_rng(1)
    mixed = pd.DataFrame(
        {name: frame[name].iloc[rng.permutation(len(frame))].to_numpy() for name in frame}
    ).astype(frame.dtypes)
    codes = read_instances(mixed, "X", None, space=classifier.space).table.codes
    proba = classifier.logits(classifier.space.embed(torch.from_numpy(codes))).softmax(1)
    np.testing.assert_allclose(proba, model.predict_proba(mixed), rtol=1e-6, atol=1e-6)


def test_gradients_are_those_of_the_numbers(table):
    frame, y = table
    model = WITH_TWIN["mlp"]().fit(frame, y)
    classifier, x = wrapped(model, frame)
    point = x[:1].clone().requires_grad_()
    classifier.logits(point)[0, 1].backward()
    column = frame.columns.get_loc("bmi")
    place = int((classifier.space.column == column).nonzero()[0])
    step = 1e-3
    moved = frame[:1].assign(bmi=frame["bmi"][:1] + step * classifier.space.schema["bmi"].scale)

    def first_logit(frame):
        logs = np.log(model.predict_proba(frame))
        return logs[0, 1] - logs[0, 0]

    slope = float(point.grad[0, place])
    point.grad = None
    classifier.logits(point)[0, 0].backward()
    slope -= float(point.grad[0, place])
    assert slope == pytest.approx(
        (first_logit(moved) - first_logit(frame[:1])) / step, rel=0.02, abs=1e-4
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WITHOUT)
def test_models_that_are_not_affine_have_none(table, name):
    frame, y = table
    classifier, _ = wrapped(WITHOUT[name]().fit(frame, y), frame)
    assert not classifier.differentiable


def test_a_level_that_the_model_refuses_costs_the_twin_and_not_the_fit(table):
    frame, y = table
    known = frame.fillna({"ward": "A"})
    model = make_pipeline(columns(OrdinalEncoder()), logistic()).fit(known, y)
    schema = cf.Schema.infer(known).edit("ward", levels=["A", "B", "C"])
    explainer = cf.NearestUnlike().fit(model, known, y, schema=schema)
    assert not explainer.classifier_.differentiable
    assert explainer.explain(known[:5]).valid.all()


@pytest.mark.usefixtures("own_random_numbers")
def test_modules_of_numbers_have_gradients():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(100, 15, 50), "b": rng.integers(0, 2, 50)})
    module = torch.nn.Linear(2, 2)
    classifier, x = wrapped(module, frame)
    assert classifier.differentiable
    expected = module(torch.tensor(frame.to_numpy(np.float32))).softmax(1)
    torch.testing.assert_close(
        classifier.logits(x).softmax(1).float(), expected, rtol=1e-3, atol=1e-5
    )
