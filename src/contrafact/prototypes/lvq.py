"""The LVQ family: one descent, one distance, and a loss each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from torch import Tensor

from . import losses
from .estimator import Array
from .gradient import GradientLVQ
from .layers import Euclidean

Metric = Literal["euclidean", "relevance", "matrix", "local"]
TRANSFERS = ("identity", "sigmoid", "swish")


def same_class(labels: Tensor, t: Tensor) -> Tensor:
    """(n, K): which prototypes are of a row's own class."""
    return t[:, None] == labels


@dataclass(eq=False, repr=False, kw_only=True)
class LVQ1(GradientLVQ):
    """Kohonen's first rule: the winner moves toward a row of its class and away from any other.

    Other parameters: those of every gradient model.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> LVQ1(n_prototypes=2, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    def _loss(self, d: Tensor, labels: Tensor, t: Tensor) -> Tensor:
        return losses.lvq1(d, same_class(labels, t))


@dataclass(eq=False, repr=False, kw_only=True)
class LVQ21(GradientLVQ):
    """Kohonen's LVQ 2.1: near the boundary the nearest right prototype is drawn in, the nearest wrong one
    pushed away.

    Parameters
    ----------
    window : how near: min(√(d⁺/d⁻), √(d⁻/d⁺)) > (1 − window)/(1 + window); between 0 and 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> LVQ21(n_prototypes=2, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    window: float = 0.3

    def _loss(self, d: Tensor, labels: Tensor, t: Tensor) -> Tensor:
        if not 0 < self.window < 1:
            raise ValueError(f"window must lie between 0 and 1, got {self.window}.")
        return losses.lvq21(d, same_class(labels, t), self.window)


@dataclass(eq=False, repr=False, kw_only=True)
class GLVQ(GradientLVQ):
    """Generalized LVQ (Sato, Yamada 1995).

        minimize over the prototypes   mean f(μ),    μ = (d⁺ − d⁻)/(d⁺ + d⁻),    d = ‖x − w‖²

    d⁺ and d⁻ are the distances to the nearest prototype of the own class and of another.

    Parameters
    ----------
    transfer : f: "sigmoid" σ(βμ), "swish" μσ(βμ), or "identity".
    beta : β of the first two; default 1.5.
    margin : a row counts only until μ < −margin: f(max(μ + margin, 0)).

    Other parameters: those of every gradient model.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> GLVQ(n_prototypes=2, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    transfer: losses.Transfer = "sigmoid"
    beta: float | None = None
    margin: float | None = None

    def _loss(self, d: Tensor, labels: Tensor, t: Tensor) -> Tensor:
        if self.transfer not in TRANSFERS:
            raise ValueError(
                f"transfer must be one of {', '.join(TRANSFERS)}, got {self.transfer!r}."
            )
        if self.transfer == "identity" and self.beta is not None:
            raise ValueError(f"beta={self.beta} needs transfer='sigmoid' or 'swish'.")
        if self.beta is not None and not self.beta > 0:
            raise ValueError(f"beta must be above 0, got {self.beta}.")
        beta = 1.5 if self.beta is None else self.beta
        return losses.glvq(d, same_class(labels, t), self.transfer, beta, self.margin)


@dataclass(eq=False, repr=False, kw_only=True)
class WithMetric(GradientLVQ):
    """Learns a metric, and tells it: `relevances_` and, where it is a matrix, `omega_`.

    metric_lr : step of the metric as a share of lr, default 0.1. A metric as fast as the prototypes overfits:
        breast cancer, GMLVQ, 5 folds by 3 seeds, 0.965 with equal steps, 0.973 with a tenth.
    """

    metric_lr: float | None = None

    def _shares(self) -> dict[str, float]:
        if self.metric_lr is not None and self._metric()[0] == "euclidean":
            raise ValueError(
                f"metric_lr={self.metric_lr} needs a metric that is learned, got 'euclidean'."
            )
        return {"metric": 0.1 if self.metric_lr is None else self.metric_lr}

    def _checked_rank(self) -> int | None:
        rank: int | None = getattr(self, "rank", None)
        if rank is not None and not 1 <= rank <= self.n_features_in_:
            raise ValueError(
                f"rank must lie between 1 and {self.n_features_in_}, the features; got {rank}."
            )
        return rank

    def _settle(self, layer: Euclidean, labels: Array) -> None:
        super()._settle(layer, labels)
        for name in layer.metric_parameters:
            values = getattr(layer, name).cpu().numpy()
            if name == "omega":
                self.omega_ = values
                self.relevances_ = np.square(values).sum(axis=-2)
            else:
                self.relevances_ = values


@dataclass(eq=False, repr=False, kw_only=True)
class GRLVQ(WithMetric, GLVQ):
    """GLVQ that learns how much each feature counts (Hammer, Villmann 2002).

        d(x, w) = Σ_j λ_j (x_j − w_j)²,    λ ≥ 0,  Σλ = 1

    Fitted attribute: `relevances_` λ. Parameters: those of GLVQ.
    """

    def _metric(self) -> tuple[str, int | None]:
        return "relevance", None


@dataclass(eq=False, repr=False, kw_only=True)
class GMLVQ(WithMetric, GLVQ):
    """GLVQ that learns a matrix (Schneider, Biehl, Hammer 2009).

        d(x, w) = ‖Ω(x − w)‖²,    trace ΩᵀΩ = 1

    Fitted attributes: `omega_` (rank, D), `relevances_`, the diagonal of ΩᵀΩ.

    Parameters
    ----------
    rank : rows of Ω; default: the number of features.

    Other parameters: those of GLVQ.
    """

    rank: int | None = None

    def _metric(self) -> tuple[str, int | None]:
        return "matrix", self._checked_rank()


@dataclass(eq=False, repr=False, kw_only=True)
class LGMLVQ(WithMetric, GLVQ):
    """GMLVQ with a matrix for each prototype.

        d(x, w_k) = ‖Ω_k(x − w_k)‖²,    trace Ω_kᵀΩ_k = 1

    Fitted attributes: `omega_` (K, rank, D), `relevances_` (K, D). Parameters: those of GMLVQ.
    """

    rank: int | None = None

    def _metric(self) -> tuple[str, int | None]:
        return "local", self._checked_rank()


@dataclass(eq=False, repr=False, kw_only=True)
class SoftLVQ(WithMetric):
    """What soft models share: a temperature T in the loss, and any metric.

    T defaults to the mean distance of rows to their nearest own prototype at the start, times `softness`.
    """

    metric: Metric = "euclidean"
    rank: int | None = None

    softness: ClassVar[float] = 0.2

    def _metric(self) -> tuple[str, int | None]:
        if self.metric not in ("euclidean", "relevance", "matrix", "local"):
            raise ValueError(
                f"metric must be 'euclidean', 'relevance', 'matrix' or 'local', got {self.metric!r}."
            )
        if self.rank is not None and self.metric in ("euclidean", "relevance"):
            raise ValueError(f"rank={self.rank} needs metric='matrix' or 'local'.")
        return self.metric, self._checked_rank()

    def _start_temperature(
        self, d: Tensor, labels: Tensor, t: Tensor, weight: Array | None
    ) -> float:
        nearest = losses.nearest_two(d, same_class(labels, t))[0].cpu().numpy()
        return self.softness * float(np.average(nearest, weights=weight)) or 1.0


@dataclass(eq=False, repr=False, kw_only=True)
class RSLVQ(SoftLVQ):
    """Robust soft LVQ (Seo, Obermayer 2003), with metric="matrix" its matrix form.

        minimize   −mean log Σ_{k of the class} p(k | x),     p(k | x) = softmax(−d/T)_k

    Parameters
    ----------
    metric, rank : "euclidean", "relevance", "matrix" or "local" as in GLVQ, GRLVQ, GMLVQ and LGMLVQ.
    temperature : T, in units of d.

    Other parameters: those of every gradient model.
    """

    def _loss(self, d: Tensor, labels: Tensor, t: Tensor) -> Tensor:
        return losses.rslvq(d, same_class(labels, t), self._training_temperature)


@dataclass(eq=False, repr=False, kw_only=True)
class CELVQ(SoftLVQ):
    """Cross-entropy LVQ: the class probabilities themselves are learned.

        minimize   −mean log P(y | x),     P(c | x) = softmax(−d_c/T)

    with d_c the distance to the nearest prototype of class c.

    Parameters: those of RSLVQ.
    """

    def _loss(self, d: Tensor, labels: Tensor, t: Tensor) -> Tensor:
        return losses.cross_entropy(d, labels, t, self._training_temperature)
