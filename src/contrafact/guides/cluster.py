"""The nearest unlike cluster: the center of (a part of) the target class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor
from typing_extensions import override

from ..prototypes.initial import kmeans_centers
from ..prototypes.option_rules import SEED
from ..validation import Boolean, Integer, Rule, check_parameters
from .guide import PointGuide, to_numpy


class NearestUnlikeCluster(PointGuide):
    """Guide to the nearest cluster center of the rows that the model puts in the target class.

    A center that the model does not put in the class is replaced by the member nearest to it.

    Parameters
    ----------
    n_clusters : int, default=1
        Centers per class: 1 gives the class mean, more give k-means centers.
    random_state : int, default=0
        Seed of k-means.
    diverse : bool, default=False
        With k > 1, choose centers that differ from each other rather than the k nearest.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> guide = NearestUnlikeCluster().fit(LogisticRegression(max_iter=500).fit(X, y), X, y)
    >>> guide.guide(X[:1], target=2)[1].tolist()
    [[2]]
    """

    rules: ClassVar[Mapping[str, Rule]] = {
        "n_clusters": Integer(at_least=1),
        "random_state": SEED,
        "diverse": Boolean(),
    }

    def __init__(
        self,
        n_clusters: int = 1,
        random_state: int = 0,
        diverse: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.random_state = random_state
        self.diverse = diverse
        check_parameters(type(self).__name__, self.rules, vars(self))

    @override
    def _make(self) -> tuple[Tensor, Tensor]:
        centers = []
        of_class = []
        for c in range(len(self.classifier_.classes)):
            members = self.reference_[self.candidate_class_ == c]
            own = self._centers_of(members)
            centers.append(own)
            of_class.append(torch.full((len(own),), c))
        return torch.cat(centers), torch.cat(of_class)

    def _centers_of(self, rows: Tensor) -> Tensor:
        """Return the centers of the rows of one class, none where there are no rows."""
        if len(rows) == 0:
            return rows
        n_distinct = len(rows.unique(dim=0))
        centers = kmeans_centers(
            to_numpy(rows.flatten(1)),
            min(self.n_clusters, n_distinct),
            self.random_state,
            n_init=3,
        )
        points = torch.from_numpy(centers).to(rows)
        return points.reshape(-1, *rows.shape[1:])
