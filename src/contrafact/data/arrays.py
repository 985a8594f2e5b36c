"""Arrays as users pass them: anything that cannot be read as one is refused by name."""

from __future__ import annotations

import mmap
import numbers
import sys
from collections.abc import Iterator, Mapping, Set
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..validation import Real, brief

Array: TypeAlias = NDArray[Any]

#: depth to which lists are searched for tensors and masked arrays; images have four axes
MOST_AXES = 5


def read_array(values: Any, name: str, ragged_hint: str = "") -> Array:
    """Convert what a user passed to a NumPy array, whatever its data type.

    Parameters
    ----------
    values : array, tensor, data frame or nested list
        Tensors may require gradients, and be on any device that holds values.
    name : str
        What the user calls it, for error messages.
    ragged_hint : str, optional
        Sentence that follows where entries have unequal shapes.

    Returns
    -------
    array
        A view of the values where that is possible.

    Raises
    ------
    ValueError, TypeError
        If it holds no values (None, a meta tensor), hides some (a masked array), is not an array
        (a set, a generator) or would have to be densified.

    Examples
    --------
    >>> read_array([[1, 2], [3, 4]], "X").shape
    (2, 2)
    """
    _refuse_containers(values, name)
    plain = _without_wrappers(values, name)
    try:
        array = np.asarray(plain)
    except Exception as error:
        if _is_ragged(plain, error):
            raise ValueError(
                f"{name} has entries of unequal shape. {ragged_hint}".rstrip()
            ) from None
        raise TypeError(
            f"{name} cannot be read as an array: {type(error).__name__}: {error}"
        ) from error
    if array.dtype.kind == "O" and array.ndim == 0:
        raise TypeError(f"{name} must be an array, got {brief(values)}.")
    return array


def as_real(values: Any, name: str, ragged_hint: str = "") -> Array:
    """Convert numbers to a float array.

    Parameters
    ----------
    values : array of real numbers
        Floats of at most 64 bits stay as they are, in native byte order; whole numbers become
        floats wide enough to hold them, and are not rescaled.
    name : str
        What the user calls it, for error messages.
    ragged_hint : str, optional
        Sentence that follows where entries have unequal shapes.

    Returns
    -------
    array of floats of the same shape

    Raises
    ------
    ValueError, TypeError
        If it is ragged or holds anything but real numbers.

    Examples
    --------
    >>> as_real([1, 2], "weights")
    array([1., 2.])
    """
    array = read_array(values, name, ragged_hint)
    if array.dtype.kind == "f":
        dtype = np.float64 if array.dtype.itemsize > 8 else array.dtype.newbyteorder("=")
        return array.astype(dtype, copy=False)
    if array.dtype.kind in "iub":
        return array.astype(np.result_type(array.dtype, np.float32))
    if array.dtype.kind == "O":
        raise ValueError(_describe_objects(array, name, ragged_hint))
    raise ValueError(f"{name} has dtype {array.dtype}. Accepted: real numbers.")


def finite_array(
    values: Any,
    name: str,
    axes: tuple[int | str, ...],
    at_least: float | None = None,
    at_most: float | None = None,
) -> Array:
    """Convert finite numbers of a given shape to a float array.

    Parameters
    ----------
    values : array of real numbers
        What the user passed.
    name : str
        What the user calls it, for error messages.
    axes : tuple of int or str
        The accepted shape; a text names an axis of any length.
    at_least, at_most : float, optional
        Inclusive bounds.

    Returns
    -------
    array of floats of the same shape

    Raises
    ------
    ValueError, TypeError
        If the values are not finite numbers of this shape within the bounds.

    Examples
    --------
    >>> finite_array([[0.2, 0.8]], "proba", ("n", 2), at_least=0, at_most=1).shape
    (1, 2)
    """
    array = as_real(values, name)
    lengths = zip(array.shape, axes, strict=False)
    fits = all(isinstance(axis, str) or size == axis for size, axis in lengths)
    if array.ndim != len(axes) or not fits:
        accepted = ", ".join(map(str, axes)) + ("," if len(axes) == 1 else "")
        raise ValueError(f"{name} has shape {array.shape}. Accepted: ({accepted}).")
    rule = Real(at_least=at_least, at_most=at_most)
    within = np.isfinite(array)
    if at_least is not None:
        within &= array >= at_least
    if at_most is not None:
        within &= array <= at_most
    if not within.all():
        first = np.unravel_index(within.argmin(), array.shape)
        where = ", ".join(map(str, first))
        raise ValueError(f"{name}[{where}] is {array[first]:g}. Accepted: {rule}.")
    return array


def for_torch(array: Array) -> Array:
    """Return an array that torch can take: writable, in order, without negative strides.

    Parameters
    ----------
    array : array
        Any array of numbers.

    Returns
    -------
    array
        The same, or a copy where torch would refuse it.

    Examples
    --------
    >>> for_torch(np.ones((1, 2))[::-1]).strides
    (16, 8)
    """
    in_order = array.flags.writeable and array.flags.c_contiguous
    # One row taken backward counts as in order, with a negative stride.
    if in_order and min(array.strides, default=0) >= 0:
        return array
    mapped = _mapped_file(array)
    if mapped is not None:
        return np.memmap(mapped.filename, mapped.dtype, "c", mapped.offset, mapped.shape)
    return np.array(array, order="C")


def _mapped_file(array: Array) -> Any:
    """Return the memory-mapped file whose whole content an array is; None where it is not.

    A file that was mapped for reading can be mapped again so that it counts as writable (nothing
    that is written reaches the file), which costs no memory; a copy would cost all of it.
    """
    mapped = array if isinstance(array, np.memmap) else array.base
    if not isinstance(mapped, np.memmap) or not isinstance(mapped.base, mmap.mmap):
        return None
    whole = mapped.filename is not None and mapped.flags.c_contiguous
    same = (array.shape, array.dtype, array.ctypes.data) == (
        mapped.shape,
        mapped.dtype,
        mapped.ctypes.data,
    )
    return mapped if whole and same else None


def _refuse_containers(values: Any, name: str) -> None:
    """Refuse what NumPy would take for a single object, or for text."""
    if type(values).__module__.startswith("scipy.sparse"):
        raise TypeError(
            f"{name} is a sparse matrix of shape {values.shape}. Densify it: {name}.toarray()."
        )
    if isinstance(values, (Mapping, Set, Iterator, str, bytes)) or values is None:
        hint = f" Pass list({name})." if isinstance(values, (Set, Iterator)) else ""
        raise TypeError(f"{name} must be an array, got {brief(values)}.{hint}")


def _without_wrappers(values: Any, name: str, depth: int = 0) -> Any:
    """Replace tensors, data frames and masked arrays by plain arrays, also within lists."""
    if isinstance(values, np.ma.MaskedArray):
        return _unmasked(values, name)
    if _is_tensor(values):
        return _tensor_values(values, name)
    if hasattr(type(values), "iloc") and hasattr(values, "columns"):
        return _frame_values(values, name)
    if isinstance(values, (list, tuple)) and depth < MOST_AXES:
        return [
            _without_wrappers(entry, f"{name}[{i}]", depth + 1) if _may_hold(entry) else entry
            for i, entry in enumerate(values)
        ]
    return values


def _may_hold(entry: Any) -> bool:
    """Return whether an entry of a list is itself something that has to be unwrapped."""
    return not isinstance(entry, (int, float, str))


def _unmasked(values: Any, name: str) -> Array:
    """Return the values of a masked array that hides none of them."""
    mask = np.asarray(values.mask)
    if mask.dtype == bool and mask.any():  # records have a mask per field, and are refused later
        raise ValueError(
            f"{name} is a masked array that hides {mask.sum()} of {values.size} values. "
            f"Fill them first, e.g. {name}.filled(0.0), or with NaN for "
            "contrafact.data.fill_missing."
        )
    return np.asarray(values.data)


def _is_tensor(values: Any) -> bool:
    """Return whether this is a torch tensor; torch is not imported for the question."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def _tensor_values(tensor: Any, name: str) -> Array:
    """Return the values of a tensor as an array."""
    torch = sys.modules["torch"]
    if tensor.is_nested:
        raise TypeError(
            f"{name} is a nested tensor. Give it one shape: {name}.to_padded_tensor(0)."
        )
    if tensor.is_meta:
        raise TypeError(f"{name} is a tensor on the device 'meta', which holds no values.")
    if tensor.layout != torch.strided:
        raise TypeError(
            f"{name} is a sparse tensor of shape {tuple(tensor.shape)}. "
            f"Densify it: {name}.to_dense()."
        )
    if tensor.is_quantized:
        raise TypeError(f"{name} is a quantized tensor. Convert it: {name}.dequantize().")
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    if tensor.is_floating_point() and tensor.dtype not in (torch.float32, torch.float64):
        tensor = tensor.float()  # NumPy has no bfloat16; float32 holds all shorter floats
    values: Array = tensor.numpy()
    return values


def _frame_values(frame: Any, name: str) -> Array:
    """Return the values of a data frame with numeric columns of different names."""
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise ValueError(
            f"{name} has more than one column called {repeated[0]!r}. "
            "Accepted: columns of different names."
        )
    kinds = {}
    for column, dtype in frame.dtypes.items():
        kinds[column] = getattr(dtype, "kind", "O")
        if kinds[column] not in "biuf":
            raise ValueError(
                f"column {column!r} of {name} has dtype {dtype}. Accepted: real numbers; "
                f"convert it, e.g. {name}[{column!r}].astype(float)."
            )
    # Columns of booleans next to numbers, and those that may hold NA, would give objects.
    array = np.asarray(frame)
    if array.dtype.kind == "O":
        array = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return array


def _is_ragged(values: Any, error: Exception) -> bool:
    """Return whether NumPy failed because entries have unequal shapes."""
    return isinstance(values, list) and isinstance(error, ValueError) and "shape" in str(error)


def _describe_objects(array: Array, name: str, ragged_hint: str) -> str:
    """Name the first entry that makes an array one of objects."""
    for position, entry in np.ndenumerate(array):
        if hasattr(entry, "__len__") and not isinstance(entry, str):
            return f"{name} has entries of unequal shape. {ragged_hint}".rstrip()
        if not isinstance(entry, numbers.Real):
            where = ", ".join(map(str, position))
            return (
                f"{name} has dtype object: {name}[{where}] is {brief(entry)}. "
                "Accepted: real numbers."
            )
    return (
        f"{name} has dtype object. Accepted: real numbers; "
        f"convert it, e.g. np.asarray({name}, dtype=float)."
    )
