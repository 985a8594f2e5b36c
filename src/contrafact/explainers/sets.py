"""SETS: shapelets of the old class go, shapelets of the target class come in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from ..engine import Batch, Candidates, Tags
from ..engine.batch import lead, place_in_row
from ..guides import Guide, NearestUnlikeNeighbor
from ..models.classifier import Array, Verdict
from ..prototypes import select_diverse
from ..search import smallest_level
from .support.guided import GuidedExplainer
from .support.shapelets import mine, window_distance

#: numbers worked on at once
MAX_ELEMENTS = 2**22
#: counterfactuals are chosen for diversity among this many times k of the smallest
POOL_FACTOR = 5
#: the rank of a value that no edit touches
NEVER = 2**31 - 1


@dataclass(frozen=True)
class Edits:
    """One entry per (row, shapelet): the series with that stretch of that channel replaced."""

    row: Tensor
    shapelet: Tensor
    channel: Tensor
    window: Tensor  # (entries, length): True where it is replaced
    values: Tensor  # (entries, length): by what

    def applied(self, batch: Batch, which: Tensor) -> Tensor:
        row, at = (
            self.row[which],
            (torch.arange(len(which), device=which.device), self.channel[which]),
        )
        x_cf = batch.x[row]
        x_cf[at] = torch.where(self.window[which], self.values[which], x_cf[at])
        return batch.project(x_cf, row)


class SETS(GuidedExplainer):
    """Shapelet-based counterfactuals (Bahri, Boubrahimi, Hamdi 2022).

    At fit, aeon's random shapelet transform mines stretches that tell the model's classes apart. A shapelet s
    of length L occurs in a window w of a series where

        1/L ‖ z(s) − z(w) ‖² ≤ threshold_s,       z(w) = (w − mean w) / std w

    with the threshold that best parts the series of its class from the others. To turn an instance, shapelets
    of its class that occur are removed, by the same stretch of the nearest unlike neighbor, and shapelets of
    the target class that do not occur are inserted where their class has them, at the local level. First each
    edit alone; then, channel by channel, as many as are needed, the most helpful first; then the edits of
    several channels, the most helpful channel first. What changes fewest values, then least, is the answer.
    Where nothing of this does, the straight line to the neighbor, told in `info["fallback"]`.

    Parameters
    ----------
    n_candidates : stretches that mining looks at; it bounds the time of fit.
    max_shapelets : how many are kept, shared among the classes.
    max_length : longest shapelet, as a share of the series.
    metric : "euclidean" or "dtw", for the neighbor.
    random_state : seed of the mining.

    `info`: guide_index, shapelet (in `shapelets_`; −1 where several were used, or none), fallback.

    Examples
    --------
    >>> result = SETS(n_candidates=200).fit(model, X_train, y_train).explain(X_test[:8])
    >>> result.valid.mean()
    1.0
    """

    tags = Tags(modalities=("series",))

    def __init__(
        self,
        n_candidates: int = 1000,
        max_shapelets: int = 40,
        max_length: float = 0.5,
        metric: Literal["euclidean", "dtw"] = "euclidean",
        random_state: int = 0,
    ) -> None:
        self.n_candidates, self.max_shapelets, self.max_length = (
            n_candidates,
            max_shapelets,
            max_length,
        )
        self.metric, self.random_state = metric, random_state

    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [{"n_candidates": 40, "max_shapelets": 9}]

    def _make_guide(self) -> Guide:
        for name in ("n_candidates", "max_shapelets"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}.")
        if not 0 < self.max_length <= 1:
            raise ValueError(f"max_length must lie in (0, 1], got {self.max_length}.")
        return NearestUnlikeNeighbor(self.metric)

    def _fit(self, X: Tensor, y: Array | None) -> None:
        super()._fit(X, y)
        self.shapelets_ = mine(
            X,
            self.guide_.candidate_class_,
            n_candidates=self.n_candidates,
            max_shapelets=self.max_shapelets,
            max_length=max(3, int(self.max_length * X.shape[-1])),
            random_state=self.random_state,
        )

    def _explain(self, batch: Batch) -> Candidates:
        target = self.classifier_.classes[batch.target.cpu().numpy()]
        guides, index = self.guide_.guide(
            batch.x,
            target,
            confidence=batch.confidence,
        )
        known = index[:, 0] >= 0
        batch.refuse(
            batch.rows[~known],
            "the reference data hold no row that the model puts in the target class",
        )
        edits = self._edits(batch, guides[:, 0], known)
        gain, merit = self._try_alone(batch, edits)
        best = smallest(edits.row, merit, POOL_FACTOR * batch.k)
        pool = Pool(
            edits.applied(batch, best),
            edits.row[best],
            edits.shapelet[best],
            merit[best],
        )
        rank, toward = ranked(batch, edits, gain)
        needy = known & (pool.count(batch) < batch.k)
        for c in range(self.shape_[0]):
            alone = torch.arange(self.shape_[0], device=rank.device)[:, None] == c
            pool = self._try_levels(
                batch,
                pool,
                rank.masked_fill(~alone, NEVER),
                toward,
                needy,
            )
        together = channel_rank(batch, edits, gain)[:, :, None].expand_as(rank)
        together = torch.where(rank < NEVER, together, NEVER)
        pool = self._try_levels(
            batch,
            pool,
            together,
            toward,
            known & (pool.count(batch) == 0),
        )
        chosen = pool.choose(batch.k)
        bare = known & (pool.count(batch) == 0)
        line, fallback = self._rescue(
            batch, batch.rows[bare], batch.best_attempts(batch.rows[bare])
        )
        rows = torch.cat([pool.row[chosen], batch.rows[bare]])
        shapelet = torch.cat([pool.shapelet[chosen], torch.full_like(batch.rows[bare], -1)])
        fallback = torch.cat([torch.zeros_like(pool.row[chosen], dtype=torch.bool), fallback])
        info = {"guide_index": index[rows, 0], "shapelet": shapelet, "fallback": fallback}
        return Candidates(torch.cat([pool.x[chosen], line]), rows, info)

    def _edits(self, batch: Batch, guide: Tensor, known: Tensor) -> Edits:
        """Shapelets of the old class that occur are to go, those of the target that do not are to come."""
        time = torch.arange(self.shape_[-1], device=batch.x.device)
        none, empty = batch.rows[:0], batch.x[:0, 0]
        parts = [Edits(none, none, none, empty.bool(), empty)]
        for j, shapelet in enumerate(self.shapelets_):
            distance, place = window_distance(batch.x[:, shapelet.channel], shapelet.values).min(1)
            occurs = distance <= shapelet.threshold
            goes = known & occurs & (batch.label == shapelet.column)
            comes = known & ~occurs & (batch.target == shapelet.column)
            row = (goes | comes).nonzero().flatten()
            start = torch.where(goes, place, shapelet.start)[row, None]
            window = (time >= start) & (time < start + len(shapelet.values))
            x = batch.x[row, shapelet.channel]
            level = torch.where(window, x, 0).sum(1, keepdim=True) / len(shapelet.values)
            own = shapelet.values[(time - start).clamp(0, len(shapelet.values) - 1)]
            values = torch.where(
                goes[row, None],
                guide[row, shapelet.channel],
                level + own,
            )
            where = torch.full_like(row, shapelet.channel)
            parts.append(Edits(row, torch.full_like(row, j), where, window, values))
        return Edits(
            *(
                torch.cat(column)
                for column in zip(*(vars(part).values() for part in parts), strict=True)
            )
        )

    def _try_alone(self, batch: Batch, edits: Edits) -> tuple[Tensor, Tensor]:
        """Per edit the gain in the target's lead, and its merit: infinite if it does not turn the class."""
        gain = torch.full(
            (len(edits.row),), -torch.inf, dtype=torch.float64, device=edits.row.device
        )
        merit = torch.full_like(gain, torch.inf)
        before = lead(batch.verdict.score, batch.target)
        for part in torch.arange(len(edits.row)).split(
            max(1, MAX_ELEMENTS // math.prod(self.shape_))
        ):
            part = part.to(gain.device)
            part = part[batch.affords(edits.row[part])]
            rows, x_cf = edits.row[part], edits.applied(batch, part)
            verdict = batch.ask(x_cf, rows, cached=True)
            gain[part] = lead(verdict.score, batch.target[rows]) - before[rows]
            merit[part] = merits(batch, x_cf, rows, verdict)
        return gain, merit

    def _try_levels(
        self, batch: Batch, pool: Pool, rank: Tensor, toward: Tensor, needy: Tensor
    ) -> Pool:
        """The smallest level at which x with the values of `toward` at ranks below it turns the class."""
        top = torch.where(rank < NEVER, rank + 1, 0).flatten(1).amax(1)
        rows = (needy & (top > 1)).nonzero().flatten()  # one rank alone was tried before

        def at(level: Tensor, which: Tensor) -> Tensor:
            mask = rank[rows[which]] < level[:, None, None]
            return batch.project(
                torch.where(mask, toward[rows[which]], batch.x[rows[which]]), rows[which]
            )

        _, x_cf = smallest_level(batch, rows, at, top[rows])
        able = batch.affords(rows).nonzero().flatten()
        x_cf, rows = x_cf[able], rows[able]
        merit = merits(batch, x_cf, rows, batch.ask(x_cf, rows, cached=True))
        return pool.join(x_cf, rows, merit)


@dataclass(frozen=True)
class Pool:
    """Counterfactuals to choose from, with the row and the shapelet of each; the smallest merit is best."""

    x: Tensor
    row: Tensor
    shapelet: Tensor
    merit: Tensor

    def count(self, batch: Batch) -> Tensor:
        """How many each row has."""
        return torch.bincount(self.row, minlength=len(batch))

    def join(self, x: Tensor, row: Tensor, merit: Tensor) -> Pool:
        """With those of `x` that turned the class, each by several shapelets."""
        x, row, merit = x[merit.isfinite()], row[merit.isfinite()], merit[merit.isfinite()]
        several = torch.full_like(row, -1)
        columns = zip(vars(self).values(), (x, row, several, merit), strict=True)
        return Pool(*(torch.cat(both) for both in columns))

    def choose(self, k: int) -> Tensor:
        """The best of each row, and k − 1 more that differ from it."""
        if k == 1 or len(self.row) == 0:
            return smallest(self.row, self.merit, k)
        order = smallest(self.row, self.merit, POOL_FACTOR * k)
        owner, place = self.row[order], place_in_row(self.row[order])
        size = max(k, int(place.max()) + 1)
        entry = torch.full((int(owner.max()) + 1, size), -1, device=owner.device)
        entry[owner, place] = order
        entry = entry[entry[:, 0] >= 0]
        quality = self.merit[entry[:, :1]] / self.merit[entry]
        quality = torch.where(entry >= 0, quality, 1e-9)
        chosen = entry.gather(1, select_diverse(self.x[entry], k, quality))
        return chosen[chosen >= 0]


def merits(
    batch: Batch,
    x_cf: Tensor,
    rows: Tensor,
    verdict: Verdict,
) -> Tensor:
    """Values changed, then mean |x' − x|; infinite where the model does not accept."""
    delta = (x_cf - batch.x[rows]).flatten(1).double()
    d = delta.abs().mean(1)
    return torch.where(
        batch.accepts(verdict, rows), delta.count_nonzero(1) + d / (1 + d), torch.inf
    )


def smallest(row: Tensor, merit: Tensor, k: int) -> Tensor:
    """Entries with the k smallest finite merits of each row, by row and merit."""
    order = merit.argsort(stable=True)
    order = order[merit[order].isfinite()]
    order = order[row[order].argsort(stable=True)]
    return order[place_in_row(row[order]) < k]


def ranked(batch: Batch, edits: Edits, gain: Tensor) -> tuple[Tensor, Tensor]:
    """All edits that do no harm at once: per value the rank of the best edit there, and what it puts.

    Ranks go by the gain within a channel, 0 the largest; values that no edit touches have a rank beyond all.
    """
    group = edits.row * batch.x.shape[1] + edits.channel
    order = smallest(group, torch.where(gain >= 0, -gain, torch.inf), len(gain))
    place = place_in_row(group[order])
    rank = torch.full(batch.x.shape, NEVER, device=batch.x.device)
    toward = batch.x.clone()
    for r in range(
        int(place.max()) if len(place) else -1, -1, -1
    ):  # the best is put last, over the others
        e = order[place == r]
        at = edits.row[e], edits.channel[e]
        rank[at] = torch.where(edits.window[e], r, rank[at])
        toward[at] = torch.where(edits.window[e], edits.values[e], toward[at])
    return rank, toward


def channel_rank(batch: Batch, edits: Edits, gain: Tensor) -> Tensor:
    """The place of every channel in the order of its most helpful edit, 0 the best."""
    channels = batch.x.shape[1]
    best = torch.full(
        (len(batch) * channels,),
        -torch.inf,
        dtype=gain.dtype,
        device=gain.device,
    )
    best = best.scatter_reduce(
        0,
        edits.row * channels + edits.channel,
        gain,
        "amax",
    )
    order = best.reshape(-1, channels).argsort(dim=1, descending=True, stable=True)
    return order.argsort(dim=1)
