"""Series whose steps along time are limited."""

from __future__ import annotations

import torch
from torch import Tensor


def reachable_bounds(
    low: Tensor,
    high: Tensor,
    step: Tensor,
) -> tuple[Tensor, Tensor]:
    """Tighten bounds to what a series with limited steps can reach.

    Parameters
    ----------
    low, high : Tensor of shape (n, channels, length)
        Bounds at every time step.
    step : Tensor of shape (n, channels)
        Largest step of each series in each channel.

    Returns
    -------
    tuple of Tensor
        The tightened bounds; `low` may exceed `high` where no series keeps all limits.
    """
    time = torch.arange(low.shape[-1], dtype=low.dtype, device=low.device)
    ramp = step[..., None] * time
    return _raise_to_neighbors(low, ramp), -_raise_to_neighbors(-high, ramp)


def join_slopes(
    values: Tensor,
    low: Tensor,
    high: Tensor,
    step: Tensor,
) -> Tensor:
    """Change series as little as a pass from each side does, so that they keep bounds and steps.

    Parameters
    ----------
    values : Tensor of shape (n, channels, length)
        The series.
    low, high : Tensor of shape (n, channels, length)
        Bounds made consistent with the steps by `reachable_bounds`.
    step : Tensor of shape (n, channels)
        Largest step of each series in each channel.

    Returns
    -------
    Tensor of shape (n, channels, length)
        Series within the bounds with no step above `step`.
    """
    forward = _walk(values, low, high, step)
    backward = _walk(values.flip(-1), low.flip(-1), high.flip(-1), step).flip(-1)
    # Both passes are feasible and the set is convex: their mean is feasible, favoring no direction.
    return (forward + backward) / 2


def _raise_to_neighbors(low: Tensor, ramp: Tensor) -> Tensor:
    """Compute max over u of low(u) - step |t - u|, by a running maximum from each side."""
    from_left = (low + ramp).cummax(-1).values - ramp
    from_right = (low - ramp).flip(-1).cummax(-1).values.flip(-1) + ramp
    return torch.maximum(from_left, from_right)


def _walk(
    values: Tensor,
    low: Tensor,
    high: Tensor,
    step: Tensor,
) -> Tensor:
    """Walk along time, clipping each value to within `step` of the one before and to its bounds."""
    out = values.clone()
    previous = torch.minimum(torch.maximum(values[..., 0], low[..., 0]), high[..., 0])
    out[..., 0] = previous
    for t in range(1, values.shape[-1]):
        least = torch.maximum(low[..., t], previous - step)
        most = torch.minimum(high[..., t], previous + step)
        previous = torch.minimum(torch.maximum(values[..., t], least), most)
        out[..., t] = previous
    return out
