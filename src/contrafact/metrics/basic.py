"""Validity, distance, economy, plausibility and cost: the metrics that need no model.

Below, x is the instance, x' its counterfactual, c the target class and d the number of values in x.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from ..engine.result import Counterfactuals
from ..models.classifier import Array
from .base import NEEDS, Metric, Reference, as_array, flat
from .regions import count_regions


class Valid(Metric):
    """1 where the model says c of x', else 0."""

    name, direction = "valid", "max"

    def compute(self, result: Counterfactuals, reference: Any = None) -> Array:
        return result.valid.astype(float)


class Flipped(Metric):
    """1 where the model says of x' any class but that of x, else 0.

    0 also where the model could not be asked about one of them.
    """

    name, direction = "flipped", "max"

    def compute(self, result: Counterfactuals, reference: Any = None) -> Array:
        answered = ~np.isnan(result.proba + result.cf_proba).any(1)
        return np.asarray(answered & (result.cf_labels != result.labels), dtype=float)


class TargetConfidence(Metric):
    """P(c | x'); NaN where the model could not be asked about x'."""

    name, direction = "target_confidence", "max"

    def compute(self, result: Counterfactuals, reference: Any = None) -> Array:
        return result.target_proba[:, 1].astype(float)


class ConfidenceGain(Metric):
    """P(c | x') − P(c | x); NaN where the model could not be asked about one of them."""

    name, direction = "confidence_gain", "max"

    def compute(self, result: Counterfactuals, reference: Any = None) -> Array:
        before, after = result.target_proba.astype(float).T
        return np.asarray(after - before)


class L1(Metric):
    """Σ |x' − x|."""

    name, direction = "l1", "min"

    def compute(self, result: Counterfactuals, reference: Any = None) -> Array:
        return np.asarray(_moved(result).sum(1))


class L2(Metric):
    """√Σ (x' − x)²."""

    name, direction = "l2", "min"

    def compute(self, result: Counterfactuals, reference: Any = None) -> Array:
        return np.asarray(np.linalg.norm(_moved(result), axis=1))


class LInf(Metric):
    """max |x' − x|."""

    name, direction = "linf", "min"

    def compute(self, result: Counterfactuals, reference: Any = None) -> Array:
        return np.asarray(_moved(result).max(1))


class MAE(Metric):
    """Σ |x' − x| / d."""

    name, direction = "mae", "min"

    def compute(self, result: Counterfactuals, reference: Any = None) -> Array:
        return np.asarray(_moved(result).mean(1))


class RMSE(Metric):
    """√(Σ (x' − x)² / d)."""

    name, direction = "rmse", "min"

    def compute(self, result: Counterfactuals, reference: Any = None) -> Array:
        return np.asarray(np.sqrt(np.square(_moved(result)).mean(1)))


class Sparsity(Metric):
    """Fraction of the values that changed."""

    name, direction = "sparsity", "min"

    def compute(self, result: Counterfactuals, reference: Any = None) -> Array:
        return result.changed_fraction.astype(float)


class UnchangedFraction(Metric):
    """Fraction of the values that stayed."""

    name, direction = "unchanged_fraction", "max"

    def compute(self, result: Counterfactuals, reference: Any = None) -> Array:
        return 1 - result.changed_fraction.astype(float)


class Segments(Metric):
    """Number of separate places that changed: runs along time, 4-connected image regions, or features.

    Runs are summed over channels; a pixel counts as changed when any of its channels did.
    """

    name, direction = "segments", "min"

    def compute(self, result: Counterfactuals, reference: Any = None) -> Array:
        return count_regions(as_array(result.changed), result.modality).astype(float)


class Seconds(Metric):
    """Seconds spent, the row's share of its batch."""

    name, direction = "seconds", "min"

    def compute(self, result: Counterfactuals, reference: Any = None) -> Array:
        return result.seconds.astype(float)


class Calls(Metric):
    """Rows the model evaluated for this counterfactual."""

    name, direction = "calls", "min"

    def compute(self, result: Counterfactuals, reference: Any = None) -> Array:
        return result.calls.astype(float)


class KnnDistance(Metric):
    """Mean distance √(Σ (x' − r)² / d) to the k = 5 nearest reference rows r.

    With fewer than k reference rows, the mean over all of them.
    """

    name, direction, needs = "knn_distance", "min", frozenset({"reference"})
    k = 5

    def compute(self, result: Counterfactuals, reference: Any = None) -> Array:
        rows = Reference.read(reference, result).rows
        _, x_cf = flat(result)
        return np.asarray(_nearest(x_cf, rows, self.k).mean(1) / np.sqrt(rows.shape[1]))


class RelativeDistance(Metric):
    """‖x' − x‖₂ over the distance from x to the nearest reference row of class c.

    Below 1, the counterfactual is nearer than the nearest unlike neighbour. NaN where the reference has no
    row of class c, or one equal to x.
    """

    name, direction, needs = "relative_distance", "min", frozenset({"reference", "labels"})

    def compute(self, result: Counterfactuals, reference: Any = None) -> Array:
        known = Reference.read(reference, result)
        if known.labels is None:
            raise ValueError(f"The metric {self.name!r} needs labels: pass {NEEDS['labels']}.")
        x, _ = flat(result)
        nearest = np.full(len(result), np.nan)
        for label in set(result.target.tolist()):
            mine, theirs = result.target == label, known.labels == label
            if np.any(theirs):
                nearest[mine] = _nearest(x[mine], known.rows[theirs], 1)[:, 0]
        nearest[nearest == 0] = np.nan
        return np.asarray(L2().compute(result) / nearest)


BASIC: tuple[type[Metric], ...] = (
    Valid,
    Flipped,
    TargetConfidence,
    ConfidenceGain,
    L1,
    L2,
    LInf,
    MAE,
    RMSE,
    Sparsity,
    UnchangedFraction,
    Segments,
    KnnDistance,
    RelativeDistance,
    Seconds,
    Calls,
)


def _moved(result: Counterfactuals) -> Array:
    """|x' − x|, (n, d)."""
    before, after = flat(result)
    return np.asarray(np.abs(after - before))


def _nearest(x: Array, rows: Array, k: int, block: int = 256) -> Array:
    """Distances (n, k) to the k nearest rows, in no order; in blocks, so that memory stays small."""
    k = min(k, len(rows))
    parts = [
        np.partition(cdist(x[i : i + block], rows), k - 1, axis=1)[:, :k] for i in range(0, len(x), block)
    ]
    return np.concatenate([np.empty((0, k)), *parts])
