"""Donors moved in time: series that show the same event do not show it at the same time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ...numerics import ceil_div

if TYPE_CHECKING:
    from .grafting import Grafted

#: share of the length by which donors are also moved, with at most so many channels
SHIFT, MOST_SHIFTED_CHANNELS = 1 / 12, 2


@dataclass(frozen=True)
class DonorShifts:
    """Donors, and the nearest of them again a little earlier and later.

    Parameters
    ----------
    donor : Tensor of int, shape (s,)
        Which of the donors each is.
    shift : Tensor of int, shape (s,)
        Steps by which it is moved to the right.
    """

    donor: Tensor
    shift: Tensor

    def apply(self, values: Tensor) -> Tensor:
        """Move series (n, donors, channels, length) in time; their ends are repeated."""
        length = values.shape[-1]
        time = torch.arange(length, device=values.device)
        source = (time - self.shift[:, None]).clamp(0, length - 1)  # (s, length)
        index = source[None, :, None, :].expand(len(values), -1, values.shape[2], -1)
        return values[:, self.donor].gather(3, index)

    def name_donors(self, grafted: Grafted) -> Grafted:
        """Name the donors that grafts come from, and their shift."""
        shift = torch.where(grafted.donor >= 0, self.shift[grafted.donor], 0)
        return replace(
            grafted,
            donor=torch.where(grafted.donor >= 0, self.donor[grafted.donor], -1),
            second_donor=torch.where(
                grafted.second_donor >= 0, self.donor[grafted.second_donor], -1
            ),
            shift=shift,
        )


def donor_shifts(n_donors: int, shape: tuple[int, ...]) -> DonorShifts:
    """Choose the shifts: series that show the same event do not show it at the same time.

    Parameters
    ----------
    n_donors : int
        Number of donors, the nearest first.
    shape : tuple of int
        Channels and length of a series.

    Returns
    -------
    DonorShifts
        All donors as they are, then, where few channels leave room, two thirds of them earlier and
        later.
    """
    channels, length = shape
    step = round(SHIFT * length)
    everything = torch.arange(n_donors)
    nearest = everything[: ceil_div(2 * n_donors, 3)]
    if channels > MOST_SHIFTED_CHANNELS or step == 0:
        nearest = nearest[:0]
    donor = torch.cat([everything, nearest, nearest])
    unmoved = torch.zeros_like(everything)
    moved = torch.full_like(nearest, step)
    return DonorShifts(donor, torch.cat([unmoved, -moved, moved]))
