"""Validity and cost: whether the counterfactual reached its target, and what it took.

Here and in the other modules of metrics, x is the instance, x' its counterfactual and c the target
class.
"""

from __future__ import annotations

import numpy as np
from typing_extensions import override

from ..engine.result import Counterfactuals
from ..models.classifier import Array
from .inputs import MetricInputs
from .metric import Metric


class Valid(Metric):
    """1 where the model says c of x', else 0."""

    name = "valid"
    direction = "max"

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        return result.valid.astype(float)


class Flipped(Metric):
    """1 where the model says of x' any class but that of x, else 0.

    0 also where the model could not be asked about one of them.
    """

    name = "flipped"
    direction = "max"

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        return flipped(result).astype(float)


class TargetConfidence(Metric):
    """P(c | x'); NaN where the model could not be asked about x'."""

    name = "target_confidence"
    direction = "max"

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        return result.target_proba[:, 1].astype(float)


class ConfidenceGain(Metric):
    """P(c | x') − P(c | x); NaN where the model could not be asked about one of them."""

    name = "confidence_gain"
    direction = "max"

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        before, after = result.target_proba.astype(float).T
        return np.asarray(after - before)


class Seconds(Metric):
    """Seconds spent, the row's share of its batch."""

    name = "seconds"
    direction = "min"

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        return result.seconds.astype(float)


class Calls(Metric):
    """Rows the model evaluated for this counterfactual."""

    name = "calls"
    direction = "min"

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        return result.calls.astype(float)


VALIDITY: tuple[type[Metric], ...] = (Valid, Flipped, TargetConfidence, ConfidenceGain)
COST: tuple[type[Metric], ...] = (Seconds, Calls)


def flipped(result: Counterfactuals) -> Array:
    """Return the mask of rows where the model answered twice, and differently, shape (n,)."""
    unanswered = np.isnan(result.proba + result.cf_proba).any(axis=1)
    differs = result.cf_labels != result.labels
    return np.asarray(differs & ~unanswered)
