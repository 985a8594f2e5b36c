"""Soft models of the LVQ family: a temperature in the loss, and any metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from torch import Tensor
from typing_extensions import override

from ..validation import OneOf, Rule
from . import losses
from .estimator import Array
from .gradient_rules import accept_old_names
from .lvq import WithMetric

Metric = Literal["euclidean", "relevance", "matrix", "local"]


@accept_old_names
@dataclass(eq=False, repr=False, kw_only=True)
class SoftLVQ(WithMetric):
    """What soft models share: a temperature T in the loss, and any metric.

    T defaults to the mean distance of rows to their nearest own prototype at the start, times
    `softness`.

    Parameters
    ----------
    metric : {"euclidean", "relevance", "matrix", "local"}, default="euclidean"
        The metric of GLVQ, GRLVQ, GMLVQ or LGMLVQ.
    rank : int, optional
        Rows of Ω, for "matrix" and "local"; default: the number of features.
    """

    metric: Metric = "euclidean"
    rank: int | None = None

    softness: ClassVar[float] = 0.2
    rules: ClassVar[Mapping[str, Rule]] = {
        "metric": OneOf("euclidean", "relevance", "matrix", "local"),
    }

    @override
    def _metric(self) -> tuple[str, int | None]:
        return self.metric, self.rank

    @override
    def _check_combinations(self, validated: bool) -> None:
        super()._check_combinations(validated)
        if self.rank is not None and self.metric in ("euclidean", "relevance"):
            raise ValueError(f"rank={self.rank} needs metric='matrix' or 'local'.")

    @override
    def _start_temperature(
        self,
        d: Tensor,
        labels: Tensor,
        t: Tensor,
        weight: Array | None,
    ) -> float:
        nearest_own, _ = losses.nearest_two(d, losses.same_class(labels, t))
        distances = nearest_own.cpu().numpy()
        mean = float(np.average(distances, weights=weight))
        return self.softness * mean or 1.0


@accept_old_names
@dataclass(eq=False, repr=False, kw_only=True)
class RSLVQ(SoftLVQ):
    """Learn prototypes with soft assignments: robust soft LVQ.

        minimize   −mean log Σ_{k of the class} p(k | x),     p(k | x) = softmax(−d/T)_k

    Parameters
    ----------
    n_prototypes : int or dict from label to int, default=1
        Prototypes per class.
    metric : {"euclidean", "relevance", "matrix", "local"}, default="euclidean"
        The metric of GLVQ, GRLVQ, GMLVQ or LGMLVQ.
    rank : int, optional
        Rows of Ω, for "matrix" and "local"; default: the number of features.
    metric_learning_rate : float, optional
        Step of the metric as a share of `learning_rate`; default: as in GRLVQ and GMLVQ.
    temperature : float, optional
        T, in units of d; default: 0.2 times the mean distance of rows to the nearest prototype of
        their class at the start.
    **options
        The options of `contrafact.prototypes.gradient.GradientLVQ`, by name.

    Attributes
    ----------
    omega_, relevances_ : arrays
        The metric, as in GRLVQ, GMLVQ and LGMLVQ.

    References
    ----------
    Seo, Obermayer: Soft learning vector quantization. Neural Computation 15, 2003.
    doi:10.1162/089976603321891819

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> RSLVQ(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    @override
    def _loss(
        self,
        d: Tensor,
        labels: Tensor,
        t: Tensor,
    ) -> Tensor:
        return losses.rslvq(d, losses.same_class(labels, t), self._training_temperature)


@accept_old_names
@dataclass(eq=False, repr=False, kw_only=True)
class CELVQ(SoftLVQ):
    """Learn prototypes by the cross-entropy of the class probabilities.

        minimize   −mean log P(y | x),     P(c | x) = softmax(−d_c/T)

    with d_c the distance to the nearest prototype of class c.

    Parameters
    ----------
    n_prototypes : int or dict from label to int, default=1
        Prototypes per class.
    metric : str or None
        As in RSLVQ.
    rank : int or None
        As in RSLVQ.
    metric_learning_rate : float or None
        As in RSLVQ.
    temperature : float or None
        As in RSLVQ.
    **options
        The options of `contrafact.prototypes.gradient.GradientLVQ`, by name.

    Attributes
    ----------
    omega_, relevances_ : arrays
        The metric, as in GRLVQ, GMLVQ and LGMLVQ.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> CELVQ(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    @override
    def _loss(
        self,
        d: Tensor,
        labels: Tensor,
        t: Tensor,
    ) -> Tensor:
        return losses.cross_entropy(d, labels, t, self._training_temperature)
