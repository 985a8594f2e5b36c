"""Averages of two series along their dynamic time warping path."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ...models.classifier import Array


def warping_paths(x: Array, n: Array) -> Array:
    """Compute optimal paths of dynamic time warping.

    Parameters
    ----------
    x, n : array of float64, shape (m, channels, length)
        Pairs of series.

    Returns
    -------
    array of int, shape (m, 2 * length - 1, 2)
        Pairs (i, j) of time steps; the last pair is repeated to fill up.
    """
    from aeon.distances import dtw_alignment_path

    length = x.shape[-1]
    paths = np.full((len(x), 2 * length - 1, 2), length - 1)
    for path, series, other in zip(paths, x, n, strict=True):
        pairs = dtw_alignment_path(series, other)[0]
        path[: len(pairs)] = pairs
    return paths


def barycenter(
    x: Tensor,
    n: Tensor,
    path: Tensor,
    beta: Tensor,
) -> Tensor:
    """Average x and n along their warping paths, and read the curve off at whole time steps.

    Parameters
    ----------
    x, n : Tensor of shape (m, channels, length)
        Pairs of series.
    path : Tensor of int, shape (m, steps, 2)
        Their warping paths.
    beta : Tensor of shape (m,)
        Weight of n; 0 gives x, 1 gives n.

    Returns
    -------
    Tensor of shape (m, channels, length)
        The averages.
    """
    channels, length = x.shape[1:]
    i, j = path.unbind(2)
    time = torch.lerp(i.to(x), j.to(x), beta[:, None]).contiguous()
    grid = torch.arange(length, device=x.device).to(x).expand(len(x), -1).contiguous()
    right = torch.searchsorted(time, grid, right=True).clamp(1, time.shape[1] - 1)
    left = right - 1
    time_left = time.gather(1, left)
    time_right = time.gather(1, right)
    gap = (time_right - time_left).clamp_min(torch.finfo(x.dtype).tiny)
    share = ((grid - time_left) / gap).clamp(0, 1)

    def value(step: Tensor) -> Tensor:
        """Return the curve's value at steps of the path, (m, channels, length)."""
        at_x = i.gather(1, step)[:, None].expand(-1, channels, -1)
        at_n = j.gather(1, step)[:, None].expand(-1, channels, -1)
        return torch.lerp(x.gather(2, at_x), n.gather(2, at_n), beta[:, None, None])

    return torch.lerp(value(left), value(right), share[:, None])
