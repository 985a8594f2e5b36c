"""The arrays of one counterfactual: before, after, and which values changed."""

from __future__ import annotations

import numpy as np

from ..engine.result import Counterfactuals, as_numpy
from ..models.classifier import Array


def pair(result: Counterfactuals, i: int) -> tuple[Array, Array]:
    """Return instance and counterfactual of row i in float64; series have their channel axis."""
    x = as_numpy(result.X[i]).astype(np.float64)
    x_cf = as_numpy(result.X_cf[i]).astype(np.float64)
    if _lacks_channels(result):
        return x[None], x_cf[None]
    return x, x_cf


def changed_mask(result: Counterfactuals, i: int) -> Array:
    """Return which values of row i changed, by `Counterfactuals.changed`, shaped as by `pair`."""
    changed = as_numpy(result[i].changed)
    return changed if _lacks_channels(result) else changed[0]


def relative_change(x: Array, x_cf: Array) -> Array:
    """Return the size of each change as a fraction of the larger of the two values.

    Features are measured in units of their own, so their changes are compared by this.

    Parameters
    ----------
    x, x_cf : ndarray
        Values before and after.

    Returns
    -------
    ndarray
        Of the same shape; at most 2, where the sign turned.
    """
    larger = np.fmax(np.abs(x), np.abs(x_cf))
    return np.asarray(np.abs(x_cf - x) / np.fmax(larger, np.finfo(float).tiny))


def _lacks_channels(result: Counterfactuals) -> bool:
    """Say whether these are univariate series given without their channel axis."""
    return result.modality == "series" and len(result.X.shape) == 2
