"""Differentiable twins: fitted scikit-learn classifiers recomputed exactly in torch.

A twin maps rows (n, features) to logits whose softmax is the estimator's `predict_proba`; where
there is only a decision function d, to d itself (several classes) or to [0, d] (two classes: the
softmax is then the sigmoid of d). It computes in the dtype and on the device of its input.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
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
from torch.nn.functional import logsigmoid

from .wrapper_twins import WRAPPERS, Twin


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
    if any(type(transformer) not in _TRANSFORMERS for transformer in transformers):
        return None
    decide = classifier_twin(classifier)
    if decide is None:
        return None
    stages = [_TRANSFORMERS[type(transformer)](transformer) for transformer in transformers]
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


def _tensor(values: Any) -> Tensor:
    """Copy values into a tensor, so that refitting the estimator does not change its twin."""
    dense = values.toarray() if hasattr(values, "toarray") else values
    return torch.tensor(np.asarray(dense, dtype=np.float64))


def _logits(decision: Tensor) -> Tensor:
    """Turn decision values (n, classes), or (n, 1) for two classes, into logits."""
    if decision.shape[1] > 1:
        return decision
    return torch.cat([torch.zeros_like(decision), decision], dim=1)


def _linear(estimator: Any) -> Twin:
    """Decide by d(x) = W x + b."""
    W = torch.atleast_2d(_tensor(estimator.coef_))
    b = _tensor(estimator.intercept_)

    def decide(x: Tensor) -> Tensor:
        weights = W.to(x)
        bias = b.to(x)
        return _logits(x @ weights.T + bias)

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
    weights = [_tensor(W) for W in estimator.coefs_]
    biases = [_tensor(b) for b in estimator.intercepts_]
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
        return _logits(layer(h, V, c))

    return decide


def _svc(estimator: Any) -> Twin | None:
    """Decide by d(x) = Σ_i α_i K(x, s_i) + b over the support vectors s_i, for two classes."""
    # With probability=True the sigmoid is refitted (Platt) and may even disagree with the decision
    # function; with more classes the decision function counts votes. Neither has an exact gradient.
    if len(estimator.classes_) != 2 or getattr(estimator, "probability", False) is True:
        return None
    if estimator.kernel not in ("linear", "poly", "rbf", "sigmoid"):
        return None
    kernel = _Kernel(estimator.kernel, estimator.degree, estimator.coef0)
    S = _tensor(estimator.support_vectors_)
    alpha = _tensor(estimator.dual_coef_)
    b = _tensor(estimator.intercept_)

    def decide(x: Tensor, gamma: float) -> Tensor:
        similarity = kernel(x, S.to(x), gamma)  # (n, support vectors)
        weights = alpha.to(x)
        bias = b.to(x)
        return similarity @ weights.T + bias

    gamma = _gamma(estimator, S, decide)
    if gamma is None:
        return None
    return lambda x: _logits(decide(x, gamma))


@dataclass(frozen=True)
class _Kernel:
    """Compute K(x, s) as an SVC does."""

    name: str
    degree: int
    coef0: float

    def __call__(self, x: Tensor, s: Tensor, gamma: float) -> Tensor:
        if self.name == "linear":
            return x @ s.T
        if self.name == "rbf":
            return torch.exp(-gamma * _squared_distances(x, s))
        affine = (gamma * x) @ s.T + self.coef0
        if self.name == "poly":
            return affine**self.degree
        return torch.tanh(affine)


def _squared_distances(x: Tensor, s: Tensor) -> Tensor:
    """Compute |x - s|² = |x|² + |s|² - 2 x·s, (n, support vectors)."""
    # Far from the origin this loses digits, so the origin is moved to the support vectors.
    origin = s.mean(dim=0)
    x = x - origin
    s = s - origin
    x_squared = x.square().sum(1, keepdim=True)
    s_squared = s.square().sum(1)
    return x_squared + s_squared - 2 * x @ s.T


def _gamma(
    estimator: Any,
    S: Tensor,
    decide: Callable[[Tensor, float], Tensor],
) -> float | None:
    """Return γ of a kernel; the value behind gamma="scale" is recovered by `_fit_gamma`."""
    if estimator.gamma == "auto" or estimator.kernel == "linear":
        return float(1 / S.shape[1])
    if estimator.gamma == "scale":
        return _fit_gamma(estimator, S, decide)
    return float(estimator.gamma)


def _fit_gamma(
    estimator: Any,
    S: Tensor,
    decide: Callable[[Tensor, float], Tensor],
) -> float | None:
    """Recover γ = 1 / (features · variance of the training rows) from decision values.

    The value is not public and the training rows are not kept. The support vectors are some of
    them: their variance is close enough to start a least-squares fit of the decision values, which
    ends exact. None where it does not.
    """
    variance = float(S.var(correction=0))
    if variance == 0:
        return None
    some = S[:: max(1, len(S) // 32)]
    # The smaller probes are for kernels that saturate at the data.
    probes = torch.cat([some, some / 30, some / 1000])
    target = estimator.decision_function(probes.numpy())

    def residual(log_gamma: Any) -> Any:
        gamma = float(np.exp(log_gamma[0]))
        return decide(probes, gamma)[:, 0].numpy() - target

    guess = -np.log(S.shape[1] * variance)
    grid = guess + np.linspace(-5, 5, 41)
    start = min(grid, key=lambda log_gamma: np.square(residual([log_gamma])).sum())
    fit = least_squares(
        residual,
        [start],
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-15,
    )
    error = np.abs(fit.fun).max()
    if error < 1e-6 * (1 + np.abs(target).max()):
        return float(np.exp(fit.x[0]))
    return None


def _shift_scale(
    shift: Any,
    scale: Any,
    clip: tuple[float, float] | None = None,
) -> Twin:
    """Compute (x - shift) / scale, clipped where the scaler clips."""
    c = _tensor(0.0 if shift is None else shift)
    s = _tensor(1.0 if scale is None else scale)

    def transform(x: Tensor) -> Tensor:
        scaled = (x - c.to(x)) / s.to(x)
        if clip is None:
            return scaled
        low, high = clip
        return scaled.clamp(low, high)

    return transform


def _standard(scaler: Any) -> Twin:
    """Standardize."""
    mean = scaler.mean_ if scaler.with_mean else None  # mean_ exists even where with_mean=False
    return _shift_scale(mean, scaler.scale_)


def _min_max(scaler: Any) -> Twin:
    """Scale to a range."""
    clip = scaler.feature_range if scaler.clip else None
    return _shift_scale(-scaler.min_ / scaler.scale_, 1 / scaler.scale_, clip)


def _max_abs(scaler: Any) -> Twin:
    """Scale by the largest absolute value."""
    clip = (-1.0, 1.0) if getattr(scaler, "clip", False) else None
    return _shift_scale(None, scaler.scale_, clip)


def _robust(scaler: Any) -> Twin:
    """Scale by median and quantile range."""
    return _shift_scale(scaler.center_, scaler.scale_)


def _pca(estimator: Any) -> Twin:
    """Project: z = V (x - mean), whitened where the estimator whitens."""
    mean = _tensor(estimator.mean_)
    V = _tensor(estimator.components_)
    if estimator.whiten:
        deviation = _tensor(estimator.explained_variance_).sqrt()
        smallest = torch.finfo(torch.float64).eps
        V = V / deviation.clamp(min=smallest)[:, None]

    def transform(x: Tensor) -> Tensor:
        centered = x - mean.to(x)
        components = V.to(x)
        return centered @ components.T

    return transform


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
    StandardScaler: _standard,
    MinMaxScaler: _min_max,
    MaxAbsScaler: _max_abs,
    RobustScaler: _robust,
    PCA: _pca,
}
