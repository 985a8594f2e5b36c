"""Windows of random place and length."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def make_windows(
    start: Tensor,
    width: Tensor,
    size: int,
    longest: int,
) -> Tensor:
    """Make windows of log-uniform lengths from uniform random numbers.

    Parameters
    ----------
    start, width : Tensor of shape (n,)
        Numbers in [0, 1), which decide where a window starts and how long it is.
    size : int
        Number of positions.
    longest : int
        Longest window.

    Returns
    -------
    Tensor of bool, shape (n, size)
        True within the windows; all of them lie within the positions, and none is empty.

    Examples
    --------
    >>> start = torch.tensor([0.0, 0.99])
    >>> width = torch.tensor([0.0, 0.99])
    >>> make_windows(start, width, size=4, longest=2).int().tolist()
    [[1, 0, 0, 0], [0, 0, 1, 1]]
    """
    length = torch.exp(width * math.log(longest + 1)).long()
    length = length.clamp(1, longest)
    n_places = size - length + 1
    first = (start * n_places).long()
    end = first + length
    position = torch.arange(size, device=start.device)
    is_after_first = position >= first[:, None]
    is_before_end = position < end[:, None]
    return is_after_first & is_before_end
