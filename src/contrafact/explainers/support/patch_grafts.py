"""All grafts that come into question for some images: rectangles × donors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .patch_joins import Intervals, harmonic_join

#: a cell of the grid is at least this wide: one changed pixel is a speck, not a patch
SMALLEST_CELL = 2
#: what an answer about a patch of one donor says about that of another
OTHER_DONOR = 0.5
#: changes below this share of the value range cannot be seen: half a step of 256 gray levels
INVISIBLE = 1 / 512
#: a misfit above it shows as a smudge, or as a stroke that ends at the border of the patch
LARGEST_MISFIT = 0.3
#: share of the grafts of an image that are kept at least, those of the smallest misfit
LEAST_KEPT = 0.01
#: numbers that joins are computed with at once
MAX_ELEMENTS = 2**23


@dataclass(frozen=True)
class PatchGrafts:
    """The grafts of some images: v donors, the variants, of w rectangles each.

    Rectangle r · len(columns) + c spans the rows of interval r and the columns of interval c.

    Parameters
    ----------
    rows, columns : Intervals
        The intervals that rectangles are made of.
    donor : Tensor of shape (n, v, channels, height, width)
        The donors of each image.
    low, high : Tensor that broadcasts against one image
        Range of the values.
    hidden : Tensor of bool, shape (n, v, w)
        Whether the joins do not show.
    """

    rows: Intervals
    columns: Intervals
    donor: Tensor
    low: Tensor
    high: Tensor
    hidden: Tensor

    def split_cut(self, cut: Tensor) -> tuple[Tensor, Tensor]:
        """Return the intervals of rows and of columns of rectangles."""
        return cut // len(self.columns), cut % len(self.columns)

    def sizes(self) -> Tensor:
        """Return the share of values that each variant of each rectangle changes, (v, w)."""
        share = _areas(self.rows, self.columns) / (self.rows.size * self.columns.size)
        return share.expand(self.hidden.shape[1:])

    def similarity(self, cut: Tensor) -> Tensor:
        """Return shared pixels over all pixels of two rectangles, for each of `cut` and all w."""
        row, column = self.split_cut(cut)
        shared_rows = _shared_lengths(self.rows)[row]
        shared_columns = _shared_lengths(self.columns)[column]
        shared = (shared_rows[..., :, None] * shared_columns[..., None, :]).flatten(-2)
        area = _areas(self.rows, self.columns)
        return shared / (area[cut][..., None] + area - shared)

    def kinship(self) -> Tensor:
        """Return how much an answer about one variant says about another, (v, v)."""
        n_donors = self.hidden.shape[1]
        kinship = torch.full((n_donors, n_donors), OTHER_DONOR, device=self.hidden.device)
        return kinship.fill_diagonal_(1.0)

    def make(self, x: Tensor, task: Tensor, variant: Tensor, cut: Tensor) -> Tensor:
        """Make grafts, given by task, variant and rectangle.

        Parameters
        ----------
        x : Tensor of shape (n, channels, height, width)
            The images.
        task, variant, cut : Tensor of int, shape (m,)
            Image, donor and rectangle of each.

        Returns
        -------
        Tensor of shape (m, channels, height, width)
            The images with their patches; changes that cannot be seen are left out.
        """
        needed = x[0].numel() + self.rows.size**2 + self.columns.size**2
        at_once = max(1, MAX_ELEMENTS // needed)
        made = torch.empty_like(x[task])
        for part in torch.arange(len(task), device=x.device).split(at_once):
            made[part] = self._make(x[task[part]], self.donor[task[part], variant[part]], cut[part])
        return made

    def _make(self, x: Tensor, donor: Tensor, cut: Tensor) -> Tensor:
        """Make one graft in every x, few enough to fit into memory."""
        row, column = self.split_cut(cut)
        joined = harmonic_join(x, donor, self.rows.take(row), self.columns.take(column))
        joined = torch.clamp(joined, self.low.to(joined), self.high.to(joined))
        visible = (joined - x).abs() > INVISIBLE * (self.high - self.low)
        return torch.where(visible, joined.to(x), x)

    def gains(self, x: Tensor, slope: Tensor) -> Tensor:
        """Predict to first order what each graft adds to the lead of the target.

            Σ_p slope_p · (d_p + h − x_p),   h the mean of x − d over the pixels around

        That is exact where x − d is constant around the patch.

        Parameters
        ----------
        x : Tensor of shape (n, channels, height, width)
            The images.
        slope : Tensor of shape (n, v, channels, height, width)
            Derivative of the lead with respect to each pixel, on the way to each donor.

        Returns
        -------
        Tensor of shape (n, v, w)
            The gains.
        """
        gap = (x[:, None] - self.donor).to(slope)
        h = _mean_around(gap, self.rows, self.columns)
        pasted = -_sums(slope * gap, self.rows, self.columns)
        lifted = h * _sums(slope, self.rows, self.columns)
        return (pasted + lifted).sum(2)


def patch_grafts(
    x: Tensor,
    donor: Tensor,
    n_cells: int,
    value_range: tuple[Tensor, Tensor],
) -> PatchGrafts:
    """Find the grafts of some images whose joins do not show.

    A graft is hidden where its misfit is at most 0.3, or among the smallest 1 % of its image.

    Parameters
    ----------
    x : Tensor of shape (n, channels, height, width)
        The images.
    donor : Tensor of shape (n, donors, channels, height, width)
        The donors of each.
    n_cells : int
        Cells of the grid along each side; fewer where these would be narrower than two pixels.
    value_range : tuple of two Tensors that broadcast against one image
        Smallest and largest value of the reference images.

    Returns
    -------
    PatchGrafts
        All of them, with a mask of those that do not show.
    """
    rows = Intervals.between(_edges(x.shape[-2], n_cells, x.device))
    columns = Intervals.between(_edges(x.shape[-1], n_cells, x.device))
    low, high = value_range
    least_change = INVISIBLE * float((high - low).max())
    misfit = misfits(x, donor, rows, columns, least_change)
    return PatchGrafts(rows, columns, donor, low, high, _fitting(misfit))


def misfits(
    x: Tensor,
    donor: Tensor,
    rows: Intervals,
    columns: Intervals,
    least_change: float = 0.0,
) -> Tensor:
    """Compare how unevenly a donor differs around a patch with how much it changes inside.

    With g = x − d, and h its mean over the pixels next to the patch:

        misfit² = mean of (g − h)² around / mean of (g − h)² inside

    Differences by a constant cost nothing: a seamless join takes them up. What is left has to be
    bridged inside the patch, which shows the more, the larger it is beside the change itself.

    Parameters
    ----------
    x : Tensor of shape (n, channels, height, width)
        The images.
    donor : Tensor of shape (n, donors, channels, height, width)
        The donors of each.
    rows, columns : Intervals
        The intervals that rectangles are made of.
    least_change : float, default=0.0
        Root of the mean inside up to which nothing is changed.

    Returns
    -------
    Tensor of shape (n, donors, w)
        The misfits; 0 for the whole image, infinite where nothing is changed.
    """
    gap = x[:, None] - donor
    h = _mean_around(gap, rows, columns)
    around = _mean_around(gap.square(), rows, columns) - h.square()
    around = around.clamp(min=0).mean(2)
    area = _areas(rows, columns).to(gap)
    mean = _sums(gap, rows, columns) / area
    mean_square = _sums(gap.square(), rows, columns) / area
    inside = (mean_square - 2 * h * mean + h.square()).mean(2)
    changes = inside > max(least_change, torch.finfo(gap.dtype).eps) ** 2
    return torch.where(changes, (around / inside).sqrt(), torch.inf)


def _fitting(misfit: Tensor) -> Tensor:
    """Return the mask of the grafts that fit well enough, of misfits (n, v, w)."""
    of_image = misfit.flatten(1)
    n_kept = max(1, round(LEAST_KEPT * of_image.shape[1]))
    least_kept = of_image.kthvalue(n_kept, dim=1).values
    limit = least_kept.clamp(min=LARGEST_MISFIT)
    return misfit.isfinite() & (misfit <= limit[:, None, None])


# --- rectangles ----------------------------------------------------------------------------------


def _edges(size: int, n_cells: int, device: torch.device) -> Tensor:
    """Return the points of a grid along a side of `size` pixels."""
    n_edges = max(1, min(n_cells, size // SMALLEST_CELL)) + 1
    return torch.linspace(0, size, n_edges, device=device).round().long()


def _areas(rows: Intervals, columns: Intervals) -> Tensor:
    """Return the number of pixels of each rectangle, (w,)."""
    return torch.outer(rows.end - rows.start, columns.end - columns.start).flatten().double()


def _shared_lengths(intervals: Intervals) -> Tensor:
    """Return how many places each two intervals share, (i, i)."""
    start = torch.maximum(intervals.start[:, None], intervals.start)
    end = torch.minimum(intervals.end[:, None], intervals.end)
    return (end - start).clamp(min=0).double()


def _sums(values: Tensor, rows: Intervals, columns: Intervals) -> Tensor:
    """Sum values (..., height, width) over rectangles, (..., w)."""
    return _rectangle_sums(values, (rows.start, rows.end), (columns.start, columns.end))


def _rectangle_sums(
    values: Tensor,
    rows: tuple[Tensor, Tensor],
    columns: tuple[Tensor, Tensor],
) -> Tensor:
    """Sum values (..., height, width) from start to end of rows × columns, (..., w)."""
    integral = torch.nn.functional.pad(values.cumsum(-1).cumsum(-2), (1, 0, 1, 0))
    over_rows = integral[..., rows[1], :] - integral[..., rows[0], :]
    sums = over_rows[..., columns[1]] - over_rows[..., columns[0]]
    return sums.flatten(-2)


def _mean_around(values: Tensor, rows: Intervals, columns: Intervals) -> Tensor:
    """Return the mean of values (..., height, width) over the pixels next to rectangles, (..., w).

    0 for the rectangle that covers the whole image.
    """
    tall = (rows.start, rows.end)
    wide = (columns.start, columns.end)
    above, below = _beside(rows)
    left, right = _beside(columns)
    strips = [(above, wide), (below, wide), (tall, left), (tall, right)]
    ones = torch.ones_like(values[(0,) * (values.ndim - 2)])
    total = torch.stack([_rectangle_sums(values, *strip) for strip in strips]).sum(0)
    count = torch.stack([_rectangle_sums(ones, *strip) for strip in strips]).sum(0)
    return total / count.clamp(min=1)


def _beside(intervals: Intervals) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return the place before each interval and the one after it, empty outside the image."""
    before = ((intervals.start - 1).clamp(min=0), intervals.start)
    after = (intervals.end, (intervals.end + 1).clamp(max=intervals.size))
    return before, after
