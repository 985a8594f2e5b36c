"""Economy: how little was changed, and how tidily. a = |x' − x|, d its number of values.

Which values count as changed is defined by `Counterfactuals.changed`; the values of a table are its
columns, with a one-hot group as one.
"""

from __future__ import annotations

import numpy as np
from typing_extensions import override

from ..engine.result import Counterfactuals, as_numpy
from ..models.classifier import Array
from ..search.refinement import refine
from .inputs import MetricInputs, classifier_of
from .metric import Metric, absolute_change, flat_arrays, flat_changed, instance_shape
from .regions import count_regions

#: the tolerance of the papers' compactness
KEPT_WITHIN = 0.01


class Sparsity(Metric):
    """Fraction of the values that changed by more than rounding."""

    name = "sparsity"
    direction = "min"

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        return result.changed_fraction


class UnchangedFraction(Metric):
    """Fraction of the values that stayed: 1 less `sparsity`."""

    name = "unchanged_fraction"
    direction = "max"

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        return np.asarray(1 - result.changed_fraction)


class VisibleChange(Metric):
    """Fraction of the pixels that changed visibly, by `Counterfactuals.visible_pixels`.

    That is by more than 2 % of the image's range of values in some channel. `sparsity` counts every
    value that moved at all, which on images is often all of them.
    """

    name = "visible_change"
    direction = "min"
    modalities = ("image",)

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        return np.asarray(result.visible_pixels.mean(axis=(1, 2)))


class Compactness(Metric):
    """Fraction of the values with |x' − x| ≤ 0.01, in the units of the data.

    LatentCF++, Glacier and TS-NUC report it for series scaled to [0, 1]. A value that moved less
    than the tolerance counts as kept, which `unchanged_fraction` does not allow.

    References
    ----------
    Wang, Samsten, Mochaourab, Papapetrou: Learning time series counterfactuals via latent space
    representations. Discovery Science 2021.
    """

    name = "compactness"
    direction = "max"
    modalities = ("series",)

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        # Decimals are rounded, and so is their difference: 1.01 - 1 is above 0.01.
        x, x_cf = flat_arrays(result)
        dtype = as_numpy(result.X_cf).dtype
        eps = np.finfo(dtype).eps if dtype.kind == "f" else 0.0
        rounding = eps * (np.abs(x) + np.abs(x_cf) + KEPT_WITHIN)
        kept = absolute_change(result) <= KEPT_WITHIN + rounding
        return np.asarray(kept.mean(axis=1))


class Segments(Metric):
    """Number of separate places that changed: runs along time, image regions, or features.

    Regions of an image are 4-connected. Runs are summed over channels; a pixel counts as changed
    when any of its channels did.
    """

    name = "segments"
    direction = "min"

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        _, segments = _points_and_segments(result)
        return segments


class SegmentLength(Metric):
    """Mean number of points in a segment that changed; NaN where nothing changed.

    Points are values of a series or pixels of an image. Of two edits of the same sparsity, the one
    with the longer segments is easier to read.
    """

    name = "segment_length"
    direction = "max"
    modalities = ("series", "image")

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        points, segments = _points_and_segments(result)
        return _ratio(points, segments)


class Contiguity(Metric):
    """(points − segments) / (points − 1) of the points that changed; NaN where nothing changed.

    The share of links between neighbors that are there, of those that one segment would have: 1
    where the points form one segment, 0 where no two of them touch. An instance returned unchanged
    has no contiguity, rather than the best one.
    """

    name = "contiguity"
    direction = "max"
    modalities = ("series", "image")

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        points, segments = _points_and_segments(result)
        contiguity = _ratio(points - segments, points - 1)
        contiguity[points == 1] = 1.0
        contiguity[points == 0] = np.nan
        return contiguity


class ShortestEdit(Metric):
    """Number of steps of the shortest run that changed, in any channel; NaN where nothing changed.

    Single points and spikes show here even where the other runs are long.
    """

    name = "shortest_edit"
    direction = "max"
    modalities = ("series",)

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        changed = as_numpy(result.changed).reshape(len(result), *instance_shape(result))
        border = ((0, 0), (0, 0), (1, 1))
        edges = np.diff(np.pad(changed.astype(np.int8), border), axis=-1)
        row, _, start = np.nonzero(edges == 1)
        stop = np.nonzero(edges == -1)[2]  # in the order of the starts: each run has one of both
        shortest = np.full(len(result), np.inf)
        np.minimum.at(shortest, row, stop - start)
        return np.where(np.isinf(shortest), np.nan, shortest)


def _changes(result: Counterfactuals) -> Array:
    """Return |x' − x| (n, d), 0 where it is rounding."""
    return np.where(flat_changed(result), absolute_change(result), 0.0)


class Gini(Metric):
    """Gini index of a: 0 where all values moved alike, 1 − 1/d where one did.

    Σ (2i − d − 1) a₍ᵢ₎ / (d Σ a), with a₍ᵢ₎ the i-th smallest. NaN where nothing changed.

    References
    ----------
    Hurley, Rickard: Comparing measures of sparsity. IEEE Trans. Information Theory 55 (10), 2009,
    pages 4723-4741.
    """

    name = "gini"
    direction = "max"

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        a = np.sort(_changes(result), axis=1)
        d = a.shape[1]
        weight = 2.0 * np.arange(1, d + 1) - d - 1
        return _ratio(a @ weight, d * a.sum(axis=1))


class Hoyer(Metric):
    """(√d − ‖a‖₁/‖a‖₂) / (√d − 1): 0 where all values moved alike, 1 where one did.

    NaN where nothing changed, or d = 1.

    References
    ----------
    Hoyer: Non-negative matrix factorization with sparseness constraints. Journal of Machine
    Learning Research 5, 2004.
    """

    name = "hoyer"
    direction = "max"

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        a = _changes(result)
        root = np.sqrt(a.shape[1])
        l1 = a.sum(axis=1)
        l2 = np.linalg.norm(a, axis=1)
        largest = np.full(len(a), root - 1)
        return _ratio(root - _ratio(l1, l2), largest)


class Redundancy(Metric):
    """Share of the changed values that `refine` can give back; NaN where nothing changed.

    1 where x' is not in class c, since none of its changes reached it.
    """

    name = "redundancy"
    direction = "min"
    needs = frozenset({"model"})

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        classifier = classifier_of(inputs.model, "model", result)
        refined = refine(result, classifier)
        needed = np.where(result.valid, refined.changed_fraction, 0.0)
        return 1 - _ratio(needed, result.changed_fraction)


ECONOMY: tuple[type[Metric], ...] = (
    Sparsity,
    UnchangedFraction,
    VisibleChange,
    Compactness,
    Segments,
    SegmentLength,
    Contiguity,
    ShortestEdit,
    Gini,
    Hoyer,
    Redundancy,
)


def _points_and_segments(result: Counterfactuals) -> tuple[Array, Array]:
    """Count the points and the segments that changed, per row."""
    if result.modality == "row":
        n_changed = flat_changed(result).sum(axis=1).astype(float)
        return n_changed, n_changed
    shape = instance_shape(result)
    changed = as_numpy(result.changed).reshape(len(result), *shape)
    points = changed.any(axis=1) if result.modality == "image" else changed
    every_point = tuple(range(1, points.ndim))
    n_points = points.sum(axis=every_point)
    n_segments = count_regions(changed, result.modality)
    return n_points.astype(float), n_segments.astype(float)


def _ratio(part: Array, whole: Array) -> Array:
    """Divide two arrays of one length; NaN where `whole` is 0."""
    undefined = np.full(len(whole), np.nan)
    return np.asarray(np.divide(part, whole, out=undefined, where=whole != 0))
