"""The nearest unlike neighbour: a real row of the target class."""

from __future__ import annotations

from typing import Literal

import torch

from ..prototypes import select_diverse
from .base import Guide, to_numpy


class NearestUnlikeNeighbour(Guide):
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
    >>> guide = NearestUnlikeNeighbour().fit(LogisticRegression(max_iter=500).fit(X, y), X, y)
    >>> arrays, index = guide.guide(X[:1], target=1)
    >>> index.tolist()
    [[98]]
    """

    #: guides are chosen for diversity among this many times k of the nearest
    pool_factor = 5
    #: queries scored at once: enough for the product to run at full speed, few enough for memory
    block = 1024

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
        self._centre = flat.mean(0)
        self._centred = flat - self._centre
        self._half_norms = self._centred.square().sum(1) / 2

    def _nearest(self, x: torch.Tensor, pool: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        wanted = min(len(pool), self.pool_factor * k) if self.diverse and k > 1 else k
        search = self._by_dtw if self.metric == "dtw" else self._by_products
        distance, index = search(x, pool, wanted)
        if wanted > k:
            nearness = distance[:, :1].clamp_min(1e-12) / distance.clamp_min(1e-12)
            chosen = select_diverse(self.candidates_[index], k, quality=nearness)
            index = index.gather(1, chosen)
        return self.candidates_[index], index

    def _by_products(self, x: torch.Tensor, pool: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        """‖x − r‖² = ‖x‖² − 2(x·r − ‖r‖²/2): the nearest maximise x·r − ‖r‖²/2, one matrix product.

        Data are centred first, and the leaders re-ranked by explicit differences, so that rounding in the
        product never decides.
        """
        queries = x.flatten(1) - self._centre
        everyone = len(pool) == len(self._centred)
        candidates = self._centred if everyone else self._centred[pool]
        offset = -(self._half_norms if everyone else self._half_norms[pool])
        leaders = min(len(pool), k + 3)
        best = torch.cat(
            [
                torch.addmm(offset, part, candidates.T).topk(leaders, dim=1).indices
                for part in queries.split(self.block)
            ]
        )
        distance = (queries[:, None] - candidates[best]).square().sum(2).sqrt()
        # Stable sort on (distance, position): ties go to the first reference row whatever the block.
        best, by_position = best.sort(1)
        distance, order = distance.gather(1, by_position).sort(dim=1, stable=True)
        return distance[:, :k], pool[best.gather(1, order[:, :k])]

    def _by_dtw(self, x: torch.Tensor, pool: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        from aeon.distances import dtw_pairwise_distance

        distance = torch.from_numpy(
            dtw_pairwise_distance(to_numpy(x), to_numpy(self.candidates_[pool]), window=self.window)
        ).to(x.device)
        nearest = distance.sort(dim=1, stable=True)
        return nearest.values[:, :k].sqrt(), pool[nearest.indices[:, :k]]
