"""Arrays of either kind, NumPy or torch: read as tensors, and given back as they came."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from ..data.arrays import Array, as_real, for_torch, read_array
from ..models.verdict import all_finite

#: A shape; a text names an axis of any length, "..." at the end any further axes.
Axes: TypeAlias = tuple[int | str, ...]

_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def read_tensor(
    values: Any,
    name: str,
    *axes: Axes,
    finite: bool = True,
    beside: str = "",
) -> Tensor:
    """Convert what a user passed to a tensor of floats.

    Parameters
    ----------
    values : array, tensor or nested list of real numbers
        A tensor of floats stays as it is, with its device and its gradient.
    name : str
        What the user calls it, for error messages.
    *axes : tuple of int or str
        The accepted shapes.
    finite : bool, default=True
        Refuse NaN and infinite numbers.
    beside : str, optional
        What the accepted shapes depend on, for error messages.

    Returns
    -------
    Tensor
        Of floats.

    Raises
    ------
    ValueError, TypeError
        If the values are not such numbers, or have another shape.

    Examples
    --------
    >>> read_tensor([[1, 2]], "x", ("n", "d"))
    tensor([[1., 2.]], dtype=torch.float64)
    """
    if is_dense(values) and values.is_floating_point():
        tensor: Tensor = values
    else:
        array = as_real(values, name)
        tensor = torch.from_numpy(for_torch(array))
        if isinstance(values, Tensor):
            tensor = tensor.to(values.device)
    _check_axes(tensor, name, axes, beside)
    if finite:
        check_finite(tensor, name)
    return tensor


def read_integers(values: Any, name: str, *axes: Axes, beside: str = "") -> Tensor:
    """Convert what a user passed to a tensor of whole numbers.

    Parameters
    ----------
    values : array, tensor or nested list of int
        A tensor of integers stays as it is.
    name : str
        What the user calls it, for error messages.
    *axes : tuple of int or str
        The accepted shapes.
    beside : str, optional
        What the accepted shapes depend on, for error messages.

    Returns
    -------
    Tensor
        Of integers.

    Raises
    ------
    ValueError, TypeError
        If the values are not whole numbers, or have another shape.

    Examples
    --------
    >>> read_integers([0, 1, 1], "labels", ("n",))
    tensor([0, 1, 1])
    """
    if is_dense(values) and values.dtype in _INTEGERS:
        tensor: Tensor = values
    else:
        array = read_array(values, name)
        if array.dtype.kind not in "iu" or array.dtype == np.uint64:
            raise ValueError(f"{name} has dtype {array.dtype}. Accepted: whole numbers.")
        tensor = torch.from_numpy(array.astype(np.int64))
    _check_axes(tensor, name, axes, beside)
    return tensor


def is_dense(values: Any) -> bool:
    """Return whether this is a tensor that holds all its values, one after the other."""
    return (
        isinstance(values, Tensor)
        and values.layout == torch.strided
        and not (values.is_meta or values.is_quantized or values.is_nested)
    )


def check_finite(tensor: Tensor, name: str) -> None:
    """Raise an error that names the first entry with NaN or inf.

    Parameters
    ----------
    tensor : Tensor of shape (n, ...)
        Floats.
    name : str
        What the user calls it.
    """
    if all_finite(tensor):
        return
    bad = (~tensor.isfinite()).nonzero()
    where = f"[{int(bad[0, 0])}]" if tensor.ndim else ""
    raise ValueError(f"{name}{where} contains NaN or inf; all numbers must be finite.")


def as_kind(tensor: Tensor, given: Any) -> Any:
    """Return a tensor as it is where a tensor was given, else as a NumPy array.

    Parameters
    ----------
    tensor : Tensor
        A result.
    given : object
        The argument that decides the kind.

    Returns
    -------
    Tensor or array
        The same values.
    """
    if isinstance(given, Tensor):
        return tensor
    values: Array = tensor.numpy(force=True)
    return values


def _check_axes(tensor: Tensor, name: str, axes: tuple[Axes, ...], beside: str) -> None:
    """Raise unless the tensor has one of the accepted shapes; none listed: any shape."""
    shape = tuple(tensor.shape)
    if axes and not any(_fits(shape, accepted) for accepted in axes):
        accepted = " or ".join(map(_shown, axes))
        where = f" beside {beside}" if beside else ""
        raise ValueError(f"{name} has shape {shape}. Accepted{where}: {accepted}.")


def _fits(shape: tuple[int, ...], accepted: Axes) -> bool:
    """Return whether a shape is one of those accepted."""
    if accepted and accepted[-1] == "...":
        accepted = accepted[:-1]
        shape = shape[: len(accepted)]
    if len(shape) != len(accepted):
        return False
    pairs = zip(shape, accepted, strict=True)
    return all(isinstance(axis, str) or size == axis for size, axis in pairs)


def _shown(axes: Axes) -> str:
    """Write a shape as Python does."""
    comma = "," if len(axes) == 1 else ""
    return f"({', '.join(map(str, axes))}{comma})"
