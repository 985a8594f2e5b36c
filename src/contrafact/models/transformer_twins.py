"""Differentiable twins of what a pipeline does before its classifier: scaling and PCA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from sklearn.decomposition import PCA
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from torch import Tensor

from .twin_tensors import Twin, copied


def _shift_scale(
    shift: Any,
    scale: Any,
    clip: tuple[float, float] | None = None,
) -> Twin:
    """Compute (x - shift) / scale, clipped where the scaler clips."""
    c = copied(0.0 if shift is None else shift)
    s = copied(1.0 if scale is None else scale)

    def transform(x: Tensor) -> Tensor:
        scaled = (x - c.to(x)) / s.to(x)
        if clip is None:
            return scaled
        low, high = clip
        return scaled.clamp(low, high)

    return transform


def _standard(scaler: Any) -> Twin:
    """Standardize."""
    mean = scaler.mean_ if scaler.with_mean else None  # mean_ exists even where with_mean=False
    return _shift_scale(mean, scaler.scale_)


def _min_max(scaler: Any) -> Twin:
    """Scale to a range."""
    clip = scaler.feature_range if scaler.clip else None
    return _shift_scale(-scaler.min_ / scaler.scale_, 1 / scaler.scale_, clip)


def _max_abs(scaler: Any) -> Twin:
    """Scale by the largest absolute value."""
    clip = (-1.0, 1.0) if getattr(scaler, "clip", False) else None
    return _shift_scale(None, scaler.scale_, clip)


def _robust(scaler: Any) -> Twin:
    """Scale by median and quantile range."""
    return _shift_scale(scaler.center_, scaler.scale_)


def _pca(estimator: Any) -> Twin:
    """Project: z = V (x - mean), whitened where the estimator whitens."""
    mean = copied(estimator.mean_)
    V = copied(estimator.components_)
    if estimator.whiten:
        deviation = copied(estimator.explained_variance_).sqrt()
        smallest = torch.finfo(torch.float64).eps
        V = V / deviation.clamp(min=smallest)[:, None]

    def transform(x: Tensor) -> Tensor:
        centered = x - mean.to(x)
        components = V.to(x)
        return centered @ components.T

    return transform


TRANSFORMERS: dict[type, Callable[[Any], Twin]] = {
    StandardScaler: _standard,
    MinMaxScaler: _min_max,
    MaxAbsScaler: _max_abs,
    RobustScaler: _robust,
    PCA: _pca,
}
