"""Plausibility: how far does a point lie from the reference data?

Detectors learn the reference once and score outlyingness: less is more plausible. Each comes twice, of x' and
as the increase over x, since an unusual instance has a right to an unusual counterfactual.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from ..engine.result import Counterfactuals
from ..models.classifier import Array
from ..nn.autoencoder_training import fit_autoencoder
from ..nn.autoencoders import Autoencoder
from ..prototypes.dissimilarity import elastic_distances
from ..prototypes.memory import PrototypeMemory
from .distance import nearest
from .inputs import MetricInputs, Reference
from .metric import Metric, flat, instance_shape

#: from flat rows (n, d) to their outlyingness (n,)
Score = Callable[[Array], Array]


class Plausibility(Metric):
    """What detectors share: they learn the reference once, then score all points at once."""

    direction: ClassVar[Literal["min", "max"]] = "min"
    needs = frozenset({"reference"})
    #: reference rows without which there is nothing to learn
    least_rows: ClassVar[int] = 1

    @abstractmethod
    def _fit(self, result: Counterfactuals, given: MetricInputs) -> Score:
        """Learn the reference; `result` tells the shape of an instance."""

    def _key(self, given: MetricInputs) -> Hashable:
        """What the fit depends on, besides the reference."""
        return type(self)

    def lacks(self, result: Counterfactuals, given: MetricInputs) -> str:
        missing = super().lacks(result, given)
        if not missing and len(given.known().rows) < self.least_rows:
            return f"needs {self.least_rows} reference rows, got {len(given.known().rows)}"
        return missing

    def score(self, result: Counterfactuals, given: MetricInputs, after: bool) -> Array:
        """Outlyingness of x, or of x'; computed once."""
        key = self._key(given), after
        if key not in given.shared:
            x = flat(result)[after]
            score = given.known().fitted(self._key(given), lambda: self._fit(result, given))
            given.shared[key] = score(x) if len(x) else np.empty(0)
        return np.asarray(given.shared[key])

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        return self.score(result, given, after=True)


class LOF(Plausibility):
    """Local outlier factor of x' among the reference, of 20 neighbors; about 1 inside the data.

    (Breunig, Kriegel, Ng, Sander 2000.) With fewer than 21 reference rows, of all but one.
    """

    name, least_rows = "lof", 2
    n_neighbors = 20

    def _fit(self, result: Counterfactuals, given: MetricInputs) -> Score:
        return self._factor(given.known().rows, "minkowski")

    def _factor(self, rows: Array, metric: str) -> Score:
        from sklearn.neighbors import LocalOutlierFactor

        k = min(self.n_neighbors, len(rows) - 1)
        detector = LocalOutlierFactor(n_neighbors=k, metric=metric, novelty=True).fit(rows)
        return lambda x: -detector.score_samples(x)


class DtwLOF(LOF):
    """Local outlier factor of x' among the reference, in the distance of `dtw`.

    Of a reference of more than 1000 rows, 1000 drawn once stand for all: their mutual distances are needed.
    """

    name, modalities = "dtw_lof", ("series",)
    most_rows = 1000

    def _fit(self, result: Counterfactuals, given: MetricInputs) -> Score:
        rows, shape = given.known().rows, instance_shape(result)
        if len(rows) > self.most_rows:
            rows = np.random.default_rng(0).permutation(rows)[: self.most_rows]

        def distances(x: Array) -> Array:
            series, known = (part.reshape(len(part), *shape) for part in (x, rows))
            return np.sqrt(elastic_distances(series, known, "dtw"))

        mutual = distances(rows)
        factor = self._factor((mutual + mutual.T) / 2, "precomputed")
        return lambda x: factor(distances(x))


class IsolationForest(Plausibility):
    """Isolation score of x' in a forest grown on the reference, in (0, 1]; about ½ inside the data.

    (Liu, Ting, Zhou 2008; 100 trees, drawn from a fixed seed.)
    """

    name = "isolation_forest"

    def _fit(self, result: Counterfactuals, given: MetricInputs) -> Score:
        from sklearn import ensemble

        forest = ensemble.IsolationForest(random_state=0).fit(given.known().rows)
        return lambda x: -forest.score_samples(x)


class OneClassSVM(Plausibility):
    """Distance of x' to the outside of a one-class SVM around the reference; below 0 inside.

    (Schölkopf et al. 2001; Gaussian kernel of width √(d · variance), ν = 0.1: a tenth of the reference may
    lie outside.)
    """

    name = "ocsvm"
    nu = 0.1

    def _fit(self, result: Counterfactuals, given: MetricInputs) -> Score:
        from sklearn import svm

        machine = svm.OneClassSVM(nu=self.nu).fit(given.known().rows)
        return lambda x: -machine.decision_function(x)


class KnnDistance(Plausibility):
    """Mean distance √(Σ (x' − r)² / d) to the k = 5 nearest reference rows r.

    With fewer than k reference rows, the mean over all of them. The plain measure that the others must beat.
    """

    name = "knn_distance"
    k = 5

    def _fit(self, result: Counterfactuals, given: MetricInputs) -> Score:
        rows = given.known().rows
        return lambda x: np.asarray(nearest(x, rows, self.k)[0].mean(1) / np.sqrt(rows.shape[1]))


class PrototypeEnergy(Plausibility):
    """−log Σ_p exp(−‖x' − p‖² / 2σ²) over prototypes p of all classes: up to 3 means each, by k-means.

    Minus the log density of a mixture of Gaussians, up to a constant; σ² is the variance of the reference
    about its prototypes.
    """

    name, needs = "prototype_energy", frozenset({"reference", "labels"})
    per_class = 3

    def _fit(self, result: Counterfactuals, given: MetricInputs) -> Score:
        means, gaps = zip(*(self._means(rows) for rows in _by_class(given.known())), strict=True)
        variance = np.concatenate(gaps).mean() or given.known().rows.var(0).mean() or 1.0
        return PrototypeMemory(np.concatenate(means), scale=np.sqrt(variance)).energy

    def _means(self, rows: Array) -> tuple[Array, Array]:
        """Prototypes of one class, and the squared distances of its values to them."""
        from sklearn.cluster import KMeans

        k = min(self.per_class, len(np.unique(rows, axis=0)))
        clusters = KMeans(k, n_init=3, random_state=0).fit(rows)
        return clusters.cluster_centers_, np.square(
            rows - clusters.cluster_centers_[clusters.labels_]
        )


class AutoencoderResidual(Plausibility):
    """Mean over points of (r − μ)ᵀ Σ⁻¹ (r − μ), r what an autoencoder leaves of x': a Gauss score.

    r = x' − D(E(x')) at a point has one value per channel; μ and Σ are those of the reference's residuals
    (Malhotra et al. 2016). About the number of channels inside the data.
    """

    name, modalities = "autoencoder_residual", ("series", "image")
    needs = frozenset({"reference", "autoencoder"})

    def _key(self, given: MetricInputs) -> Hashable:
        return type(self), given.autoencoder

    def _fit(self, result: Counterfactuals, given: MetricInputs) -> Score:
        module, shape = given.autoencoder, instance_shape(result)
        if isinstance(module, str):
            module = fit_autoencoder(module, given.known().X.reshape(-1, *shape))
        if not isinstance(module, Autoencoder):
            raise TypeError(
                f"autoencoder must be an Autoencoder or a name, got {type(module).__name__}."
            )
        if module.shape != shape:
            raise ValueError(
                f"autoencoder takes instances of shape {module.shape}; the result has {shape}."
            )

        def residual(x: Array) -> Array:
            rows = torch.from_numpy(x.reshape(len(x), *shape)).to(next(module.parameters()))
            with torch.no_grad():
                again = torch.cat([module(part) for part in rows.split(256)])
            return np.asarray(
                (rows - again).double().flatten(2).transpose(1, 2).cpu()
            )  # (n, points, channels)

        known = residual(given.known().rows).reshape(-1, shape[0])
        mu = known.mean(0)
        sigma = np.atleast_2d(np.cov(known.T, bias=True))
        # A channel that is always rebuilt alike has no spread of its own: the least that keeps Σ invertible.
        inverse = np.linalg.inv(sigma + (1e-9 * np.trace(sigma) + 1e-12) * np.eye(len(mu)))

        def score(x: Array) -> Array:
            r = residual(x) - mu
            return np.asarray(np.einsum("npc,cd,npd->np", r, inverse, r).mean(1))

        return score


class DtwLOFInlier(Metric):
    """1 where the `dtw_lof` of x' is at most 1.5, else 0: the share of inliers, as TSCFEval reports it.

    1.5 is where scikit-learn draws the line. For series of one channel this is the published definition.
    """

    name, direction, needs, modalities = "dtw_lof_inlier", "max", DtwLOF.needs, DtwLOF.modalities

    def lacks(self, result: Counterfactuals, given: MetricInputs) -> str:
        return DtwLOF().lacks(result, given)

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        return (DtwLOF().compute(result, given) <= 1.5).astype(float)


class YNN(Metric):
    """Share of the k = 5 nearest reference rows of x' that are labeled c.

    (Pawelczyk et al. 2021.) With fewer than k reference rows, of all of them.
    """

    name, direction, needs = "ynn", "max", frozenset({"reference", "labels"})
    k = 5

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        _, x_cf = flat(result)
        known = given.known()
        assert known.labels is not None
        _, position = nearest(x_cf, known.rows, self.k)
        return np.asarray((known.labels[position] == result.target[:, None]).mean(1))


class Connectedness(Metric):
    """1 where x' hangs together with the reference rows of class c, else 0; NaN with fewer than two of them.

    As a border point of DBSCAN: within ε of a core row. A row of class c is core if its k-th nearest other
    row of c is within ε; k = 3, ε the radius at which nine rows in ten are core.
    """

    name, direction, needs = "connectedness", "max", frozenset({"reference", "labels"})
    k = 3
    share = 0.9

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        _, x_cf = flat(result)
        connected = np.full(len(result), np.nan)
        for label in set(result.target.tolist()):
            rows, mine = given.known().of_class(label), result.target == label
            if len(rows) > 1:
                # The nearest row to a row of the reference is that row itself.
                radius = nearest(rows, rows, self.k + 1)[0].max(1)
                epsilon = np.quantile(radius, self.share, method="inverted_cdf")
                connected[mine] = (
                    nearest(x_cf[mine], rows[radius <= epsilon], 1)[0][:, 0] <= epsilon
                )
        return connected


class Increase(Metric):
    """A plausibility of x' less that of x."""

    direction: ClassVar[Literal["min", "max"]] = "min"
    of: ClassVar[type[Plausibility]]

    def lacks(self, result: Counterfactuals, given: MetricInputs) -> str:
        return self.of().lacks(result, given)

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        before, after = (self.of().score(result, given, after) for after in (False, True))
        return np.asarray(after - before)


def increase(of: type[Plausibility]) -> type[Metric]:
    """The metric of the increase of `of` over the query."""
    fields: dict[str, Any] = {
        "__module__": __name__,
        "__doc__": f"`{of.name}` of x' less that of x: what the change did to it.",
        "name": f"{of.name}_increase",
        "needs": of.needs,
        "modalities": of.modalities,
        "of": of,
    }
    return type(f"{of.__name__}Increase", (Increase,), fields)


DETECTORS: tuple[type[Plausibility], ...] = (
    LOF,
    IsolationForest,
    OneClassSVM,
    DtwLOF,
    KnnDistance,
    PrototypeEnergy,
    AutoencoderResidual,
)
PLAUSIBILITY: tuple[type[Metric], ...] = (
    *DETECTORS,
    *(increase(detector) for detector in DETECTORS),
    DtwLOFInlier,
    YNN,
    Connectedness,
)


def _by_class(reference: Reference) -> list[Array]:
    assert reference.labels is not None
    return [reference.of_class(label) for label in np.unique(reference.labels).tolist()]
