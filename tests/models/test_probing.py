"""Models are asked a few rows at fit: what they take, whether they repeat themselves, gradients."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.tree import DecisionTreeClassifier
from torch import nn

import contrafact as cf
from contrafact.models import as_classifier
from contrafact.models.remarks import ModelWarning
from contrafact.models.reshaped import Reshaped

X, Y = load_iris(return_X_y=True)
X32 = X.astype(np.float32)


def series(n=40, channels=1, length=12):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    x = rng.normal(size=(n, channels, length)) + 2 * y[:, None, None]
    return x, y


class Logistic:
    """A model of the mean of a series that takes what `check` lets pass, as other libraries do."""

    classes_ = np.array([0, 1])

    def __init__(self, check, n_features_in_=None):
        self.check = check
        self.seen = []
        if n_features_in_ is not None:
            self.n_features_in_ = n_features_in_

    def predict_proba(self, X):
        self.check(X)
        self.seen.append((X.shape[1:], X.dtype))
        p = 1 / (1 + np.exp(-3 * (X.reshape(len(X), -1).mean(1) - 1)))
        return np.column_stack([1 - p, p])

    def predict(self, X):
        return self.predict_proba(X).argmax(1)


class LibraryError(Exception):
    """Derived from nothing narrower, as CatBoost's and LightGBM's errors are."""


def like_skorch(X):
    if X.dtype != np.float32:
        raise RuntimeError("mat1 and mat2 must have the same dtype, but got Double and Float")


def like_catboost(X):
    if X.ndim != 2:
        raise LibraryError("Input data must have at most 2 dimensions")


def like_sktime(X):
    if X.shape[1:] != (1, 12):
        raise ValueError("X must be a 3-D panel of the shape seen in fit")


def like_tslearn(X):
    if X.ndim == 3 and X.shape[1:] != (12, 1):
        raise ValueError("Dimensions do not match (except first axis)")


@pytest.mark.parametrize(
    ("check", "n_features", "shape", "dtype"),
    [
        (like_skorch, None, (1, 12), np.float32),
        (like_catboost, 0, (12,), np.float64),
        (like_sktime, 12, (1, 12), np.float64),
        (like_tslearn, 1, (12,), np.float64),
        (like_catboost, 72, (12,), np.float64),
    ],
    ids=["float32", "0 features", "3-D only", "1 feature", "inner width"],
)
def test_the_model_is_asked_which_form_it_takes(check, n_features, shape, dtype):
    x, y = series()
    model = Logistic(check, n_features)
    result = cf.NearestUnlike().fit(model, x, y).explain(x[:6])
    assert set(model.seen) == {(shape, np.dtype(dtype))}
    assert result.valid.all()
    accepted = result.X_cf.reshape(6, *shape).astype(dtype)
    np.testing.assert_array_equal(model.predict(accepted), result.target)


def test_the_result_is_what_a_float32_model_saw():
    x, y = series()
    result = cf.LineSearch().fit(Logistic(like_skorch), x, y).explain(x[:6])
    changed = result.X_cf != result.X
    np.testing.assert_array_equal(
        result.X_cf[changed], result.X_cf[changed].astype(np.float32).astype(np.float64)
    )


def test_all_forms_are_named_where_none_is_taken():
    def refuses(X):
        raise LibraryError(f"no {X.ndim}-D")

    with pytest.raises(ValueError, match=r"\(n, 1, 12\) float64: LibraryError: no 3-D.*\(n, 12\)"):
        as_classifier(Logistic(refuses)).predict(series()[0])


def test_an_error_that_is_not_about_the_form_passes():
    def fails(X):
        raise ConnectionError("the service is down")

    with pytest.raises(ConnectionError, match="service is down"):
        as_classifier(Logistic(fails)).predict(X)


def test_estimators_of_the_other_layout_get_a_hint():
    def time_first(X):
        if X.shape[1:] != (12, 3):
            raise ValueError("wrong shape")

    with pytest.raises(ValueError, match=r"\(n, 12, 3\): series as \(n, length, channels\)"):
        as_classifier(Logistic(time_first)).predict(series(channels=3)[0])


class Through(nn.Module):
    """A linear model whose rows pass through a function first."""

    def __init__(self, function):
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.function = function

    def forward(self, x):
        return self.linear(self.function(x))


class NoGrad(nn.Linear):
    @torch.no_grad()
    def forward(self, x):
        return super().forward(x)


class Steps(nn.Module):
    """Whole numbers inside, as a quantized network has."""

    def forward(self, x):
        whole = (x * 8).to(torch.int8).float()
        return whole[:, :3]


@pytest.mark.parametrize(
    "module",
    [
        NoGrad(4, 3),
        Through(torch.detach),
        Through(lambda x: torch.from_numpy(np.tanh(x.numpy()))),
        Steps(),
        torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(4, 3)), {nn.Linear}),
    ],
    ids=["no_grad", "detach", "numpy", "int8", "quantized"],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_module_without_gradients_is_noticed(module):
    classifier = as_classifier(module)
    with pytest.warns(ModelWarning, match="No gradient passes through the module") as caught:
        classifier.probe(X32)
        classifier.probe(X32)
    assert [each.category for each in caught].count(ModelWarning) == 1
    assert not classifier.differentiable
    assert "no gradients" in repr(classifier)


@pytest.mark.usefixtures("own_random_numbers")
def test_finite_differences_serve_a_module_without_gradients():
    x, y = series()
    net = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
    with torch.no_grad():
        net[1].weight.copy_(torch.stack([-torch.ones(12), torch.ones(12)]) / 4)
        net[1].bias.copy_(torch.tensor([3.0, -3.0]))

    class Detached(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, x):
            return self.net(x.detach())

    with pytest.warns(ModelWarning, match="finite differences"):
        explainer = cf.CELS(max_iter=20).fit(Detached(), x.astype(np.float32), y)
    result = explainer.explain(x[:4].astype(np.float32))
    assert result.valid.all()
    assert "finite differences" in result.provenance["remarks"][0]


@pytest.mark.usefixtures("own_random_numbers")
def test_probing_goes_through_a_reshaped_model():
    inner = as_classifier(Through(torch.detach))
    outer = Reshaped(inner, (4,))
    assert outer.differentiable
    with pytest.warns(ModelWarning):
        outer.probe(X32[:, None])
    assert not outer.differentiable
    assert outer.remarks.texts


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "model",
    [nn.Linear(4, 3), nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5)), nn.Linear(4, 1)],
    ids=["linear", "dropout that is off", "one output"],
)
def test_an_ordinary_module_gets_no_remark(model):
    classifier = as_classifier(model)
    classifier.probe(X32)
    assert classifier.differentiable and classifier.remarks.texts == []


class AlwaysDropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        return nn.functional.dropout(self.linear(x), 0.5, training=True)


def noisy(X):
    return noisy.rng.dirichlet(np.ones(3), size=len(X))


noisy.rng = np.random.default_rng(0)


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize("model", [AlwaysDropout(), noisy], ids=["dropout", "function"])
def test_a_model_that_does_not_repeat_itself_is_noticed(model):
    with pytest.warns(ModelWarning, match="answers differently when asked twice"):
        explainer = cf.NearestUnlike().fit(model, X32, Y)
    result = explainer.explain(X32[:3])
    assert any("asked twice" in remark for remark in result.provenance["remarks"])


class TimeFirst(nn.Module):
    """An LSTM that takes (n, length, channels)."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 4, batch_first=True)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.head(out[:, -1])


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.embedding(x).mean(1))


class ChannelFirst(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv1d(1, 4, 3)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError("expected 3-D")
        return self.head(self.convolution(x).mean(2))


@pytest.mark.parametrize(
    ("module", "shape", "message"),
    [
        (TimeFirst(), (6, 1, 12), r"\(n, 12, 1\): series as \(n, length, channels\)"),
        (Words(), (6, 12), "whole numbers only, as an embedding takes them"),
        (ChannelFirst(), (6, 12), r"\(n, 1, 12\): pass series with their channel axis"),
        (nn.Linear(12, 2), (6, 3, 4), r"flat rows, \(n, 12\)"),
    ],
    ids=["lstm", "embedding", "channel axis", "flat"],
)
def test_modules_of_another_form_get_a_hint(module, shape, message):
    x = np.random.default_rng(0).random(shape).astype(np.float32)
    with pytest.raises(ValueError, match=message):
        as_classifier(module, classes=[0, 1]).probe(x)


def test_the_other_layout_of_the_data_is_noticed():
    x, y = series()
    model = Logistic(lambda X: None)
    with pytest.warns(ModelWarning, match=r"12 channels of length 1.*transpose\(0, 2, 1\)"):
        cf.NearestUnlike().fit(model, x.transpose(0, 2, 1), y)


TWO = np.column_stack([Y > 0, Y > 1]).astype(int)


@pytest.mark.parametrize(
    ("model", "word"),
    [
        (DecisionTreeClassifier().fit(X, TWO), "multi-output"),
        (MultiOutputClassifier(LogisticRegression(max_iter=500)).fit(X, TWO), "multi-output"),
        (OneVsRestClassifier(LogisticRegression(max_iter=500)).fit(X, TWO), "multi-label"),
    ],
    ids=["tree", "multi-output", "one-vs-rest"],
)
def test_several_outputs_are_refused_by_name(model, word):
    with pytest.raises(ValueError, match=f"{type(model).__name__} is {word}"):
        as_classifier(model)


class Answers:
    """An estimator that answers whatever it is told to."""

    classes_ = np.array([0, 1])

    def __init__(self, **answers):
        for name, answer in answers.items():
            setattr(self, name, lambda X, answer=answer: answer(len(X)))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda n: None, "returned None"),
        (lambda n: 1, r"got shape \(\)"),
        (lambda n: np.full(n, 0.5), r"one column per class, got shape \(2,\)"),
        (lambda n: np.full((n + 1, 2), 0.5), r"for 2 rows, got shape \(3, 2\)"),
        (lambda n: [np.full((n, 2), 0.5)] * 2, "2 tables of probabilities: .* multi-output"),
        (lambda n: np.full((n, 2), "a"), "must give numbers"),
    ],
    ids=["None", "int", "one dimension", "rows", "multi-output", "text"],
)
def test_wrong_probabilities_of_an_estimator_are_named(answer, message):
    model = Answers(predict_proba=answer, predict=lambda n: np.zeros(n, dtype=int))
    with pytest.raises(ValueError, match=message):
        as_classifier(model).predict_proba(X[:2])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda n: None, "predict of Answers returned None"),
        (lambda n: np.zeros((n, 3)), "3 labels per row: the model is multi-label"),
        (lambda n: np.zeros(n + 2), r"for 2 rows, got shape \(4,\)"),
        (lambda n: np.full(n, "ok"), r"predicts labels \['ok'\] that are not in classes \[0, 1\]"),
    ],
    ids=["None", "multi-label", "rows", "text"],
)
def test_wrong_labels_of_an_estimator_are_named(answer, message):
    with pytest.raises(ValueError, match=message):
        as_classifier(Answers(predict=answer)).predict(X[:2])


@pytest.mark.parametrize(
    ("function", "classes", "message"),
    [
        (lambda X: np.full(len(X), 0.25), None, r"such as 0.25, which is no class.*column_stack"),
        (lambda X: np.full(len(X), 0.25), [0, 1], r"such as 0.25, which is no class"),
        (lambda X: np.full((len(X), 1), 0.25), [0, 1], r"one column per class.*column_stack"),
        (lambda X: None, [0, 1], "returned None"),
        (lambda X: 3, [0, 1], r"got shape \(\)"),
    ],
    ids=["P(1)", "P(1), named", "column", "None", "int"],
)
def test_wrong_answers_of_a_function_are_named(function, classes, message):
    with pytest.raises(ValueError, match=message):
        as_classifier(function, classes=classes).predict(X[:2])


def test_probabilities_that_are_promised_but_missing_are_not_needed():
    """As tslearn's TimeSeriesSVC: the method is there, the SVC inside has no probabilities."""

    class Promising(Logistic):
        def predict_proba(self, X):
            raise AttributeError("predict_proba is not available when probability=False")

        def decision_function(self, X):
            return X.reshape(len(X), -1).mean(1) - 1

        def predict(self, X):
            return (self.decision_function(X) > 0).astype(int)

    x, y = series()
    model = Promising(lambda X: None)
    result = cf.LineSearch().fit(model, x, y).explain(x[:4])
    assert result.valid.all()
    np.testing.assert_array_equal(model.predict(result.X_cf), result.target)


def test_a_model_is_probed_once():
    x, y = series()
    model = Logistic(lambda X: None)
    classifier = as_classifier(model)
    cf.NearestUnlike().fit(classifier, x, y)
    first = classifier.rows_evaluated
    cf.NearestUnlike().fit(classifier, x, y)
    again = classifier.rows_evaluated - first
    assert first - again == 2 * 2 * classifier.rows_per_evaluation


def test_probing_is_silent_for_a_well_behaved_model():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cf.NearestUnlike().fit(LogisticRegression(max_iter=500).fit(X, Y), X, Y)
