"""Median LVQ: prototypes that are data points, for any dissimilarity."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .estimator import Array, Counts, PrototypeClassifier, generator, likely_temperature
from .layers import Euclidean
from .losses import class_scores

METRICS = ("euclidean", "dtw", "precomputed")
OBJECTIVES = ("sigmoid", "glvq", "rslvq")
INITS = ("greedy", "kmeans++", "random")


class MedianLVQ(PrototypeClassifier):
    """Learning vector quantization whose prototypes are data points, by exact swap search.

        min over prototype sets   Σ_i w_i f(μ_i),     μ_i = (d⁺_i − d⁻_i) / (d⁺_i + d⁻_i)

    with d⁺ and d⁻ a sample's dissimilarities to the nearest prototype of its own class and of the others.
    Each prototype in turn goes where the cost, with all others in place, is least among the samples of its
    class, until no single swap lowers it. Only dissimilarities are needed, and they may be asymmetric. After
    Nebel, Hammer, Frohberg, Villmann (Neurocomputing 169, 2015), with swaps in place of their expectation
    maximization.

    Parameters
    ----------
    n_prototypes : per class: one number, or a dict from label to number. Prototypes are at different places,
        so a class with fewer different points has fewer.
    metric : "euclidean" (not squared), "dtw" (series), "precomputed" (X is D, with D[i, j] the dissimilarity
        from sample i to training sample j), or a function of two instances, called for all pairs.
    objective : "sigmoid": f(μ) = βμ/√(1 + β²μ²), β = 7, close to counting errors; "glvq": f(μ) = −log(4 − μ);
        "rslvq": the cost is −Σ_i w_i log(Σ_{k of own class} e^{−d_ik/T} / Σ_k e^{−d_ik/T}).
    init : "greedy" (each where it shortens the ways within its class most), "kmeans++" or "random".
    temperature : T of "rslvq" and of `predict_proba`; default: 0.3 × the mean d⁺ at the start for "rslvq",
        else the one under which the training labels are most probable.
    window : the band of DTW, as a share of the length; default: none.
    max_sweeps : at most so many rounds over the prototypes.
    random_state : for "kmeans++" and "random".

    Attributes
    ----------
    prototype_indices_ : the rows of X that are the prototypes.
    prototypes_ : the prototypes themselves; None for "precomputed".
    cost_ : the cost reached, also called `loss_`; loss_history_ : the cost at the start and after each swap.
    n_iter_ : sweeps.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MedianLVQ(n_prototypes=2).fit(X, y)
    >>> bool((X[model.prototype_indices_] == model.prototypes_).all())
    True
    >>> round(model.score(X, y), 2)
    0.97
    """

    squared = False

    def __init__(
        self,
        n_prototypes: Counts = 1,
        metric: Literal["euclidean", "dtw", "precomputed"]
        | Callable[[Array, Array], float] = "euclidean",
        objective: Literal["sigmoid", "glvq", "rslvq"] = "sigmoid",
        init: Literal["greedy", "kmeans++", "random"] = "greedy",
        temperature: float | None = None,
        window: float | None = None,
        max_sweeps: int = 100,
        random_state: Any = None,
    ) -> None:
        self.n_prototypes, self.metric, self.objective, self.init = (
            n_prototypes,
            metric,
            objective,
            init,
        )
        self.temperature, self.window = temperature, window
        self.max_sweeps, self.random_state = max_sweeps, random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MedianLVQ:
        """Choose the prototypes among the rows of X; rows of weight 0 are as if they were not there."""
        from . import swap  # imports numba

        self._check_options()
        X, t, weight = self._read_training(X, y, sample_weight)
        kept = np.ones(len(X), bool) if weight is None else np.asarray(sample_weight) > 0
        weight = np.ones(len(X)) if weight is None else weight
        counts = self._counts(self.n_prototypes, t)
        order = np.argsort(t, kind="stable")
        labels, weights = t[order], weight[order]
        columns: swap.Columns
        if self.metric == "euclidean":
            columns = swap.EuclideanColumns(X[order])
        else:
            columns = swap.MatrixColumns(self._square(X, kept), order)
        rng = generator(self.random_state)
        start = swap.starting_points(columns, labels, counts, weights, self.init, rng)

        T = self.temperature
        cost: swap.GLVQCost | swap.RSLVQCost
        if self.objective == "rslvq":
            own = labels[start][:, None] == labels
            d_own = np.where(own, columns.exact(start), np.inf).min(0)
            T = T or 0.3 * float(np.average(d_own, weights=weights)) or 1.0
            cost = swap.RSLVQCost(weights, T)
        else:
            cost = (
                swap.SigmoidCost(weights) if self.objective == "sigmoid" else swap.GLVQCost(weights)
            )
        search = swap.SwapSearch(columns, labels, cost, start)
        self.loss_history_, self.n_iter_, ended = search.run(self.max_sweeps)
        if not ended:
            warnings.warn(
                f"Swaps still lowered the cost after max_sweeps={self.max_sweeps} sweeps.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.cost_ = self.loss_ = self.loss_history_[-1]
        chosen = order[search.indices]
        self.prototype_indices_ = np.flatnonzero(kept)[chosen]
        self.prototype_labels_ = self.classes_[t[chosen]]
        points: Any = None if self.metric == "precomputed" else X[chosen].reshape(-1, *self.shape_)
        self.prototypes_ = points
        d, owner = torch.from_numpy(search.d.T.copy()), torch.from_numpy(labels)
        self.temperature_ = T or likely_temperature(d, owner, self._owner(), weights)
        return self

    def _check_options(self) -> None:
        if not callable(self.metric) and self.metric not in METRICS:
            raise ValueError(
                f"metric must be one of {', '.join(METRICS)}, or a function, got {self.metric!r}."
            )
        if self.objective not in OBJECTIVES:
            raise ValueError(
                f"objective must be one of {', '.join(OBJECTIVES)}, got {self.objective!r}."
            )
        if self.init not in INITS:
            raise ValueError(f"init must be one of {', '.join(INITS)}, got {self.init!r}.")
        if self.temperature is not None and self.temperature <= 0:
            raise ValueError(f"temperature must be positive, got {self.temperature}.")
        if self.window is not None and (self.metric != "dtw" or not 0 <= self.window <= 1):
            raise ValueError(
                f"window must lie between 0 and 1, and is for metric='dtw'; got {self.window}."
            )
        if self.max_sweeps < 1:
            raise ValueError(f"max_sweeps must be at least 1, got {self.max_sweeps}.")

    def _square(self, X: Array, kept: Array) -> Array:
        """D[i, j] for all pairs of the training samples that are kept."""
        if self.metric != "precomputed":
            D = self._dissimilarities(X)
        elif self.n_features_in_ == len(kept):
            D = X if kept.all() else X[:, kept]
        else:
            shape = (len(kept), self.n_features_in_)
            raise ValueError(
                f"metric='precomputed' needs a square matrix of dissimilarities, got shape {shape}."
            )
        if not D.min() >= 0:
            raise ValueError(
                f"Negative values in data: dissimilarities must be at least 0, got {D.min()}."
            )
        return D

    def _dissimilarities(self, X: Array, Y: Array | None = None) -> Array:
        """(n, m) dissimilarities from X to Y, or to X itself; both flat."""
        X = X.reshape(-1, *self.shape_)
        Y = Y if Y is None else Y.reshape(-1, *self.shape_)
        if callable(self.metric):
            return np.array(
                [[self.metric(x, y) for y in (X if Y is None else Y)] for x in X], dtype=np.float64
            )
        from aeon.distances import pairwise_distance

        return np.asarray(pairwise_distance(X, Y, method="dtw", window=self.window))

    def _distances(self, X: Array) -> Array:
        if self.metric == "precomputed":
            return X[:, self.prototype_indices_]
        prototypes = self.prototypes_.reshape(len(self.prototypes_), -1)
        if self.metric == "euclidean":
            return np.asarray(cdist(X, prototypes))
        return self._dissimilarities(X, prototypes)

    def metric_(self) -> None:
        """None, plainly Euclidean: what exact counterfactuals need. Other dissimilarities have none."""
        if self.metric != "euclidean":
            raise TypeError(f"MedianLVQ(metric={self.metric!r}) has no linear metric.")

    def differentiable_twin(self) -> Any:
        """Rows → logits whose softmax is `predict_proba`, where the metric is Euclidean; else None."""
        if self.metric != "euclidean":
            return None
        check_is_fitted(self)
        place = torch.from_numpy(self.prototypes_.reshape(len(self.prototypes_), -1))
        layer = Euclidean(place).requires_grad_(False)
        owner, n_classes, T = self._owner(), len(self.classes_), self.temperature_
        tiny = torch.finfo(torch.float32).tiny  # the root has no slope at 0
        return lambda x: class_scores(
            layer(x).clamp_min(tiny).sqrt(), owner.to(x.device), n_classes, T
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.positive_only = self.metric == "precomputed"
        return tags
