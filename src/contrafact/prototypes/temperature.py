"""The temperature of class probabilities, from labeled rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq
from torch import Tensor

from .losses import class_scores


def likely_temperature(
    d: Tensor,
    t: Tensor,
    owner: Tensor,
    weight: NDArray[Any] | None = None,
) -> float:
    """Find the temperature under which labels are most probable: argmin over T of −Σ log P(t | x).

    The sum is convex in β = 1/T, with slope Σ (E_P[s] − s_t) for the scores s = −d_c. Where no row
    is wrong T would sink to 0: it stays above 1/30 of the mean nearest distance.

    Parameters
    ----------
    d : Tensor of shape (n, K)
        Distances of the rows to the prototypes.
    t : int Tensor of shape (n,)
        Class of each row, as a column.
    owner : int Tensor of shape (K,)
        Class of each prototype, as a column.
    weight : array of shape (n,), optional
        Weight of each row.

    Returns
    -------
    float
        The temperature, in units of d.
    """
    n_classes = int(owner.max()) + 1
    scores = class_scores(d.double(), owner, n_classes, 1.0)
    nearest = -scores.amax(1).cpu().numpy()
    unit = float(np.average(nearest, weights=weight)) or 1.0
    s = scores / unit
    s_label = s.gather(1, t[:, None])[:, 0]
    w = 1.0 if weight is None else torch.from_numpy(weight).to(s)

    def slope(log_beta: float) -> float:
        probability = (np.exp(log_beta) * s).softmax(1)
        expected = (probability * s).sum(1)
        return float((w * (expected - s_label)).sum())

    coldest = np.log(30)  # log β at T = unit / 30
    warmest = np.log(1e-3)  # log β at T = unit * 1,000
    if slope(coldest) <= 0:
        return unit / 30
    if slope(warmest) >= 0:
        return unit * 1e3
    log_beta = brentq(slope, warmest, coldest, xtol=1e-12)
    return unit / float(np.exp(log_beta))
