"""Bounds of the values of instances, as users give them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...data.arrays import as_real
from ...validation import brief


def read_bounds(bounds: tuple[Any, Any], X: Tensor) -> tuple[Tensor, Tensor]:
    """Check bounds: numbers or one per channel, the lower below the upper.

    Parameters
    ----------
    bounds : tuple of two numbers or arrays
        As given.
    X : Tensor of shape (n, *shape)
        The reference.

    Returns
    -------
    low, high : Tensor of shape (1,) or (channels,)
        The bounds, in the dtype of X.
    """
    low, high = (
        torch.as_tensor(as_real(bound, "bounds"), dtype=X.dtype, device=X.device).flatten()
        for bound in bounds
    )
    n = X.shape[1]
    if len(low) not in (1, n) or len(high) not in (1, n) or not bool((low < high).all()):
        raise ValueError(
            "bounds must be (lower, upper), lower below upper, each a number or one per channel "
            f"({n}); got {brief(bounds)}."
        )
    return low, high


def check_scale(X: Tensor, high: Tensor) -> None:
    """Refuse pixels of 0 to 255 with bounds of 0 to 1, which all of them would have to leave.

    Parameters
    ----------
    X : Tensor of shape (n, *shape)
        The reference.
    high : Tensor of shape (1,) or (channels,)
        The upper bounds.
    """
    largest = float(X.max())
    if X.ndim == 4 and float(high.max()) <= 1 and 1.5 < largest <= 255:
        raise ValueError(
            f"bounds end at {float(high.max()):g}, but pixels of the reference images reach "
            f"{largest:g}. Divide the images by 255, or give bounds in their unit, as (0, 255)."
        )
