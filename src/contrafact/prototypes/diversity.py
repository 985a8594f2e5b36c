"""Choosing a few candidates that differ: greedy maximization of a determinant."""

from __future__ import annotations

import torch
from torch import Tensor


def select_diverse(
    candidates: Tensor,
    k: int,
    quality: Tensor | None = None,
) -> Tensor:
    """Choose k of m candidates that are good and differ from each other, for many pools at once.

    Greedy MAP inference of a determinantal point process,

        L = diag(q) K diag(q),    K_ij = exp(−‖c_i − c_j‖² / (2σ²)),

    with σ² the pool's median squared distance, adds in turn the candidate with the largest gain
    in log det L. The first one chosen is the best by quality.

    Parameters
    ----------
    candidates : Tensor of shape (m, features) or (pools, m, ...)
        Candidates of one pool or of several; with a `quality` of shape (m,), one pool (m, ...).
    k : int
        How many to choose, at most m.
    quality : Tensor of shape (m,) or (pools, m), optional
        q, positive; default: all equal.

    Returns
    -------
    int Tensor of shape (k,) or (pools, k)
        Positions of the chosen candidates, in the order chosen.

    References
    ----------
    Chen, Zhang, Zhou: Fast greedy MAP inference for determinantal point process to improve
    recommendation diversity. NeurIPS 2018.

    Examples
    --------
    >>> points = torch.tensor([[0.0], [0.01], [5.0]])
    >>> select_diverse(points, 2, quality=torch.tensor([1.0, 0.9, 0.8])).tolist()
    [0, 2]
    """
    if quality is None:
        single = candidates.ndim == 2
    else:
        single = quality.ndim == 1
    pools = candidates[None] if single else candidates
    flat = pools.flatten(2).double()  # (pools, m, features)
    n, m, _ = flat.shape
    if not 1 <= k <= m:
        raise ValueError(f"k must be between 1 and the number of candidates ({m}), got {k}.")
    if quality is None:
        q = torch.ones(
            n,
            m,
            dtype=flat.dtype,
            device=flat.device,
        )
    else:
        q = quality.reshape(n, m).double()
    chosen = _greedy_choice(_kernel(flat, q), k)
    return chosen[0] if single else chosen


def _kernel(flat: Tensor, q: Tensor) -> Tensor:
    """Compute L (pools, m, m) of candidates (pools, m, features) and qualities (pools, m)."""
    distance = torch.cdist(flat, flat, compute_mode="donot_use_mm_for_euclid_dist")
    squared = distance.square()
    median = squared.flatten(1).median(1).values
    tiny = torch.finfo(flat.dtype).tiny
    scale = median.clamp_min(tiny)[:, None, None]
    similarity = (-squared / (2 * scale)).exp()
    return q[:, :, None] * similarity * q[:, None, :]


def _greedy_choice(kernel: Tensor, k: int) -> Tensor:
    """Choose k candidates per pool by incremental Cholesky factorization of the kernel.

    `gain` is the squared distance of each candidate to the span of those chosen.
    """
    n, m, _ = kernel.shape
    gain = kernel.diagonal(dim1=1, dim2=2).clone()  # (pools, m)
    factors = torch.zeros(
        n,
        k,
        m,
        dtype=kernel.dtype,
        device=kernel.device,
    )
    chosen = torch.empty(
        n,
        k,
        dtype=torch.long,
        device=kernel.device,
    )
    pool = torch.arange(n, device=kernel.device)
    for step in range(k):
        best = gain.argmax(1)
        chosen[:, step] = best
        pivot = factors[pool, :, best]  # (pools, k)
        row = kernel[pool, best] - torch.einsum("nk,nkm->nm", pivot, factors)
        height = gain[pool, best].sqrt()[:, None]
        # Where only copies of those chosen remain, nothing is gained: they follow in order.
        factor = torch.where(height > 0, row / height, 0)
        factors[:, step] = factor
        gain = (gain - factor.square()).clamp_min(0)
        gain = gain.scatter(1, chosen[:, : step + 1], -torch.inf)
    return chosen
