"""Distance: how far x' is from x. Below, d is the number of values in x.

In a table, |x' − x| of a number is in units of its schema, and 1 for another category or for a
missing value that was filled; d is the number of columns, with a one-hot group as one.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist
from typing_extensions import override

from ..engine.result import Counterfactuals
from ..models.classifier import Array
from .inputs import MetricInputs
from .metric import Metric, absolute_change, flat_arrays, instance_shape


class L1(Metric):
    """Σ |x' − x|."""

    name = "l1"
    direction = "min"

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        return np.asarray(absolute_change(result).sum(axis=1))


class L2(Metric):
    """√Σ (x' − x)²."""

    name = "l2"
    direction = "min"

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        return np.asarray(np.linalg.norm(absolute_change(result), axis=1))


class LInf(Metric):
    """max |x' − x|."""

    name = "linf"
    direction = "min"

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        return np.asarray(absolute_change(result).max(axis=1))


class MAE(Metric):
    """Σ |x' − x| / d."""

    name = "mae"
    direction = "min"

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        return np.asarray(absolute_change(result).mean(axis=1))


class RMSE(Metric):
    """√(Σ (x' − x)² / d)."""

    name = "rmse"
    direction = "min"

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        squares = np.square(absolute_change(result))
        return np.asarray(np.sqrt(squares.mean(axis=1)))


class Proximity(Metric):
    """√Σ (x' − x)² / T, with T the number of time steps, as in TS-NUC.

    References
    ----------
    Ghosh, Jain, Parida, Das: Nearest unlike cluster counterfactuals for time series. ICPR 2024.
    """

    name = "proximity"
    direction = "min"
    modalities = ("series",)

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        n_steps = instance_shape(result)[-1]
        return np.asarray(np.linalg.norm(absolute_change(result), axis=1) / n_steps)


class DTW(Metric):
    """√Σ (x'(s) − x(t))² along the best warping path, all channels warped together.

    Never above l2, which is the path without warping.

    References
    ----------
    Sakoe, Chiba: Dynamic programming algorithm optimization for spoken word recognition. IEEE
    Trans. Acoustics, Speech, and Signal Processing 26, 1978. https://doi.org/10.1109/TASSP.1978.1163055
    """

    name = "dtw"
    direction = "min"
    modalities = ("series",)

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        from aeon.distances import dtw_distance

        shape = instance_shape(result)
        x, x_cf = flat_arrays(result)
        before = x.reshape(-1, *shape)
        after = x_cf.reshape(-1, *shape)
        # aeon sums squares, and has no function for pairs of rows.
        squared = [dtw_distance(a, b) for a, b in zip(before, after, strict=True)]
        return np.sqrt(squared)


class RelativeDistance(Metric):
    """‖x' − x‖₂ over the distance from x to the nearest reference row of class c.

    Below 1, the counterfactual is nearer than the nearest unlike neighbor. NaN where the reference
    has no row of class c, or one equal to x.
    """

    name = "relative_distance"
    direction = "min"
    needs = frozenset({"reference", "labels"})

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        reference = inputs.require_reference()
        x, x_cf = flat_arrays(result)
        unlike = np.full(len(result), np.nan)
        for label in set(result.target.tolist()):
            candidates = reference.of_class(label)
            if len(candidates):
                mine = result.target == label
                distance, _ = nearest(x[mine], candidates, 1)
                unlike[mine] = distance[:, 0]
        unlike[unlike == 0] = np.nan
        return np.asarray(np.linalg.norm(x_cf - x, axis=1) / unlike)


DISTANCE: tuple[type[Metric], ...] = (
    L1,
    L2,
    LInf,
    MAE,
    RMSE,
    Proximity,
    DTW,
    RelativeDistance,
)


def nearest(
    x: Array,
    rows: Array,
    k: int,
    block: int = 256,
) -> tuple[Array, Array]:
    """Find the k nearest rows of every point.

    Parameters
    ----------
    x : ndarray of shape (n, d)
        The points.
    rows : ndarray of shape (m, d)
        The rows to search.
    k : int
        How many; at most m are returned.
    block : int, default=256
        Points compared at once, which bounds memory.

    Returns
    -------
    distances : ndarray of shape (n, k)
        Euclidean distances, in no particular order.
    positions : ndarray of int, shape (n, k)
        Positions in `rows`, in the order of `distances`.
    """
    k = min(k, len(rows))
    distances = [np.empty((0, k))]
    positions = [np.empty((0, k), dtype=int)]
    for start in range(0, len(x), block):
        distance = cdist(x[start : start + block], rows)
        order = np.argpartition(distance, k - 1, axis=1)
        position = order[:, :k]
        positions.append(position)
        distances.append(np.take_along_axis(distance, position, axis=1))
    return np.concatenate(distances), np.concatenate(positions)
