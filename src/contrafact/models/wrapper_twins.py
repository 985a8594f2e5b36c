"""Differentiable twins of estimators that wrap others: searches, thresholds, one-vs-rest, votes.

Each is made of the twins of what is wrapped, by a function `make` that is given; None where one of
these has no twin.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsRestClassifier
from torch import Tensor
from torch.nn.functional import logsigmoid

from .twin_tensors import Twin, as_logits
from .verdict import finite_log

MakeTwin = Callable[[Any], Twin | None]


def _best(search: Any, make: MakeTwin) -> Twin | None:
    """Compute what the refitted best estimator computes."""
    return make(search.best_estimator_)


def _frozen(frozen: Any, make: MakeTwin) -> Twin | None:
    """Compute what the frozen estimator computes."""
    return make(frozen.estimator)


def _thresholded(wrapper: Any, make: MakeTwin) -> Twin | None:
    """Compute the probabilities of the estimator; the threshold changes its decision only."""
    return make(wrapper.estimator_)


def _one_vs_rest(wrapper: Any, make: MakeTwin) -> Twin | None:
    """Decide by the log-odds d_k of each class: p_k = σ(d_k) / Σ σ(d_l), or by d_k itself."""
    twins = _all_twins(wrapper.estimators_, make)
    if twins is None:
        return None
    gives_probabilities = hasattr(wrapper, "predict_proba")

    def decide(x: Tensor) -> Tensor:
        odds = torch.stack([_log_odds(twin(x)) for twin in twins], 1)
        if len(twins) == 1:
            return as_logits(odds)
        return logsigmoid(odds) if gives_probabilities else odds

    return decide


def _calibrated(wrapper: Any, make: MakeTwin) -> Twin | None:
    """Average p_k ∝ σ(-(a_k d_k + b_k)) over the calibrated estimators."""
    if wrapper.method != "sigmoid":
        return None  # isotonic regression is constant in steps
    members = wrapper.calibrated_classifiers_
    twins = _all_twins([member.estimator for member in members], make)
    if twins is None:
        return None

    def decide(x: Tensor) -> Tensor:
        proba = [
            _calibrated_proba(member, twin(x)) for member, twin in zip(members, twins, strict=True)
        ]
        return finite_log(torch.stack(proba).mean(0))

    return decide


def _calibrated_proba(member: Any, logits: Tensor) -> Tensor:
    """Compute the probabilities of one calibrated estimator from the logits of its estimator."""
    has_decision = hasattr(member.estimator, "decision_function")
    values = logits if has_decision else logits.softmax(1)
    if logits.shape[1] == 2:
        second = _log_odds(logits) if has_decision else values[:, 1]
        values = second[:, None]
    columns = [
        torch.sigmoid(-(calibrator.a_ * values[:, k] + calibrator.b_))
        for k, calibrator in enumerate(member.calibrators)
    ]
    proba = torch.stack(columns, 1)
    if proba.shape[1] == 1:
        return torch.cat([1 - proba, proba], 1)
    return proba / proba.sum(1, keepdim=True)


def _soft_vote(wrapper: Any, make: MakeTwin) -> Twin | None:
    """Average the probabilities of the members, weighted."""
    if wrapper.voting != "soft" or len(wrapper.estimators_) != len(wrapper.estimators):
        return None
    twins = _all_twins(wrapper.estimators_, make)
    if twins is None:
        return None
    given = [1.0] * len(twins) if wrapper.weights is None else wrapper.weights
    weights = torch.tensor([float(weight) for weight in given], dtype=torch.float64)
    shares = weights / weights.sum()

    def decide(x: Tensor) -> Tensor:
        proba = torch.stack([twin(x).softmax(1) for twin in twins])
        share = shares.to(x)[:, None, None]
        return finite_log((share * proba).sum(0))

    return decide


def _all_twins(estimators: Any, make: MakeTwin) -> list[Twin] | None:
    """Make a twin of every estimator; None where one has none."""
    twins: list[Twin] = []
    for estimator in estimators:
        twin = make(estimator)
        if twin is None:
            return None
        twins.append(twin)
    return twins


def _log_odds(logits: Tensor) -> Tensor:
    """Return the log-odds of the second of two classes, (n,)."""
    return logits[:, 1] - logits[:, 0]


WRAPPERS: dict[type, Callable[[Any, MakeTwin], Twin | None]] = {
    GridSearchCV: _best,
    RandomizedSearchCV: _best,
    FrozenEstimator: _frozen,
    FixedThresholdClassifier: _thresholded,
    TunedThresholdClassifierCV: _thresholded,
    OneVsRestClassifier: _one_vs_rest,
    CalibratedClassifierCV: _calibrated,
    VotingClassifier: _soft_vote,
}
