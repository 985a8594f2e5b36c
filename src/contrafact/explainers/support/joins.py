"""Join a stretch of one series into another so that the seam does not show.

A window [s, e) of a donor d is grafted into x in one of two ways:

    tilted:  x'_t = d_t + the straight line through x − d at s − 1 and at e
    faded:   x'_t = x_t + w_t (d_t − x_t),  w rising from 0 to 1 within a few steps of each end

A tilted graft keeps the donor's slopes (gradient-domain cloning in one dimension), a faded one its
level. At an end of the series there is nothing to join.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ...numerics.differences import RealDifferences

#: lengths of the ramp of a faded graft, in steps; the shortest that does not show is used
RAMPS = (0, 1, 2, 4)
#: no ramp is long enough
NO_RAMP = -1


@dataclass(frozen=True)
class Graft1D:
    """Grafts to be made, one per entry.

    Parameters
    ----------
    start, end : Tensor of int, shape (m,)
        The window [start, end).
    tilted : Tensor of bool, shape (m,)
        How it is joined.
    ramp_in, ramp_out : Tensor of int, shape (m,)
        Steps of the ramps at its two ends, where it is faded.
    channels : Tensor of bool, shape (m, channels)
        Channels that it changes.
    """

    start: Tensor
    end: Tensor
    tilted: Tensor
    ramp_in: Tensor
    ramp_out: Tensor
    channels: Tensor

    def take(self, which: Tensor) -> Graft1D:
        """Return some of the grafts."""
        chosen = {name: values[which] for name, values in vars(self).items()}
        return replace(self, **chosen)

    def window(self, length: int) -> Tensor:
        """Return the mask of the values that are replaced, (m, channels, length)."""
        time = torch.arange(length, device=self.start.device)
        inside = (time >= self.start[:, None]) & (time < self.end[:, None])
        return inside[:, None] & self.channels[:, :, None]


def make_grafts(x: Tensor, donor: Tensor, grafts: Graft1D) -> Tensor:
    """Graft a window of each donor into each series.

    Parameters
    ----------
    x, donor : Tensor of shape (m, channels, length)
        The series, and where the windows come from.
    grafts : Graft1D
        Where and how.

    Returns
    -------
    Tensor of shape (m, channels, length)
        The series with the windows grafted in.
    """
    tilted = donor + _tilt(x - donor, grafts)
    faded = torch.lerp(x, donor, _fade(x, grafts)[:, None])
    joined = torch.where(grafts.tilted[:, None, None], tilted, faded)
    return torch.where(grafts.window(x.shape[-1]), joined, x)


def _tilt(gap: Tensor, grafts: Graft1D) -> Tensor:
    """Return the line through the gap x − d just outside the window; level where one end is free.

    Where both ends are free the donor is taken as it is.
    """
    length = gap.shape[-1]
    left = _column(gap, grafts.start - 1)
    right = _column(gap, grafts.end)
    at_start = (grafts.start == 0)[:, None, None]
    at_end = (grafts.end == length)[:, None, None]
    outer_left = torch.where(at_start, torch.where(at_end, 0.0, right), left)
    outer_right = torch.where(at_end, torch.where(at_start, 0.0, left), right)
    time = torch.arange(length, device=gap.device)
    share = (time - grafts.start[:, None] + 1) / (grafts.end - grafts.start + 1)[:, None]
    return torch.lerp(outer_left, outer_right, share[:, None].to(gap))


def _fade(x: Tensor, grafts: Graft1D) -> Tensor:
    """Return the weights w, (m, length); outside the window they have no meaning."""
    length = x.shape[-1]
    time = torch.arange(length, device=x.device)
    rise = (time - grafts.start[:, None] + 1) / (grafts.ramp_in[:, None] + 1)
    fall = (grafts.end[:, None] - time) / (grafts.ramp_out[:, None] + 1)
    rise = torch.where((grafts.start == 0)[:, None], 1.0, rise)
    fall = torch.where((grafts.end == length)[:, None], 1.0, fall)
    return smooth_step(torch.minimum(rise, fall)).to(x)


def smooth_step(share: Tensor) -> Tensor:
    """Rise from 0 to 1 with slope 0 at both ends: 3s² − 2s³."""
    share = share.clamp(0, 1)
    return share * share * (3 - 2 * share)


def _column(values: Tensor, time: Tensor) -> Tensor:
    """Return the values of every entry at its own time, (m, channels, 1)."""
    index = time.clamp(0, values.shape[-1] - 1)[:, None, None]
    return values.gather(2, index.expand(-1, values.shape[1], 1))


# --- which joins do not show ---------------------------------------------------------------------


def shortest_ramps(
    x: Tensor,
    donor: Tensor,
    edges: Tensor,
    limits: RealDifferences,
) -> Tensor:
    """Find the shortest ramp that fades x into a donor without a jump or kink.

    Parameters
    ----------
    x : Tensor of shape (n, 1, channels, length)
        The series.
    donor : Tensor of shape (n, donors, channels, length)
        The donors of each.
    edges : Tensor of int, shape (g,)
        Where a window may start.
    limits : RealDifferences
        What real series do.

    Returns
    -------
    Tensor of int, shape (n, donors, channels, g)
        One of RAMPS; NO_RAMP where none will do. 0 at the start of the series.
    """
    length = x.shape[-1]
    best = torch.full(
        (*donor.shape[:3], len(edges)),
        NO_RAMP,
        device=x.device,
    )
    for ramp in reversed(RAMPS):
        hidden = _ramp_is_hidden(x, donor, edges, ramp, limits)
        fits = edges + ramp <= length - 2
        best = torch.where(hidden & fits, ramp, best)
    return torch.where(edges == 0, 0, best)


def _ramp_is_hidden(
    x: Tensor,
    donor: Tensor,
    edges: Tensor,
    ramp: int,
    limits: RealDifferences,
) -> Tensor:
    """Return whether x, then the ramp, then the donor has no jump or kink, (n, D, C, g)."""
    length = x.shape[-1]

    def values(offset: int) -> Tensor:
        """Return the joined series at `offset` steps after the edges."""
        time = (edges + offset).clamp(0, length - 1)
        share = torch.tensor((offset + 1) / (ramp + 1)) if offset >= 0 else torch.tensor(0.0)
        return torch.lerp(x[..., time], donor[..., time], smooth_step(share).to(x))

    points = [values(offset) for offset in range(-2, ramp + 2)]
    hidden = torch.ones((*donor.shape[:3], len(edges)), dtype=torch.bool, device=x.device)
    step = (points[2] - points[1]).abs()
    hidden &= step <= limits.first[:, (edges - 1).clamp(0, length - 2)]
    for j in range(len(points) - 2):
        curvature = (points[j + 2] - 2 * points[j + 1] + points[j]).abs()
        place = edges + j - 2
        known = (place >= 0) & (place <= length - 3)
        limit = limits.second[:, place.clamp(0, length - 3)]
        hidden &= (curvature <= limit) | ~known
    return hidden


def tilts_are_hidden(
    x: Tensor,
    donor: Tensor,
    start: Tensor,
    end: Tensor,
    limits: RealDifferences,
) -> Tensor:
    """Tell which windows of which donors can be joined by a tilt without a jump or kink.

    Parameters
    ----------
    x : Tensor of shape (n, 1, channels, length)
        The series.
    donor : Tensor of shape (n, donors, channels, length)
        The donors of each.
    start, end : Tensor of int, shape (w,)
        The windows.
    limits : RealDifferences
        What real series do.

    Returns
    -------
    Tensor of bool, shape (n, donors, channels, w)
        Whether the join does not show.
    """
    length = x.shape[-1]
    slope = tilt_slopes(x - donor, start, end)
    hidden = torch.ones_like(slope, dtype=torch.bool)
    inner_start = start.clamp(min=1)
    step = (donor[..., inner_start] - donor[..., inner_start - 1]) + slope
    hidden &= (step.abs() <= limits.first[:, inner_start - 1]) | (start == 0)
    before = start.clamp(min=2)
    curvature = step - (x[..., before - 1] - x[..., before - 2])
    hidden &= (curvature.abs() <= limits.second[:, before - 2]) | (start < 2)

    inner_end = end.clamp(max=length - 1)
    step = (donor[..., inner_end] - donor[..., inner_end - 1]) + slope
    hidden &= (step.abs() <= limits.first[:, inner_end - 1]) | (end == length)
    after = end.clamp(max=length - 2)
    curvature = (x[..., after + 1] - x[..., after]) - step
    hidden &= (curvature.abs() <= limits.second[:, after - 1]) | (end > length - 2)

    # the bends next to the edges, within the window, are the donor's own
    bend_is_real = donor.diff(n=2).abs() <= limits.second
    after_start = bend_is_real[..., (start - 1).clamp(0, length - 3)]
    hidden &= after_start | (start == 0) | (start > length - 2)
    before_end = bend_is_real[..., (end - 2).clamp(0, length - 3)]
    hidden &= before_end | (end == length) | (end < 2)
    return hidden


def tilt_slopes(gap: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """Return the slope of the line of a tilted graft; 0 for a window at the border.

    Parameters
    ----------
    gap : Tensor of shape (..., length)
        x − d.
    start, end : Tensor of int, shape (w,)
        The windows.

    Returns
    -------
    Tensor of shape (..., w)
        Slope per step.
    """
    length = gap.shape[-1]
    left = gap[..., (start - 1).clamp(min=0)]
    right = gap[..., end.clamp(max=length - 1)]
    inner = (start > 0) & (end < length)
    return torch.where(inner, (right - left) / (end - start + 1), 0.0)
