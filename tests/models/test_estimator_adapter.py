"""Estimators: what they answer through the adapter is what they answer themselves."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import softmax
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_blobs
from sklearn.ensemble import RandomForestClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from torch import nn

from contrafact.models import as_classifier
from contrafact.models.reshaped import Reshaped

DATA = {"iris": load_iris(return_X_y=True), "cancer": load_breast_cancer(return_X_y=True)}
DATA["wine"] = load_wine(return_X_y=True)


def off(X, seed=0):
    """The data moved by their own spread: rows about which a model is unsure."""
    return X + X.std(axis=0) * np.random.default_rng(seed).normal(size=X.shape)


def scaled(classifier):
    return make_pipeline(StandardScaler(), classifier)


class PredictOnly:
    """Not a scikit-learn class at all."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self._means = np.stack([X[y == c].mean(0) for c in self.classes_])
        return self

    def predict(self, X):
        return self.classes_[((X[:, None] - self._means) ** 2).sum(2).argmin(1)]


class Column(PredictOnly):
    """Gives a column of labels, as CatBoost does."""

    def predict(self, X):
        return super().predict(X)[:, None]


def sure(proba):
    """Rows whose two best probabilities differ by more than rounding."""
    best = np.sort(proba, axis=1)
    return best[:, -1] - best[:, -2] > 1e-9


ESTIMATORS = {
    "logistic": scaled(LogisticRegression()),
    "forest": RandomForestClassifier(10, random_state=0),
    "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
    "neighbors": KNeighborsClassifier(4),
    "naive bayes": GaussianNB(),
    "mlp": scaled(MLPClassifier((5,), max_iter=50, random_state=0)),
    "ridge": RidgeClassifier(),
    "linear svc": scaled(LinearSVC()),
    "svc": scaled(SVC()),
    "svc, pairwise": SVC(decision_function_shape="ovo"),
    "svc, platt": SVC(probability=True, random_state=0),
    "sgd": scaled(SGDClassifier(random_state=0)),
    "sgd, clipped": scaled(SGDClassifier(loss="modified_huber", random_state=0)),
    "nearest centroid": NearestCentroid(),
    "stacked": StackingClassifier(
        [("a", LogisticRegression())], SVC(probability=True, random_state=0)
    ),
    "voting": VotingClassifier(
        [("a", GaussianNB()), ("b", DecisionTreeClassifier(random_state=0))]
    ),
    "search": GridSearchCV(scaled(LogisticRegression()), {"logisticregression__C": [0.1, 1]}, cv=2),
    "search of svc": GridSearchCV(SVC(probability=True, random_state=0), {"C": [1, 10]}, cv=2),
    "predict only": PredictOnly(),
    "predict only, column": Column(),
}


@pytest.fixture(scope="module", params=[(e, d) for e in ESTIMATORS for d in DATA], ids=" on ".join)
def fitted(request):
    name, data = request.param
    X, y = DATA[data]
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # probability=True is on its way out of scikit-learn; unconverged is fine
        model = copy.deepcopy(ESTIMATORS[name]).fit(X, y)
        classifier = as_classifier(model)
    return model, classifier, np.concatenate([X, off(X)])


def test_labels_are_those_of_their_predict(fitted):
    model, classifier, X = fitted
    theirs = np.ravel(model.predict(X))
    np.testing.assert_array_equal(classifier.predict(X), theirs)
    np.testing.assert_array_equal(classifier.classes[classifier.evaluate(X).label], theirs)
    assert len(np.unique(theirs)) == len(model.classes_)


def test_probabilities_are_theirs(fitted):
    """Of predict_proba; else the softmax of the decision function; else 1 for what they predict."""
    model, classifier, X = fitted
    ours = classifier.predict_proba(X)
    in_pairs = getattr(model, "decision_function_shape", "ovr") == "ovo" and len(model.classes_) > 2
    if hasattr(model, "predict_proba"):
        expected = model.predict_proba(X)
    elif hasattr(model, "decision_function") and not in_pairs:
        d = model.decision_function(X)
        d = d if d.ndim == 2 else np.stack([0 * d, d], 1)
        expected = softmax(d, axis=1)
        np.testing.assert_allclose(classifier.evaluate(X).score, d)
    else:
        expected = np.ravel(model.predict(X))[:, None] == model.classes_
    np.testing.assert_allclose(ours, expected, atol=1e-12)
    np.testing.assert_allclose(classifier.verdict(X).proba, expected, atol=1e-12)


@pytest.mark.parametrize("name", ["svc, platt", "nearest centroid", "sgd, clipped", "stacked"])
@pytest.mark.filterwarnings("ignore")
def test_their_predict_is_not_always_the_argmax(name):
    """The reason why these are asked twice: if this ever fails, the second question can go."""
    X, y = DATA["wine"]
    model = copy.deepcopy(ESTIMATORS[name]).fit(X, y)
    rows = np.concatenate([X, off(X)])
    assert (model.classes_[model.predict_proba(rows).argmax(1)] != model.predict(rows)).any()


def test_rows_counted_are_the_rows_seen(fitted):
    """Count what reaches the model's own methods from outside; they may call one another."""
    model, _, X = fitted
    classifier, model = as_counted(copy.deepcopy(model))
    for ask, rows_per in (
        (classifier.evaluate, classifier.rows_per_evaluation),
        (classifier.verdict, classifier.rows_per_verdict),
    ):
        seen, counted = model.seen[0], classifier.rows_evaluated
        ask(X[:33])
        assert model.seen[0] - seen == classifier.rows_evaluated - counted == rows_per * 33


def as_counted(model):
    seen, depth = [0], [0]

    def counting(method):
        def ask(X):
            seen[0] += len(X) * (depth[0] == 0)
            depth[0] += 1
            try:
                return method(X)
            finally:
                depth[0] -= 1

        return ask

    classifier = as_classifier(
        model
    )  # before counting: a twin is compared with its model once, at the start
    for name in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, name):
            setattr(model, name, counting(getattr(model, name)))
    model.seen = seen
    return classifier, model


@pytest.mark.usefixtures("own_random_numbers")
def test_only_models_whose_predict_differs_are_asked_twice_in_searches():
    X, y = DATA["iris"]
    asked = {
        name: as_classifier(copy.deepcopy(ESTIMATORS[name]).fit(X, y)).rows_per_evaluation
        for name in ("logistic", "forest", "ridge", "naive bayes", "search", "predict only", "svc")
    }
    assert asked == dict.fromkeys(asked, 1) | {"svc": 2}


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(max_iter=500),
        scaled(LogisticRegression()),
        DecisionTreeClassifier(),
        GridSearchCV(DecisionTreeClassifier(), {"max_depth": [2]}, cv=2),
    ],
    ids=["twin", "pipeline", "tree", "search"],
)
def test_feature_names_are_given_back(estimator):
    X, y = DATA["iris"]
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = copy.deepcopy(estimator).fit(frame, y)
    classifier = as_classifier(model)
    np.testing.assert_allclose(classifier.predict_proba(X), model.predict_proba(frame))
    np.testing.assert_array_equal(classifier.predict(X), model.predict(frame))
    assert classifier.feature_names == ["a", "b", "c", "d"]
    assert all(type(name) is str for name in classifier.feature_names)
    assert Reshaped(classifier, (4,)).feature_names == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(max_iter=500).fit(*DATA["iris"]),
        nn.Linear(4, 3),
        lambda X: softmax(X[:, :3], axis=1),
    ],
    ids=["trained on an array", "module", "function"],
)
def test_models_without_feature_names_have_none(model):
    classifier = as_classifier(model)
    assert classifier.feature_names is None
    assert Reshaped(classifier, (4,)).feature_names is None


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), DecisionTreeClassifier(random_state=0)], ids=type
)
def test_series_are_flattened_for_a_flat_model(estimator):
    X, y = DATA["cancer"]
    X = StandardScaler().fit_transform(X)
    model = copy.deepcopy(estimator).fit(X, y)
    classifier = as_classifier(model)
    series = X.reshape(-1, 3, 10)
    np.testing.assert_array_equal(classifier.predict_proba(series), model.predict_proba(X))
    np.testing.assert_array_equal(classifier.predict(series), model.predict(X))
    with pytest.raises(
        ValueError, match=r"trained on 30 features per row, but X has 27 \(shape \(\d+, 3, 9\)\)"
    ):
        classifier.predict(series[..., :9])
    if classifier.differentiable:
        x = torch.from_numpy(series).requires_grad_()
        logits = classifier.logits(x)
        np.testing.assert_allclose(logits.detach().softmax(1), model.predict_proba(X), atol=1e-12)
        (gradient,) = torch.autograd.grad(logits[:, 1].sum(), x)
        np.testing.assert_allclose(gradient[0].numpy(), model.coef_.reshape(3, 10))


def test_a_scaler_that_works_in_place_changes_nothing_of_ours():
    X, y = DATA["wine"]
    model = make_pipeline(StandardScaler(copy=False), LogisticRegression()).fit(X.copy(), y)
    plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    rows, classifier = off(X), as_classifier(model)
    before = rows.copy()
    verdict = classifier.verdict(rows)  # asks twice: the second time about the same rows
    np.testing.assert_array_equal(rows, before)
    np.testing.assert_allclose(verdict.proba, plain.predict_proba(before))
    np.testing.assert_array_equal(classifier.classes[verdict.label], plain.predict(before))


LABELS = {
    "strings": np.array(["setosa", "Virginica", "versicolor, the second"]),
    "objects": np.array(["b", "a", "c"], dtype=object),
    "negative": np.array([-1, 7, -3]),
    "floats": np.array([1.0, -4.0, 2.0]),
    "bools": np.array([True, False, True]),
}


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(max_iter=500), RidgeClassifier(), PredictOnly()], ids=type
)
@pytest.mark.parametrize("kind", LABELS)
def test_labels_are_whatever_the_user_has(kind, estimator):
    X, y = DATA["iris"]
    labels = LABELS[kind][y]
    model = copy.deepcopy(estimator).fit(X, labels)
    ours = as_classifier(model).predict(X)
    np.testing.assert_array_equal(ours, model.predict(X))
    assert set(ours.tolist()) == set(labels.tolist())
    assert ours.dtype.kind == ("U" if labels.dtype.kind == "O" else labels.dtype.kind)


@pytest.mark.parametrize("classes", [["b", "a", "c"], [3, -1, 7], [2.5, 0.5, 1.5]])
@pytest.mark.parametrize("kind", ["estimator", "labels", "probabilities", "tensor"])
def test_classes_may_come_in_any_order(classes, kind):
    X, _ = DATA["iris"]

    class Unnamed:
        def column(self, X):
            return (X[:, 2] > 2.5).astype(int) + (X[:, 2] > 5)

        def predict(self, X):
            return np.asarray(classes)[self.column(X)]

    model = {
        "estimator": Unnamed(),
        "labels": Unnamed().predict,
        "probabilities": lambda X: np.eye(3)[Unnamed().column(X)],
        "tensor": lambda X: torch.eye(3)[Unnamed().column(X)].requires_grad_(),
    }[kind]
    classifier = as_classifier(model, classes=classes)
    np.testing.assert_array_equal(classifier.predict(X), Unnamed().predict(X))
    np.testing.assert_array_equal(classifier.predict_proba(X), np.eye(3)[Unnamed().column(X)])
    assert classifier.classes.tolist() == classes


def test_an_unknown_label_of_an_estimator_is_refused():
    X, y = DATA["iris"]
    model = PredictOnly().fit(X, y)
    model.classes_ = np.array([0, 1])
    model.predict = lambda X: np.arange(len(X)) % 4
    with pytest.raises(
        ValueError, match=r"predicts labels \[2, 3\] that are not in classes \[0, 1\]"
    ):
        as_classifier(model).predict(X)


@pytest.mark.parametrize(
    "estimator",
    [LogisticRegression(max_iter=500), scaled(MLPClassifier((5,), random_state=0)), GaussianNB()],
    ids=type,
)
@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))], ids=["copy", "pickle"]
)
@pytest.mark.filterwarnings("ignore")
def test_pickling_keeps_the_twin(estimator, duplicate):
    X, y = DATA["iris"]
    classifier = as_classifier(copy.deepcopy(estimator).fit(X, y), batch_size=17)
    classifier.predict(X)
    again = duplicate(classifier)
    assert (
        again.differentiable == classifier.differentiable == (not isinstance(estimator, GaussianNB))
    )
    assert (again.batch_size, again.rows_evaluated) == (17, classifier.rows_evaluated)
    np.testing.assert_array_equal(again.predict_proba(X), classifier.predict_proba(X))
    if again.differentiable:
        x = torch.from_numpy(X)
        assert torch.equal(again.logits(x), classifier.logits(x))


@pytest.mark.usefixtures("own_random_numbers")
def test_four_classes_in_pairs():
    """One column per pair of classes (six) must not be read as one per class."""
    X, y = make_blobs(120, centers=4, cluster_std=3, random_state=0)
    model = SVC(decision_function_shape="ovo").fit(X, y)
    np.testing.assert_array_equal(as_classifier(model).predict(X), model.predict(X))
