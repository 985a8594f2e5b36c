"""Sets: the counterfactuals of one instance taken together. Every row of an instance gets its set's score."""

from __future__ import annotations

import numpy as np
import torch

from ..engine.result import Counterfactuals
from ..models.classifier import Array
from ..numerics.randomness import row_seeds
from .inputs import MetricInputs
from .metric import Metric, flat


class Diversity(Metric):
    """log det(K + 10⁻⁶ I), K_ij = 1 / (1 + rmse(x'_i, x'_j)); NaN where one was asked for.

    The log-probability of the set in a determinantal point process (Mothilal, Sharma, Tan 2020), near 0 where
    the counterfactuals of an instance are far apart and least where all are alike. One that was asked for and
    did not come counts as a copy.
    """

    name, direction = "diversity", "max"
    ridge = 1e-6

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        _, x_cf = flat(result)
        which, count, asked = _sets(result)
        order, first = np.argsort(which, kind="stable"), np.cumsum(count) - count
        scores = np.full(len(result), np.nan)
        for k in np.unique(asked[asked > 1]).tolist():
            sets, place = np.flatnonzero(asked == k)[:, None], np.arange(k)
            rows = order[first[sets] + np.where(place < count[sets], place, 0)]
            x = torch.from_numpy(x_cf[rows])
            distance = (
                torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")
                / x_cf.shape[1] ** 0.5
            )
            kernel = 1 / (1 + distance) + self.ridge * torch.eye(k, dtype=x.dtype)
            scores[rows] = torch.logdet(kernel).numpy()[:, None]
        return scores


class Coverage(Metric):
    """Share of the k counterfactuals asked for that came: valid ones, no two alike."""

    name, direction = "coverage", "max"

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        _, x_cf = flat(result)
        which, count, asked = _sets(result)
        valid = np.flatnonzero(result.valid)
        _, distinct = np.unique(row_seeds(x_cf[valid], 0, which[valid]), return_index=True)
        came = np.bincount(which[valid[distinct]], minlength=len(count))
        return np.asarray((came / asked)[which])


SETS: tuple[type[Metric], ...] = (Diversity, Coverage)


def _sets(result: Counterfactuals) -> tuple[Array, Array, Array]:
    """The set of each row, and for each set how many rows it has and how many were asked for."""
    _, which, count = np.unique(result.source, return_inverse=True, return_counts=True)
    done = np.bincount(which, result.status == "already_target", len(count)) > 0
    k = result.provenance.get("options", {}).get("k", 1)
    return which, count, np.where(done, count, np.maximum(count, k))
