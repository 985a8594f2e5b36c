"""Batched search: segments of an instance, and bisection for all rows at once."""

from __future__ import annotations

from collections.abc import Callable

import torch

from .batch import Batch

#: makes candidates: (levels, positions among the searched rows) → arrays
Candidate = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def segment_ids(shape: tuple[int, ...], width: int, *, shared: bool = False) -> torch.Tensor:
    """Number every value of an instance by the segment it lies in.

    Series: windows of `width` steps, per channel, or across channels when `shared`. Images: square patches
    across channels. Rows: `width` neighbouring features.
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
    batch: Batch, rows: torch.Tensor, candidate: Candidate, top: int, *, top_accepted: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """For every row the smallest level in 1…top whose candidate the model accepts, by bisection.

    Where acceptance is not monotone in the level, the answer is still a level that is accepted while one just
    below it is not. Rows whose top level is not accepted stay there. `top_accepted` saves asking.
    Returns the levels and their candidates.
    """
    where = torch.arange(len(rows), device=rows.device)
    low, high = torch.zeros_like(where), torch.full_like(where, top)
    best = candidate(high, where)
    if not top_accepted:
        asked = where[batch.affords(rows)]
        good = batch.accepts(batch.ask(best[asked], rows[asked]), rows[asked])
        low = torch.full_like(where, top)
        low[asked[good]] = 0
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
