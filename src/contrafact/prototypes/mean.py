"""NearestMean: every class by its mean, in closed form."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from typing_extensions import Self, override

from ..data.dataset import as_labels
from ..validation import Nothing, OneOf, Real, Rule
from .dissimilarity import as_series, elastic_distances
from .estimator import Array
from .layered import LayeredClassifier
from .layers import Euclidean, Matrix
from .option_rules import BAND
from .user_data import check_spread

#: metrics of series that have a mean to measure from
ELASTIC = ("dtw", "soft_dtw")


@dataclass(eq=False, repr=False)
class NearestMean(LayeredClassifier):
    """Predict the class whose mean is nearest.

        "euclidean"    d = ‖x − m_c‖²
        "mahalanobis"  d = (x − m_c)ᵀ Σ⁻¹ (x − m_c),   Σ the covariance within classes, one for all

    The probabilities are those of Gaussians of equal size with that covariance (spherical, where
    the metric is not "mahalanobis"): P(c | x) ∝ exp(−d_c / T), T twice the variance.

    Parameters
    ----------
    metric : {"euclidean", "mahalanobis", "dtw", "soft_dtw"}, default="euclidean"
        How the distance to a mean is measured; the last two are for series.
    shrinkage : float, optional
        a in Σ ← (1 − a)Σ + a·(mean variance)·I, which keeps Σ invertible, from 0 to 1; for
        "mahalanobis" only; default: 0.001.
    window : float, optional
        Sakoe-Chiba band of the elastic metrics, as a fraction of the length; default: no band.

    Attributes
    ----------
    counts_ : array of shape (classes,)
        The weight seen of each class.

    References
    ----------
    Chan, Golub, LeVeque: Algorithms for computing the sample variance: analysis and
    recommendations. The American Statistician 37, 1983. doi:10.1080/00031305.1983.10483115

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> NearestMean("mahalanobis").fit(X, y).score(X, y) > 0.97
    True
    """

    metric: Literal["euclidean", "mahalanobis", "dtw", "soft_dtw"] = "euclidean"
    _: KW_ONLY
    shrinkage: float | None = None
    window: float | None = None

    rules: ClassVar[Mapping[str, Rule]] = {
        "metric": OneOf("euclidean", "mahalanobis", *ELASTIC),
        "shrinkage": Real(at_least=0, at_most=1) | Nothing(),
        "window": BAND,
    }

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
    ) -> Self:
        """Compute the mean of every class.

        Parameters
        ----------
        X : array of shape (n, *shape)
            Rows, series or images.
        y : array of shape (n,)
            Labels of any type.
        sample_weight : array of shape (n,), optional
            Weight of each row, at least 0; default: all equal.

        Returns
        -------
        self
            The fitted object.
        """
        self._check_options()
        X, t, weight = self._check_training_data(X, y, sample_weight)
        self._reset_means()
        return self._add_rows(X, t, weight)

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Update the means with more rows.

        Parameters
        ----------
        X : array of shape (n, *shape)
            Rows, series or images.
        y : array of shape (n,)
            Labels.
        classes : array of shape (classes,), optional
            All labels there will be; needed at the first call.
        sample_weight : array of shape (n,), optional
            Weight of each row, at least 0; default: all equal.

        Returns
        -------
        self
            The fitted object.
        """
        self._check_options()
        first = not hasattr(self, "counts_")
        if first and classes is None:
            raise ValueError("classes must be given at the first call of partial_fit.")
        if not first and (self._scatter.ndim == 2) != (self.metric == "mahalanobis"):
            raise ValueError(
                f"metric={self.metric!r} needs other sums than those of the rows seen so far; call "
                "fit with all rows."
            )
        X, y, weight = self._check_rows(X, y, sample_weight, reset=first)
        named = self.classes_ if classes is None else np.unique(as_labels(classes, "classes"))
        if not first and not np.array_equal(named, self.classes_):
            raise ValueError(
                f"classes must be those of the first call, {self.classes_.tolist()}; got "
                f"{named.tolist()}."
            )
        unknown = set(y.tolist()) - set(named.tolist())
        if unknown:
            raise ValueError(f"y holds labels {sorted(unknown)} that are not in {named.tolist()}.")
        if first:
            self.classes_ = named
            self._reset_means()
        t = np.searchsorted(self.classes_, y)
        return self._add_rows(X, t, weight)

    def _check_options(self) -> None:
        """Check every parameter, and refuse those that the metric does not use."""
        self._check_parameters()
        if self.shrinkage is not None and self.metric != "mahalanobis":
            raise ValueError(f"shrinkage={self.shrinkage} needs metric='mahalanobis'.")
        if self.window is not None and self.metric not in ELASTIC:
            raise ValueError(f"window={self.window} needs metric='dtw' or 'soft_dtw'.")

    def _reset_means(self) -> None:
        """Start with no rows seen."""
        n_features = self.n_features_in_
        n_classes = len(self.classes_)
        self.counts_ = np.zeros(n_classes)
        self._means = np.zeros((n_classes, n_features))
        # Σ_c Σ_i w_i (x_i − m_c)(x_i − m_c)ᵀ; only its diagonal where no more is needed
        full = self.metric == "mahalanobis"
        self._scatter = np.zeros((n_features, n_features) if full else n_features)

    def _add_rows(
        self,
        X: Array,
        t: Array,
        weight: Array | None,
    ) -> Self:
        """Join the means and the scatter of new rows to those seen (Chan, Golub, LeVeque)."""
        w = np.ones(len(X)) if weight is None else weight
        member = np.eye(len(self.classes_))[t] * w[:, None]  # (n, classes)
        new = member.sum(0)
        means = self._means.copy()
        np.divide(
            member.T @ X,
            new[:, None],
            out=means,
            where=new[:, None] > 0,
        )
        moved = means - self._means
        total = self.counts_ + new
        share = np.zeros_like(new)
        np.divide(new, total, out=share, where=total > 0)
        with np.errstate(over="ignore", invalid="ignore"):
            within = self._scatter_of(X - means[t], w)
            between = self._scatter_of(moved, share * self.counts_)
        if not np.isfinite(within + between).all():
            check_spread(math.inf, X)
        self._scatter = self._scatter + within + between
        self._means = self._means + share[:, None] * moved
        self.counts_ = total
        self._store_means()
        return self

    def _scatter_of(self, rows: Array, w: Array) -> Array:
        """Compute Σ_i w_i x_i x_iᵀ, or its diagonal."""
        if self.metric == "mahalanobis":
            return np.asarray((rows.T * w) @ rows)
        return np.asarray(w @ rows**2)

    def _store_means(self) -> None:
        """Build the layer and the temperature from the means and the scatter."""
        seen = self.counts_ > 0
        covariance = self._scatter / self.counts_.sum()
        variances = np.diag(covariance) if covariance.ndim == 2 else covariance
        variance = float(np.mean(variances)) or 1.0
        place = torch.from_numpy(self._means[seen])
        center_of_all = np.average(self._means, axis=0, weights=self.counts_)
        center = torch.from_numpy(center_of_all)
        layer: Euclidean
        if self.metric == "mahalanobis":
            omega = self._whitening(covariance, variance)
            layer = Matrix(place, torch.from_numpy(omega), center)
            self.temperature_ = 2.0
        else:
            layer = Euclidean(place, center)
            self.temperature_ = 2 * variance
        self._store_layer(layer, self.classes_[seen])

    def _whitening(self, covariance: Array, variance: float) -> Array:
        """Return Ω (D, D) with ΩᵀΩ the inverse of the covariance after shrinkage."""
        a = 1e-3 if self.shrinkage is None else self.shrinkage
        sphere = a * variance * np.eye(len(covariance))
        shrunk = (1 - a) * covariance + sphere
        spread, axes = np.linalg.eigh(shrunk)
        smallest = np.finfo(float).eps * variance
        deviation = np.sqrt(np.maximum(spread, smallest))
        omega: Array = axes.T / deviation[:, None]
        return omega

    @override
    def _distances(self, X: Array) -> Array:
        if self.metric not in ELASTIC:
            return super()._distances(X)
        means = self.prototypes_.reshape(len(self.prototypes_), -1)
        return elastic_distances(
            as_series(X, self.shape_),
            as_series(means, self.shape_),
            self.metric,
            self.window,
        )

    @override
    def metric_(self) -> Array | None:
        if self.metric in ELASTIC:
            raise TypeError(f"NearestMean(metric={self.metric!r}) has no linear metric.")
        return super().metric_()

    @override
    def differentiable_twin(self) -> Any:
        if self.metric in ELASTIC:
            return None
        return super().differentiable_twin()
