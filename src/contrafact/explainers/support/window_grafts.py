"""All grafts that come into question for some series: windows × donors × channels × joins."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...numerics.differences import RealDifferences
from .joins import (
    NO_RAMP,
    Graft1D,
    make_grafts,
    shortest_ramps,
    tilt_slopes,
    tilts_are_hidden,
)

#: a window is at least this long: one changed value is a spike, not a stretch
SHORTEST_WINDOW = 2
#: shorter series have no bends to compare with; they are replaced as a whole
SHORTEST_SERIES = 3
#: tilted and faded
N_JOINS = 2
#: parts of a window that are tried, from and to which share of it
PARTS = (
    (0.0, 0.5),
    (0.5, 1.0),
    (0.25, 0.75),
    (0.0, 0.75),
    (0.25, 1.0),
    (0.0, 0.875),
    (0.125, 1.0),
)
#: what an answer about a window says about the same window joined otherwise, of another donor, or
#: in other channels
SAME_DONOR = 0.7
OTHER_DONOR = 0.5
OTHER_CHANNELS = 0.3


@dataclass(frozen=True)
class WindowGrid:
    """Windows between the points of a grid.

    Parameters
    ----------
    edges : Tensor of int, shape (g,)
        The grid, from 0 to the length of the series.
    first, last : Tensor of int, shape (w,)
        Each window's place in `edges` of its start and its end.
    """

    edges: Tensor
    first: Tensor
    last: Tensor

    @classmethod
    def of(cls, length: int, n_cells: int) -> WindowGrid:
        """Make the windows of a grid with about `n_cells` cells."""
        n_edges = min(length, n_cells) + 1
        edges = torch.linspace(0, length, n_edges).round().long()
        first, last = torch.triu_indices(n_edges, n_edges, offset=1)
        shortest = length if length < SHORTEST_SERIES else SHORTEST_WINDOW
        long_enough = edges[last] - edges[first] >= shortest
        return cls(edges, first[long_enough], last[long_enough])

    @property
    def whole(self) -> int:
        """Number of the window that covers the whole series."""
        return int((self.end - self.start).argmax())

    @property
    def start(self) -> Tensor:
        """First step of each window, (w,)."""
        return self.edges[self.first]

    @property
    def end(self) -> Tensor:
        """Step after the last of each window, (w,)."""
        return self.edges[self.last]

    def parts(self, which: Tensor) -> Tensor:
        """Return the windows that are halves, three quarters and the middle of others.

        Parameters
        ----------
        which : Tensor of int, shape (m,)
            The windows.

        Returns
        -------
        Tensor of int, shape (m, 7)
            Their parts; a window itself where a part is none of the windows.
        """
        first = self.first[which][:, None]
        last = self.last[which][:, None]
        shares = torch.tensor(PARTS, device=which.device)
        cells = last - first
        start = first + (shares[:, 0] * cells).round().long()
        end = first + (shares[:, 1] * cells).round().long()
        n_edges = len(self.edges)
        number = torch.full((n_edges, n_edges), -1, device=which.device)
        number[self.first, self.last] = torch.arange(len(self.first), device=which.device)
        part = number[start, end]
        return torch.where(part >= 0, part, which[:, None])

    def similarity(self, which: Tensor) -> Tensor:
        """Return shared steps over all steps of two windows, for each `which` and every window."""
        start = self.start
        end = self.end
        shared_start = torch.maximum(start[which][..., None], start)
        shared_end = torch.minimum(end[which][..., None], end)
        shared = (shared_end - shared_start).clamp(min=0)
        span = (end - start)[which][..., None] + (end - start) - shared
        return shared / span


@dataclass(frozen=True)
class WindowGrafts:
    """The grafts of some series: v variants (donor, channels, join) of w windows each.

    Parameters
    ----------
    grid : WindowGrid
        The windows.
    donor : Tensor of shape (n, donors, channels, length)
        The donors of each series.
    subsets : Tensor of bool, shape (subsets, channels)
        Sets of channels that are changed together.
    ramp_in, ramp_out : Tensor of int, shape (n, donors, channels, g)
        Shortest ramps that hide a faded start or end at each point of the grid.
    hidden : Tensor of bool, shape (n, v, w)
        Whether the joins do not show.
    """

    grid: WindowGrid
    donor: Tensor
    subsets: Tensor
    ramp_in: Tensor
    ramp_out: Tensor
    hidden: Tensor

    @classmethod
    def of(
        cls,
        x: Tensor,
        donor: Tensor,
        grid: WindowGrid,
        subsets: Tensor,
        limits: RealDifferences,
    ) -> WindowGrafts:
        """Find the grafts of each series whose joins do not show.

        Parameters
        ----------
        x : Tensor of shape (n, channels, length)
            The series.
        donor : Tensor of shape (n, donors, channels, length)
            The donors of each.
        grid : WindowGrid
            The windows.
        subsets : Tensor of bool, shape (subsets, channels)
            Sets of channels that are changed together.
        limits : RealDifferences
            What real series do.

        Returns
        -------
        WindowGrafts
            All of them, with a mask of those that do not show.
        """
        series = x[:, None]
        if x.shape[-1] < SHORTEST_SERIES:
            n_variants = donor.shape[1] * len(subsets) * N_JOINS
            no_ramp = torch.zeros_like(donor[..., :1], dtype=torch.long)
            no_ramp = no_ramp.expand(-1, -1, -1, len(grid.edges))
            whole = torch.ones_like(x[:, 0, :1], dtype=torch.bool)
            whole = whole[:, :, None].repeat(1, n_variants, len(grid.first))
            return cls(grid, donor, subsets, no_ramp, no_ramp, whole)
        ramp_in = shortest_ramps(series, donor, grid.edges, limits)
        backward = RealDifferences(limits.first.flip(-1), limits.second.flip(-1))
        ramp_out = shortest_ramps(
            series.flip(-1),
            donor.flip(-1),
            (x.shape[-1] - grid.edges).flip(0),
            backward,
        ).flip(-1)
        tilted = tilts_are_hidden(series, donor, grid.start, grid.end, limits)
        rise = ramp_in[..., grid.first]
        fall = ramp_out[..., grid.last]
        room = grid.end - grid.start
        faded = (rise != NO_RAMP) & (fall != NO_RAMP) & (rise + fall <= room)
        by_channel = torch.stack([tilted, faded], dim=2)  # (n, donors, joins, channels, w)
        visible = torch.einsum("ndjcw,sc->ndsjw", (~by_channel).float(), subsets.float())
        hidden = (visible == 0).flatten(1, 3)
        return cls(grid, donor, subsets, ramp_in, ramp_out, hidden)

    def similarity(self, cut: Tensor) -> Tensor:
        """Return shared steps over all steps of two windows, for each of `cut` and all w."""
        return self.grid.similarity(cut)

    def kinship(self) -> Tensor:
        """Return how much an answer about one variant says about another, (v, v)."""
        variant = torch.arange(self.hidden.shape[1], device=self.hidden.device)
        donor, subset, _ = self.split_variant(variant)
        kinship = torch.where(donor[:, None] == donor, SAME_DONOR, OTHER_DONOR)
        kinship = kinship * torch.where(subset[:, None] == subset, 1.0, OTHER_CHANNELS)
        return kinship.fill_diagonal_(1.0)

    def split_variant(self, variant: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return donor, set of channels and whether it is tilted, of variants."""
        tilted = variant % N_JOINS == 0
        subset = variant // N_JOINS % len(self.subsets)
        donor = variant // (N_JOINS * len(self.subsets))
        return donor, subset, tilted

    def describe(self, series: Tensor, variant: Tensor, window: Tensor) -> Graft1D:
        """Return how grafts are made, given by series, variant and window, (m,) each."""
        donor, subset, tilted = self.split_variant(variant)
        channels = self.subsets[subset]
        rise = self.ramp_in[series, donor, :, self.grid.first[window]]
        fall = self.ramp_out[series, donor, :, self.grid.last[window]]
        return Graft1D(
            self.grid.start[window],
            self.grid.end[window],
            tilted,
            (rise * channels).amax(1),
            (fall * channels).amax(1),
            channels,
        )

    def make(self, x: Tensor, series: Tensor, variant: Tensor, window: Tensor) -> Tensor:
        """Make grafts, given by series, variant and window, (m,) each; x (n, channels, length)."""
        donor, _, _ = self.split_variant(variant)
        grafts = self.describe(series, variant, window)
        return make_grafts(x[series], self.donor[series, donor].to(x), grafts)

    def sizes(self) -> Tensor:
        """Return the share of values that each variant of each window changes, (v, w)."""
        length = self.donor.shape[-1]
        steps = (self.grid.end - self.grid.start) / length
        share = self.subsets.double().mean(1).repeat_interleave(N_JOINS)
        return (share[:, None] * steps).repeat(self.donor.shape[1], 1)

    def gains(self, x: Tensor, slope: Tensor) -> Tensor:
        """Predict to first order what each graft adds to the lead of the target.

            Σ_t slope_t · (x'_t − x_t)

        Ramps are not taken into account.

        Parameters
        ----------
        x : Tensor of shape (n, channels, length)
            The series.
        slope : Tensor of shape (n, donors, channels, length)
            Derivative of the lead with respect to each value, on the way to each donor.

        Returns
        -------
        Tensor of shape (n, v, w)
            The gains.
        """
        gap = x[:, None] - self.donor
        start = self.grid.start
        end = self.grid.end
        length = gap.shape[-1]
        faded = -_window_sums(slope * gap, start, end)
        tilt = tilt_slopes(gap, start, end)
        left = gap[..., (start - 1).clamp(min=0)]
        right = gap[..., end.clamp(max=length - 1)]
        level = torch.where(start > 0, left, torch.where(end < length, right, 0.0))
        time = torch.arange(1, length + 1, device=x.device)
        total = _window_sums(slope, start, end)
        moment = _window_sums(slope * time, start, end) - start * total
        tilted = faded + level * total + tilt * moment
        by_channel = torch.stack([tilted, faded], dim=2)
        gains = torch.einsum("ndjcw,sc->ndsjw", by_channel, self.subsets.to(by_channel))
        return gains.flatten(1, 3)


def _window_sums(values: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """Return the sums of values (..., length) over windows, (..., w)."""
    running = torch.nn.functional.pad(values.cumsum(-1), (1, 0))
    return running[..., end] - running[..., start]
