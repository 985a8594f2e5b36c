"""Shapelets: stretches of series that tell one class from the others, mined by aeon."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...guides.guide import to_numpy

#: standard deviation up to which a stretch counts as flat
FLAT = 1e-8


@dataclass(frozen=True)
class Shapelet:
    """A stretch of a reference series that tells one class from the others.

    values : (length,) around its own mean.
    channel, start : where it goes when inserted: the median of where the rows of its class have it.
    threshold : it occurs where the z-normalized distance to a window is at most this.
    column : its class.
    """

    values: Tensor
    channel: int
    start: int
    threshold: float
    column: int


def mine(
    X: Tensor,
    column: Tensor,
    *,
    n_candidates: int,
    max_shapelets: int,
    max_length: int,
    random_state: int,
) -> list[Shapelet]:
    """Shapelets of the classes `column` of series X (n, channels, length); none where there is one class."""
    from aeon.transformations.collection.shapelet_based import RandomShapeletTransform

    if len(column.unique()) < 2:
        return []
    transform = RandomShapeletTransform(
        n_shapelet_samples=n_candidates,
        max_shapelets=max_shapelets,
        max_shapelet_length=max_length,
        batch_size=min(100, n_candidates),
        random_state=random_state,
    ).fit(to_numpy(X), column.cpu().numpy())
    found = []
    for _, length, start, channel, case, class_index, *_ in transform.shapelets:
        stretch = X[case, channel, start : start + length]
        c = int(transform.classes_[class_index])
        own = column == c
        distance, place = window_distance(X[:, channel], stretch).min(1)
        threshold = best_cut(distance, own)
        where = int(place[own & (distance <= threshold)].median())
        found.append(Shapelet(stretch - stretch.mean(), channel, where, threshold, c))
    return found


def best_cut(distance: Tensor, own: Tensor) -> float:
    """The distance that best parts a class from the others: most of its own below, most others above."""
    value, order = distance.sort(stable=True)
    share = own[order].double() / own.sum() - (~own[order]).double() / (~own).sum()
    at = int(share.cumsum(0).argmax())
    return float(value[at : at + 2].mean())


def window_distance(x: Tensor, values: Tensor) -> Tensor:
    """1/L ‖z(values) − z(w)‖² for every window w of the series x (n, length): (n, length − L + 1).

    The products with all windows come from one Fourier transform. A flat window or shapelet is all 0 after z,
    as in aeon.
    """
    size, length = x.shape[1], len(values)
    x = x.double() - x.double().mean(1, keepdim=True)
    s = values.double() - values.double().mean()
    s = s / s.std(correction=0) if float(s.std(correction=0)) > FLAT else torch.zeros_like(s)
    spectrum = torch.fft.rfft(x, 2 * size) * torch.fft.rfft(s, 2 * size).conj()
    product = torch.fft.irfft(spectrum, 2 * size)[:, : size - length + 1]
    sums = torch.nn.functional.pad(torch.stack([x, x.square()]).cumsum(2), (1, 0))
    mean, square = (sums[:, :, length:] - sums[:, :, :-length]) / length
    std = (square - mean.square()).clamp_min(0).sqrt()
    flat = std <= FLAT + 1e-6 * x.abs().amax(1, keepdim=True)  # running sums leave some rounding
    near: Tensor = 1 - 2 * product / (length * std.masked_fill(flat, 1.0))
    return (near.masked_fill(flat, 0.0) + s.square().mean()).clamp_min(0)
