"""Shape helpers shared by many modules."""

from __future__ import annotations

from torch import Tensor

from ..validation import Instance, Integer, Satisfies, check_parameters
from .tensors import is_dense

_TENSORS = {"values": Satisfies(is_dense, "a dense Tensor"), "like": Instance(Tensor)}
_NUMBERS = {"a": Integer(), "b": Integer(at_least=1)}


def broadcast_rows(values: Tensor, like: Tensor) -> Tensor:
    """Append axes of length 1, so that one value per row broadcasts against `like`.

    Parameters
    ----------
    values : Tensor of shape (n,)
        One value per row.
    like : Tensor of shape (n, ...)
        The tensor to broadcast against; only its number of axes is used.

    Returns
    -------
    Tensor of shape (n, 1, ..., 1)
        A view of `values` with as many axes as `like`.

    Examples
    --------
    >>> import torch
    >>> broadcast_rows(torch.ones(2), torch.zeros(2, 3, 4)).shape
    torch.Size([2, 1, 1])
    """
    check_parameters("broadcast_rows", _TENSORS, {"values": values, "like": like})
    ones = [1] * (like.ndim - 1)
    return values.reshape(-1, *ones)


def ceil_div(a: int, b: int) -> int:
    """Divide and round up.

    Parameters
    ----------
    a : int
        Dividend.
    b : int
        Divisor, positive.

    Returns
    -------
    int
        The smallest integer that is at least a / b.

    Examples
    --------
    >>> ceil_div(7, 2)
    4
    """
    check_parameters("ceil_div", _NUMBERS, {"a": a, "b": b})
    return -(-a // b)
