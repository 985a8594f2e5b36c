"""Arrays as text small enough to travel inside the page."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import numpy as np

from ..models.classifier import Array


def pack_values(values: Array, dtype: Any, mask: Array | None = None) -> dict[str, Any]:
    """Pack values as whole steps between the least and the largest of each channel.

    Parameters
    ----------
    values : ndarray of shape (channels, ...)
        One instance.
    dtype : unsigned integer type
        The kind of number that the steps travel as.
    mask : bool ndarray of the same shape, optional
        Only values that it marks are packed, in order.

    Returns
    -------
    dict
        "low" and "high" of each channel, the number of "steps" between them, and the "data".
    """
    by_channel = values.reshape(len(values), -1)
    low = by_channel.min(1)
    high = by_channel.max(1)
    steps = int(np.iinfo(dtype).max)
    span = np.where(high > low, high - low, 1)
    fraction = (by_channel - low[:, None]) / span[:, None]
    whole = np.rint(fraction * steps).astype(dtype)
    if mask is not None:
        whole = whole[mask.reshape(by_channel.shape)]
    little_endian = whole.astype(whole.dtype.newbyteorder("<"))
    return {
        "low": low.tolist(),
        "high": high.tolist(),
        "steps": steps,
        "data": _base64(little_endian),
    }


def pack_bits(mask: Array) -> str:
    """Pack a mask, eight values to the byte."""
    return _base64(np.packbits(mask, bitorder="little"))


def json_numbers(values: Array) -> list[float | None]:
    """Round numbers to seven digits; what JSON has no number for is null."""
    numbers = np.asarray(values, float).tolist()
    return [float(f"{value:.7g}") if np.isfinite(value) else None for value in numbers]


def _base64(values: Array) -> str:
    return b64encode(values.tobytes()).decode("ascii")
