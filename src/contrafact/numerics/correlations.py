"""Correlations between the channels of series."""

from __future__ import annotations

import torch
from torch import Tensor

from .tensors import read_tensor

#: deviations from the mean below this share of a channel's size are rounding, no variation
ROUNDING = 1e-12


def channel_correlations(series: Tensor) -> Tensor:
    """Compute the correlations between channels over time.

    Parameters
    ----------
    series : Tensor of shape (..., channels, length)
        The series, finite.

    Returns
    -------
    Tensor of float64, shape (..., channels, channels)
        The correlations; 0 for a channel that does not vary.

    Examples
    --------
    >>> series = torch.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [5.0, 5.0, 5.0]])
    >>> channel_correlations(series).round()
    tensor([[ 1., -1.,  0.],
            [-1.,  1.,  0.],
            [ 0.,  0.,  0.]], dtype=torch.float64)
    """
    series = read_tensor(series, "series").double()
    if series.ndim < 2:
        raise ValueError(
            f"series has shape {tuple(series.shape)}. Accepted: (..., channels, length)."
        )
    centered = series - series.mean(-1, keepdim=True)
    norm = centered.norm(dim=-1, keepdim=True)
    varies = norm > ROUNDING * series.norm(dim=-1, keepdim=True)
    unit = torch.where(varies, centered / torch.where(varies, norm, 1.0), 0.0)
    return unit @ unit.transpose(-1, -2)
