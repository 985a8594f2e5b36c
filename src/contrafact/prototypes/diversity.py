"""Choosing a few candidates that differ: greedy maximization of a determinant."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..numerics.tensors import as_kind, read_tensor
from ..validation import Integer, check_parameters


def select_diverse(
    candidates: Any,
    k: int,
    quality: Any = None,
) -> Any:
    """Choose k of m candidates that are good and differ from each other, for many pools at once.

    Greedy MAP inference of a determinantal point process,

        L = diag(q) K diag(q),    K_ij = exp(−‖c_i − c_j‖² / (2σ²)),

    with σ² the median of the pool's m² squared distances, those of 0 from candidates to themselves
    among them, adds in turn the candidate with the largest gain in log det L. The first one chosen
    is the best by quality.

    Parameters
    ----------
    candidates : array or Tensor of shape (m, features) or (pools, m, ...)
        Candidates of one pool or of several, finite; with a `quality` of shape (m,), one pool
        (m, ...).
    k : int
        How many to choose, at most m.
    quality : array or Tensor of shape (m,) or (pools, m), optional
        q, finite, at least 0; default: all equal.

    Returns
    -------
    int array or Tensor of shape (k,) or (pools, k)
        Positions of the chosen candidates, in the order chosen, of the kind of `candidates`.

    Raises
    ------
    ValueError, TypeError
        If an argument has the wrong shape, type or value.

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
    points = read_tensor(candidates, "candidates", ("m", "..."))
    q = None if quality is None else _read_quality(quality, points)
    single = points.ndim == 2 if q is None else q.ndim == 1
    if points.ndim < (2 if single else 3):
        raise ValueError(
            f"candidates has shape {tuple(points.shape)}. "
            "Accepted: (m, features) or (pools, m, ...)."
        )
    pools = points[None] if single else points
    flat = pools.flatten(2).double()  # (pools, m, features)
    n, m, _ = flat.shape
    rule = Integer(at_least=1, at_most=m)
    check_parameters("select_diverse", {"k": rule}, {"k": k})
    weights = flat.new_ones(n, m)
    if q is not None:
        # The unit of q does not matter; its squares have to be numbers.
        best = q.to(flat).reshape(n, m).amax(1, keepdim=True)
        weights = q.to(flat).reshape(n, m) / torch.where(best > 0, best, 1.0)
    chosen = _greedy_choice(_kernel(flat, weights), k)
    return as_kind(chosen[0] if single else chosen, candidates)


def _read_quality(quality: Any, points: Tensor) -> Tensor:
    """Check the qualities of candidates."""
    shape = tuple(points.shape)
    q = read_tensor(quality, "quality", shape[:1], shape[:2], beside=f"candidates of shape {shape}")
    if bool((q < 0).any()):
        raise ValueError(f"quality must be at least 0, got {q.min().item():g}.")
    return q


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
