"""Input checks of the geometry functions, and conversion of their arguments to flat rows."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, TypeVar, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from ..data.arrays import as_real, for_torch, read_array
from ..numerics import broadcast_rows
from ..numerics.tensors import check_finite, is_dense
from ..validation import Real, brief

Array = NDArray[Any] | Tensor
Kind = TypeVar("Kind", bound=Array)

#: Data types that NumPy and torch share.
_FLOATS = (np.float16, np.float32, np.float64)
_RADIUS = Real(at_least=0)
_NORM = Real(at_least=1, finite=False)
_BOUND = Real(finite=False)


def as_rows(
    value: Array,
    name: str,
    like: Array | None = None,
    like_name: str = "w",
) -> Tensor:
    """Convert an array to a tensor of flat rows of finite floats.

    Parameters
    ----------
    value : array or Tensor of shape (n, ...)
        Floats of any precision.
    name : str
        Name of the argument, for error messages.
    like : array or Tensor of shape (n, ...), optional
        An argument whose shape this one must have; the rows are moved to its device.
    like_name : str, default="w"
        Name of that argument, for error messages.

    Returns
    -------
    Tensor of shape (n, d)

    Raises
    ------
    ValueError
        If `value` is not an array of finite floats, or does not have the shape of `like`.
    """
    tensor = _as_floats(value, name)
    if tensor is None or tensor.ndim < 2:
        raise ValueError(
            f"{name} must be an array or tensor of floats with the rows first, "
            f"got {_describe(value)}."
        )
    rows = tensor.detach().flatten(1)
    if like is not None:
        if tensor.shape != like.shape:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}. "
                f"Accepted: {tuple(like.shape)}, as {like_name}."
            )
        rows = rows.to(like.device if isinstance(like, Tensor) else "cpu")
    check_finite(rows, name)
    return rows


def _as_floats(value: Any, name: str) -> Tensor | None:
    """Return an array or tensor of floats as a tensor; None where it is something else."""
    if isinstance(value, np.ndarray):
        array = value if type(value) is np.ndarray else read_array(value, name)
        if array.dtype not in _FLOATS:
            return None
        return torch.from_numpy(for_torch(array))
    if is_dense(value) and value.is_floating_point():
        return cast(Tensor, value)
    return None


def _describe(value: Any) -> str:
    """Describe a rejected value by dtype and shape, or by its type."""
    if isinstance(value, Tensor) and not is_dense(value):
        return "a tensor that is sparse, quantized, nested or without values"
    if isinstance(value, np.ndarray | Tensor):
        return f"{value.dtype} {tuple(value.shape)}"
    return type(value).__name__


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
    if isinstance(eps, int | float | np.generic):
        if not _RADIUS.accepts(eps):
            raise ValueError(f"eps must be finite and not negative, got {brief(eps)}.")
        return _constant(float(eps), rows.device)
    values = as_real(eps, "eps")
    if values.ndim and values.shape != tuple(rows.shape[:1]):
        raise ValueError(
            f"eps must be one number or one per row ({len(rows)}), got shape {values.shape}."
        )
    inside = (values >= 0) & (values < math.inf)
    if not inside.all():
        raise ValueError(f"eps must be finite and not negative, got {brief(eps)}.")
    radius = torch.tensor(values, dtype=torch.float64, device=rows.device)
    return radius[:, None] if values.ndim else radius


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
    if not _NORM.accepts(p) or (allowed and p not in allowed):
        accepted = " or ".join(f"{q:g}" for q in allowed) or "a number from 1 to inf"
        raise ValueError(f"p must be {accepted}, got {brief(p)}.")
    return float(p)


def as_box(
    bounds: Any,
    shape: tuple[int, ...],
    rows: Tensor,
) -> tuple[Tensor, Tensor]:
    """Convert the bounds of a box to float64 tensors that broadcast against the rows.

    Parameters
    ----------
    bounds : tuple (lo, hi)
        Each a number, one number per channel (axis 1), an array that broadcasts against an
        instance, or one of the shape of the batch; may be infinite.
    shape : tuple of int
        Shape of the batch, (n, ...).
    rows : Tensor of shape (n, d)
        The batch as flat rows.

    Returns
    -------
    lo, hi : Tensor of shape (), (1, d) or (n, d)
    """
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise ValueError(f"bounds must be a pair (lo, hi), got {brief(bounds)}.")
    lower, upper = bounds
    lo = _as_bound(lower, "bounds[0]", shape, rows)
    hi = _as_bound(upper, "bounds[1]", shape, rows)
    if not (lo <= hi).all().item():
        raise ValueError(f"bounds must be (lo, hi) with lo <= hi everywhere, got {brief(bounds)}.")
    return lo, hi


def _as_bound(
    bound: Any,
    name: str,
    shape: tuple[int, ...],
    rows: Tensor,
) -> Tensor:
    """Convert one bound, of shape (), (1, d) or (n, d)."""
    if isinstance(bound, int | float | np.generic):
        if not _BOUND.accepts(bound):
            raise ValueError(f"{name} must be a number or an array of them, got {brief(bound)}.")
        return _constant(float(bound), rows.device)
    values = as_real(bound, name)
    if np.isnan(values).any():
        raise ValueError(f"{name} contains NaN. Accepted: numbers; infinite ones are no bound.")
    tensor = torch.tensor(values, dtype=torch.float64, device=rows.device)
    given = values.shape
    if given == tuple(shape):
        return tensor.reshape(len(rows), -1)
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
    values = read_array(mask, "mask")
    if values.dtype != bool:
        raise ValueError(f"mask must be boolean (True = may change), got {values.dtype}.")
    allowed = torch.tensor(values, device=rows.device)
    try:
        return allowed.expand(shape).flatten(1)
    except RuntimeError:
        raise ValueError(f"mask of shape {values.shape} does not fit {tuple(shape)}.") from None
