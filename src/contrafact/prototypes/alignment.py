"""Which time steps of two series a prototype model compares with each other."""

from __future__ import annotations

import numpy as np

from .dissimilarity import ELASTIC_OPTIONS, Array
from .estimator import PrototypeClassifier
from .layers import Custom
from .soft_dtw import WarpedDistance, band_width
from .warped_layers import WarpedRelevance


def alignment_path(model: PrototypeClassifier, x: Array, w: Array) -> Array:
    """Return the pairs of time steps that the distance of a model compares.

    Of soft DTW, which weighs all paths, it is the most probable one. A model without warping
    compares equal times.

    Parameters
    ----------
    model : PrototypeClassifier
        Fitted to series.
    x, w : arrays of shape (channels, length)
        An instance and a prototype.

    Returns
    -------
    int array of shape (steps, 2)
        The pairs (i, j), time i of x and time j of w, from the first to the last.
    """
    length = x.shape[-1]
    metric = getattr(model, "metric", None)
    layer = getattr(model, "layer_", None)
    if isinstance(layer, Custom | WarpedRelevance) and isinstance(layer.function, WarpedDistance):
        importance = np.ones(length)
        if isinstance(layer, WarpedRelevance):
            importance = length * layer.relevances.cpu().double().numpy()
        return _cheapest(x, w, importance, layer.function.band)
    if not isinstance(metric, str) or metric not in ELASTIC_OPTIONS:
        return np.arange(length).repeat(2).reshape(-1, 2)
    window = getattr(model, "window", None)
    if metric in ("dtw", "soft_dtw"):
        return _cheapest(x, w, np.ones(length), band_width(window, length))
    from aeon.distances import alignment_path as aeon_path

    params = getattr(model, "metric_params", None) or {}
    path, _ = aeon_path(x, w, method=metric, window=window, **params)
    return np.array(path)


def _cheapest(x: Array, w: Array, importance: Array, band: int) -> Array:
    """Return the path of DTW."""
    from .warping_kernels import cheapest_path

    a, b = (np.array(one, dtype=np.float64, order="C") for one in (x, w))
    return np.asarray(cheapest_path(a, b, np.ascontiguousarray(importance), band))
