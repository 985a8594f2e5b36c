"""What a ball, a box and a mask may look like, and how they become tensors over flat rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeVar, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

Array = NDArray[Any] | Tensor
Kind = TypeVar("Kind", bound=Array)

# Numbers in a row block: they stay in the cache, and are too few for torch to start threads over them.
_BLOCK = 2**15


def as_rows(value: Array, name: str, like: Tensor | None = None) -> Tensor:
    """A tensor (n, d) of finite floats; with `like`, of as many rows and columns, on the same device."""
    if isinstance(value, np.ndarray):
        # torch knows neither arrays that must not be written to nor negative strides.
        value = torch.from_numpy(np.require(value, requirements=["C", "W"]))
    if not isinstance(value, Tensor) or not value.is_floating_point() or value.ndim < 2:
        given = (
            f"{value.dtype} {tuple(value.shape)}"
            if hasattr(value, "dtype")
            else type(value).__name__
        )
        raise ValueError(
            f"{name} must be an array or tensor of floats with the rows first, got {given}."
        )
    rows = value.detach().flatten(1)
    if like is not None:
        if rows.shape != like.shape:
            raise ValueError(
                f"{name} has {len(rows)} rows of {rows.shape[1]}, expected {len(like)} of {like.shape[1]}."
            )
        rows = rows.to(like.device)
    # A finite sum means finite numbers; only another sum asks for a closer look.
    if not math.isfinite(rows.sum().item()):
        bad = (~rows.isfinite()).any(1).nonzero()
        if len(bad):
            raise ValueError(
                f"{name}[{int(bad[0])}] contains NaN or inf; all numbers must be finite."
            )
    return rows


def as_given(rows: Tensor, given: Kind) -> Kind:
    """Back to the shape and kind of what was given."""
    shaped = rows.reshape(given.shape)
    return cast(Kind, shaped if isinstance(given, Tensor) else shaped.numpy())


@lru_cache(maxsize=256)
def _constant(value: float, device: torch.device) -> Tensor:
    """A number as a tensor; making one takes longer than computing with it."""
    return torch.tensor(value, dtype=torch.float64, device=device)


def as_radius(eps: ArrayLike | Tensor, rows: Tensor) -> Tensor:
    """ε in float64 as (n, 1), or without axes where one serves all rows."""
    if isinstance(eps, int | float):
        smallest, largest, radius = eps, eps, _constant(eps, rows.device)
    else:
        radius = torch.as_tensor(eps, dtype=torch.float64, device=rows.device)
        if radius.ndim and radius.shape != rows.shape[:1]:
            raise ValueError(
                f"eps must be one number or one per row ({len(rows)}), got shape {tuple(radius.shape)}."
            )
        radius = radius.reshape(-1, 1) if radius.ndim else radius
        smallest, largest = (radius.min().item(), radius.max().item()) if radius.numel() else (0, 0)
    if not 0 <= smallest <= largest < math.inf:
        raise ValueError(f"eps must be finite and not negative, got {eps}.")
    return radius


def as_norm(p: float, allowed: tuple[float, ...] = ()) -> float:
    """p as a float in [1, ∞], or one of those allowed."""
    if not p >= 1 or (allowed and p not in allowed):
        accepted = " or ".join(f"{q:g}" for q in allowed) or "a number from 1 to inf"
        raise ValueError(f"p must be {accepted}, got {p}.")
    return float(p)


def as_box(bounds: tuple[Any, Any], shape: tuple[int, ...], rows: Tensor) -> tuple[Tensor, Tensor]:
    """(lo, hi) in float64, each without axes or (1, d)."""
    lo, hi = (_spread(bound, f"bounds[{i}]", shape, rows) for i, bound in enumerate(bounds))
    if not (lo <= hi).all().item():
        raise ValueError(f"bounds must be (lo, hi) with lo <= hi everywhere, got {bounds}.")
    return lo, hi


def as_mask(mask: ArrayLike | Tensor, shape: tuple[int, ...], rows: Tensor) -> Tensor:
    """True where an instance may change, as (n, d) or (1, d); `shape` is that of the batch."""
    allowed = torch.as_tensor(mask, device=rows.device)
    if allowed.dtype != torch.bool:
        raise ValueError(f"mask must be boolean (True = may change), got {allowed.dtype}.")
    try:
        return allowed.expand(shape).flatten(1)
    except RuntimeError:
        raise ValueError(
            f"mask of shape {tuple(allowed.shape)} does not fit {tuple(shape)}."
        ) from None


def _spread(bound: Any, name: str, shape: tuple[int, ...], rows: Tensor) -> Tensor:
    if isinstance(bound, int | float):
        return _constant(bound, rows.device)
    tensor = torch.as_tensor(bound, dtype=torch.float64, device=rows.device)
    if tensor.ndim == 1 and len(shape) > 2:
        tensor = tensor.reshape(-1, *[1] * (len(shape) - 2))  # one per channel
    try:
        return tensor.expand(shape[1:]).reshape(1, -1)
    except RuntimeError:
        given = tuple(tensor.shape)
        raise ValueError(
            f"{name} of shape {given} does not fit an instance {tuple(shape[1:])}."
        ) from None


def block_rows(rows: Tensor) -> int:
    """How many rows to work on at a time."""
    return max(1, _BLOCK // max(1, rows.shape[1]))


def blocks(first: Tensor, *others: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Row blocks of tensors that have as many rows as the first, or one for all."""
    n, size = len(first), block_rows(first)
    if first.numel() == 0:
        return
    if n <= size:
        yield first, *others  # slicing costs as much as computing with a short row
        return
    for start in range(0, n, size):
        stop = start + size
        yield first[start:stop], *(t[start:stop] if t.ndim and len(t) == n else t for t in others)
