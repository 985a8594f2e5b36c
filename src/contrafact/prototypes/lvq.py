"""Generalized LVQ: one loss of the relative distance, under a fixed or a learned metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch import Tensor
from typing_extensions import override

from ..validation import Function, Integer, Nothing, OneOf, Real, Rule
from . import losses
from .estimator import Array
from .gradient import GradientLVQ
from .gradient_rules import accept_old_names
from .layers import Euclidean
from .soft_dtw import SoftDTW


@accept_old_names
@dataclass(eq=False, repr=False, kw_only=True)
class GLVQ(GradientLVQ):
    """Learn prototypes by generalized LVQ.

        minimize over the prototypes   mean f(μ),    μ = (d⁺ − d⁻)/(d⁺ + d⁻),    d = ‖x − w‖²

    d⁺ and d⁻ are the distances to the nearest prototype of the own class and of another.

    Parameters
    ----------
    n_prototypes : int or dict from label to int, default=1
        Prototypes per class.
    transfer : {"sigmoid", "swish", "identity"} or function of a Tensor, default="sigmoid"
        f: σ(βμ), μσ(βμ), μ itself, or what the function returns for μ (n,), differentiably.
    beta : float, optional
        β of the first two; default: 5 over the root mean square of μ at the start, 1 over it in
        GMLVQ, LGMLVQ, DeepLVQ and with `SoftDTW`: the more a model can learn, the less steep.
    margin : float, optional
        Rows count only until μ < −margin: f(max(μ + margin, 0)); default: they always count.
    **options
        The options of `contrafact.prototypes.gradient.GradientLVQ`, by name.

    Attributes
    ----------
    beta_ : float
        β, where f has one.

    References
    ----------
    Sato, Yamada: Generalized learning vector quantization. NIPS 1995.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> GLVQ(n_prototypes=2, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    transfer: losses.Transfer | Callable[[Tensor], Tensor] = "sigmoid"
    beta: float | None = None
    margin: float | None = None

    #: default β, times the root mean square of μ at the start
    steepness: ClassVar[float] = 5.0
    #: the same with `SoftDTW`, under which whole classes may start on the wrong side: there a
    #: steeper transfer function saturates, and prototypes stay where they are
    warped_steepness: ClassVar[float] = 1.0
    rules: ClassVar[Mapping[str, Rule]] = {
        "transfer": OneOf("identity", "sigmoid", "swish") | Function("μ"),
        "beta": Real(above=0) | Nothing(),
        "margin": Real() | Nothing(),
    }

    @override
    def _measure_start(self, d: Tensor, labels: Tensor, t: Tensor, weight: Array | None) -> None:
        if self.transfer not in ("sigmoid", "swish"):
            return
        if self.beta is not None:
            self.beta_ = float(self.beta)
            return
        mu = losses.relative_distance(d, losses.same_class(labels, t))
        mean_square = np.average(mu.square().cpu().numpy(), weights=weight)
        warped = isinstance(self.distance_fn, SoftDTW)
        steepness = self.warped_steepness if warped else self.steepness
        # Prototypes that start where they hardly tell classes apart would make it far too steep.
        self.beta_ = steepness / max(float(np.sqrt(mean_square)), 0.1)

    @override
    def _loss(
        self,
        d: Tensor,
        labels: Tensor,
        t: Tensor,
    ) -> Tensor:
        same = losses.same_class(labels, t)
        beta = getattr(self, "beta_", 1.0)
        margin = None if self.margin is None else float(self.margin)
        return losses.glvq(
            d,
            same,
            self.transfer,
            beta,
            margin,
        )

    @override
    def _check_combinations(self, validated: bool) -> None:
        super()._check_combinations(validated)
        if self.transfer not in ("sigmoid", "swish") and self.beta is not None:
            raise ValueError(f"beta={self.beta} needs transfer='sigmoid' or 'swish'.")


@accept_old_names
@dataclass(eq=False, repr=False, kw_only=True)
class WithMetric(GradientLVQ):
    """Learn a metric, and expose it as `relevances_` and, where it is a matrix, `omega_`.

    Parameters
    ----------
    metric_learning_rate : float, optional
        Step of the metric as a share of `learning_rate`; default: the size that an entry of the
        metric has where all are equal, which is 1/D of λ and one over the root of their number
        in Ω, but at most 0.1. A metric that learns as fast as the prototypes overfits; and Adam
        moves every entry by the same step, although they are the smaller the more they are.
    """

    metric_learning_rate: float | None = None

    rules: ClassVar[Mapping[str, Rule]] = {
        "metric_learning_rate": Real(above=0) | Nothing(),
        "rank": Integer(at_least=1) | Nothing(),
    }

    @override
    def _learning_rate_shares(self) -> dict[str, float]:
        share = self.metric_learning_rate
        if share is None:
            share = min(0.1, self._entry_size())
        return {"metric": share}

    def _entry_size(self) -> float:
        """Return the size of an entry of the metric where all are equal: Σλ = 1, trace ΩᵀΩ = 1."""
        kind, rank = self._metric()
        n_features: int = self.n_features_in_
        if kind in ("matrix", "local"):
            entries = (rank or n_features) * n_features
            return float(entries**-0.5)
        n_relevances = self.shape_[-1] if isinstance(self.distance_fn, SoftDTW) else n_features
        return 1 / n_relevances

    @override
    def _check_combinations(self, validated: bool) -> None:
        super()._check_combinations(validated)
        kind, rank = self._metric()
        weighted = kind == "relevance" and isinstance(self.distance_fn, SoftDTW)
        if self.distance_fn is not None and kind != "euclidean" and not weighted:
            raise ValueError(
                "distance_fn needs a model without a learned metric: LVQ1, LVQ21, GLVQ, DeepLVQ, "
                "or RSLVQ and CELVQ with metric='euclidean'; SoftDTW also takes metric='relevance' "
                "and GRLVQ."
            )
        if self.metric_learning_rate is not None and kind == "euclidean":
            raise ValueError(
                f"metric_learning_rate={self.metric_learning_rate} needs a metric that is "
                "learned, got 'euclidean'."
            )
        if self.metric_learning_rate is not None and "metric" in self.frozen:
            raise ValueError(
                f"metric_learning_rate={self.metric_learning_rate} needs a metric that is trained, "
                "but frozen names it."
            )
        if rank is not None and rank > self.n_features_in_:
            raise ValueError(
                f"rank must be at most {self.n_features_in_}, the number of features; got {rank}."
            )

    @override
    def _store_layer(self, layer: Euclidean, labels: Array) -> None:
        super()._store_layer(layer, labels)
        for name in layer.metric_parameters:
            values = getattr(layer, name).cpu().numpy()
            if name == "omega":
                self.omega_ = values
                self.relevances_ = np.square(values).sum(axis=-2)
            else:
                self.relevances_ = values


@accept_old_names
@dataclass(eq=False, repr=False, kw_only=True)
class GRLVQ(WithMetric, GLVQ):
    """Learn prototypes and the relevance of each feature: generalized relevance LVQ.

        d(x, w) = Σ_j λ_j (x_j − w_j)²,    λ ≥ 0,  Σλ = 1

    With distance_fn=SoftDTW(...), λ_t is the relevance of a time step, as told there.

    Parameters
    ----------
    n_prototypes : int or dict from label to int, default=1
        Prototypes per class.
    metric_learning_rate : float, optional
        Step of λ as a share of `learning_rate`; default: one over the number of relevances, but
        at most 0.1.
    **options
        The options of GLVQ, by name.

    Attributes
    ----------
    relevances_ : array of shape (D,), or (length,) for SoftDTW
        λ.

    References
    ----------
    Hammer, Villmann: Generalized relevance learning vector quantization. Neural Networks 15,
    2002. doi:10.1016/S0893-6080(02)00079-5

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> GRLVQ(random_state=0).fit(X, y).relevances_.argsort()[-2:].tolist()
    [2, 3]
    """

    @override
    def _metric(self) -> tuple[str, int | None]:
        return "relevance", None


@accept_old_names
@dataclass(eq=False, repr=False, kw_only=True)
class GMLVQ(WithMetric, GLVQ):
    """Learn prototypes and a matrix of relevances: generalized matrix LVQ.

        d(x, w) = ‖Ω(x − w)‖²,    trace ΩᵀΩ = 1

    Parameters
    ----------
    n_prototypes : int or dict from label to int, default=1
        Prototypes per class.
    rank : int, optional
        Rows of Ω; default: the number of features.
    metric_learning_rate : float, optional
        Step of Ω as a share of `learning_rate`; default: 0.1, or one over the root of the
        number of entries where that is less.
    **options
        The options of GLVQ, by name.

    Attributes
    ----------
    omega_ : array of shape (rank, D)
        Ω.
    relevances_ : array of shape (D,)
        The diagonal of ΩᵀΩ.

    References
    ----------
    Schneider, Biehl, Hammer: Adaptive relevance matrices in learning vector quantization. Neural
    Computation 21, 2009. doi:10.1162/neco.2009.11-08-908

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> GMLVQ(rank=2, random_state=0).fit(X, y).omega_.shape
    (2, 4)
    """

    rank: int | None = None

    steepness: ClassVar[float] = 1.0

    @override
    def _metric(self) -> tuple[str, int | None]:
        return "matrix", self.rank


@accept_old_names
@dataclass(eq=False, repr=False, kw_only=True)
class LGMLVQ(WithMetric, GLVQ):
    """Learn prototypes and a matrix for each of them: localized generalized matrix LVQ.

        d(x, w_k) = ‖Ω_k(x − w_k)‖²,    trace Ω_kᵀΩ_k = 1

    Parameters
    ----------
    n_prototypes : int or dict from label to int, default=1
        Prototypes per class.
    rank : int, optional
        Rows of every Ω_k; default: the number of features.
    metric_learning_rate : float, optional
        Step of the Ω_k as a share of `learning_rate`; default: 0.1, or one over the root of the
        number of entries where that is less.
    **options
        The options of GLVQ, by name.

    Attributes
    ----------
    omega_ : array of shape (K, rank, D)
        Ω_k of every prototype.
    relevances_ : array of shape (K, D)
        The diagonals of Ω_kᵀΩ_k.

    References
    ----------
    Schneider, Biehl, Hammer: Adaptive relevance matrices in learning vector quantization. Neural
    Computation 21, 2009. doi:10.1162/neco.2009.11-08-908

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> LGMLVQ(rank=2, random_state=0).fit(X, y).omega_.shape
    (3, 2, 4)
    """

    rank: int | None = None

    steepness: ClassVar[float] = 1.0

    @override
    def _metric(self) -> tuple[str, int | None]:
        return "local", self.rank
