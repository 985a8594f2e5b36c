"""Input checks of the geometry functions, and conversion of their arguments to flat rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeVar, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from ..numerics import broadcast_rows

Array = NDArray[Any] | Tensor
Kind = TypeVar("Kind", bound=Array)

#: Numbers in a block of rows: they stay in the cache, and are too few for torch to start threads.
_BLOCK = 2**15


def as_rows(value: Array, name: str, like: Tensor | None = None) -> Tensor:
    """Convert an array to a tensor of flat rows of finite floats.

    Parameters
    ----------
    value : array or Tensor of shape (n, ...)
        Floats of any precision.
    name : str
        Name of the argument, for error messages.
    like : Tensor of shape (n, d), optional
        The rows must have the same shape, and are moved to the same device.

    Returns
    -------
    Tensor of shape (n, d)

    Raises
    ------
    ValueError
        If `value` is not an array of finite floats, or does not have the shape of `like`.
    """
    if isinstance(value, np.ndarray):
        # torch supports neither read-only arrays nor negative strides.
        value = torch.from_numpy(np.require(value, requirements=["C", "W"]))
    is_float = isinstance(value, Tensor) and value.is_floating_point()
    if not is_float or value.ndim < 2:
        raise ValueError(
            f"{name} must be an array or tensor of floats with the rows first, "
            f"got {_describe(value)}."
        )
    rows = value.detach().flatten(1)
    if like is not None:
        if rows.shape != like.shape:
            raise ValueError(
                f"{name} has {len(rows)} rows of {rows.shape[1]}, "
                f"expected {len(like)} of {like.shape[1]}."
            )
        rows = rows.to(like.device)
    _check_finite(rows, name)
    return rows


def _describe(value: Any) -> str:
    """Describe a rejected value by dtype and shape, or by type."""
    if hasattr(value, "dtype"):
        return f"{value.dtype} {tuple(value.shape)}"
    return type(value).__name__


def _check_finite(rows: Tensor, name: str) -> None:
    """Raise an error that names the first row with NaN or inf."""
    # A finite sum implies finite numbers; only a sum that is not finite needs a closer look.
    if math.isfinite(rows.sum().item()):
        return
    bad = (~rows.isfinite()).any(1).nonzero()
    if len(bad):
        raise ValueError(f"{name}[{int(bad[0])}] contains NaN or inf; all numbers must be finite.")


def as_given(rows: Tensor, given: Kind) -> Kind:
    """Convert flat rows back to the shape and kind of an argument.

    Parameters
    ----------
    rows : Tensor of shape (n, d)
        The rows.
    given : array or Tensor of shape (n, ...)
        The argument as the user gave it.

    Returns
    -------
    array or Tensor of the shape of `given`
    """
    shaped = rows.reshape(given.shape)
    if isinstance(given, Tensor):
        return cast(Kind, shaped)
    return cast(Kind, shaped.numpy())


@lru_cache(maxsize=256)
def _constant(value: float, device: torch.device) -> Tensor:
    """Return a number as a tensor; cached, since making one takes longer than computing with it."""
    return torch.tensor(value, dtype=torch.float64, device=device)


def as_radius(eps: ArrayLike | Tensor, rows: Tensor) -> Tensor:
    """Convert the radius ε to a float64 tensor that broadcasts against the rows.

    Parameters
    ----------
    eps : float or array of shape (n,)
        One radius, or one per row; finite and not negative.
    rows : Tensor of shape (n, d)
        The rows it belongs to.

    Returns
    -------
    Tensor of shape () or (n, 1)
    """
    if isinstance(eps, int | float):
        radius = _constant(eps, rows.device)
        accepted = 0 <= eps < math.inf
    else:
        radius = torch.as_tensor(
            eps,
            dtype=torch.float64,
            device=rows.device,
        )
        if radius.ndim:
            if radius.shape != rows.shape[:1]:
                raise ValueError(
                    f"eps must be one number or one per row ({len(rows)}), "
                    f"got shape {tuple(radius.shape)}."
                )
            radius = radius[:, None]
        inside = (radius >= 0) & (radius < math.inf)
        accepted = bool(inside.all())
    if not accepted:
        raise ValueError(f"eps must be finite and not negative, got {eps}.")
    return radius


def as_norm(p: float, allowed: tuple[float, ...] = ()) -> float:
    """Check the order p of a norm.

    Parameters
    ----------
    p : float
        At least 1; may be inf.
    allowed : tuple of float, optional
        The only values accepted; default: all from 1 to inf.

    Returns
    -------
    float
    """
    if not p >= 1 or (allowed and p not in allowed):
        accepted = " or ".join(f"{q:g}" for q in allowed) or "a number from 1 to inf"
        raise ValueError(f"p must be {accepted}, got {p}.")
    return float(p)


def as_box(
    bounds: tuple[Any, Any],
    shape: tuple[int, ...],
    rows: Tensor,
) -> tuple[Tensor, Tensor]:
    """Convert the bounds of a box to float64 tensors that broadcast against the rows.

    Parameters
    ----------
    bounds : tuple (lo, hi)
        Each a number, one number per channel (axis 1), or an array that broadcasts against an
        instance; may be infinite.
    shape : tuple of int
        Shape of the batch, (n, ...).
    rows : Tensor of shape (n, d)
        The batch as flat rows.

    Returns
    -------
    lo, hi : Tensor of shape () or (1, d)
    """
    lower, upper = bounds
    lo = _as_bound(lower, "bounds[0]", shape, rows)
    hi = _as_bound(upper, "bounds[1]", shape, rows)
    if not (lo <= hi).all().item():
        raise ValueError(f"bounds must be (lo, hi) with lo <= hi everywhere, got {bounds}.")
    return lo, hi


def _as_bound(
    bound: Any,
    name: str,
    shape: tuple[int, ...],
    rows: Tensor,
) -> Tensor:
    """Convert one bound, of shape () or (1, d)."""
    if isinstance(bound, int | float):
        return _constant(bound, rows.device)
    tensor = torch.as_tensor(
        bound,
        dtype=torch.float64,
        device=rows.device,
    )
    given = tuple(tensor.shape)
    if tensor.ndim == 1 and len(shape) > 2:
        # One number per channel.
        instance = rows.new_empty(()).expand(shape[1:])
        tensor = broadcast_rows(tensor, instance)
    try:
        return tensor.expand(shape[1:]).reshape(1, -1)
    except RuntimeError:
        raise ValueError(
            f"{name} of shape {given} does not fit an instance {tuple(shape[1:])}."
        ) from None


def as_mask(mask: ArrayLike | Tensor, shape: tuple[int, ...], rows: Tensor) -> Tensor:
    """Convert a mask to flat rows.

    Parameters
    ----------
    mask : boolean array
        True where an instance may change; broadcasts against the batch.
    shape : tuple of int
        Shape of the batch, (n, ...).
    rows : Tensor of shape (n, d)
        The batch as flat rows.

    Returns
    -------
    boolean Tensor of shape (n, d)
    """
    allowed = torch.as_tensor(mask, device=rows.device)
    if allowed.dtype != torch.bool:
        raise ValueError(f"mask must be boolean (True = may change), got {allowed.dtype}.")
    try:
        return allowed.expand(shape).flatten(1)
    except RuntimeError:
        raise ValueError(
            f"mask of shape {tuple(allowed.shape)} does not fit {tuple(shape)}."
        ) from None


def block_rows(rows: Tensor) -> int:
    """Return how many rows to work on at a time."""
    return max(1, _BLOCK // max(1, rows.shape[1]))


def blocks(first: Tensor, *others: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Iterate over blocks of rows of several tensors.

    Parameters
    ----------
    first : Tensor of shape (n, d)
        Its size decides how many rows make a block.
    *others : Tensor
        With n rows, or one row for all: the latter are passed on as they are.

    Yields
    ------
    tuple of Tensor
        The block of `first`, then those of the others.
    """
    n = len(first)
    size = block_rows(first)

    def has_rows(other: Tensor) -> bool:
        return other.ndim > 0 and len(other) == n

    if first.numel() == 0:
        return
    if n <= size:
        # Slicing costs as much as computing with a short row.
        yield first, *others
        return
    for start in range(0, n, size):
        rows = slice(start, start + size)
        parts = [other[rows] if has_rows(other) else other for other in others]
        yield first[rows], *parts
