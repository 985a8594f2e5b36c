"""How much each segment of an instance matters: a local linear model over segments switched off."""

from __future__ import annotations

from collections.abc import Callable

import torch


def segment_importance(
    p_label: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    x: torch.Tensor,
    segment: torch.Tensor,
    n_masks: int = 64,
    ridge: float = 1.0,
) -> torch.Tensor:
    """Importance in [0, 1] per row and segment, as LIME finds it for series (Guillemé et al. 2019).

    In a random half of the segments the series is replaced by the segment's own mean. A ridge regression of
    the model's probability on which segments were kept gives coefficients; their size over the row's largest
    is the importance. All rows share the masks: one model batch, one small linear system.

    Parameters
    ----------
    p_label : (rows (m, *shape), their positions in x) → probability of the class each row's instance has.
    x : (n, *shape).
    segment : (*shape), the segment each value belongs to.
    """
    n_segments = int(segment.max()) + 1
    flat, ids = x.flatten(1), segment.flatten()
    sums = flat.new_zeros(len(x), n_segments).index_add_(1, ids, flat)
    means = (sums / torch.bincount(ids, minlength=n_segments))[:, ids].reshape(x.shape)

    generator = torch.Generator().manual_seed(0)
    kept = torch.rand(n_masks, n_segments, generator=generator) < 0.5
    which = torch.arange(len(x)).repeat_interleave(n_masks).to(x.device)
    mask = kept[:, segment.cpu()].to(x.device).repeat(len(x), *[1] * (x.ndim - 1))
    p = p_label(torch.where(mask, x[which], means[which]), which).reshape(len(x), n_masks).double()

    Z = kept.double().to(x.device) - kept.double().mean(0).to(x.device)
    gram = Z.T @ Z + ridge * torch.eye(n_segments, dtype=torch.float64, device=x.device)
    coefficient = torch.linalg.solve(gram, Z.T @ (p - p.mean(1, keepdim=True)).T).T.abs()
    largest = coefficient.amax(1, keepdim=True)
    return torch.where(largest > 0, coefficient / largest.clamp_min(1e-300), 0.0).to(x.dtype)
