"""Batched search: segments of an instance, and bisection for all rows at once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..engine.batch import Batch, lead

#: makes candidates: (levels, positions among the searched rows) → arrays
Candidate = Callable[[Tensor, Tensor], Tensor]


def segment_ids(shape: tuple[int, ...], width: int, *, shared: bool = False) -> Tensor:
    """Number every value of an instance by the segment it lies in.

    Series: windows of `width` steps, per channel, or across channels when `shared`. Images: square patches
    across channels. Rows: `width` neighboring features.
    """
    if len(shape) == 1:
        return torch.arange(shape[0]) // width
    if len(shape) == 2:
        channels, length = shape
        window = torch.arange(length) // width
        first = torch.arange(channels)[:, None] * (int(window[-1]) + 1)
        return window.expand(shape).clone() if shared else window + first
    _, height, wide = shape
    patches_across = -(-wide // width)
    patch = torch.arange(height)[:, None] // width * patches_across + torch.arange(wide) // width
    return patch.expand(shape).clone()


def smallest_level(
    batch: Batch,
    rows: Tensor,
    candidate: Candidate,
    top: int | Tensor,
    *,
    above: Tensor | None = None,
    top_accepted: bool = False,
) -> tuple[Tensor, Tensor]:
    """For every row the smallest level in 1…top whose candidate the model accepts, by bisection.

    Where acceptance is not monotone in the level, the answer is still a level that is accepted while one just
    below it is not. Rows whose top level is not accepted stay there. `above` gives levels known not to do,
    `top_accepted` saves asking about the top. Returns the levels and their candidates.
    """
    where = torch.arange(len(rows), device=rows.device)
    low = torch.zeros_like(where) if above is None else above.clone()
    high = torch.zeros_like(where) + top
    best = candidate(high, where)
    if not top_accepted:
        asked = where[batch.affords(rows)]
        good = batch.accepts(batch.ask(best[asked], rows[asked]), rows[asked])
        stuck = torch.ones_like(where, dtype=torch.bool)
        stuck[asked[good]] = False
        low[stuck] = high[stuck]
    while True:
        open_ = where[high - low > 1]
        open_ = open_[batch.affords(rows[open_])]
        if len(open_) == 0:
            return high, best
        middle = (low[open_] + high[open_]) // 2
        trial = candidate(middle, open_)
        good = batch.accepts(batch.ask(trial, rows[open_]), rows[open_])
        high[open_[good]] = middle[good]
        low[open_[~good]] = middle[~good]
        best[open_[good]] = trial[good]


def first_on_line(
    batch: Batch, rows: Tensor, end: Tensor, steps: int = 10
) -> tuple[Tensor, Tensor]:
    """The first point the model accepts on the line from each row to its `end`: share s of the way, and it.

    By bisection, to within 2^−steps; s = 1 where the model does not accept the end.
    """
    top = 2**steps

    def point(level: Tensor, which: Tensor) -> Tensor:
        s = (level.to(end) / top).reshape(-1, *[1] * (end.ndim - 1))
        return batch.project(torch.lerp(batch.x[rows[which]], end[which], s), rows[which])

    level, x_cf = smallest_level(batch, rows, point, top)
    return level.double() / top, x_cf


def accepted_from(
    batch: Batch, rows: Tensor, candidate: Candidate, level: Tensor, top: int
) -> tuple[Tensor, Tensor]:
    """Stay at `level` where the model accepts it; elsewhere rise to the smallest level above that it does."""
    where = torch.arange(len(rows), device=rows.device)
    level, best = level.clone(), candidate(level, where)
    asked = where[batch.affords(rows)]
    accepted = batch.accepts(batch.ask(best[asked], rows[asked]), rows[asked])
    short = asked[~accepted]
    if len(short):
        level[short], best[short] = smallest_level(
            batch,
            rows[short],
            lambda lv, which: candidate(lv, short[which]),
            top,
            above=level[short],
        )
    return level, best


def best_known(batch: Batch, rows: Tensor, x_cf: Tensor) -> Tensor:
    """Where the model does not accept a candidate, the best that was tried for its row."""
    x_cf = x_cf.clone()
    asked = batch.affords(rows).nonzero().flatten()
    astray = asked[~batch.accepts(batch.ask(x_cf[asked], rows[asked], cached=True), rows[asked])]
    x_cf[astray] = batch.best_attempts(rows[astray])
    return x_cf


def grow_mask(batch: Batch, rows: Tensor, toward: Tensor, segment: Tensor) -> tuple[Tensor, Tensor]:
    """Copy segments of `toward` into the instances, greedily, until the model accepts.

    Each round tries every segment not yet copied, for all rows in one model batch, and keeps the one with the
    largest gain in the target's lead; where nothing gains, the one that differs most. Needs no gradients and
    suits models whose answers are steps.

    Returns, per row and segment: the round in which it was copied (−1: never), and its gain when tried alone.
    """
    n_segments = int(segment.max()) + 1
    difference = (toward - batch.x[rows]).abs().flatten(1)
    size = torch.zeros(len(rows), n_segments, dtype=difference.dtype, device=rows.device)
    size.index_add_(1, segment.flatten(), difference)
    tie_break = 1e-9 * size / size.amax(1, keepdim=True).clamp_min(torch.finfo(size.dtype).tiny)

    copied_in = torch.full((len(rows), n_segments), -1, dtype=torch.long, device=rows.device)
    alone = torch.zeros(len(rows), n_segments, dtype=torch.float64, device=rows.device)
    open_ = torch.arange(len(rows), device=rows.device)
    for turn in range(n_segments):
        open_ = open_[batch.affords(rows[open_], n_segments - turn)]
        if len(open_) == 0:
            break
        which, candidate = (copied_in[open_] < 0).nonzero(as_tuple=True)
        entry = open_[which]
        mask = copied_in[entry] >= 0
        mask[torch.arange(len(entry)), candidate] = True
        trial = torch.where(mask[:, segment], toward[entry], batch.x[rows[entry]])
        verdict = batch.ask(batch.project(trial, rows[entry]), rows[entry])
        gain = torch.full(
            (len(open_), n_segments), -torch.inf, dtype=torch.float64, device=rows.device
        )
        gain[which, candidate] = lead(verdict.score, batch.target[rows[entry]])
        if turn == 0:
            alone[open_] = gain - lead(batch.verdict.score, batch.target)[rows[open_]][:, None]
        best = (gain + tie_break[open_]).argmax(1)
        copied_in[open_, best] = turn
        accepted = torch.zeros_like(gain, dtype=torch.bool)
        accepted[which, candidate] = batch.accepts(verdict, rows[entry])
        open_ = open_[~accepted[torch.arange(len(open_)), best]]
    return copied_in, alone
