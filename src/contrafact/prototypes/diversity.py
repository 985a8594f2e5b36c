"""Choosing few that differ: greedy maximization of a determinant."""

from __future__ import annotations

import torch
from torch import Tensor


def select_diverse(candidates: Tensor, k: int, quality: Tensor | None = None) -> Tensor:
    """Choose k of m candidates that are good and unlike each other, for many pools at once.

    Greedy MAP inference of a determinantal point process (Chen, Zhang, Zhou 2018):

        L = diag(q) K diag(q),   K_ij = exp(−‖c_i − c_j‖² / (2σ²)),   σ² the pool's median squared distance

    adds in turn the candidate with the largest gain in log det L. The first chosen is the best by quality.

    Parameters
    ----------
    candidates : (m, features) or (pools, m, …); with `quality` of shape (m,), (m, …) of any shape
    k : how many to choose; at most m.
    quality : (m,) or (pools, m), positive, optional; default: all equal.

    Returns
    -------
    indices (k,) or (pools, k), in the order chosen.

    Examples
    --------
    >>> points = torch.tensor([[0.0], [0.01], [5.0]])
    >>> select_diverse(points, 2, quality=torch.tensor([1.0, 0.9, 0.8])).tolist()
    [0, 2]
    """
    single = quality.ndim == 1 if quality is not None else candidates.ndim == 2
    pools = candidates[None] if single else candidates
    flat = pools.flatten(2).double()
    n, m, _ = flat.shape
    if not 1 <= k <= m:
        raise ValueError(f"k must be between 1 and the number of candidates ({m}), got {k}.")
    q = (
        torch.ones(n, m, dtype=flat.dtype, device=flat.device)
        if quality is None
        else quality.reshape(n, m).double()
    )
    squared = torch.cdist(flat, flat, compute_mode="donot_use_mm_for_euclid_dist").square()
    scale = (
        squared.flatten(1).median(1).values.clamp_min(torch.finfo(flat.dtype).tiny)[:, None, None]
    )
    kernel = q[:, :, None] * (-squared / (2 * scale)).exp() * q[:, None, :]

    # Incremental Cholesky: `gain` is the squared distance of each candidate to the span of those chosen.
    gain = kernel.diagonal(dim1=1, dim2=2).clone()
    factors = torch.zeros(n, k, m, dtype=flat.dtype, device=flat.device)
    chosen = torch.empty(n, k, dtype=torch.long, device=flat.device)
    pool = torch.arange(n, device=flat.device)
    for step in range(k):
        best = gain.argmax(1)
        chosen[:, step] = best
        pivot = factors[pool, :, best]
        row = kernel[pool, best] - torch.einsum("nk,nkm->nm", pivot, factors)
        height = gain[pool, best].sqrt()[:, None]
        # Where only copies of the chosen remain, nothing is gained: they follow in order, each once.
        factors[:, step] = torch.where(height > 0, row / height, 0)
        gain = (
            (gain - factors[:, step].square())
            .clamp_min(0)
            .scatter(1, chosen[:, : step + 1], -torch.inf)
        )
    return chosen[0] if single else chosen
