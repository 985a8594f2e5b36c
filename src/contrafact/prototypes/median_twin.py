"""Gradients of MedianLVQ, for the metrics that have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .layers import Custom, Euclidean
from .losses import class_scores
from .soft_dtw import WarpedDistance, band_width

if TYPE_CHECKING:
    from .median import MedianLVQ

#: the root has no gradient at 0
TINY = torch.finfo(torch.float32).tiny


def median_twin(model: MedianLVQ) -> Callable[[Tensor], Tensor] | None:
    """Return a differentiable function with the probabilities of a fitted model.

    Parameters
    ----------
    model : MedianLVQ
        The model.

    Returns
    -------
    function or None
        From a Tensor of rows (n, features) to logits (n, classes); None where the metric has no
        gradient.
    """
    if model.metric not in ("euclidean", "dtw", "soft_dtw"):
        return None
    distance = _distance(model)
    owner = model._owner()
    n_classes = len(model.classes_)
    temperature = model.temperature_

    def logits(x: Tensor) -> Tensor:
        return class_scores(distance(x), owner.to(x.device), n_classes, temperature)

    return logits


def _distance(model: MedianLVQ) -> Callable[[Tensor], Tensor]:
    """Return the distances (n, K) of rows as a function."""
    prototypes = torch.from_numpy(model._flat_prototypes())
    if model.metric == "euclidean":
        layer = Euclidean(prototypes, prototypes.mean(0)).requires_grad_(False)
        return lambda x: layer(x).clamp_min(TINY).sqrt()
    gamma = 0.0
    if model.metric == "soft_dtw":
        gamma = (model.metric_params or {}).get("gamma", 1.0)
    length = model.shape_[-1]
    function = WarpedDistance(length, band_width(model.window, length), gamma)
    return Custom(prototypes, function).requires_grad_(False)
