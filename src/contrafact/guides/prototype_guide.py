"""The nearest unlike prototype: learned, or a row chosen by Median LVQ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor
from typing_extensions import override

from ..prototypes.estimator import PrototypeClassifier
from ..prototypes.option_rules import COUNTS, SEED
from ..validation import Boolean, Instance, OneOf, Rule, check_parameters
from .guide import PointGuide, to_numpy


class NearestUnlikePrototype(PointGuide):
    """Guide to the nearest prototype of the target class, from a prototype model.

    A GLVQ or MedianLVQ is fitted to the reference rows and the classes that the model puts them
    in: its prototypes stand for what the model takes each class to be. One that the model does
    not put in its class is replaced by the member nearest to it.

    Parameters
    ----------
    kind : {"lvq", "median"} or prototype model, default="lvq"
        GLVQ, whose prototypes are new points, MedianLVQ, whose prototypes are real rows, or a
        prototype model to clone and fit, whose prototypes are instances.
    n_prototypes : int, default=5
        Prototypes per class, for the first two.
    metric : {"euclidean", "dtw"}, default="euclidean"
        Of "median"; "lvq" is Euclidean.
    diverse : bool, default=False
        With k > 1, choose prototypes that differ from each other rather than the k nearest.
    random_state : int, default=0
        Seed of the fit.

    Attributes
    ----------
    model_ : PrototypeClassifier
        The prototype model; not set where the model puts all reference rows in one class.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=500).fit(X, y)
    >>> guide = NearestUnlikePrototype("median", n_prototypes=1).fit(model, X, y)
    >>> guide.guide(X[:1], target=1)[0].shape
    torch.Size([1, 1, 4])
    """

    rules: ClassVar[Mapping[str, Rule]] = {
        "kind": OneOf("lvq", "median") | Instance(PrototypeClassifier, "a prototype model"),
        "n_prototypes": COUNTS,
        "metric": OneOf("euclidean", "dtw"),
        "diverse": Boolean(),
        "random_state": SEED,
    }

    def __init__(
        self,
        kind: Literal["lvq", "median"] | PrototypeClassifier = "lvq",
        n_prototypes: int = 5,
        metric: Literal["euclidean", "dtw"] = "euclidean",
        diverse: bool = False,
        random_state: int = 0,
    ) -> None:
        self.kind = kind
        self.n_prototypes = n_prototypes
        self.metric = metric
        self.diverse = diverse
        self.random_state = random_state
        check_parameters(type(self).__name__, self.rules, vars(self))
        if kind == "lvq" and metric != "euclidean":
            raise ValueError(
                f"NearestUnlikePrototype: kind='lvq' with metric={metric!r} is not possible; use "
                "metric='euclidean' or kind='median'."
            )

    @override
    def _make(self) -> tuple[Tensor, Tensor]:
        column = self.candidate_class_.cpu().numpy()
        if len(np.unique(column)) < 2:
            # A prototype model needs two classes; the mean stands for the only one.
            mean = self.reference_.mean(0, keepdim=True)
            return mean, self.candidate_class_[:1].cpu()
        model = self._prototype_model()
        self.model_ = model.fit(to_numpy(self.reference_), column)
        points = self.model_.prototypes_
        shape = tuple(self.reference_.shape[1:])
        if points.shape[1:] != shape:
            raise ValueError(
                f"kind {type(self.model_).__name__} has prototypes of shape {points.shape[1:]}, "
                f"which are not instances {shape}."
            )
        owner = torch.from_numpy(self.model_.prototype_labels_)
        return torch.from_numpy(points).to(self.reference_), owner

    def _prototype_model(self) -> Any:
        """Return the model to fit."""
        from ..prototypes import GLVQ, MedianLVQ

        if isinstance(self.kind, PrototypeClassifier):
            return clone(self.kind)
        if self.kind == "median":
            return MedianLVQ(
                self.n_prototypes,
                metric=self.metric,
                random_state=self.random_state,
            )
        return GLVQ(self.n_prototypes, random_state=self.random_state)
