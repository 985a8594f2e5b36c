"""Where a counterfactual changed: stretches of time, regions of an image, features."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from ..models.classifier import Array


def runs(mask: Array) -> list[tuple[int, int]]:
    """Stretches of True in a one-dimensional mask, as (first, one past the last)."""
    edges = np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0))
    return [(int(start), int(stop)) for start, stop in edges.reshape(-1, 2)]


def count_regions(changed: Array, modality: str) -> Array:
    """How many separate places changed, per row of `changed` (n, *shape).

    Series: runs along time, summed over channels. Images: 4-connected regions of pixels that changed in any
    channel. Rows: features.
    """
    if modality == "image":
        pixels = np.asarray(changed.any(1))
        return np.array([ndimage.label(pixels[i])[1] for i in range(len(pixels))], dtype=np.int64)
    if modality == "series":
        starts = changed.astype(np.int8)
        starts = np.diff(starts, prepend=np.int8(0), axis=-1) == 1
    else:
        starts = changed
    return np.asarray(starts.sum(axis=tuple(range(1, starts.ndim))))
