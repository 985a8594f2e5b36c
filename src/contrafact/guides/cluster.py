"""The nearest unlike cluster: the centre of (a part of) the target class."""

from __future__ import annotations

import torch

from .base import Guide, to_numpy


class NearestUnlikeCluster(Guide):
    """The nearest cluster centre of the rows that the model puts in the target class.

    A centre that the model itself does not put in the class is replaced by the member nearest to it, so that
    every guide is a point of its class.

    Parameters
    ----------
    n_clusters : 1 gives the class mean, more gives k-means centres per class.
    random_state : seed of k-means.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> guide = NearestUnlikeCluster().fit(LogisticRegression(max_iter=500).fit(X, y), X, y)
    >>> guide.guide(X[:1], target=2)[1].tolist()
    [[2]]
    """

    def __init__(self, n_clusters: int = 1, random_state: int = 0) -> None:
        if n_clusters < 1:
            raise ValueError(f"n_clusters must be at least 1, got {n_clusters}.")
        self.n_clusters, self.random_state = n_clusters, random_state

    def _prepare(self) -> None:
        n_classes = len(self.classifier_.classes)
        members = [(self.candidate_class_ == c).nonzero().flatten() for c in range(n_classes)]
        centres = [self._centres_of(rows) for rows in members]
        of_class = torch.cat([torch.full((len(part),), c) for c, part in enumerate(centres)])
        points = torch.cat(centres)
        verdict = self.classifier_.verdict(points)
        proba = verdict.proba
        for i in (verdict.label.cpu() != of_class).nonzero().flatten().tolist():
            inside = members[int(of_class[i])]
            medoid = inside[(self.reference_[inside] - points[i]).flatten(1).norm(dim=1).argmin()]
            points[i], proba[i] = self.reference_[medoid], self.candidate_proba_[medoid]
        self.candidates_, self.candidate_proba_ = points, proba
        self.candidate_class_ = of_class.to(points.device)

    def _centres_of(self, members: torch.Tensor) -> torch.Tensor:
        rows = self.reference_[members]
        if len(rows) == 0 or self.n_clusters == 1:
            return rows.mean(0, keepdim=True)[: len(rows)]
        from sklearn.cluster import KMeans

        flat = to_numpy(rows.flatten(1))
        n_clusters = min(self.n_clusters, len({row.tobytes() for row in flat}))
        centres = KMeans(n_clusters, n_init=3, random_state=self.random_state).fit(flat).cluster_centers_
        return torch.from_numpy(centres).to(rows.device, rows.dtype).reshape(-1, *rows.shape[1:])

    def _nearest(self, x: torch.Tensor, pool: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        distance = (x[:, None] - self.candidates_[pool]).flatten(2).norm(dim=2)
        index = pool[distance.sort(dim=1, stable=True).indices[:, :k]]
        return self.candidates_[index], index
