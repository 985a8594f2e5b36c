"""Plausibility: how far a counterfactual lies from the reference data.

Every detector is scored twice, of x' and as the increase over x: an instance that is unusual itself
may have an unusual counterfactual, so the increase over the query is reported as well.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from typing_extensions import override

from ..engine.result import Counterfactuals
from ..models.classifier import Array
from .detectors import DETECTORS, Detector, DtwLOF
from .distance import nearest
from .inputs import MetricInputs
from .metric import Metric, flat_arrays


class DtwLOFInlier(Metric):
    """1 where the `dtw_lof` of x' is at most 1.5, else 0: the share of inliers, as in TSCFEval.

    1.5 is scikit-learn's threshold. For series of one channel this is the published definition.
    """

    name = "dtw_lof_inlier"
    direction = "max"
    needs = DtwLOF.needs
    modalities = DtwLOF.modalities

    @override
    def lacks(self, result: Counterfactuals, inputs: MetricInputs) -> str:
        return DtwLOF().lacks(result, inputs)

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        factor = DtwLOF().compute(result, inputs)
        return (factor <= 1.5).astype(float)


class YNN(Metric):
    """Share of the k = 5 nearest reference rows of x' that are labeled c.

    With fewer than k reference rows, of all of them.

    References
    ----------
    Pawelczyk, Bielawski, van den Heuvel, Richter, Kasneci: CARLA: a Python library to benchmark
    algorithmic recourse and counterfactual explanation algorithms. NeurIPS Datasets and Benchmarks
    2021. https://doi.org/10.48550/arXiv.2108.00783
    """

    name = "ynn"
    direction = "max"
    needs = frozenset({"reference", "labels"})
    k = 5

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        _, x_cf = flat_arrays(result)
        reference = inputs.require_reference()
        assert reference.labels is not None
        _, position = nearest(x_cf, reference.rows, self.k)
        neighbor_labels = reference.labels[position]  # (n, k)
        is_target = neighbor_labels == result.target[:, None]
        return np.asarray(is_target.mean(axis=1))


class Connectedness(Metric):
    """1 where x' is connected to the reference rows of class c, else 0.

    As a border point of DBSCAN: within ε of a core row. A row of class c is core if its k-th
    nearest other row of c is within ε; k = 3, ε the radius at which nine rows in ten are core. NaN
    with fewer than two rows of class c.
    """

    name = "connectedness"
    direction = "max"
    needs = frozenset({"reference", "labels"})
    k = 3
    share = 0.9

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        reference = inputs.require_reference()
        _, x_cf = flat_arrays(result)
        connected = np.full(len(result), np.nan)
        for label in set(result.target.tolist()):
            rows = reference.of_class(label)
            if len(rows) < 2:
                continue
            mine = result.target == label
            # The nearest row to a row of the reference is that row itself.
            distance, _ = nearest(rows, rows, self.k + 1)
            radius = distance.max(axis=1)
            epsilon = np.quantile(radius, self.share, method="inverted_cdf")
            core = rows[radius <= epsilon]
            distance_to_core, _ = nearest(x_cf[mine], core, 1)
            connected[mine] = distance_to_core[:, 0] <= epsilon
        return connected


class Increase(Metric):
    """The score of a detector of x' less that of x."""

    direction: ClassVar[Literal["min", "max"]] = "min"
    detector: ClassVar[type[Detector]]

    @override
    def lacks(self, result: Counterfactuals, inputs: MetricInputs) -> str:
        return self.detector().lacks(result, inputs)

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        detector = self.detector()
        before = detector.score_before(result, inputs)
        after = detector.score_after(result, inputs)
        return np.asarray(after - before)


def increase_of(detector: type[Detector]) -> type[Metric]:
    """Make the metric of the increase of a detector's score over the query."""
    attributes: dict[str, Any] = {
        "__module__": __name__,
        "__doc__": f"`{detector.name}` of x' less that of x: what the change did to it.",
        "name": f"{detector.name}_increase",
        "needs": detector.needs,
        "modalities": detector.modalities,
        "detector": detector,
    }
    return type(f"{detector.__name__}Increase", (Increase,), attributes)


PLAUSIBILITY: tuple[type[Metric], ...] = (
    *DETECTORS,
    *(increase_of(detector) for detector in DETECTORS),
    DtwLOFInlier,
    YNN,
    Connectedness,
)
