"""Entries of a result for which there is no value."""

from __future__ import annotations

import numpy as np

from ..models.classifier import Array


def fill_blanks(known: Array, has_value: Array) -> Array:
    """Spread known values over entries; NaN, -1 or False where there is none.

    Parameters
    ----------
    known : array of shape (m, ...)
        The values there are, of float, int or bool.
    has_value : array of bool, shape (n,)
        The m entries they belong to.

    Returns
    -------
    array of shape (n, ...)
        One value per entry.
    """
    blanks = {"f": np.nan, "i": -1, "b": False}
    blank = blanks[known.dtype.kind]
    values = np.full((len(has_value), *known.shape[1:]), blank, dtype=known.dtype)
    values[has_value] = known
    return values
