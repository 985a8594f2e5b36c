"""aeon classifiers: what they answer through the adapter is what they answer themselves."""

import copy
import pickle

import numpy as np
import pytest
import torch
from aeon.classification.convolution_based import RocketClassifier
from aeon.classification.interval_based import TimeSeriesForestClassifier
from sklearn.linear_model import LogisticRegression

from contrafact.models import as_classifier


def sure(proba):
    """Rows whose two best probabilities differ by more than rounding."""
    best = np.sort(proba, axis=1)
    return best[:, -1] - best[:, -2] > 1e-9


def waves(n_classes, n=60, channels=1, length=40, seed=0):
    """Noisy sines, one frequency per class."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    t = np.linspace(0, 2 * np.pi, length)
    phase = rng.uniform(0, 2 * np.pi, (n, channels, 1))
    X = np.sin((1 + y[:, None, None]) * t + phase) + rng.normal(
        scale=1.2, size=(n, channels, length)
    )
    return X, np.array(["slow", "fast", "faster"])[y]


@pytest.fixture(
    scope="module",
    params=[(2, 1), (3, 1), (3, 2)],
    ids=lambda p: f"{p[0]} classes, {p[1]} channels",
)
def rocket(request):
    n_classes, channels = request.param
    model = RocketClassifier(n_kernels=50, random_state=0).fit(*waves(n_classes, channels=channels))
    return model, waves(n_classes, channels=channels, seed=1)[0]


def test_rocket_decides_as_itself_and_scores_smoothly(rocket):
    model, X = rocket
    classifier = as_classifier(model)
    theirs = model.predict(X)
    np.testing.assert_array_equal(classifier.predict(X), theirs)
    for verdict in (classifier.evaluate(X), classifier.verdict(X)):
        np.testing.assert_array_equal(verdict.proba, model.predict_proba(X))
        np.testing.assert_array_equal(classifier.classes[verdict.label], theirs)
        assert torch.equal(verdict.score.argmax(1), verdict.label)
        assert (
            len(verdict.score.max(1).values.unique()) > len(X) // 3
        )  # probabilities alone have two values
    assert len(np.unique(theirs)) == len(model.classes_)


def test_rocket_rows_counted_are_the_rows_seen(rocket):
    model, X = rocket
    model = copy.deepcopy(model)
    seen = []
    for owner, name in (
        (model, "predict"),
        (model, "predict_proba"),
        (model.pipeline_, "decision_function"),
    ):
        method = getattr(owner, name)
        setattr(owner, name, lambda X, method=method: (seen.append(len(X)), method(X))[1])
    classifier = as_classifier(model, batch_size=20)
    classifier.evaluate(X)
    assert sum(seen) == classifier.rows_evaluated == len(X)
    classifier.verdict(X)
    assert sum(seen) == classifier.rows_evaluated == 3 * len(X)


def test_rocket_with_probabilities_of_its_own_keeps_them():
    X, y = waves(2)
    model = RocketClassifier(
        n_kernels=50, estimator=LogisticRegression(max_iter=500), random_state=0
    ).fit(X, y)
    classifier = as_classifier(model)
    proba = classifier.predict_proba(X)
    np.testing.assert_allclose(proba, model.predict_proba(X))
    np.testing.assert_allclose(classifier.evaluate(X).score.exp(), proba)
    assert len(np.unique(proba)) > 10


@pytest.mark.parametrize("n_classes", [2, 3])
def test_interval_forest(n_classes):
    model = TimeSeriesForestClassifier(n_estimators=5, random_state=0).fit(*waves(n_classes))
    X = waves(n_classes, seed=1)[0]
    classifier = as_classifier(model)
    theirs = model.predict_proba(X)
    np.testing.assert_allclose(classifier.predict_proba(X), theirs)
    np.testing.assert_array_equal(classifier.predict(X), model.predict(X))
    clear = sure(theirs)  # aeon draws lots between equals
    evaluated = classifier.classes[classifier.evaluate(X).label]
    np.testing.assert_array_equal(evaluated[clear], model.predict(X)[clear])
    assert clear.mean() > 0.5 and not classifier.differentiable


def test_aeon_takes_flat_rows_as_univariate_series(rocket):
    model, X = rocket
    if X.shape[1] == 1:
        classifier = as_classifier(model)
        np.testing.assert_array_equal(classifier.predict(X[:, 0]), classifier.predict(X))
        torch.testing.assert_close(classifier.evaluate(X[:, 0]).score, classifier.evaluate(X).score)


def test_aeon_pickles_with_its_score(rocket):
    model, X = rocket
    again = pickle.loads(pickle.dumps(as_classifier(model)))
    torch.testing.assert_close(again.evaluate(X).score, as_classifier(model).evaluate(X).score)


def test_unfitted_aeon_says_so():
    with pytest.raises(ValueError, match="RocketClassifier has no classes_: fit it first"):
        as_classifier(RocketClassifier())
