"""Rows of a result as users choose them: by index, slice, mask or list."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.arrays import read_array
from ..models.classifier import Array
from ..validation import brief


def chosen_positions(rows: Any, n: int) -> Array:
    """Return the positions that an index, a slice, a mask or a list chooses among n rows.

    Parameters
    ----------
    rows : int, slice, array or list
        The choice; negative numbers count from the end.
    n : int
        How many rows there are.

    Returns
    -------
    array of int
        From 0 to n - 1.

    Raises
    ------
    IndexError, TypeError
        If it is no such choice.
    """
    if isinstance(rows, (list, tuple)) and len(rows) == 0:
        return np.arange(0)
    if not isinstance(rows, slice):
        rows = read_array(rows, "rows")
    if not isinstance(rows, slice) and (rows.dtype.kind not in "biu" or rows.ndim > 1):
        raise IndexError(
            f"rows must be a whole number, a slice, a mask or a list of whole numbers, got "
            f"{brief(rows)}."
        )
    try:
        if isinstance(rows, slice):  # without an array of all n positions
            chosen = range(n)[rows]
            return np.arange(chosen.start, chosen.stop, chosen.step)
        if rows.dtype.kind in "iu":
            _check_positions(rows, n)
            return np.asarray(rows % max(n, 1), dtype=np.int64).reshape(-1)
        return np.asarray(np.arange(n)[rows]).reshape(-1)
    except (IndexError, OverflowError, TypeError) as error:
        raise IndexError(
            f"rows must be among the {n} counterfactuals, got {brief(rows)}: {error}."
        ) from error


def _check_positions(rows: Array, n: int) -> None:
    """Raise an error if a position lies outside n rows, counted from either end."""
    if rows.size and not (-n <= int(rows.min()) and int(rows.max()) < n):
        raise IndexError("a position is out of bounds")
