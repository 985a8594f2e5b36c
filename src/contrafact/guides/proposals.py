"""Fast search for the nearest of many candidates: blocked matrix products and a running top n."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

#: scores computed at once, and numbers of candidates; so few stay in a cache of the processor
MAX_SCORES = 2**21
#: scores that are looked at together: only the best groups are looked into
GROUP = 64
#: candidates are used as they are, without a copy, if this many times their spread covers them
NEAR_CENTER = 4.0
#: and if their spread is a number whose square float32 holds without loss
SOUND_SCALE = (1e-6, 1e6)


class Leaders:
    """Keep the n largest scores of every query while candidates come in blocks.

    Of equal scores the one that came first is kept.

    Parameters
    ----------
    queries, n : int
        Number of queries, and of leaders of each.
    device : torch.device
        Where to keep them.

    Attributes
    ----------
    score : Tensor of shape (queries, n)
        Largest first; -inf where there were fewer candidates.
    position : int Tensor of shape (queries, n)
        Which candidates they belong to.
    """

    def __init__(self, queries: int, n: int, device: torch.device) -> None:
        self.n = n
        self.score = torch.empty(queries, 0, device=device)
        self.position = torch.empty(queries, 0, dtype=torch.long, device=device)

    def add(self, scores: Tensor, positions: Tensor) -> None:
        """Look at the next candidates.

        Parameters
        ----------
        scores : Tensor of shape (queries, m)
            Their scores.
        positions : int Tensor of shape (m,)
            Their positions, which are kept for leaders.
        """
        if self.score.shape[1] < self.n:
            self.score, self.position = self._merged(slice(None), scores, positions)
            return
        # The further the search, the fewer queries find a better candidate in a block.
        which = (scores.amax(1) > self.score[:, -1]).nonzero().flatten()
        if len(which):
            merged = self._merged(which, scores[which], positions)
            self.score[which], self.position[which] = merged

    def _merged(
        self,
        which: slice | Tensor,
        scores: Tensor,
        positions: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return the leaders of some queries after the next candidates, with their positions."""
        score, column = _largest(scores, self.n)
        score = torch.cat([self.score[which].to(score), score], 1)
        position = torch.cat([self.position[which], positions[column]], 1)
        score, order = score.sort(dim=1, descending=True, stable=True)
        return score[:, : self.n], position.gather(1, order[:, : self.n])


def _largest(scores: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Find the n largest of each row, largest first, and their columns.

    The n largest lie in the n groups with the largest maxima; a maximum of groups is much faster
    to compute than a selection among all.
    """
    queries, m = scores.shape
    n_groups = m // GROUP
    if n_groups <= 4 * n:
        score, column = scores.topk(min(n, m), dim=1)
        return score, column
    grouped = scores[:, : n_groups * GROUP].view(queries, n_groups, GROUP)
    best_groups = grouped.amax(2).topk(n, dim=1).indices
    inside = torch.arange(GROUP, device=scores.device)
    columns = (best_groups[:, :, None] * GROUP + inside).flatten(1)
    rest = torch.arange(n_groups * GROUP, m, device=scores.device).expand(queries, -1)
    columns = torch.cat([columns, rest], 1)
    score, place = scores.gather(1, columns).topk(n, dim=1)
    return score, columns.gather(1, place)


@dataclass(frozen=True)
class Proposals:
    """Candidates prepared for a fast search for the nearest ones, by matrix products.

        ‖x − r‖² = ‖x − c‖² − 2((x − c)·(r − c) − ‖r − c‖²/2)

    so the nearest candidates r maximize the score (x − c)·(r − c) − ‖r − c‖²/2, whatever c. The
    product is computed in float32, in blocks, on data of order 1. Where rounding allows it, r
    itself takes the place of r − c, and no copy of the candidates is made: that changes all scores
    of a query by the same number.

    Parameters
    ----------
    center : Tensor of shape (features,)
        The mean of all candidates, c.
    scale : Tensor of shape ()
        By which everything is divided.
    rows : float32 Tensor of shape (m, features)
        The candidates, centered and divided; or as they are.
    shift : Tensor of shape (features,)
        What was not subtracted from the candidates: 0, or the center.
    half_norms : float32 Tensor of shape (m,)
        ‖r − c‖²/2, divided by the squared scale.
    reach : float
        Largest norm of a row of `rows`.
    """

    center: Tensor
    scale: Tensor
    rows: Tensor
    shift: Tensor
    half_norms: Tensor
    reach: float

    #: a sum of d products is off by about √d roundings, hardly ever by this many times as much
    error_factor = 4.0

    @classmethod
    def of(cls, flat: Tensor) -> Proposals:
        """Prepare candidates (m, features)."""
        center = flat.mean(0)
        scale = torch.zeros((), dtype=flat.dtype, device=flat.device)
        blocks = flat.split(max(1, MAX_SCORES // flat.shape[1]))
        for block in blocks:
            scale = torch.maximum(scale, (block - center).abs().max())
        scale = scale.clamp_min(torch.finfo(flat.dtype).tiny)
        low, high = SOUND_SCALE
        as_they_are = (
            flat.dtype == torch.float32
            and bool(center.abs().max() <= NEAR_CENTER * scale)
            and low <= float(scale) <= high
        )
        if as_they_are:
            rows = flat
            shift = center
            scale = torch.ones_like(scale)
        else:
            rows = torch.cat([((block - center) / scale).float() for block in blocks])
            shift = torch.zeros_like(center)
        half_norms = torch.empty(len(flat), dtype=torch.float32, device=flat.device)
        reach = 0.0
        start = 0
        for block in rows.split(len(blocks[0])):
            centered = block - shift.float()
            half_norms[start : start + len(block)] = centered.square().sum(1) / 2
            reach = max(reach, float(block.norm(dim=1).max()))
            start += len(block)
        return cls(center, scale, rows, shift, half_norms, reach)

    @property
    def size(self) -> int:
        """Number of features."""
        return self.rows.shape[1]

    def standardize(self, flat: Tensor) -> Tensor:
        """Return instances (n, features) in the units of the search, as float64."""
        return (flat.double() - self.center) / self.scale

    def leaders(
        self,
        queries: Tensor,
        pool: Tensor,
        n: int,
    ) -> tuple[Tensor, Tensor]:
        """Propose n candidates for each query.

        Parameters
        ----------
        queries : Tensor of shape (q, features)
            Standardized instances.
        pool : int Tensor of shape (p,)
            Positions of the candidates to choose from, ascending.
        n : int
            Number of leaders, at most p.

        Returns
        -------
        score : float64 Tensor of shape (q, n)
            Their scores, largest first.
        position : int Tensor of shape (q, n)
            Their positions, ascending.
        """
        found = Leaders(len(queries), n, queries.device)
        narrow = queries.float()
        is_all = len(pool) == len(self.rows)
        block_size = max(1, MAX_SCORES // max(len(queries), self.size))
        # Memory is reserved once: for a new block every time, the pages would be made anew.
        gathered = narrow.new_empty(0 if is_all else min(block_size, len(pool)), self.size)
        product = narrow.new_empty(len(queries) * min(block_size, len(pool)))
        for block in pool.split(block_size):
            rows = self.rows[block[0] : block[-1] + 1]
            if not is_all:
                rows = torch.index_select(self.rows, 0, block, out=gathered[: len(block)])
            scores = product[: len(queries) * len(block)].view(len(queries), len(block))
            torch.addmm(-self.half_norms[block], narrow, rows.T, out=scores)
            found.add(scores, block)
        same_for_all = queries @ self.shift.double()
        score = found.score.double() - same_for_all[:, None]
        return score, found.position.sort(1).values

    def complete(
        self,
        queries: Tensor,
        kth_squared: Tensor,
        last_score: Tensor,
    ) -> Tensor:
        """Tell for which queries no candidate behind the leaders can be among the nearest.

        Parameters
        ----------
        queries : Tensor of shape (q, features)
            Standardized instances.
        kth_squared : Tensor of shape (q,)
            Squared distance to the k-th nearest leader, in the user's units.
        last_score : Tensor of shape (q,)
            Score of the last leader.

        Returns
        -------
        bool Tensor of shape (q,)
            True where the scores differ by more than rounding.
        """
        epsilon = torch.finfo(self.rows.dtype).eps
        rounding = self.error_factor * self.size**0.5 * epsilon
        norm = queries.norm(dim=1)
        kth_standardized = kth_squared / self.scale.double().square()
        kth_score = (norm.square() - kth_standardized) / 2
        error = rounding * (norm + self.reach / 2) * self.reach
        complete: Tensor = kth_score - last_score > error
        return complete
