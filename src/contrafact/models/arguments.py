"""Arguments of classifiers: rows, batch sizes and devices, checked before a model is asked."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..data.arrays import as_real, for_torch
from ..validation import Integer, Nothing, brief

RULES = {
    "batch_size": Nothing() | Integer(at_least=1, at_most=10**12),
    "n_threads": Nothing() | Integer(at_least=1, at_most=1024),
}


def read_rows(x: Any) -> Tensor:
    """Convert rows to a tensor of real numbers, each in its place.

    Parameters
    ----------
    x : array or Tensor of shape (n, ...)
        Rows as a user gave them; never written to.

    Returns
    -------
    Tensor of shape (n, ...)
        The rows, in their own precision.

    Raises
    ------
    ValueError, TypeError
        If they are no real numbers, or no rows.
    """
    if not isinstance(x, Tensor) or not _holds_reals(x):
        x = torch.as_tensor(for_torch(as_real(x, "X")))
    rows: Tensor = x
    if rows.ndim == 0:
        raise ValueError("X has shape (). Accepted: (n, ...), one entry per instance.")
    return rows


def _holds_reals(x: Tensor) -> bool:
    """Return whether a tensor holds real numbers, each in its place."""
    has_values = x.layout == torch.strided and not x.is_meta
    return has_values and not (x.is_complex() or x.is_quantized)


def check_device(device: Any) -> None:
    """Check that torch can compute on a device; None is accepted.

    Parameters
    ----------
    device : str, torch.device or None
        The device.

    Raises
    ------
    ValueError, TypeError
        If it is no device, or torch cannot use it here.
    """
    if device is None:
        return
    if not isinstance(device, (str, torch.device)):
        raise TypeError(f"device must be a text or a torch.device, got {brief(device)}.")
    try:
        holds_values = not torch.empty(0, device=device).is_meta
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(
            f"device must be one that torch can use here, such as 'cpu', got {str(device)!r}: "
            f"{str(error).splitlines()[0]}"
        ) from error
    if not holds_values:
        raise ValueError("device must be one that holds values, such as 'cpu', got 'meta'.")
