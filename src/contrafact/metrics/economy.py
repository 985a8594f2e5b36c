"""Economy: how little was changed, and how tidily? a = |x' − x|, d its number of values."""

from __future__ import annotations

import numpy as np

from ..engine.result import Counterfactuals
from ..models.classifier import Array
from ..search.refinement import refine
from .inputs import MetricInputs, classifier_of
from .metric import Metric, instance_shape, moved
from .regions import count_regions

#: a change below this share of the row's largest is rounding, not an edit
TOLERANCE = 1e-6


class Sparsity(Metric):
    """Fraction of the values that changed, by more than a millionth of the row's largest change."""

    name, direction = "sparsity", "min"

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        return np.asarray(_edited(result).mean(1))


class UnchangedFraction(Metric):
    """Fraction of the values that stayed: 1 less `sparsity`."""

    name, direction = "unchanged_fraction", "max"

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        return np.asarray(1 - _edited(result).mean(1))


class Segments(Metric):
    """Number of separate places that changed: runs along time, 4-connected image regions, or features.

    Runs are summed over channels; a pixel counts as changed when any of its channels did.
    """

    name, direction = "segments", "min"

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        return _places(result)[1]


class SegmentLength(Metric):
    """Mean number of points in a segment that changed; NaN where nothing changed.

    Points are values of a series or pixels of an image. Of two edits of the same sparsity, the one with the
    longer segments is easier to read.
    """

    name, direction, modalities = "segment_length", "max", ("series", "image")

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        points, segments = _places(result)
        return _ratio(points, segments)


class Contiguity(Metric):
    """(points − segments) / (points − 1) of the points that changed; NaN where nothing changed.

    1 where they form one segment, 0 where no two of them touch: how many of the links that one segment would
    have are there. An instance handed back unchanged has no contiguity, not the best one.
    """

    name, direction, modalities = "contiguity", "max", ("series", "image")

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        points, segments = _places(result)
        links = _ratio(points - segments, points - 1)
        return np.where(points == 1, 1.0, np.where(points == 0, np.nan, links))


class Gini(Metric):
    """Gini index of a: 0 where all values moved alike, 1 − 1/d where one did; NaN where nothing changed.

    Σ (2i − d − 1) a₍ᵢ₎ / (d Σ a), a₍ᵢ₎ the i-th smallest (Hurley and Rickard 2009).
    """

    name, direction = "gini", "max"

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        a = np.sort(moved(result), axis=1)
        d = a.shape[1]
        return _ratio(a @ (2.0 * np.arange(1, d + 1) - d - 1), d * a.sum(1))


class Hoyer(Metric):
    """(√d − ‖a‖₁/‖a‖₂) / (√d − 1): 0 where all values moved alike, 1 where one did.

    NaN where nothing changed, or d = 1 (Hoyer 2004).
    """

    name, direction = "hoyer", "max"

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        a = moved(result)
        root = np.sqrt(a.shape[1])
        return _ratio(root - _ratio(a.sum(1), np.linalg.norm(a, axis=1)), np.full(len(a), root - 1))


class Redundancy(Metric):
    """Share of the changed values that `refine` can give back; NaN where nothing changed.

    1 where x' is not in class c: whatever was changed, it serves nothing.
    """

    name, direction, needs = "redundancy", "min", frozenset({"model"})

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        needed = refine(result, classifier_of(given.model, "model", result)).changed_fraction
        needed = np.where(result.valid, needed, 0.0)
        return 1 - _ratio(needed, result.changed_fraction)


ECONOMY: tuple[type[Metric], ...] = (
    Sparsity,
    UnchangedFraction,
    Segments,
    SegmentLength,
    Contiguity,
    Gini,
    Hoyer,
    Redundancy,
)


def _places(result: Counterfactuals) -> tuple[Array, Array]:
    """Points and segments that changed, per row."""
    changed = _edited(result).reshape(len(result), *instance_shape(result))
    points = changed.any(1) if result.modality == "image" else changed
    count = points.sum(axis=tuple(range(1, points.ndim)))
    return count.astype(float), count_regions(changed, result.modality).astype(float)


def _ratio(part: Array, whole: Array) -> Array:
    """part / whole, NaN where whole is 0."""
    return np.asarray(np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole != 0))


def _edited(result: Counterfactuals) -> Array:
    """(n, d) mask of the values that changed by more than rounding."""
    a = moved(result)
    return np.asarray(a > TOLERANCE * a.max(1, keepdims=True, initial=0.0))
