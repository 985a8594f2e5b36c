"""The nearest unlike neighbor: a reference row of the target class."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from typing_extensions import override

from ..process_state import keeping_threads
from ..prototypes.diversity import select_diverse
from ..prototypes.estimator import PrototypeClassifier
from ..prototypes.option_rules import BAND
from ..validation import Boolean, FilePath, Nothing, OneOf, Rule, check_parameters
from .guide import Guide, nearness, to_numpy
from .proposals import Leaders, Proposals
from .stored_answers import Answers, stored_answers
from .weights import WEIGHTS_RULE, weights_of


class NearestUnlikeNeighbor(Guide):
    """Guide to the nearest reference row that the model puts in the target class.

    Parameters
    ----------
    metric : {"euclidean", "dtw"}, default="euclidean"
        How near rows are; dynamic time warping (by aeon) is for series.
    window : float, optional
        Sakoe-Chiba band of DTW, as a fraction of the length; default: no band.
    diverse : bool, default=False
        With k > 1, choose guides among the nearest that differ from each other rather than the k
        nearest.
    weights : array or fitted LVQ model, optional
        Weight of each value in the squared Euclidean distance, sum_j w_j (x_j - r_j)^2: finite
        numbers of at least 0 that broadcast against an instance, or a model with `relevances_`
        (`GRLVQ`; of `GMLVQ` the diagonal of Omega^T Omega). A value of weight 0 is ignored.
        Default: all are 1.
    answers : str or path, optional
        File, beside that of the reference rows, in which the model's answers about them are kept:
        the next `fit` with the same rows and model reads them instead of asking. Default: the model
        is asked in every `fit`.

    References
    ----------
    Delaney, Greene, Keane: Instance-based counterfactual explanations for time series
    classification. ICCBR 2021. doi:10.1007/978-3-030-86957-1_3

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> guide = NearestUnlikeNeighbor().fit(LogisticRegression(max_iter=500).fit(X, y), X, y)
    >>> arrays, index = guide.guide(X[:1], target=1)
    >>> index.tolist()
    [[98]]
    >>> by_petals = NearestUnlikeNeighbor(weights=[0, 0, 1, 1])
    """

    rules: ClassVar[Mapping[str, Rule]] = {
        "metric": OneOf("euclidean", "dtw"),
        "window": BAND,
        "diverse": Boolean(),
        "weights": WEIGHTS_RULE,
        "answers": Nothing() | FilePath(),
    }
    #: guides are chosen for diversity among this many times k of the nearest
    pool_factor = 5
    #: upper bound on the numbers compared at once, which bounds memory
    max_elements = 2**24

    def __init__(
        self,
        metric: Literal["euclidean", "dtw"] = "euclidean",
        window: float | None = None,
        diverse: bool = False,
        weights: ArrayLike | PrototypeClassifier | None = None,
        answers: str | PathLike[str] | None = None,
    ) -> None:
        self.metric = metric
        self.window = window
        self.diverse = diverse
        self.weights = weights
        self.answers = answers
        check_parameters(type(self).__name__, self.rules, vars(self))
        if answers is not None:
            self.answers = fspath(answers)  # as text, which can be saved
        if weights is not None and metric != "euclidean":
            raise ValueError(
                f"NearestUnlikeNeighbor: weights with metric={metric!r} is not possible; use "
                "metric='euclidean'."
            )

    @override
    def _ask_about(self, X: Tensor) -> Answers:
        if self.answers is None:
            return super()._ask_about(X)
        return stored_answers(self.answers, self.classifier_, X)

    @override
    def _prepare(self) -> None:
        if self.metric == "euclidean":
            self._root_weights = None
            if self.weights is not None:
                shape = tuple(self.candidates_.shape[1:])
                root = np.sqrt(weights_of(self.weights, shape))
                self._root_weights = torch.from_numpy(root).to(self.candidates_)
            self._proposals = Proposals.of(self._weighted(self.candidates_).flatten(1))
        elif self.candidates_.ndim != 3:
            shape = tuple(self.candidates_.shape)
            raise ValueError(f"metric='dtw' needs series (n, channels, length), got {shape}.")

    @override
    def _nearest(
        self,
        x: Tensor,
        pool: Tensor,
        k: int,
    ) -> tuple[Tensor, Tensor]:
        n_wanted = k
        if self.diverse and k > 1:
            n_wanted = min(len(pool), self.pool_factor * k)
        search = self._by_dtw if self.metric == "dtw" else self._by_products
        distance, index = search(x, pool, n_wanted)
        if n_wanted > k:
            index = self._most_different(distance, index, k)
        return self.candidates_[index], index

    def _most_different(self, distance: Tensor, index: Tensor, k: int) -> Tensor:
        """Choose k of the nearest candidates (n, m) that differ from each other, in blocks."""
        chosen = []
        block_size = self._block_size(index.shape[1], self.candidates_[0].numel())
        for rows in torch.arange(len(index), device=index.device).split(block_size):
            leaders = self._weighted(self.candidates_[index[rows]])
            chosen.append(select_diverse(leaders, k, quality=nearness(distance[rows])))
        return index.gather(1, torch.cat(chosen))

    def _by_products(
        self,
        x: Tensor,
        pool: Tensor,
        k: int,
    ) -> tuple[Tensor, Tensor]:
        """Find the k nearest of `pool` in Euclidean distance; returns distance and index (n, k).

        A matrix product only proposes leaders; they are ranked by explicit differences in float64.
        Where rounding could hide a nearer candidate, or a tie, behind the leaders, more of them
        are asked for. So ties go to the first reference row.
        """
        proposals = self._proposals
        distance = torch.empty(len(x), k, dtype=torch.float64, device=x.device)
        index = torch.empty(len(x), k, dtype=torch.long, device=x.device)
        unsure = torch.arange(len(x), device=x.device)
        n_leaders = min(len(pool), k + 3)
        while len(unsure):
            sure = []
            block_size = self._block_size(n_leaders, proposals.size)
            for rows in unsure.split(block_size):
                queries = proposals.standardize(self._weighted(x[rows]).flatten(1))
                score, leaders = proposals.leaders(queries, pool, n_leaders)
                squared = self._squared_distance(x[rows], leaders)
                squared, order = squared.sort(dim=1, stable=True)
                distance[rows] = squared[:, :k].sqrt()
                index[rows] = leaders.gather(1, order[:, :k])
                kth_squared = squared[:, k - 1]
                sure.append(proposals.complete(queries, kth_squared, score[:, -1]))
            if n_leaders == len(pool):
                break
            unsure = unsure[~torch.cat(sure)]
            n_leaders = min(len(pool), 8 * n_leaders)
        return distance, index

    def _block_size(self, n_leaders: int, size: int) -> int:
        """Return how many queries to compare at once."""
        affordable = self.max_elements // (n_leaders * size)
        return max(1, min(1024, affordable))

    def _squared_distance(self, x: Tensor, index: Tensor) -> Tensor:
        """Compute sum w (x − candidate)² (n, m) by explicit differences in float64."""
        differences = x[:, None].double() - self.candidates_[index].double()
        return self._weighted(differences).flatten(2).square().sum(2)

    def _weighted(self, x: Tensor) -> Tensor:
        """Scale values by the roots of their weights: then the plain distance is the weighted."""
        return x if self.metric == "dtw" or self._root_weights is None else x * self._root_weights

    @keeping_threads()
    def _by_dtw(
        self,
        x: Tensor,
        pool: Tensor,
        k: int,
    ) -> tuple[Tensor, Tensor]:
        """Find the k nearest of `pool` by dynamic time warping; returns distance and index."""
        from aeon.distances import dtw_pairwise_distance

        nearest = Leaders(len(x), k, x.device)
        block_size = max(1, self.max_elements // len(x))
        for block in pool.split(block_size):
            squared = dtw_pairwise_distance(
                to_numpy(x),
                to_numpy(self.candidates_[block]),
                window=self.window,
            )
            nearest.add(-torch.from_numpy(squared).to(x.device), block)
        return (-nearest.score).sqrt(), nearest.position
