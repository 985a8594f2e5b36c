"""Distances of windows of a series to the nearest real window near the same place."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..numerics import ceil_div, quantile_near

#: rows that windows are compared with; evenly spaced ones of more, as the cost grows with rows²
MOST_ROWS = 300

#: squared differences held at once; few enough for the cache, which halves the time
MAX_ELEMENTS = 2**18

#: the limit is at least this share of the norm of a window of deviations, so that ratios are finite
FLOOR = 1e-6


@dataclass(frozen=True)
class RealWindows:
    """Hold real series, and how far their windows lie from those of the other real series.

    The distance of the window of `width` steps at s, all channels together, each in units of its
    deviation:

        D(x, s) = min over rows r and |δ| <= reach of ‖x[s : s + width] − r[s + δ : s + δ + width]‖

    Parameters
    ----------
    rows : Tensor of float64, shape (m, channels, length)
        Real series, divided by `deviation`.
    deviation : Tensor of float64, shape (channels, 1)
        Standard deviation of every channel; 1 where it does not vary.
    limit : Tensor of float64, shape (places,)
        Quantile of D(r, s) over the rows, each compared with the others, and places near.
    width : int
        Steps of a window.
    reach : int
        Places within so many steps count as the same place.
    """

    rows: Tensor
    deviation: Tensor
    limit: Tensor
    width: int
    reach: int

    @classmethod
    def of(cls, X: Tensor, quantile: float = 0.95, reach: int = 3) -> RealWindows:
        """Compute the limits of at least two series, X of shape (m, channels, length)."""
        X = X.double()
        length = X.shape[-1]
        width = min(length, max(3, round(length / 10)))
        deviation = X.std(dim=(0, 2), correction=0)
        deviation = torch.where(deviation > 0, deviation, torch.ones_like(deviation))[:, None]
        step = ceil_div(len(X), MOST_ROWS)
        rows = X[::step] / deviation
        held_out = _nearest(rows, rows, width, reach, leave_out=True)  # (m, places)
        limit = quantile_near(held_out[:, None], quantile, reach)[0]
        floor = FLOOR * (width * len(deviation)) ** 0.5
        return cls(rows, deviation, limit.clamp_min(floor), width, reach)

    def ratios(self, X: Tensor) -> Tensor:
        """Return D(x, s) / limit(s) of every window, shape (n, places)."""
        scaled = X.double() / self.deviation
        distance = _nearest(scaled, self.rows, self.width, self.reach, leave_out=False)
        return distance / self.limit

    def touched(self, changed: Tensor) -> Tensor:
        """Return which windows hold a changed value; (n, channels, length) to (n, places)."""
        windows = changed.any(dim=1).unfold(-1, self.width, 1)
        return windows.any(dim=-1)


def _nearest(x: Tensor, rows: Tensor, width: int, reach: int, leave_out: bool) -> Tensor:
    """Return the distance of every window of x to the nearest of `rows`, shape (n, places).

    With `leave_out`, x are the rows themselves, and none is compared with itself.
    """
    n, channels, length = x.shape
    nearest = x.new_full((n, length - width + 1), torch.inf)
    step = max(1, MAX_ELEMENTS // (len(rows) * channels * length))
    for start in range(0, n, step):
        block = x[start : start + step]
        best = nearest[start : start + step]  # a view
        for shift in range(-reach, reach + 1):
            first = max(0, -shift)
            overlap = length - abs(shift)
            if overlap < width:
                continue
            moved = rows[:, None, :, max(0, shift) :][..., :overlap]
            squares = (moved - block[:, :, first : first + overlap]).square_().sum(dim=2)
            squared = _moving_sum(squares, width)  # (m, block, places)
            if leave_out:
                own = torch.arange(start, start + len(block), device=x.device)
                squared[own, own - start] = torch.inf
            places = slice(first, first + overlap - width + 1)
            best[:, places] = torch.minimum(best[:, places], squared.amin(dim=0))
    # Sums that cancel leave a rest of rounding, which may be negative.
    return nearest.clamp_min_(0).sqrt_()


def _moving_sum(values: Tensor, width: int) -> Tensor:
    """Return the sums of `width` neighbors along the last axis."""
    total = torch.nn.functional.pad(values.cumsum(dim=-1), (1, 0))
    return total[..., width:] - total[..., :-width]
