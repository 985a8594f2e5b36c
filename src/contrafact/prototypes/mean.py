"""NearestMean: every class by its mean, in closed form."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np
import torch
from typing_extensions import Self

from .dissimilarity import ELASTIC, as_series, elastic_distances
from .estimator import Array, LayeredClassifier
from .layers import Euclidean, Matrix

METRICS = ("euclidean", "mahalanobis", *ELASTIC)


@dataclass(eq=False, repr=False)
class NearestMean(LayeredClassifier):
    """The class whose mean is nearest.

        "euclidean"    d = ‖x − m_c‖²
        "mahalanobis"  d = (x − m_c)ᵀ Σ⁻¹ (x − m_c),   Σ the covariance within classes, shared by all

    The probabilities are those of Gaussians of equal size with that covariance (spherical, where the metric
    is not "mahalanobis"): P(c | x) ∝ exp(−d_c / T), T twice the variance.

    Parameters
    ----------
    metric : "euclidean", "mahalanobis", or, for series, "dtw" or "soft_dtw" (the dissimilarity to the mean).
    shrinkage : a in Σ ← (1 − a)Σ + a·(mean variance)·I, which keeps Σ invertible; for "mahalanobis", default
        0.001.
    window : Sakoe-Chiba band of the elastic metrics, as a fraction of the length.

    Fitted attributes: those of every prototype model, and `counts_`, the weight seen of each class.

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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Means of the classes of y."""
        X, t, weight = self._read_training(X, y, sample_weight)
        self._forget()
        return self._learn(X, t, weight)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on with more rows; the first call names all `classes` there will be."""
        first = not hasattr(self, "counts_")
        if first and classes is None:
            raise ValueError("classes must be given at the first call of partial_fit.")
        X, y, weight = self._read_rows(X, y, sample_weight, reset=first)
        if first:
            self.classes_ = np.unique(classes)
            self._forget()
        unknown = set(y.tolist()) - set(self.classes_.tolist())
        if unknown:
            raise ValueError(
                f"y holds labels {sorted(unknown)} that are not in {self.classes_.tolist()}."
            )
        return self._learn(X, np.searchsorted(self.classes_, y), weight)

    def _forget(self) -> None:
        if self.metric not in METRICS:
            raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {self.metric!r}.")
        if self.shrinkage is not None and (
            self.metric != "mahalanobis" or not 0 <= self.shrinkage <= 1
        ):
            raise ValueError(
                f"shrinkage must lie between 0 and 1, and is for metric='mahalanobis'; got {self.shrinkage}."
            )
        if self.window is not None and (self.metric not in ELASTIC or not 0 <= self.window <= 1):
            raise ValueError(
                f"window must lie between 0 and 1, and is for elastic metrics; got {self.window}."
            )
        D, C = self.n_features_in_, len(self.classes_)
        self.counts_ = np.zeros(C)
        self._means = np.zeros((C, D))
        # Σ_c Σ_i w_i (x_i − m_c)(x_i − m_c)ᵀ; its diagonal where no more is needed
        self._scatter = np.zeros((D, D) if self.metric == "mahalanobis" else D)

    def _learn(self, X: Array, t: Array, weight: Array | None) -> Self:
        """Join the means and the scatter of new rows to those seen (Chan, Golub, LeVeque 1979)."""
        w = np.ones(len(X)) if weight is None else weight
        member = np.eye(len(self.classes_))[t] * w[:, None]
        new = member.sum(0)
        means = np.divide(
            member.T @ X, new[:, None], out=self._means.copy(), where=new[:, None] > 0
        )
        moved, total = means - self._means, self.counts_ + new
        share = np.divide(new, total, out=np.zeros_like(new), where=total > 0)
        self._scatter = (
            self._scatter
            + self._square(X - means[t], w)
            + self._square(moved, share * self.counts_)
        )
        self._means = self._means + share[:, None] * moved
        self.counts_ = total
        self._settle_means()
        return self

    def _square(self, rows: Array, w: Array) -> Array:
        return (rows.T * w) @ rows if self.metric == "mahalanobis" else w @ rows**2

    def _settle_means(self) -> None:
        seen = self.counts_ > 0
        covariance = self._scatter / self.counts_.sum()
        variance = (
            float(np.mean(np.diag(covariance) if covariance.ndim == 2 else covariance)) or 1.0
        )
        place = torch.from_numpy(self._means[seen])
        center = torch.from_numpy(np.average(self._means, axis=0, weights=self.counts_))
        layer, self.temperature_ = Euclidean(place, center), 2 * variance
        if self.metric == "mahalanobis":
            a = 1e-3 if self.shrinkage is None else self.shrinkage
            spread, axes = np.linalg.eigh(
                (1 - a) * covariance + a * variance * np.eye(len(covariance))
            )
            omega = axes.T / np.sqrt(np.maximum(spread, np.finfo(float).eps * variance))[:, None]
            layer, self.temperature_ = Matrix(place, torch.from_numpy(omega), center), 2.0
        self._settle(layer, self.classes_[seen])

    def _distances(self, X: Array) -> Array:
        if self.metric not in ELASTIC:
            return super()._distances(X)
        means = self.prototypes_.reshape(len(self.prototypes_), -1)
        series, places = (as_series(part, self.shape_) for part in (X, means))
        return elastic_distances(series, places, self.metric, self.window)

    def metric_(self) -> Array | None:
        if self.metric in ELASTIC:
            raise TypeError(f"NearestMean(metric={self.metric!r}) has no linear metric.")
        return super().metric_()

    def differentiable_twin(self) -> Any:
        return None if self.metric in ELASTIC else super().differentiable_twin()
