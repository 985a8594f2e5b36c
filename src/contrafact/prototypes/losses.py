"""Losses of the LVQ family: functions of the distances d (n, K) and of `same` (n, K), which prototypes are of
the row's own class. Each gives one value per row."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Transfer = Literal["identity", "sigmoid", "swish"]


def nearest_two(d: Tensor, same: Tensor) -> tuple[Tensor, Tensor]:
    """d⁺ and d⁻: distance to the nearest prototype of the own class, and of any other."""
    return d.masked_fill(~same, torch.inf).amin(1), d.masked_fill(same, torch.inf).amin(1)


def relative_distance(d: Tensor, same: Tensor) -> Tensor:
    """μ = (d⁺ − d⁻) / (d⁺ + d⁻), from −1 (right, and sure) to 1; 0 where both are 0."""
    plus, minus = nearest_two(d, same)
    return (plus - minus) / (plus + minus).clamp_min(torch.finfo(d.dtype).tiny)


def glvq(d: Tensor, same: Tensor, transfer: Transfer, beta: float, margin: float | None) -> Tensor:
    """f(μ), or f(max(μ + margin, 0)) (Sato, Yamada 1995)."""
    mu = relative_distance(d, same)
    if margin is not None:
        mu = (mu + margin).clamp_min(0)
    if transfer == "sigmoid":
        return (beta * mu).sigmoid()
    return mu * (beta * mu).sigmoid() if transfer == "swish" else mu


def lvq1(d: Tensor, same: Tensor) -> Tensor:
    """±d of the winner: its gradient draws the winner in where it is right, pushes it away where wrong."""
    d_win, winner = d.min(1)
    right = same.gather(1, winner[:, None])[:, 0]
    return torch.where(right, d_win, -d_win)


def lvq21(d: Tensor, same: Tensor, window: float) -> Tensor:
    """d⁺ − d⁻ where the row lies in the window between the two, min(√(d⁺/d⁻), √(d⁻/d⁺)) > (1−w)/(1+w)."""
    plus, minus = nearest_two(d, same)
    nearer, farther = torch.minimum(plus, minus), torch.maximum(plus, minus)
    inside = nearer > farther * ((1 - window) / (1 + window)) ** 2
    return torch.where(inside, plus - minus, 0.0)


def rslvq(d: Tensor, same: Tensor, temperature: float) -> Tensor:
    """−log Σ_{k of the class} p(k | x),   p(k | x) = softmax(−d/T)_k (Seo, Obermayer 2003)."""
    log_p = (-d / temperature).log_softmax(1)
    return -log_p.masked_fill(~same, -torch.inf).logsumexp(1)


def cross_entropy(d: Tensor, labels: Tensor, t: Tensor, temperature: float) -> Tensor:
    """−log P(t | x), with P as `class_scores` gives it; `labels` (K,) are columns of the classes."""
    scores = class_scores(d, labels, int(labels.max()) + 1, temperature)
    return torch.nn.functional.cross_entropy(scores, t, reduction="none")


def class_scores(d: Tensor, labels: Tensor, n_classes: int, temperature: float) -> Tensor:
    """(n, classes) logits: −d/T of the nearest prototype of each class.

    Its softmax is the class probability, and its largest entry the class of the nearest prototype: what is
    most probable is what is decided, however many prototypes a class has. −inf where it has none.
    """
    nearest = d.new_full((len(d), n_classes), torch.inf)
    nearest = nearest.scatter_reduce(1, labels.expand(len(d), -1), d, "amin", include_self=False)
    return -nearest / temperature
