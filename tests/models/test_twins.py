"""Every twin agrees with its estimator, and its gradient with the estimator's differences."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    RidgeClassifier,
    RidgeClassifierCV,
    SGDClassifier,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

from contrafact.models.twins import make_twin

DATA = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer}


def load(name):
    X, y = DATA[name](return_X_y=True)
    return X, y


def scaled(classifier, scaler=None):
    return make_pipeline(StandardScaler() if scaler is None else scaler, classifier)


def mlp(activation):
    return scaled(
        MLPClassifier(
            (8, 6), activation=activation, learning_rate_init=0.01, max_iter=60, random_state=0
        )
    )


def fit(estimator, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unconverged is as good a model to copy as any
        return clone(estimator).fit(X, y)


EVERYWHERE = {
    "logistic": LogisticRegression(max_iter=100),
    "logistic, no intercept": scaled(LogisticRegression(fit_intercept=False)),
    "logistic, balanced": scaled(LogisticRegression(class_weight="balanced", C=0.1)),
    "logistic cv": scaled(LogisticRegressionCV(Cs=3, cv=3)),
    "ridge": RidgeClassifier(),
    "ridge, no intercept": RidgeClassifier(fit_intercept=False),
    "ridge cv": RidgeClassifierCV(),
    "linear svc": scaled(LinearSVC()),
    "linear svc, no intercept": scaled(LinearSVC(fit_intercept=False)),
    "sgd hinge": scaled(SGDClassifier(random_state=0)),
    "sgd log loss": scaled(SGDClassifier(loss="log_loss", average=True, random_state=0)),
    "perceptron": scaled(Perceptron(random_state=0)),
    "lda": LinearDiscriminantAnalysis(),
    "lda, shrunk": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
    "lda, eigen": LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.1),
    "mlp relu": mlp("relu"),
    "mlp tanh": mlp("tanh"),
    "mlp logistic": mlp("logistic"),
    "mlp identity": mlp("identity"),
    "mlp, no hidden layer": scaled(MLPClassifier((), max_iter=60, random_state=0)),
    "min-max": scaled(LogisticRegression(), MinMaxScaler((-1, 2))),
    "min-max, clipped": scaled(LogisticRegression(), MinMaxScaler(clip=True)),
    "max-abs": scaled(LogisticRegression(), MaxAbsScaler()),
    "robust": scaled(LogisticRegression(), RobustScaler()),
    "robust, unscaled": scaled(LinearDiscriminantAnalysis(), RobustScaler(with_scaling=False)),
    "robust, uncentered": scaled(LogisticRegression(), RobustScaler(with_centering=False)),
    "standard, uncentered": scaled(LogisticRegression(), StandardScaler(with_mean=False)),
    "standard, unscaled": scaled(LinearDiscriminantAnalysis(), StandardScaler(with_std=False)),
    "pca": make_pipeline(StandardScaler(), PCA(3), LogisticRegression()),
    "pca, whitened": make_pipeline(PCA(2, whiten=True), MLPClassifier(max_iter=40, random_state=0)),
    "passthrough": Pipeline(
        [("a", "passthrough"), ("s", StandardScaler()), ("m", LogisticRegression())]
    ),
}
TWO_CLASSES = {
    "liblinear": scaled(LogisticRegression(solver="liblinear")),
    **{
        f"svc {kernel}, gamma={gamma}": scaled(SVC(kernel=kernel, gamma=gamma, coef0=0.3, degree=2))
        for kernel in ("linear", "rbf", "poly", "sigmoid")
        for gamma in ("scale", "auto", 0.05)
    },
    "svc rbf, raw data": SVC(),
    "svc poly, raw data": SVC(kernel="poly"),
    "svc, pca": make_pipeline(MinMaxScaler(), PCA(4), SVC(C=10.0)),
}
CASES = [(name, data) for name in EVERYWHERE for data in DATA] + [
    (name, "cancer") for name in TWO_CLASSES
]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]} on {case[1]}")
def fitted(request):
    name, data = request.param
    X, y = load(data)
    return fit((EVERYWHERE | TWO_CLASSES)[name], X, y), X


def expected(estimator, X):
    """What the softmax of a twin's logits should be."""
    if hasattr(estimator, "predict_proba"):
        return estimator.predict_proba(X)
    d = estimator.decision_function(X)
    return softmax(d, axis=1) if d.ndim == 2 else np.stack([expit(-d), expit(d)], axis=1)


def beyond(X, seed=0):
    """The data, and rows off the data, so that clipping is met."""
    rng = np.random.default_rng(seed)
    return np.concatenate([X, X[:20] + 3 * X.std(axis=0) * rng.normal(size=(20, X.shape[1]))])


def test_probabilities_agree(fitted):
    estimator, X = fitted
    rows = beyond(X)
    ours = make_twin(estimator)(torch.as_tensor(rows)).softmax(1).numpy()
    np.testing.assert_allclose(ours, expected(estimator, rows), atol=1e-10, rtol=0)
    assert np.ptp(ours[:, 0]) > 0.1  # a twin of nothing at all would agree on a constant


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize(
    ("name", "data"),
    [case for case in CASES if not hasattr((EVERYWHERE | TWO_CLASSES)[case[0]], "predict_proba")],
)
def test_decisions_agree(name, data):
    """Without probabilities the logits are the decision function itself, to all digits."""
    X, y = load(data)
    estimator = fit((EVERYWHERE | TWO_CLASSES)[name], X, y)
    d = estimator.decision_function(beyond(X))
    logits = make_twin(estimator)(torch.as_tensor(beyond(X))).numpy()
    theirs = d if d.ndim == 2 else np.stack([0 * d, d], axis=1)
    np.testing.assert_allclose(logits, theirs, atol=1e-9 * np.abs(d).max())


def test_gradient_is_that_of_the_estimator(fitted):
    """dP(first class)/dx by central differences of the estimator, in each feature's deviation."""
    estimator, X = fitted
    a, b = np.random.default_rng(0).permutation(len(X))[:10].reshape(2, 5)
    rows = (X[a] + X[b]) / 2  # between data points: at the extremes themselves clipping has a kink
    spread = X.std(axis=0)
    x = torch.as_tensor(rows).requires_grad_()
    make_twin(estimator)(x).softmax(1)[:, 0].sum().backward()
    ours = x.grad.numpy() * spread

    h = 1e-5
    steps = h * np.diag(spread)
    plus, minus = (
        expected(estimator, (rows[:, None] + s * steps).reshape(-1, X.shape[1]))[:, 0]
        for s in (1, -1)
    )
    theirs = ((plus - minus) / (2 * h)).reshape(ours.shape)
    np.testing.assert_allclose(ours, theirs, atol=1e-5, rtol=1e-4)


def test_float32_in_float32_out(fitted):
    estimator, X = fitted
    logits = make_twin(estimator)(torch.as_tensor(X, dtype=torch.float32))
    assert logits.dtype == torch.float32
    if np.abs(X).max() < 100:  # larger magnitudes lose more digits, in scikit-learn as here
        np.testing.assert_allclose(logits.softmax(1).numpy(), expected(estimator, X), atol=1e-3)


def test_labels_of_any_kind_and_feature_names():
    X, y = load("iris")
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = LogisticRegression(max_iter=500).fit(frame, np.array(["x", "y", "z"])[y])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        twin = make_twin(model)
    np.testing.assert_allclose(
        twin(torch.as_tensor(X)).softmax(1).numpy(), model.predict_proba(frame), atol=1e-12
    )


def test_refitting_does_not_change_a_twin():
    X, y = load("cancer")
    model = RidgeClassifier().fit(X, y)
    twin = make_twin(model)
    before = twin(torch.as_tensor(X))
    model.fit(X, 1 - y)
    model.coef_ *= 2
    assert torch.equal(before, twin(torch.as_tensor(X)))


@pytest.mark.usefixtures("own_random_numbers")
def test_sparse_coefficients():
    X, y = load("cancer")
    X = StandardScaler().fit_transform(X)
    model = LogisticRegression(C=0.05, l1_ratio=1, solver="liblinear").fit(X, y)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(
        make_twin(model.sparsify())(torch.as_tensor(X)).softmax(1).numpy(), proba, atol=1e-10
    )


class Inverted(LogisticRegression):
    def predict_proba(self, X):
        return super().predict_proba(X)[:, ::-1]


class Logged(StandardScaler):
    pass


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize(
    "estimator",
    [
        Inverted(),
        make_pipeline(Logged(), LogisticRegression()),
        make_pipeline(StandardScaler(), Inverted()),
        make_pipeline(StandardScaler(), GaussianNB()),
        make_pipeline(LinearDiscriminantAnalysis(), LogisticRegression()),
        GaussianNB(),
        RandomForestClassifier(n_estimators=3),
        SGDClassifier(loss="modified_huber"),
        SVC(),  # three classes: one-vs-one votes
        SVC(kernel=lambda a, b: a @ b.T),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_none_where_there_is_no_exact_twin(estimator):
    X, y = load("iris")
    assert make_twin(fit(estimator, X, y)) is None


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.filterwarnings("ignore")
def test_svc_with_platt_scaling_has_none():
    X, y = load("cancer")
    assert make_twin(SVC(probability=True).fit(X, y)) is None


def test_a_twin_that_disagrees_is_not_handed_out():
    X, y = load("iris")
    model = LogisticRegression(max_iter=500).fit(X, y)
    model.predict_proba = lambda X: np.full((len(X), 3), 1 / 3)  # someone patched this very object
    assert make_twin(model) is None


@pytest.mark.usefixtures("own_random_numbers")
def test_multilabel_has_none():
    X, _ = load("iris")
    Y = np.stack([X[:, 0] > 5.8, X[:, 1] > 3.0, X[:, 2] > 4.0], axis=1).astype(int)
    assert make_twin(fit(MLPClassifier((4,), max_iter=20), X, Y)) is None


@pytest.mark.usefixtures("own_random_numbers")
def test_anything_else_has_none():
    assert make_twin("passthrough") is None
    assert make_twin(torch.nn.Linear(2, 2)) is None
    assert make_twin(Pipeline([("only", "passthrough")])) is None


def test_unfitted_says_so():
    with pytest.raises(NotFittedError):
        make_twin(LogisticRegression())
    with pytest.raises(NotFittedError):
        make_twin(make_pipeline(StandardScaler(), SVC()))
