"""Levels of pixels: counterfactuals that are still in their class when they are saved as pictures.

A picture of 8 bits holds low + k / 255 (high − low), k = 0, ..., 255. Rounding to it undoes most
answers that end right at the boundary, so the model has to be asked about rounded images.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor

from ...engine import Tasks
from ...numerics import broadcast_rows
from ...search import smallest_level
from ...search.ball import Ball

Levels = int | Literal["auto"] | None
#: levels of a picture of 8 bits
EIGHT_BITS = 256
#: ranges of pixels in use, tried where no bounds are given
RANGES = ((0.0, 1.0), (0.0, 255.0), (-1.0, 1.0))
#: share of a step that a value may be off the grid by rounding
ROUNDING = 0.01
#: a change is enlarged by 2^(rung / PARTS) where rounding undoes it: these are tried in turn, then
#: the interval before the first that is accepted is bisected
PARTS = 256
RUNGS = (0, 4, 16, 64, 128, 256, 384, 512, 768, 1024)
#: the largest enlargement
MOST = 2 ** (RUNGS[-1] // PARTS)
#: bisections for the largest share of a change that rounds to a point of the ball
HALVINGS = 12


@dataclass(frozen=True)
class PixelLevels:
    """The values low + k / (n − 1) (high − low), k = 0, ..., n − 1.

    Parameters
    ----------
    low, high : Tensor that broadcasts against an image
        Values of the first and of the last level.
    n : int
        Number of levels, at least 2.
    """

    low: Tensor
    high: Tensor
    n: int

    def position(self, x: Tensor) -> Tensor:
        """Return k of values, a whole number for those on the grid."""
        return (x - self.low) / (self.high - self.low) * (self.n - 1)

    def value(self, k: Tensor) -> Tensor:
        """Return the values at k."""
        return self.low + k / (self.n - 1) * (self.high - self.low)

    def hold(self, x: Tensor) -> bool:
        """Return whether all values lie on the grid, up to rounding."""
        k = self.position(x.double())
        return bool((k - k.round()).abs().amax() <= ROUNDING)

    def nearest(self, x: Tensor, ball: Ball) -> Tensor:
        """Round values that are free to the nearest level within the box of a ball.

        Values of the center that lie on the grid up to rounding are kept to the last bit.
        """
        least = (self.position(ball.low) - ROUNDING).ceil()
        most = (self.position(ball.high) + ROUNDING).floor()
        k = torch.minimum(torch.maximum(self.position(x).round(), least), most)
        own = self.position(ball.x0)
        rounded = torch.where((k - own).abs() <= ROUNDING, ball.x0, self.value(k))
        return torch.where(ball.free & (least <= most), rounded, ball.x0)


def find_levels(
    levels: Levels, X: Tensor, bounds: tuple[Tensor, Tensor] | None
) -> PixelLevels | None:
    """Find the grid of images.

    Parameters
    ----------
    levels : int, "auto" or None
        Number of levels; "auto": 256 where all reference pixels lie on such a grid.
    X : Tensor of shape (n, channels, height, width)
        Reference images; anything else has no levels.
    bounds : tuple of Tensor, or None
        Smallest and largest value of a pixel; None: the range of the reference pixels, or the first
        of [0, 1], [0, 255] and [-1, 1] on whose grid they lie.

    Returns
    -------
    PixelLevels or None
        None where there are none.

    Raises
    ------
    ValueError
        If a number of levels is asked for, and X holds no images or has pixels beyond the bounds.
    """
    if levels is None or (levels == "auto" and X.ndim != 4):
        return None
    if X.ndim != 4:
        raise ValueError(f"levels={levels} is for images; X holds series or rows.")
    n = EIGHT_BITS if levels == "auto" else int(levels)
    low, high = X.transpose(0, 1).flatten(1).aminmax(dim=1)
    ranges = [bounds or (low, high)]
    if bounds is None:
        ranges += [(X.new_tensor(low), X.new_tensor(high)) for low, high in RANGES]
    covering = [
        PixelLevels(least.reshape(-1, 1, 1), most.reshape(-1, 1, 1), n)
        for least, most in ranges
        if bool((least < most).all() and (least <= low).all() and (most >= high).all())
    ]
    for grid in covering:
        if grid.hold(X):
            return grid
    if levels == "auto":
        return None
    if not covering:
        raise ValueError(
            f"levels={levels} needs bounds=(low, high) that hold all pixels of X, from "
            f"{low.min():g} to {high.max():g}."
        )
    return covering[0]


def round_to_levels(
    tasks: Tasks, ball: Ball, x_cf: Tensor, levels: PixelLevels, *, within: bool
) -> tuple[Tensor, Tensor]:
    """Bring counterfactuals to the grid, such that the model accepts the rounded ones.

        x' = round(x + c (x_cf − x)),    the smallest c >= 1 whose x' is accepted

    To first order this is the best point of the grid: where x_cf is optimal in its ball, the rise
    of the objective by a step of a value falls with the power p − 1 of its change, so that what
    rounding c (x_cf − x) keeps are the steps that gain most for what they add to the norm.

    Parameters
    ----------
    tasks : Tasks
        What the counterfactuals are for.
    ball : Ball
        Its box holds all points of the grid; its radius counts where `within`.
    x_cf : Tensor of shape (n, *shape)
        The counterfactuals.
    levels : PixelLevels
        The grid.
    within : bool
        Start from the largest c <= 1 whose x' lies in the ball, and leave the ball only where that
        x' is not accepted although x_cf is.

    Returns
    -------
    rounded : Tensor of shape (n, *shape)
        Points of the grid; those of the start where none is accepted.
    missed : Tensor of int
        The tasks for which no c up to `MOST` was enough, in order.
    """
    share = _largest_share(ball, x_cf, levels) if within else torch.ones_like(ball.eps)
    entry = torch.arange(len(tasks), device=tasks.row.device)
    start = broadcast_rows(share, x_cf) * (x_cf - ball.x0)

    def candidate(tasks: Tasks, rung: Tensor) -> Tensor:
        own = ball.take(tasks["entry"])
        c = broadcast_rows(2 ** (rung.to(x_cf) / PARTS), own.x0)
        return levels.nearest(own.x0 + c * start[tasks["entry"]], own)

    tasks = tasks.attach(entry=entry)
    rounded = candidate(tasks, torch.zeros_like(entry))
    missed = (~tasks.accepted(rounded)).nonzero().flatten()
    if within:
        missed = missed[tasks.take(missed).accepted(x_cf[missed])]
    for below, rung in pairwise(RUNGS):
        if len(missed) == 0:
            break
        asking = tasks.take(missed)
        top = torch.full_like(missed, rung)
        reached = asking.accepted(candidate(asking, top))
        rounded[missed[reached]] = smallest_level(
            asking.take(reached),
            candidate,
            top[reached],
            above=torch.full_like(top[reached], below),
            top_accepted=True,
        )[1]
        missed = missed[~reached]
    return rounded, missed


def _largest_share(ball: Ball, x_cf: Tensor, levels: PixelLevels) -> Tensor:
    """Return the largest share of the changes, up to 1, that rounds to a point of the ball."""
    delta = x_cf - ball.x0
    low = torch.zeros_like(ball.eps)
    share = torch.ones_like(ball.eps)
    width = 1.0
    for _ in range(HALVINGS):
        rounded = levels.nearest(ball.x0 + broadcast_rows(share, delta) * delta, ball)
        fits = ball.norm(rounded) <= ball.eps
        low = torch.where(fits, torch.maximum(low, share), low)
        width /= 2
        share = torch.where(fits, share + width, share - width).clamp_max(1.0)
    return low
