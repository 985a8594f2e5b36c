"""What every Classifier shares: how it is made, named, batched, counted and reshaped."""

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from contrafact.models import as_classifier
from contrafact.models.adapters import CallableClassifier, EstimatorClassifier, TorchClassifier
from contrafact.models.reshaped import Reshaped

X = np.random.default_rng(0).normal(size=(30, 6))
Y = np.array(["low", "high"])[(X[:, 0] > 0).astype(int)]


def two_columns(X):
    p = 1 / (1 + np.exp(-X.reshape(len(X), -1)[:, 0]))
    return np.stack([1 - p, p], 1)


def linear(n_features=6, n_classes=3, seed=0):
    module = torch.nn.Linear(n_features, n_classes)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(generator=generator)
    return module


class Both(torch.nn.Linear):
    """A module with `predict`: still a module."""

    def predict(self, X):
        raise AssertionError("asked as an estimator")


class CallableEstimator(BaseEstimator):
    classes_ = np.array([0, 1])

    def predict(self, X):
        return (X[:, 0] > 0).astype(int)

    def __call__(self, X):
        raise AssertionError("asked as a function")


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (torch.nn.Linear(6, 2), TorchClassifier),
        (Both(6, 2), TorchClassifier),
        (LogisticRegression().fit(X, Y), EstimatorClassifier),
        (CallableEstimator(), EstimatorClassifier),
        (two_columns, CallableClassifier),
    ],
    ids=["module", "module with predict", "estimator", "callable estimator", "function"],
)
def test_each_kind_gets_its_adapter(model, kind):
    classifier = as_classifier(model)
    assert type(classifier) is kind
    assert classifier.predict(X).shape == (30,)
    assert as_classifier(classifier) is classifier


@pytest.mark.parametrize(
    ("model", "options", "error", "message"),
    [
        (LogisticRegression, {}, TypeError, "got the class LogisticRegression; create and fit it"),
        (torch.nn.Linear, {}, TypeError, "got the class Linear"),
        (42, {}, TypeError, "got int"),
        (LogisticRegression(), {}, ValueError, "LogisticRegression has no classes_: fit it first"),
        (
            make_pipeline(StandardScaler(), LogisticRegression()),
            {},
            ValueError,
            "Pipeline has no classes_",
        ),
        (
            GridSearchCV(LogisticRegression(), {"C": [1]}),
            {},
            ValueError,
            "GridSearchCV has no classes_",
        ),
        (LogisticRegression(), {"classes": ["a", "b"]}, NotFittedError, "not fitted"),
        (
            as_classifier(two_columns),
            {"classes": ["a", "b"]},
            ValueError,
            "is a Classifier already",
        ),
        (as_classifier(two_columns), {"batch_size": 3}, ValueError, "is a Classifier already"),
        (as_classifier(linear()), {"device": "cpu"}, ValueError, "is a Classifier already"),
        (
            two_columns,
            {"device": "cpu"},
            ValueError,
            "device applies to torch modules only, got device='cpu'",
        ),
        (
            DecisionTreeClassifier().fit(X, Y),
            {"device": "cpu"},
            ValueError,
            "device applies to torch modules",
        ),
        (
            LogisticRegression().fit(X, Y),
            {"classes": ["low", "high"]},
            ValueError,
            r"classes \['low', 'high'\] differ from the model's own classes_ \['high', 'low'\]",
        ),
        (linear(), {"classes": ["a", "b", "a"]}, ValueError, r"distinct, got \['a', 'b', 'a'\]"),
        (linear(), {"classes": [0, None, 1]}, ValueError, "classes has dtype object"),
        (
            linear(),
            {"batch_size": 0},
            ValueError,
            "a whole number at least 1 and at most 1e.12, got 0",
        ),
        (linear(), {"batch_size": 2.5}, ValueError, "batch_size must be .*, got 2.5"),
        (linear(), {"batch_size": "3"}, ValueError, "batch_size must be .*, got '3'"),
        (linear(), {"batch_size": True}, ValueError, "batch_size must be .*, got True"),
        (linear(), {"device": "nope"}, ValueError, "device must be one that torch can use here"),
        (linear(), {"device": "meta"}, ValueError, "device must be one that holds values"),
        (linear(), {"device": 2.5}, TypeError, "device must be a text or a torch.device, got 2.5"),
        (linear(), {"classes": 5}, ValueError, r"classes has shape \(\)"),
        (linear(), {"classes": []}, ValueError, "classes is empty"),
        (linear(), {"classes": ["a", 1]}, ValueError, "classes holds 'a' and 1"),
        (linear(), {"classes": {"a", "b"}}, TypeError, "classes must be an array"),
    ],
)
def test_a_model_that_cannot_be_wrapped_is_told_why(model, options, error, message):
    with pytest.raises(error, match=message):
        as_classifier(model, **options)


@pytest.mark.parametrize(
    ("model", "classes", "message"),
    [
        (linear(), ["a", "b"], r"gives 3 outputs per row, but classes has 2 labels: \['a', 'b'\]"),
        (two_columns, ["a", "b", "c"], "gives 2 outputs per row, but classes has 3 labels"),
        (
            lambda X: np.full(len(X), "d"),
            ["a", "b"],
            r"labels \['d'\] that are not in classes \['a', 'b'\]",
        ),
        (lambda X: np.full(len(X), 7), ["a", "b"], r"labels \[7\] that are not in classes"),
        (lambda X: X[:, 0] > 0, None, r"pass classes=\[...\] to as_classifier"),
        (
            lambda X: X[None],
            None,
            r"probabilities or \(rows,\) labels for 30 rows, got shape \(1, 30, 6\)",
        ),
        (lambda X: two_columns(X)[1:], None, r"for 30 rows, got shape \(29, 2\)"),
        (lambda X: two_columns(X)[:, 1:], None, r"got shape \(30, 1\)"),
        (lambda X: 0.5, None, r"got shape \(\)"),
        (lambda X: 3 * X[:, :2], None, "must give probabilities.*softmax"),
        (
            torch.nn.Flatten(0),
            None,
            r"module must give \(rows, classes\), got \(180, 1\) for input \(30, 6\)",
        ),
        (torch.nn.Unflatten(1, (2, 3)), None, r"got \(30, 2, 3\) for input \(30, 6\)"),
        (
            LogisticRegression().fit(X[:, :4], Y),
            None,
            r"trained on 4 features per row, but X has 6 \(shape",
        ),
    ],
)
def test_a_wrong_answer_is_refused(model, classes, message):
    with pytest.raises(ValueError, match=message):
        as_classifier(model, classes=classes).predict(X)


@pytest.mark.parametrize("model", [linear(), LogisticRegression().fit(X, Y), two_columns], ids=type)
@pytest.mark.parametrize("batch_size", [None, 1, 7, 30, 1000])
def test_internal_batches_equal_one_batch(model, batch_size):
    whole, parts = (
        as_classifier(model).evaluate(X),
        as_classifier(model, batch_size=batch_size).evaluate(X),
    )
    for name in ("proba", "label", "score"):
        torch.testing.assert_close(getattr(parts, name), getattr(whole, name), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("batch_size", "sizes"), [(None, [30]), (8, [8, 8, 8, 6]), (30, [30])])
def test_batch_size_is_what_the_model_gets_at_once(batch_size, sizes):
    seen = []
    classifier = as_classifier(
        lambda X: (seen.append(len(X)), two_columns(X))[1], batch_size=batch_size
    )
    classifier.predict_proba(X)
    assert seen == sizes


def test_large_instances_go_in_small_batches():
    seen = []
    classifier = as_classifier(lambda X: (seen.append(X.size), two_columns(X))[1])
    classifier.predict_proba(np.zeros((5, 1, 2**21)))
    assert max(seen) <= classifier.max_batch_elements and sum(seen) == 5 * 2**21
    assert (
        classifier.internal_batch(torch.zeros(1, 2**24)) == 1
    )  # more than fits: still one row at a time


@pytest.mark.parametrize(
    ("model", "evaluate", "verdict"),
    [(linear(), 1, 1), (two_columns, 1, 1), (LogisticRegression().fit(X, Y), 1, 2)],
    ids=["module", "function", "estimator"],
)
def test_every_row_asked_about_is_counted(model, evaluate, verdict):
    classifier = as_classifier(model, batch_size=4)
    counts = []
    for ask in (
        classifier.predict_proba,
        classifier.evaluate,
        classifier.predict,
        classifier.verdict,
    ):
        before = classifier.rows_evaluated
        ask(X)
        counts.append((classifier.rows_evaluated - before) / len(X))
    assert counts == [evaluate, evaluate, verdict, verdict]
    assert (classifier.rows_per_evaluation, classifier.rows_per_verdict) == (evaluate, verdict)
    if classifier.differentiable:
        before = classifier.rows_evaluated
        classifier.logits(classifier.as_input(X))
        assert classifier.rows_evaluated == before + len(X)
    assert f"{classifier.rows_evaluated} rows evaluated" in repr(classifier)


def test_no_rows_are_no_question():
    asked = []
    classifier = as_classifier(lambda X: asked.append(X) or two_columns(X), classes=["a", "b"])
    verdict = classifier.verdict(X[:0])
    assert verdict.proba.shape == verdict.score.shape == (0, 2) and verdict.label.shape == (0,)
    assert classifier.rows_evaluated == 0 and not asked


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X.tolist(),
        lambda X: np.asfortranarray(X),
        lambda X: np.ascontiguousarray(X[:, ::-1])[:, ::-1],
        lambda X: torch.from_numpy(X.copy()).requires_grad_(),
    ],
    ids=["list", "fortran", "negative strides", "tensor with gradient"],
)
def test_rows_of_any_memory_layout(change):
    classifier = as_classifier(two_columns)
    np.testing.assert_array_equal(classifier.predict_proba(change(X)), two_columns(X))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("model", [linear(), LogisticRegression().fit(X, Y), two_columns], ids=type)
def test_read_only_rows_are_taken_without_a_warning(model):
    dtype = np.float32 if isinstance(model, torch.nn.Module) else np.float64
    frozen = X.astype(dtype)
    expected = as_classifier(model).predict_proba(frozen)
    frozen.flags.writeable = False
    np.testing.assert_array_equal(as_classifier(model).predict_proba(frozen), expected)


def test_functions_without_gradients_say_so():
    classifier = as_classifier(two_columns)
    assert not classifier.differentiable
    with pytest.raises(TypeError, match="CallableClassifier has no gradients"):
        classifier.logits(torch.zeros(1, 6))


@pytest.mark.usefixtures("own_random_numbers")
def test_classes_are_inferred_once():
    classifier = as_classifier(linear())
    classifier.infer_classes(X, None)
    assert classifier.classes.tolist() == [0, 1, 2] and classifier.rows_evaluated == 1
    classifier.infer_classes(X, np.array(["a", "b", "c"]))
    assert classifier.classes.tolist() == [0, 1, 2] and classifier.rows_evaluated == 1
    given = as_classifier(linear(), classes=["c", "a", "b"])
    given.infer_classes(X, np.array(["a", "b", "c"]))
    assert given.classes.tolist() == ["c", "a", "b"] and given.rows_evaluated == 0
    asked = as_classifier(linear())
    assert set(asked.predict(X)) <= {0, 1, 2} and asked.classes.tolist() == [0, 1, 2]


class TwoDimensional(torch.nn.Module):
    """Takes (n, length) only."""

    def __init__(self):
        super().__init__()
        self.linear = linear()

    def forward(self, x):
        assert x.shape[1:] == (6,)
        return self.linear(x)


@pytest.mark.parametrize("model", [TwoDimensional(), LogisticRegression().fit(X, Y)], ids=type)
def test_reshaped_asks_in_the_shape_of_training(model):
    inner = as_classifier(model, batch_size=7)
    outer = Reshaped(inner, (6,))
    lifted = X[:, None]
    np.testing.assert_array_equal(outer.predict_proba(lifted), inner.predict_proba(X))
    np.testing.assert_array_equal(outer.predict(lifted), inner.predict(X))
    for name in (
        "differentiable",
        "dtype",
        "device",
        "batch_size",
        "rows_per_evaluation",
        "rows_per_verdict",
    ):
        assert getattr(outer, name) == getattr(inner, name)
    x = outer.as_input(lifted).requires_grad_()
    (gradient,) = torch.autograd.grad(outer.logits(x)[:, 1].sum(), x)
    assert gradient.shape == (30, 1, 6) and gradient.abs().min() > 0
    asked = 30 * (outer.rows_per_evaluation + outer.rows_per_verdict)
    assert outer.rows_evaluated == asked + 30
    assert inner.rows_evaluated == outer.rows_evaluated + asked  # through us, and directly above


@pytest.mark.usefixtures("own_random_numbers")
def test_reshaped_shares_its_classes():
    inner = as_classifier(TwoDimensional())
    outer = Reshaped(inner, (6,))
    with pytest.raises(ValueError, match="y has 2 classes"):
        outer.infer_classes(X[:, None], np.array(["a", "b"]))
    outer.infer_classes(X[:, None], np.array(["c", "a", "b"]))
    assert inner.classes.tolist() == outer.classes.tolist() == ["a", "b", "c"]
    assert inner.rows_evaluated == outer.rows_evaluated == 2
    again = Reshaped(inner, (6,))
    again.infer_classes(X[:, None], None)
    assert again.classes.tolist() == ["a", "b", "c"] and again.rows_evaluated == 0
