"""Positions within groups of equal values."""

from __future__ import annotations

import torch
from torch import Tensor

from .tensors import read_integers


def occurrence(groups: Tensor) -> Tensor:
    """Count, for each entry, how often its value occurs before it.

    Parameters
    ----------
    groups : Tensor of shape (n,)
        Group number of each entry, in any order.

    Returns
    -------
    Tensor of shape (n,)
        0 for the first entry of a group, 1 for the second, and so on.

    Examples
    --------
    >>> occurrence(torch.tensor([4, 7, 4, 4])).tolist()
    [0, 0, 1, 2]
    """
    groups = read_integers(groups, "groups", ("n",))
    ordered, order = groups.sort(stable=True)
    place = torch.arange(len(groups), device=groups.device)
    count = torch.empty_like(groups)
    count[order] = place - torch.searchsorted(ordered, ordered)
    return count
