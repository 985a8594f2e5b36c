"""Patches of a donor in an image, joined so that the border does not show."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

#: eigenvalue of places outside an interval: apart from those inside, which are at most 4
OUTSIDE = 10.0
#: eigenvalues below it belong to the constant function on the whole image
ZERO = 1e-9


@dataclass(frozen=True)
class Intervals:
    """Intervals along one side of images, with the modes of the second difference on each.

    The second difference on an interval, with the values at the two places next to it given, or
    free where the interval ends with the image, is T = Q diag(λ) Qᵀ. The discrete Laplacian on a
    rectangle is T of its rows plus T of its columns, so that these modes solve it for all
    rectangles at once.

    Parameters
    ----------
    start, end : Tensor of int, shape (i,)
        First place of each, and the place after its last.
    vectors : Tensor of float64, shape (i, size, size)
        Q, in the coordinates of the image.
    values : Tensor of float64, shape (i, size)
        λ.
    """

    start: Tensor
    end: Tensor
    vectors: Tensor
    values: Tensor

    @classmethod
    def of(cls, start: Tensor, end: Tensor, size: int) -> Intervals:
        """Compute the modes of intervals [start, end) along a side of `size` pixels."""
        place = torch.arange(size, device=start.device)
        inside = (place >= start[:, None]) & (place < end[:, None])
        at_border = (place == 0).long() + (place == size - 1).long()
        diagonal = torch.where(inside, 2.0 - at_border, OUTSIDE).double()
        linked = (inside[:, 1:] & inside[:, :-1]).double()
        second = torch.diag_embed(diagonal)
        second -= torch.diag_embed(linked, 1) + torch.diag_embed(linked, -1)
        values, vectors = torch.linalg.eigh(second)
        return cls(start, end, vectors, values)

    @classmethod
    def between(cls, edges: Tensor) -> Intervals:
        """Make all intervals between two points of a grid that starts at 0."""
        first, last = torch.triu_indices(len(edges), len(edges), offset=1, device=edges.device)
        return cls.of(edges[first], edges[last], int(edges[-1]))

    def __len__(self) -> int:
        return len(self.start)

    @property
    def size(self) -> int:
        """Pixels along this side of the images."""
        return self.values.shape[1]

    def take(self, which: Tensor) -> Intervals:
        """Return some of the intervals."""
        return Intervals(*(values[which] for values in vars(self).values()))

    def holds(self) -> Tensor:
        """Return the mask of the places inside, (i, size)."""
        place = torch.arange(self.size, device=self.start.device)
        return (place >= self.start[:, None]) & (place < self.end[:, None])


def inside(rows: Intervals, columns: Intervals) -> Tensor:
    """Return the mask of the pixels of patches, (m, 1, height, width)."""
    return (rows.holds()[:, :, None] & columns.holds()[:, None, :])[:, None]


def harmonic_join(x: Tensor, donor: Tensor, rows: Intervals, columns: Intervals) -> Tensor:
    """Join patches as gradient-domain cloning does: the donor's differences, the image's level.

        x' = d + h inside,   Σ_q (h_p − h_q) = 0 for every pixel p inside,
        h = x − d on the pixels next to the patch

    q are the neighbors of p (up, down, left, right) within the image. At the border of the image
    there is nothing to be matched; a patch that covers all of it is the donor.

    Parameters
    ----------
    x : Tensor of shape (m, channels, height, width)
        The images.
    donor : Tensor of shape (m, channels, height, width)
        Where the patches come from.
    rows, columns : Intervals
        The patch of each, m entries.

    Returns
    -------
    Tensor of float64, shape (m, channels, height, width)
        The images with their patches.

    Examples
    --------
    A donor that differs by a constant is lifted to the level of the image:

    >>> x = torch.rand(1, 1, 6, 6, dtype=torch.float64)
    >>> patch = Intervals.of(torch.tensor([1]), torch.tensor([4]), 6)
    >>> bool(torch.allclose(harmonic_join(x, x + 3, patch, patch), x))
    True
    """
    x = x.double()
    donor = donor.double()
    mask = inside(rows, columns)
    gap = x - donor
    given = torch.where(mask, 0.0, gap)
    right_side = torch.where(mask, _sum_of_neighbors(given), 0.0)
    Q_rows = rows.vectors[:, None]
    Q_columns = columns.vectors[:, None]
    total = rows.values[:, :, None] + columns.values[:, None, :]
    total = torch.where(total > ZERO, total, torch.inf)[:, None]
    modes = Q_rows.mT @ right_side @ Q_columns
    h = Q_rows @ (modes / total) @ Q_columns.mT
    return torch.where(mask, donor + h, x)


def _sum_of_neighbors(values: Tensor) -> Tensor:
    """Add up the pixels above, below, to the left and to the right of each."""
    padded = torch.nn.functional.pad(values, (1, 1, 1, 1))
    vertical = padded[..., :-2, 1:-1] + padded[..., 2:, 1:-1]
    horizontal = padded[..., 1:-1, :-2] + padded[..., 1:-1, 2:]
    return vertical + horizontal
