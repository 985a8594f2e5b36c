"""How much each part of an instance matters: segments masked, segments copied."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ...engine import Tasks
from ...numerics import broadcast_rows
from ...search.segments import count_segments, sum_by_segment

#: numbers built at once; more candidates are tried in turn
MAX_ELEMENTS = 2**24


def segment_importance(
    p_label: Callable[[Tensor, Tensor], Tensor],
    x: Tensor,
    segment: Tensor,
    n_masks: int = 64,
    ridge: float = 1.0,
) -> Tensor:
    """Measure the importance of segments as LIME does for series.

    In a random half of the segments the series is replaced by the segment's own mean. A ridge
    regression of the model's probability on which segments were kept gives coefficients; their size
    over the instance's largest is the importance. All instances share the masks: one model batch,
    one small linear system.

    Parameters
    ----------
    p_label : function of (candidates, which)
        Probability of the class that each candidate's instance has; `which` are its positions in x.
    x : Tensor of shape (n, *shape)
        Instances.
    segment : Tensor of int, shape `shape`
        The segment of each value.
    n_masks : int, default=64
        Random masks.
    ridge : float, default=1
        Weight of the penalty.

    Returns
    -------
    Tensor of shape (n, segments)
        Importance in [0, 1].

    References
    ----------
    Guillemé, Masson, Rozé, Termier: Agnostic local explanation for time series classification.
    ICTAI 2019.
    """
    n_segments = count_segments(segment)
    ids = segment.flatten()
    means = sum_by_segment(x, segment) / torch.bincount(ids, minlength=n_segments)
    means = means[:, ids].reshape(x.shape)

    generator = torch.Generator().manual_seed(0)
    kept = torch.rand(n_masks, n_segments, generator=generator) < 0.5
    which = torch.arange(len(x)).repeat_interleave(n_masks).to(x.device)
    mask = kept[:, segment.cpu()].to(x.device)  # (masks, *shape)
    mask = mask.repeat(len(x), *[1] * (x.ndim - 1))
    p = p_label(torch.where(mask, x[which], means[which]), which)
    p = p.reshape(len(x), n_masks).double()

    kept = kept.double().to(x.device)
    Z = kept - kept.mean(0)
    penalty = ridge * torch.eye(n_segments, dtype=torch.float64, device=x.device)
    response = (p - p.mean(1, keepdim=True)).T
    coefficient = torch.linalg.solve(Z.T @ Z + penalty, Z.T @ response).T.abs()
    largest = coefficient.amax(1, keepdim=True)
    importance = torch.where(
        largest > 0,
        coefficient / largest.clamp_min(1e-300),
        0.0,
    )
    return importance.to(x.dtype)


def copy_gain(tasks: Tasks, segment: Tensor) -> Tensor:
    """Measure what copying each segment of the guide alone adds to the target's lead.

    Parameters
    ----------
    tasks : Tasks
        With guides.
    segment : Tensor of int, shape of one instance
        The segment of each value.

    Returns
    -------
    Tensor of float64, shape (n, segments)
        The gain, one model row each; 0 where the budget does not allow it.
    """
    n_segments = count_segments(segment)
    device = tasks.row.device
    gain = torch.zeros(len(tasks), n_segments, dtype=torch.float64, device=device)
    able = tasks.affords(n_segments).nonzero().flatten()
    number = torch.arange(n_segments, device=device)
    at_once = max(1, MAX_ELEMENTS // (n_segments * segment.numel()))
    for part in able.split(at_once):
        some = tasks.take(part)
        trying = some.repeat(n_segments)
        copied = segment == broadcast_rows(number.repeat(len(some)), trying.x)
        x_cf = trying.project(torch.where(copied, trying.guide, trying.x))
        after = trying.lead(trying.ask(x_cf)).reshape(-1, n_segments)
        before = some.lead(some.before)
        gain[part] = after - before[:, None]
    return gain
