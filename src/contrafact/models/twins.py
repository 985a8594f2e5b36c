"""Differentiable twins: fitted scikit-learn classifiers recomputed exactly in torch.

A twin maps rows (n, features) to logits whose softmax is the estimator's `predict_proba`; where
there is only a decision function d, to d itself (several classes) or to [0, d] (two classes: the
softmax is then the sigmoid of d). It computes in the dtype and on the device of its input.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    RidgeClassifier,
    RidgeClassifierCV,
    SGDClassifier,
)
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.nn.functional import logsigmoid

from .svc_twin import svc_twin
from .transformer_twins import TRANSFORMERS
from .twin_tensors import Twin, as_logits, copied
from .wrapper_twins import WRAPPERS


def make_twin(estimator: Any) -> Twin | None:
    """Make the twin of a fitted estimator or pipeline.

    Types are compared exactly, since a subclass may compute anything, and a twin is compared with
    its estimator on a few rows before it is returned. Pipelines may scale (Standard, MinMax,
    MaxAbs, Robust) and use PCA; wrappers (searches, thresholds, one-vs-rest, sigmoid calibration,
    soft votes) have a twin where what they wrap has one. An estimator with a method
    `differentiable_twin`, as the prototype models have, provides its own.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator or pipeline.

    Returns
    -------
    callable or None
        Maps a Tensor (n, features) to logits (n, classes); None where no exact twin exists.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the estimator is of a known kind but not fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=500).fit(X, y)
    >>> proba = make_twin(model)(torch.as_tensor(X)).softmax(1)
    >>> bool(np.allclose(proba, model.predict_proba(X)))
    True
    """
    steps = _steps(estimator)
    if not steps:
        return None
    *transformers, classifier = steps
    if any(type(transformer) not in TRANSFORMERS for transformer in transformers):
        return None
    decide = classifier_twin(classifier)
    if decide is None:
        return None
    stages = [TRANSFORMERS[type(transformer)](transformer) for transformer in transformers]
    stages.append(decide)

    def twin(x: Tensor) -> Tensor:
        for stage in stages:
            x = stage(x)
        return x

    n_features = steps[0].n_features_in_
    return twin if _agrees(twin, estimator, n_features) else None


def _steps(estimator: Any) -> list[Any]:
    """List the steps of a pipeline that do something; a single estimator is its own step."""
    steps = [estimator]
    if type(estimator) is Pipeline:
        steps = [step for _, step in estimator.steps]
    return [step for step in steps if step is not None and step != "passthrough"]


def classifier_twin(classifier: Any) -> Twin | None:
    """Make the twin of a classifier that is no pipeline.

    Parameters
    ----------
    classifier : estimator
        The last step of a model.

    Returns
    -------
    callable or None
        From what the classifier takes to logits; None where there is no exact twin. It is not
        compared with the classifier yet.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the classifier is of a known kind but not fitted.
    """
    if hasattr(classifier, "differentiable_twin"):
        check_is_fitted(classifier)
        own: Twin | None = classifier.differentiable_twin()
        return own
    if type(classifier) in WRAPPERS:
        check_is_fitted(classifier)
        return WRAPPERS[type(classifier)](classifier, make_twin)
    if type(classifier) not in _CLASSIFIERS:
        return None
    check_is_fitted(classifier)
    return _CLASSIFIERS[type(classifier)](classifier)


def _agrees(twin: Twin, estimator: Any, n_features: int) -> bool:
    """Compare twin and estimator on rows of several magnitudes, to detect unknown settings."""
    magnitude = np.array([0.1, 1.0, 10.0]).repeat(4)
    rng = np.random.default_rng(0)
    rows = magnitude[:, None] * rng.normal(size=(12, n_features))
    logits = twin(torch.as_tensor(rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the estimator may have been fitted with feature names
        if hasattr(estimator, "predict_proba"):
            theirs = estimator.predict_proba(rows)
            ours = logits.softmax(1)
        elif hasattr(estimator, "decision_function"):
            theirs = estimator.decision_function(rows)
            ours = logits if theirs.ndim == 2 else logits[:, 1] - logits[:, 0]
        else:
            return False
    same_shape = theirs.shape == ours.shape
    return same_shape and bool(np.allclose(theirs, ours, rtol=1e-6, atol=1e-9))


def _linear(estimator: Any) -> Twin:
    """Decide by d(x) = W x + b."""
    W = torch.atleast_2d(copied(estimator.coef_))
    b = copied(estimator.intercept_)

    def decide(x: Tensor) -> Tensor:
        weights = W.to(x)
        bias = b.to(x)
        return as_logits(x @ weights.T + bias)

    return decide


def _sgd(estimator: Any) -> Twin | None:
    """Decide linearly; with log loss and several classes, by one sigmoid per class."""
    linear = _linear(estimator)
    if estimator.loss == "modified_huber":
        return None  # probabilities reach 0 exactly: no logits have them
    if estimator.loss == "log_loss" and len(estimator.classes_) > 2:
        # One sigmoid per class, normalized: σ(d_k) / Σ σ(d_l) is the softmax of log σ(d).
        return lambda x: logsigmoid(linear(x))
    return linear


_ACTIVATIONS: dict[str, Twin] = {
    "identity": lambda h: h,
    "logistic": torch.sigmoid,
    "tanh": torch.tanh,
    "relu": torch.relu,
}


def _mlp(estimator: Any) -> Twin:
    """Decide by h_i = a(W_i h_{i-1} + b_i), d(x) = V h_last + c."""
    weights = [copied(W) for W in estimator.coefs_]
    biases = [copied(b) for b in estimator.intercepts_]
    *hidden, (V, c) = zip(weights, biases, strict=True)
    activation = _ACTIVATIONS[estimator.activation]

    def layer(h: Tensor, W: Tensor, b: Tensor) -> Tensor:
        weights = W.to(h)
        bias = b.to(h)
        return h @ weights + bias

    def decide(x: Tensor) -> Tensor:
        h = x
        for W, b in hidden:
            h = activation(layer(h, W, b))
        return as_logits(layer(h, V, c))

    return decide


_CLASSIFIERS: dict[type, Callable[[Any], Twin | None]] = {
    LogisticRegression: _linear,
    LogisticRegressionCV: _linear,
    RidgeClassifier: _linear,
    RidgeClassifierCV: _linear,
    LinearSVC: _linear,
    Perceptron: _linear,
    LinearDiscriminantAnalysis: _linear,
    SGDClassifier: _sgd,
    MLPClassifier: _mlp,
    SVC: svc_twin,
}
