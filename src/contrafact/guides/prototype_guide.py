"""The nearest unlike prototype: learned, or a row chosen by Median LVQ."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from ..prototypes.estimator import PrototypeClassifier
from .guide import PointGuide, to_numpy


class NearestUnlikePrototype(PointGuide):
    """The nearest prototype of the target class, from a prototype model of what the model says.

    A GLVQ or MedianLVQ is fitted to the reference rows and the classes the model puts them in: its prototypes
    stand for what the model takes each class to be. One that the model does not put in its class gives way to
    the member nearest to it.

    Parameters
    ----------
    kind : "lvq" (GLVQ: points that are made up), "median" (MedianLVQ: real rows), or a prototype model to
        clone and fit, whose prototypes are instances.
    n_prototypes : per class, for the first two.
    metric : "euclidean" or "dtw", of "median".
    diverse : with k > 1, prototypes that differ from each other, rather than the k nearest.
    random_state : seed of the fit.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> guide = NearestUnlikePrototype("median", 1).fit(LogisticRegression(max_iter=500).fit(X, y), X, y)
    >>> guide.guide(X[:1], target=1)[0].shape
    torch.Size([1, 1, 4])
    """

    def __init__(
        self,
        kind: Literal["lvq", "median"] | PrototypeClassifier = "lvq",
        n_prototypes: int = 5,
        metric: Literal["euclidean", "dtw"] = "euclidean",
        diverse: bool = False,
        random_state: int = 0,
    ) -> None:
        self.kind, self.n_prototypes, self.metric = kind, n_prototypes, metric
        self.diverse, self.random_state = diverse, random_state

    def _model(self) -> Any:
        from ..prototypes import GLVQ, MedianLVQ

        if isinstance(self.kind, PrototypeClassifier):
            return clone(self.kind)
        if self.kind == "median":
            return MedianLVQ(self.n_prototypes, metric=self.metric, random_state=self.random_state)
        if self.kind != "lvq" or self.metric != "euclidean":
            raise ValueError(
                "kind must be 'lvq' (metric='euclidean' only), 'median' or a prototype model, got "
                f"kind={self.kind!r} with metric={self.metric!r}."
            )
        return GLVQ(self.n_prototypes, random_state=self.random_state)

    def _make(self) -> tuple[Tensor, Tensor]:
        column = self.candidate_class_.cpu().numpy()
        if len(np.unique(column)) < 2:  # nothing to tell apart: the mean stands for the only class
            return self.reference_.mean(0, keepdim=True), self.candidate_class_[:1].cpu()
        self.model_ = self._model().fit(to_numpy(self.reference_), column)
        points = self.model_.prototypes_
        if points.shape[1:] != self.reference_.shape[1:]:
            raise ValueError(
                f"kind {type(self.model_).__name__} has prototypes of shape {points.shape[1:]}, which are no "
                f"instances {tuple(self.reference_.shape[1:])}."
            )
        owner = torch.from_numpy(self.model_.prototype_labels_)
        return torch.from_numpy(points).to(self.reference_), owner
