"""The nearest unlike cluster: the center of (a part of) the target class."""

from __future__ import annotations

import torch
from torch import Tensor

from ..prototypes.initial import kmeans_centers
from .guide import PointGuide, to_numpy


class NearestUnlikeCluster(PointGuide):
    """The nearest cluster center of the rows that the model puts in the target class.

    A center that the model does not put in the class gives way to the member nearest to it.

    Parameters
    ----------
    n_clusters : 1 gives the class mean, more gives k-means centers per class.
    random_state : seed of k-means.
    diverse : with k > 1, centers that differ from each other, rather than the k nearest.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> guide = NearestUnlikeCluster().fit(LogisticRegression(max_iter=500).fit(X, y), X, y)
    >>> guide.guide(X[:1], target=2)[1].tolist()
    [[2]]
    """

    def __init__(self, n_clusters: int = 1, random_state: int = 0, diverse: bool = False) -> None:
        if n_clusters < 1:
            raise ValueError(f"n_clusters must be at least 1, got {n_clusters}.")
        self.n_clusters, self.random_state, self.diverse = n_clusters, random_state, diverse

    def _make(self) -> tuple[Tensor, Tensor]:
        n_classes = len(self.classifier_.classes)
        centers = [
            self._centers_of((self.candidate_class_ == c).nonzero().flatten())
            for c in range(n_classes)
        ]
        of_class = torch.cat([torch.full((len(part),), c) for c, part in enumerate(centers)])
        return torch.cat(centers), of_class

    def _centers_of(self, members: Tensor) -> Tensor:
        rows = self.reference_[members]
        if len(rows) == 0:
            return rows
        k = min(self.n_clusters, len(rows.unique(dim=0)))
        centers = kmeans_centers(to_numpy(rows.flatten(1)), k, self.random_state, n_init=3)
        return torch.from_numpy(centers).to(rows).reshape(-1, *rows.shape[1:])
