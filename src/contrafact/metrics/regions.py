"""Regions that a counterfactual changed: runs of time steps, regions of an image, features."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from ..models.classifier import Array


def runs(mask: Array) -> list[tuple[int, int]]:
    """Return the runs of True in a one-dimensional mask, as (first, one past the last)."""
    steps = np.diff(mask.astype(np.int8), prepend=0, append=0)
    edges = np.flatnonzero(steps).reshape(-1, 2)  # every run has a start and a stop
    return [(int(start), int(stop)) for start, stop in edges]


def count_regions(changed: Array, modality: str) -> Array:
    """Count the separate regions that changed, per row.

    Parameters
    ----------
    changed : ndarray of bool, shape (n, *instance)
        Which values changed.
    modality : {"series", "image", "row"}
        Series: runs along time, summed over channels. Images: 4-connected regions of pixels that
        changed in any channel. Rows: features.

    Returns
    -------
    ndarray of int, shape (n,)
        Number of regions.
    """
    if modality == "image":
        pixels = np.asarray(changed.any(axis=1))
        counts = [ndimage.label(picture)[1] for picture in pixels]
        return np.array(counts, dtype=np.int64)
    if modality == "series":
        values = changed.astype(np.int8)
        starts = np.diff(values, prepend=np.int8(0), axis=-1) == 1
    else:
        starts = changed
    every_value = tuple(range(1, starts.ndim))
    return np.asarray(starts.sum(axis=every_value))
