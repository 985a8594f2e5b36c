"""Distance: how far is x' from x? Below, d is the number of values in x."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from ..engine.result import Counterfactuals
from ..models.classifier import Array
from .inputs import MetricInputs
from .metric import Metric, flat, instance_shape, moved


class L1(Metric):
    """Σ |x' − x|."""

    name, direction = "l1", "min"

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        return np.asarray(moved(result).sum(1))


class L2(Metric):
    """√Σ (x' − x)²."""

    name, direction = "l2", "min"

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        return np.asarray(np.linalg.norm(moved(result), axis=1))


class LInf(Metric):
    """max |x' − x|."""

    name, direction = "linf", "min"

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        return np.asarray(moved(result).max(1))


class MAE(Metric):
    """Σ |x' − x| / d."""

    name, direction = "mae", "min"

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        return np.asarray(moved(result).mean(1))


class RMSE(Metric):
    """√(Σ (x' − x)² / d)."""

    name, direction = "rmse", "min"

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        return np.asarray(np.sqrt(np.square(moved(result)).mean(1)))


class DTW(Metric):
    """√Σ (x'(s) − x(t))² along the best warping path, all channels warped together.

    Never above l2, which is the path without warping.
    """

    name, direction, modalities = "dtw", "min", ("series",)

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        from aeon.distances import dtw_distance

        x, x_cf = (part.reshape(-1, *instance_shape(result)) for part in flat(result))
        # aeon sums squares, and has no call for pairs of rows.
        return np.sqrt([dtw_distance(a, b) for a, b in zip(x, x_cf, strict=True)])


class RelativeDistance(Metric):
    """‖x' − x‖₂ over the distance from x to the nearest reference row of class c.

    Below 1, the counterfactual is nearer than the nearest unlike neighbor. NaN where the reference has no
    row of class c, or one equal to x.
    """

    name, direction, needs = "relative_distance", "min", frozenset({"reference", "labels"})

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        x, _ = flat(result)
        unlike = np.full(len(result), np.nan)
        for label in set(result.target.tolist()):
            mine, theirs = result.target == label, given.known().of_class(label)
            if len(theirs):
                unlike[mine] = nearest(x[mine], theirs, 1)[0][:, 0]
        unlike[unlike == 0] = np.nan
        return np.asarray(L2().compute(result, given) / unlike)


DISTANCE: tuple[type[Metric], ...] = (L1, L2, LInf, MAE, RMSE, DTW, RelativeDistance)


def nearest(x: Array, rows: Array, k: int, block: int = 256) -> tuple[Array, Array]:
    """The k nearest rows: distances and positions (n, k), in no order; in blocks, so that memory is small."""
    k = min(k, len(rows))
    distances, positions = [np.empty((0, k))], [np.empty((0, k), dtype=int)]
    for start in range(0, len(x), block):
        distance = cdist(x[start : start + block], rows)
        position = np.argpartition(distance, k - 1, axis=1)[:, :k]
        positions.append(position)
        distances.append(np.take_along_axis(distance, position, 1))
    return np.concatenate(distances), np.concatenate(positions)
