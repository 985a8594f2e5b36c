"""Sets: the counterfactuals of one instance taken together. Every row gets the score of its set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from ..engine.result import Counterfactuals
from ..models.classifier import Array
from ..numerics.randomness import row_seeds
from .inputs import MetricInputs
from .metric import Metric, flat_arrays, flat_changed, n_values


class Diversity(Metric):
    """log det(K + 10⁻⁶ I), K_ij = 1 / (1 + rmse(x'_i, x'_j)); NaN where one was asked for.

    The log-probability of the set in a determinantal point process, near 0 where the
    counterfactuals of an instance are far apart and least where all are alike. One that is not
    valid or did not come counts as a copy of another.

    References
    ----------
    Mothilal, Sharma, Tan: Explaining machine learning classifiers through diverse counterfactual
    explanations. FAT* 2020. https://doi.org/10.1145/3351095.3372850
    """

    name = "diversity"
    direction = "max"
    ridge = 1e-6

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        _, x_cf = flat_arrays(result)
        sets = _Sets.of(result)
        scores = np.full(len(result), np.nan)
        several = sets.n_asked[sets.n_asked > 1]
        for k in np.unique(several).tolist():
            rows = sets.members(np.flatnonzero(sets.n_asked == k), k)  # (sets, k)
            valid = result.valid[rows]
            first_valid = np.take_along_axis(rows, valid.argmax(1)[:, None], axis=1)
            counted = np.where(valid, rows, first_valid)
            log_det = self._log_det(torch.from_numpy(x_cf[counted]), n_values(result))
            scores[rows] = log_det.numpy()[:, None]
        return scores

    def _log_det(self, x: Tensor, d: int) -> Tensor:
        """Compute log det(K + ridge · I) of every set; x is (sets, k, coordinates)."""
        k = x.shape[1]
        # The faster mode by matrix products would not give 0 for equal points.
        distance = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist") / d**0.5
        kernel = 1 / (1 + distance)
        identity = torch.eye(k, dtype=x.dtype)
        return torch.logdet(kernel + self.ridge * identity)


class FeatureDiversity(Metric):
    """Mean 1 − |A ∩ B| / |A ∪ B| of the sets of changed features of two counterfactuals x', x''.

    Over all pairs of the k that were asked for: 1 where no two options change a feature in common,
    0 where all change the same ones. One that is not valid or did not come counts as a copy of
    another. NaN where one was asked for. In a table, a one-hot group is one feature.
    """

    name = "feature_diversity"
    direction = "max"
    modalities = ("row",)

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        changed = flat_changed(result).astype(float)
        sets = _Sets.of(result)
        scores = np.full(len(result), np.nan)
        for k in np.unique(sets.n_asked[sets.n_asked > 1]).tolist():
            chosen = np.flatnonzero(sets.n_asked == k)
            rows = sets.members(chosen, k)  # (sets, k)
            features = changed[rows]
            common = features @ features.transpose(0, 2, 1)  # (sets, k, k)
            size = features.sum(axis=2)
            united = size[:, :, None] + size[:, None] - common
            distance = 1 - np.divide(common, united, out=np.ones_like(common), where=united > 0)
            counts = result.valid[rows] & (np.arange(k) < sets.n_rows[chosen, None])
            distance *= counts[:, :, None] & counts[:, None]
            score = distance.sum(axis=(1, 2)) / (k * (k - 1))
            scores[rows] = score[:, None]
        return scores


class Coverage(Metric):
    """Share of the k counterfactuals asked for that came: valid ones, no two alike."""

    name = "coverage"
    direction = "max"

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        _, x_cf = flat_arrays(result)
        sets = _Sets.of(result)
        valid = np.flatnonzero(result.valid)
        set_of_valid = sets.set_of_row[valid]
        fingerprints = row_seeds(x_cf[valid], 0, set_of_valid)
        _, distinct = np.unique(fingerprints, return_index=True)
        n_found = np.bincount(set_of_valid[distinct], minlength=len(sets.n_rows))
        share = n_found / sets.n_asked
        return np.asarray(share[sets.set_of_row])


SETS: tuple[type[Metric], ...] = (Diversity, FeatureDiversity, Coverage)


@dataclass(frozen=True)
class _Sets:
    """The rows of a result, grouped by the instance that they belong to.

    set_of_row : (n,) the set of each row.
    n_rows : (sets,) how many rows each set has.
    n_asked : (sets,) how many counterfactuals were asked for; of an instance that was in its
        target class already, no more than came.
    """

    set_of_row: Array
    n_rows: Array
    n_asked: Array

    @classmethod
    def of(cls, result: Counterfactuals) -> _Sets:
        """Group the rows of a result by their source."""
        _, set_of_row, n_rows = np.unique(result.source, return_inverse=True, return_counts=True)
        already_there = result.status == "already_target"
        done = np.bincount(set_of_row, already_there, len(n_rows)) > 0
        k = result.provenance.get("options", {}).get("k", 1)
        n_asked = np.where(done, n_rows, np.maximum(n_rows, k))
        return cls(set_of_row, n_rows, n_asked)

    def members(self, sets: Array, k: int) -> Array:
        """Return the rows of some sets, (sets, k); the first row stands for those that lack."""
        order = np.argsort(self.set_of_row, kind="stable")
        first = np.cumsum(self.n_rows) - self.n_rows
        place = np.arange(k)
        exists = place < self.n_rows[sets, None]
        offset = np.where(exists, place, 0)
        return np.asarray(order[first[sets, None] + offset])
