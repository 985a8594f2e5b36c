"""Differentiable twins: fitted scikit-learn classifiers, exactly, in torch, so that they have gradients.

A twin maps rows (n, features) to logits whose softmax is the estimator's `predict_proba`; where there is only
a decision function d, to d itself (several classes) or to [0, d] (two: their softmax is the sigmoid of d). It
computes in the dtype and on the device of its input.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.optimize import least_squares
from sklearn.decomposition import PCA
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
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

Twin = Callable[[Tensor], Tensor]


def make_twin(estimator: Any) -> Twin | None:
    """The twin of a fitted estimator or pipeline, or None where there is no exact one.

    Types are compared exactly, for a subclass may compute anything; and a twin is asked beside its estimator
    on a few rows before it is handed out. Pipelines may scale (Standard, MinMax, MaxAbs, Robust) and use PCA.
    An estimator with a method `differentiable_twin`, as our prototype models have, brings its own.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=500).fit(X, y)
    >>> proba = make_twin(model)(torch.as_tensor(X)).softmax(1)
    >>> bool(np.allclose(proba, model.predict_proba(X)))
    True
    """
    steps = [step for _, step in estimator.steps] if type(estimator) is Pipeline else [estimator]
    steps = [step for step in steps if step is not None and step != "passthrough"]
    *transformers, classifier = steps or [None]
    own = hasattr(classifier, "differentiable_twin")
    if not own and type(classifier) not in _CLASSIFIERS:
        return None
    if any(type(t) not in _TRANSFORMERS for t in transformers):
        return None
    check_is_fitted(estimator)
    decide = classifier.differentiable_twin() if own else _CLASSIFIERS[type(classifier)](classifier)
    if decide is None:
        return None
    stages = [*(_TRANSFORMERS[type(t)](t) for t in transformers), decide]

    def twin(x: Tensor) -> Tensor:
        for stage in stages:
            x = stage(x)
        return x

    return twin if _agrees(twin, estimator, steps[0].n_features_in_) else None


def _agrees(twin: Twin, estimator: Any, n_features: int) -> bool:
    """Ask both about a few rows of several magnitudes: settings we do not know of show up here."""
    magnitude = np.array([0.1, 1.0, 10.0]).repeat(4)[:, None]
    rows = magnitude * np.random.default_rng(0).normal(size=(12, n_features))
    logits = twin(torch.as_tensor(rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the estimator may have been fitted with feature names
        if hasattr(estimator, "predict_proba"):
            theirs, ours = estimator.predict_proba(rows), logits.softmax(1)
        elif hasattr(estimator, "decision_function"):
            theirs, ours = estimator.decision_function(rows), logits
            ours = ours if theirs.ndim == 2 else ours[:, 1] - ours[:, 0]
        else:
            return False
    return theirs.shape == ours.shape and bool(np.allclose(theirs, ours, rtol=1e-6, atol=1e-9))


def _tensor(values: Any) -> Tensor:
    """A copy, so that refitting the estimator changes nothing in its twin."""
    dense = values.toarray() if hasattr(values, "toarray") else values
    return torch.tensor(np.asarray(dense, dtype=np.float64))


def _logits(d: Tensor) -> Tensor:
    """Decision values (n, classes), or (n, 1) for two classes, as logits."""
    return d if d.shape[1] > 1 else torch.cat([torch.zeros_like(d), d], dim=1)


def _linear(estimator: Any) -> Twin:
    W = torch.atleast_2d(_tensor(estimator.coef_))
    b = _tensor(estimator.intercept_)
    return lambda x: _logits(x @ W.to(x).T + b.to(x))


def _sgd(estimator: Any) -> Twin | None:
    linear = _linear(estimator)
    if estimator.loss == "modified_huber":
        return None  # probabilities reach 0 exactly: no logits have them
    if estimator.loss == "log_loss" and len(estimator.classes_) > 2:
        # One sigmoid per class, normalized: σ(d_k) / Σ σ(d_l) is the softmax of log σ(d).
        return lambda x: torch.nn.functional.logsigmoid(linear(x))
    return linear


_ACTIVATIONS: dict[str, Twin] = {
    "identity": lambda h: h,
    "logistic": torch.sigmoid,
    "tanh": torch.tanh,
    "relu": torch.relu,
}


def _mlp(estimator: Any) -> Twin:
    layers = zip(estimator.coefs_, estimator.intercepts_, strict=True)
    *hidden, (V, c) = [(_tensor(W), _tensor(b)) for W, b in layers]
    activation = _ACTIVATIONS[estimator.activation]

    def decide(x: Tensor) -> Tensor:
        for W, b in hidden:
            x = activation(x @ W.to(x) + b.to(x))
        return _logits(x @ V.to(x) + c.to(x))

    return decide


def _svc(estimator: Any) -> Twin | None:
    """d(x) = Σ_i α_i K(x, s_i) + b over the support vectors s_i, for two classes."""
    # With probability=True the sigmoid is refitted (Platt) and may even disagree with the decision function;
    # with more classes the decision function counts votes. Neither has a faithful gradient.
    if len(estimator.classes_) != 2 or getattr(estimator, "probability", False) is True:
        return None
    if estimator.kernel not in _KERNELS:
        return None
    kernel, c, p = _KERNELS[estimator.kernel], estimator.coef0, estimator.degree
    S, alpha, b = map(
        _tensor, (estimator.support_vectors_, estimator.dual_coef_, estimator.intercept_)
    )

    def decide(x: Tensor, gamma: float) -> Tensor:
        return kernel(x, S.to(x), gamma, c, p) @ alpha.to(x).T + b.to(x)

    gamma = _gamma(estimator, S, decide)
    return None if gamma is None else lambda x: _logits(decide(x, gamma))


def _rbf(x: Tensor, s: Tensor, gamma: float, c: float, p: int) -> Tensor:
    # |x − s|² = |x|² + |s|² − 2 x·s loses digits far from the origin: so first move the origin there.
    origin = s.mean(dim=0)
    x, s = x - origin, s - origin
    return torch.exp(-gamma * (x.square().sum(1, keepdim=True) + s.square().sum(1) - 2 * x @ s.T))


_KERNELS: dict[str, Callable[[Tensor, Tensor, float, float, int], Tensor]] = {
    "linear": lambda x, s, gamma, c, p: x @ s.T,
    "poly": lambda x, s, gamma, c, p: (gamma * x @ s.T + c) ** p,
    "rbf": _rbf,
    "sigmoid": lambda x, s, gamma, c, p: torch.tanh(gamma * x @ s.T + c),
}


def _gamma(estimator: Any, S: Tensor, decide: Callable[[Tensor, float], Tensor]) -> float | None:
    """γ; the value behind gamma="scale" is not public, but the estimator's answers give it away.

    It is 1 / (features · variance of the training rows). The support vectors are some of those rows: their
    variance is close enough to start a least-squares fit of the decision values there, which ends exact.
    """
    if estimator.gamma == "auto" or estimator.kernel == "linear":
        return float(1 / S.shape[1])
    if estimator.gamma != "scale":
        return float(estimator.gamma)
    some = S[:: max(1, len(S) // 32)]
    probes = torch.cat(
        [some, some / 30, some / 1000]
    )  # the smaller for kernels that saturate at the data
    target = estimator.decision_function(probes.numpy())

    def residual(log_gamma: Any) -> Any:
        return decide(probes, float(np.exp(log_gamma[0])))[:, 0].numpy() - target

    variance = float(S.var(correction=0))
    if variance == 0:
        return None
    guess = -np.log(S.shape[1] * variance)
    start = min(guess + np.linspace(-5, 5, 41), key=lambda g: np.square(residual([g])).sum())
    fit = least_squares(residual, [start], xtol=1e-15, ftol=1e-15, gtol=1e-15)
    return (
        float(np.exp(fit.x[0]))
        if np.abs(fit.fun).max() < 1e-6 * (1 + np.abs(target).max())
        else None
    )


def _shift_scale(shift: Any, scale: Any, clip: tuple[float, float] | None = None) -> Twin:
    """(x − shift) / scale, clipped where the scaler clips."""
    c, s = _tensor(0.0 if shift is None else shift), _tensor(1.0 if scale is None else scale)
    if clip is None:
        return lambda x: (x - c.to(x)) / s.to(x)
    return lambda x: ((x - c.to(x)) / s.to(x)).clamp(*clip)


def _pca(estimator: Any) -> Twin:
    mean, V = _tensor(estimator.mean_), _tensor(estimator.components_)
    if estimator.whiten:
        deviation = _tensor(estimator.explained_variance_).sqrt()
        V = V / deviation.clamp(min=torch.finfo(torch.float64).eps)[:, None]
    return lambda x: (x - mean.to(x)) @ V.to(x).T


def _min_max(estimator: Any) -> Twin:
    scale, clip = estimator.scale_, estimator.feature_range if estimator.clip else None
    return _shift_scale(-estimator.min_ / scale, 1 / scale, clip)


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
    SVC: _svc,
}

_TRANSFORMERS: dict[type, Callable[[Any], Twin]] = {
    # mean_ is there even where with_mean=False
    StandardScaler: lambda t: _shift_scale(t.mean_ if t.with_mean else None, t.scale_),
    MinMaxScaler: _min_max,
    MaxAbsScaler: lambda t: _shift_scale(
        None, t.scale_, (-1.0, 1.0) if getattr(t, "clip", False) else None
    ),
    RobustScaler: lambda t: _shift_scale(t.center_, t.scale_),
    PCA: _pca,
}
