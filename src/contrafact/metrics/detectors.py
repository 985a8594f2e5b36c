"""Detectors learn the reference once and score how outlying a point is: less is more plausible."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable
from typing import ClassVar, Literal

import numpy as np
import torch
from typing_extensions import override

from ..engine.result import Counterfactuals
from ..models.classifier import Array
from ..models.eval_mode import in_eval_mode
from ..nn.autoencoder_training import fit_autoencoder
from ..nn.autoencoders import Autoencoder
from ..prototypes.dissimilarity import elastic_distances
from ..prototypes.memory import PrototypeMemory
from .distance import nearest
from .inputs import MetricInputs
from .metric import Metric, flat_arrays, instance_shape, n_values

#: maps flat rows (n, d) to how outlying they are (n,)
Score = Callable[[Array], Array]


class Detector(Metric):
    """What detectors share: they learn the reference once, then score all points at once."""

    direction: ClassVar[Literal["min", "max"]] = "min"
    needs = frozenset({"reference"})
    #: fewest reference rows that can be learned from
    least_rows: ClassVar[int] = 1

    @abstractmethod
    def _fit(self, result: Counterfactuals, inputs: MetricInputs) -> Score:
        """Learn the reference; `result` tells the shape of an instance."""

    def _key(self, inputs: MetricInputs) -> Hashable:
        """Return what the fit depends on, besides the reference."""
        return type(self)

    @override
    def lacks(self, result: Counterfactuals, inputs: MetricInputs) -> str:
        reason = super().lacks(result, inputs)
        if reason:
            return reason
        n_rows = len(inputs.require_reference().rows)
        if n_rows < self.least_rows:
            return f"needs {self.least_rows} reference rows, got {n_rows}"
        return ""

    def score_before(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        """Score x, shape (n,); computed once."""
        x, _ = flat_arrays(result)
        return self._score(x, "before", result, inputs)

    def score_after(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        """Score x', shape (n,); computed once."""
        _, x_cf = flat_arrays(result)
        return self._score(x_cf, "after", result, inputs)

    def _score(
        self,
        x: Array,
        when: str,
        result: Counterfactuals,
        inputs: MetricInputs,
    ) -> Array:
        fit_key = self._key(inputs)
        key = (fit_key, when)
        if key not in inputs.shared:
            reference = inputs.require_reference()
            score = reference.fitted(fit_key, lambda: self._fit(result, inputs))
            inputs.shared[key] = np.empty(0)
            if len(x):
                inputs.shared[key] = score(x)
        return np.asarray(inputs.shared[key])

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        return self.score_after(result, inputs)


class LOF(Detector):
    """Local outlier factor of x' among the reference, of 20 neighbors; about 1 inside the data.

    With fewer than 21 reference rows, of all but one.

    References
    ----------
    Breunig, Kriegel, Ng, Sander: LOF: identifying density-based local outliers. SIGMOD 2000.
    https://doi.org/10.1145/342009.335388
    """

    name = "lof"
    least_rows = 2
    n_neighbors = 20

    @override
    def _fit(self, result: Counterfactuals, inputs: MetricInputs) -> Score:
        return self._outlier_factor(inputs.require_reference().rows, "minkowski")

    def _outlier_factor(self, rows: Array, metric: str) -> Score:
        """Fit scikit-learn's detector; `rows` are distances where the metric is "precomputed"."""
        from sklearn.neighbors import LocalOutlierFactor

        k = min(self.n_neighbors, len(rows) - 1)
        detector = LocalOutlierFactor(n_neighbors=k, metric=metric, novelty=True)
        detector.fit(rows)
        return lambda x: -detector.score_samples(x)


class DtwLOF(LOF):
    """Local outlier factor of x' among the reference, in the distance of `dtw`.

    All mutual distances of the reference are needed, so of more than 1000 rows 1000 are drawn, with
    a fixed seed, and stand for all.
    """

    name = "dtw_lof"
    modalities = ("series",)
    most_rows = 1000

    @override
    def _fit(self, result: Counterfactuals, inputs: MetricInputs) -> Score:
        shape = instance_shape(result)
        rows = inputs.require_reference().rows
        if len(rows) > self.most_rows:
            rng = np.random.default_rng(0)
            rows = rng.permutation(rows)[: self.most_rows]
        known = rows.reshape(len(rows), *shape)

        def distances(x: Array) -> Array:
            series = x.reshape(len(x), *shape)
            return np.sqrt(elastic_distances(series, known, "dtw"))

        mutual = distances(rows)
        score = self._outlier_factor((mutual + mutual.T) / 2, "precomputed")
        return lambda x: score(distances(x))


class IsolationForest(Detector):
    """Isolation score of x' in a forest grown on the reference, in (0, 1]; about ½ inside the data.

    100 trees, drawn from a fixed seed.

    References
    ----------
    Liu, Ting, Zhou: Isolation forest. ICDM 2008. https://doi.org/10.1109/ICDM.2008.17
    """

    name = "isolation_forest"

    @override
    def _fit(self, result: Counterfactuals, inputs: MetricInputs) -> Score:
        from sklearn import ensemble

        forest = ensemble.IsolationForest(random_state=0)
        forest.fit(inputs.require_reference().rows)
        return lambda x: -forest.score_samples(x)


class OneClassSVM(Detector):
    """Distance of x' to the outside of a one-class SVM around the reference; below 0 inside.

    Gaussian kernel of width √(d · variance); ν = 0.1: a tenth of the reference may lie outside.

    References
    ----------
    Schölkopf, Platt, Shawe-Taylor, Smola, Williamson: Estimating the support of a high-dimensional
    distribution. Neural Computation 13, 2001. https://doi.org/10.1162/089976601750264965
    """

    name = "ocsvm"
    nu = 0.1

    @override
    def _fit(self, result: Counterfactuals, inputs: MetricInputs) -> Score:
        from sklearn import svm

        machine = svm.OneClassSVM(nu=self.nu)
        machine.random_state = 0  # no option of it; with None it draws from NumPy's global numbers
        machine.fit(inputs.require_reference().rows)
        return lambda x: -machine.decision_function(x)


class KnnDistance(Detector):
    """Mean distance √(Σ (x' − r)² / d) to the k = 5 nearest reference rows r.

    With fewer than k reference rows, the mean over all of them. The simplest of the detectors: a
    baseline for the others.
    """

    name = "knn_distance"
    k = 5

    @override
    def _fit(self, result: Counterfactuals, inputs: MetricInputs) -> Score:
        rows = inputs.require_reference().rows
        root_d = np.sqrt(n_values(result))

        def score(x: Array) -> Array:
            distance, _ = nearest(x, rows, self.k)
            return np.asarray(distance.mean(axis=1) / root_d)

        return score


class PrototypeEnergy(Detector):
    """−log Σ_p exp(−‖x' − p‖² / 2σ²) over the prototypes p of all classes.

    The prototypes are up to 3 means of each class, by k-means. Minus the log density of a mixture
    of Gaussians, up to a constant; σ² is the variance of the reference about its prototypes.
    """

    name = "prototype_energy"
    needs = frozenset({"reference", "labels"})
    per_class = 3

    @override
    def _fit(self, result: Counterfactuals, inputs: MetricInputs) -> Score:
        reference = inputs.require_reference()
        assert reference.labels is not None
        means = []
        squares = []
        for label in np.unique(reference.labels).tolist():
            class_means, class_squares = self._means(reference.of_class(label))
            means.append(class_means)
            squares.append(class_squares)
        about_prototypes = np.concatenate(squares).mean()
        about_the_mean = reference.rows.var(axis=0).mean()
        # Either is 0 where all rows are alike, the first up to rounding where each is a prototype.
        if about_prototypes <= 1e-12 * about_the_mean:
            about_prototypes = 0.0
        variance = about_prototypes or about_the_mean or 1.0
        memory = PrototypeMemory(np.concatenate(means), scale=np.sqrt(variance))
        return memory.energy

    def _means(self, rows: Array) -> tuple[Array, Array]:
        """Return the prototypes of one class, and the squared differences of its values to them."""
        from sklearn.cluster import KMeans

        n_different = len(np.unique(rows, axis=0))
        n_clusters = min(self.per_class, n_different)
        clusters = KMeans(n_clusters, n_init=3, random_state=0).fit(rows)
        means = clusters.cluster_centers_
        return means, np.square(rows - means[clusters.labels_])


class AutoencoderResidual(Detector):
    """Mean over points of (r − μ)ᵀ Σ⁻¹ (r − μ), r what an autoencoder leaves of x': a Gauss score.

    r = x' − D(E(x')) at a point has one value per channel; μ and Σ are those of the reference's
    residuals. About the number of channels inside the data.

    References
    ----------
    Malhotra, Ramakrishnan, Anand, Vig, Agarwal, Shroff: LSTM-based encoder-decoder for multi-sensor
    anomaly detection. 2016. https://doi.org/10.48550/arXiv.1607.00148
    """

    name = "autoencoder_residual"
    modalities = ("series", "image")
    needs = frozenset({"reference", "autoencoder"})

    @override
    def _key(self, inputs: MetricInputs) -> Hashable:
        return type(self), inputs.autoencoder

    @override
    def _fit(self, result: Counterfactuals, inputs: MetricInputs) -> Score:
        shape = instance_shape(result)
        reference = inputs.require_reference()
        module = inputs.autoencoder
        if isinstance(module, str):
            module = fit_autoencoder(module, reference.X.reshape(-1, *shape))
        _check_autoencoder(module, shape)
        module = in_eval_mode(module, "autoencoder")

        known = _residuals(module, reference.rows)
        known = known.reshape(-1, shape[0])  # (all points, channels)
        mu = known.mean(axis=0)
        sigma = np.atleast_2d(np.cov(known.T, bias=True))
        # A channel that is always rebuilt alike has no spread of its own: this keeps Σ invertible.
        ridge = 1e-9 * np.trace(sigma) + 1e-12
        inverse = np.linalg.inv(sigma + ridge * np.eye(len(mu)))

        def score(x: Array) -> Array:
            r = _residuals(module, x) - mu
            by_point = np.einsum("npc,cd,npd->np", r, inverse, r)
            return np.asarray(by_point.mean(axis=1))

        return score


DETECTORS: tuple[type[Detector], ...] = (
    LOF,
    IsolationForest,
    OneClassSVM,
    DtwLOF,
    KnnDistance,
    PrototypeEnergy,
    AutoencoderResidual,
)


def _check_autoencoder(module: object, shape: tuple[int, ...]) -> None:
    """Raise where `module` is no autoencoder for instances of this shape."""
    if not isinstance(module, Autoencoder):
        raise TypeError(
            f"autoencoder must be an Autoencoder or a name, got {type(module).__name__}."
        )
    if module.shape != shape:
        raise ValueError(
            f"autoencoder takes instances of shape {module.shape}; the result has {shape}."
        )


def _residuals(module: Autoencoder, x: Array) -> Array:
    """Return x − D(E(x)) by point, (n, points, channels); x is (n, d)."""
    rows = torch.from_numpy(x.reshape(len(x), *module.shape))
    rows = rows.to(next(module.parameters()))
    with torch.no_grad():
        rebuilt = torch.cat([module(part) for part in rows.split(256)])
    residual = (rows - rebuilt).double().flatten(2)  # (n, channels, points)
    return np.asarray(residual.transpose(1, 2).cpu())
