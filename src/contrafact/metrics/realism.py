"""Realism of edited series: their joins, their windows, and how channels go together.

Detectors look at a series as a whole and hardly notice an edit that is short; these metrics look at
the places that were edited.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from ..engine.result import Counterfactuals, as_numpy
from ..models.classifier import Array
from ..numerics import RealDifferences, channel_correlations
from .distance import nearest
from .inputs import MetricInputs
from .metric import Metric, flat_arrays, instance_shape
from .real_windows import RealWindows
from .reference import Reference

#: entries of correlation matrices held at once, which bounds memory
MAX_ELEMENTS = 2**22


class Seam(Metric):
    """Largest step across an edge of an edit, over the 99 % quantile of real ones near that place.

    Above 1: a jump that real series do not show there, within two steps. 0 where no edit has an
    edge: nothing was changed, or whole channels.
    """

    name = "seam"
    direction = "min"
    needs = frozenset({"reference"})
    modalities = ("series",)

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        limits = real_differences(inputs.require_reference(), result)
        return limits.seam(*edited_series(result)).numpy()


class Kink(Metric):
    """Largest bend across an edge of an edit, over the 99 % quantile of real ones near that place.

    A bend is a second difference |x[t+2] − 2 x[t+1] + x[t]|. Above 1: a kink that real series do
    not show there, within two steps. 0 where no edit has an edge.
    """

    name = "kink"
    direction = "min"
    needs = frozenset({"reference"})
    modalities = ("series",)

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        limits = real_differences(inputs.require_reference(), result)
        return limits.kink(*edited_series(result)).numpy()


class UnrealJoin(Metric):
    """1 where the `seam` or the `kink` of x' is above 1, else 0: its mean is the share of rows."""

    name = "unreal_join"
    direction = "min"
    needs = frozenset({"reference"})
    modalities = ("series",)

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        largest = np.maximum(Seam().compute(result, inputs), Kink().compute(result, inputs))
        return (largest > 1).astype(float)


class WindowDistance(Metric):
    """Largest distance of an edited window to a real one near, over that of 95 % of real windows.

    A window is a tenth of the series, at least three steps; it is edited where a value in it
    changed. Its distance is that to the nearest window of the reference (at most 300 evenly spaced
    rows) within three steps of its place, all channels together, each in units of its standard
    deviation. Real windows are compared with the other rows. NaN where nothing changed.
    """

    name = "window_distance"
    direction = "min"
    needs = frozenset({"reference"})
    modalities = ("series",)

    @override
    def lacks(self, result: Counterfactuals, inputs: MetricInputs) -> str:
        reason = super().lacks(result, inputs)
        if not reason and len(inputs.require_reference().rows) < 2:
            return "needs 2 reference rows, got 1"
        return reason

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        reference = inputs.require_reference()
        x_cf, x = edited_series(result)
        real = reference.fitted(RealWindows, lambda: RealWindows.of(_series(reference, result)))
        ratio = real.ratios(x_cf)
        is_edited = real.touched(x_cf != x)
        largest = torch.where(is_edited, ratio, -torch.inf).amax(dim=1)
        return torch.where(is_edited.any(dim=1), largest, torch.nan).numpy()


class ChannelCorrelationGap(Metric):
    """Mean |R(x') − R̄| over pairs of channels, R̄ the mean of the k = 5 nearest reference rows.

    R is the matrix of correlations between channels over time; that of a channel that does not
    vary is 0. With fewer than k reference rows, the mean is that of all. For series of several
    channels.
    """

    name = "channel_correlation_gap"
    direction = "min"
    needs = frozenset({"reference"})
    modalities = ("series",)
    k = 5

    @override
    def lacks(self, result: Counterfactuals, inputs: MetricInputs) -> str:
        if result.modality == "series" and instance_shape(result)[0] < 2:
            return "is for series of several channels; those of this result have one"
        return super().lacks(result, inputs)

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        reference = inputs.require_reference()
        shape = instance_shape(result)
        _, x_cf = flat_arrays(result)
        _, position = nearest(x_cf, reference.rows, self.k)  # (n, k)
        n, k = position.shape
        channels = shape[0]
        pairs = np.triu_indices(channels, 1)
        gap = np.empty(n)
        step = max(1, MAX_ELEMENTS // (k * channels**2))
        for start in range(0, n, step):
            rows = slice(start, start + step)
            neighbors = reference.rows[position[rows]].reshape(-1, k, *shape)
            near = channel_correlations(torch.from_numpy(neighbors)).mean(1)
            own = channel_correlations(torch.from_numpy(x_cf[rows].reshape(-1, *shape)))
            difference = (own - near).abs()
            gap[rows] = difference[:, pairs[0], pairs[1]].mean(1).numpy()
        return gap


REALISM: tuple[type[Metric], ...] = (
    Seam,
    Kink,
    UnrealJoin,
    WindowDistance,
    ChannelCorrelationGap,
)


def real_differences(reference: Reference, result: Counterfactuals) -> RealDifferences:
    """Return the limits of the reference's differences, computed once."""
    limits: RealDifferences = reference.fitted(
        RealDifferences, lambda: RealDifferences.of(_series(reference, result))
    )
    return limits


def edited_series(result: Counterfactuals) -> tuple[Tensor, Tensor]:
    """Return X_cf and X as float64, (n, channels, length), equal where nothing counts as changed.

    Which values count is for `result.changed` to say: less than rounding makes no edge.
    """
    shape = (len(result), *instance_shape(result))
    x, x_cf = (torch.from_numpy(flat.reshape(shape)) for flat in flat_arrays(result))
    changed = torch.from_numpy(as_numpy(result.changed).reshape(shape))
    return torch.where(changed, x_cf, x), x


def _series(reference: Reference, result: Counterfactuals) -> Tensor:
    """Return the reference rows as series, (m, channels, length)."""
    return torch.from_numpy(reference.rows.reshape(-1, *instance_shape(result)))
