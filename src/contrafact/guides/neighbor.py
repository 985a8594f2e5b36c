"""The nearest unlike neighbor: a real row of the target class."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from ..prototypes.diversity import select_diverse
from .guide import Guide, nearness, to_numpy


class NearestUnlikeNeighbor(Guide):
    """The reference row nearest to the instance that the model puts in the target class.

    Parameters
    ----------
    metric : "euclidean" or "dtw" (series only; dynamic time warping by aeon)
    window : Sakoe-Chiba band of DTW as a fraction of the length; None for no band.
    diverse : with k > 1, choose guides that differ from each other among the nearest ones, rather than the k
        nearest.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> guide = NearestUnlikeNeighbor().fit(LogisticRegression(max_iter=500).fit(X, y), X, y)
    >>> arrays, index = guide.guide(X[:1], target=1)
    >>> index.tolist()
    [[98]]
    """

    #: guides are chosen for diversity among this many times k of the nearest
    pool_factor = 5
    #: upper bound on the numbers compared at once, which bounds memory
    max_elements = 2**24
    #: a sum of d products is off by about √d roundings, hardly ever by this many times as much
    error_factor = 4.0

    def __init__(
        self,
        metric: Literal["euclidean", "dtw"] = "euclidean",
        window: float | None = None,
        diverse: bool = False,
    ) -> None:
        if metric not in ("euclidean", "dtw"):
            raise ValueError(f"metric must be 'euclidean' or 'dtw', got {metric!r}.")
        self.metric, self.window, self.diverse = metric, window, diverse

    def _prepare(self) -> None:
        if self.metric == "dtw":
            if self.candidates_.ndim != 3:
                raise ValueError(
                    f"metric='dtw' needs series (n, channels, length), got {tuple(self.candidates_.shape)}."
                )
            return
        flat = self.candidates_.flatten(1)
        self._center = flat.mean(0)
        centered = flat - self._center
        self._scale = centered.abs().max().clamp_min(torch.finfo(flat.dtype).tiny)
        self._centered = (centered / self._scale).float()
        self._half_norms = self._centered.square().sum(1) / 2

    def _nearest(self, x: Tensor, pool: Tensor, k: int) -> tuple[Tensor, Tensor]:
        wanted = min(len(pool), self.pool_factor * k) if self.diverse and k > 1 else k
        search = self._by_dtw if self.metric == "dtw" else self._by_products
        distance, index = search(x, pool, wanted)
        if wanted > k:
            chosen = select_diverse(self.candidates_[index], k, quality=nearness(distance))
            index = index.gather(1, chosen)
        return self.candidates_[index], index

    def _by_products(self, x: Tensor, pool: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """‖x − r‖² = ‖x‖² − 2(x·r − ‖r‖²/2): the nearest maximize x·r − ‖r‖²/2, one matrix product.

        The product only proposes, fast: in float32, on data centered and of order 1. Its leaders are ranked by
        explicit differences in float64. Where rounding could hide a nearer candidate, or a tie, behind the
        leaders, more of them are asked for. So ties go to the first reference row.
        """
        everyone = len(pool) == len(self._centered)
        candidates = self._centered if everyone else self._centered[pool]
        half_norms = self._half_norms if everyone else self._half_norms[pool]
        reach = half_norms.max().mul(2).sqrt()
        size = candidates.shape[1]
        rounding = self.error_factor * size**0.5 * torch.finfo(candidates.dtype).eps

        distance = torch.empty(len(x), k, dtype=torch.float64, device=x.device)
        index = torch.empty(len(x), k, dtype=torch.long, device=x.device)
        unsure, leaders = torch.arange(len(x), device=x.device), min(len(pool), k + 3)
        while len(unsure):
            sure = []
            for rows in unsure.split(max(1, min(1024, self.max_elements // (leaders * size)))):
                queries = (x[rows].flatten(1).double() - self._center) / self._scale
                score, best = torch.addmm(-half_norms, queries.float(), candidates.T).topk(
                    leaders, dim=1
                )
                best = pool[best.sort(1).values]
                squared, order = self._squared_distance(x[rows], best).sort(dim=1, stable=True)
                distance[rows], index[rows] = squared[:, :k].sqrt(), best.gather(1, order[:, :k])
                norm = queries.norm(dim=1)
                kth_score = (norm.square() - squared[:, k - 1] / self._scale.double().square()) / 2
                sure.append(kth_score - score[:, -1] > rounding * (norm + reach / 2) * reach)
            unsure = unsure[~torch.cat(sure)] if leaders < len(pool) else unsure[:0]
            leaders = min(len(pool), 8 * leaders)
        return distance, index

    def _squared_distance(self, x: Tensor, index: Tensor) -> Tensor:
        return (x[:, None].double() - self.candidates_[index].double()).flatten(2).square().sum(2)

    def _by_dtw(self, x: Tensor, pool: Tensor, k: int) -> tuple[Tensor, Tensor]:
        from aeon.distances import dtw_pairwise_distance

        distance = torch.from_numpy(
            dtw_pairwise_distance(to_numpy(x), to_numpy(self.candidates_[pool]), window=self.window)
        ).to(x.device)
        nearest = distance.sort(dim=1, stable=True)
        return nearest.values[:, :k].sqrt(), pool[nearest.indices[:, :k]]
