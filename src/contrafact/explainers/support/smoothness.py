"""Whether a model's answers are smooth enough for finite differences."""

from __future__ import annotations

import torch
from torch import Tensor

from ...engine import Tasks
from ...search.segments import count_segments


def answers_smoothly(tasks: Tasks, segment: Tensor, h: float = 0.02) -> Tensor:
    """Check whether doubling a small change doubles the answer, as slopes do and steps do not.

    Halfway between instance and guide, each segment is moved by h and by 2 h toward the guide.

    Parameters
    ----------
    tasks : Tasks
        With guides.
    segment : Tensor of int, shape of one instance
        The segment of each value.
    h : float, default=0.02
        The small change, as a share of the way to the guide.

    Returns
    -------
    Tensor of bool, shape (n,)
        True where three in four segments answer in proportion; False also where the budget does
        not allow the questions.
    """
    n_segments = count_segments(segment)
    smooth = torch.zeros(len(tasks), dtype=torch.bool, device=tasks.row.device)
    able = tasks.affords(1 + 2 * n_segments)
    if not bool(able.any()):
        return smooth
    one_each = torch.eye(n_segments)
    steps = torch.cat([torch.zeros(1, n_segments), h * one_each, 2 * h * one_each])
    asking = tasks.take(able)
    count = len(asking)
    theta = (0.5 + steps).to(tasks.x).repeat(count, 1)
    asking = asking.repeat(len(steps))
    x_cf = torch.lerp(asking.x, asking.guide, theta[:, segment])
    lead = asking.lead(asking.ask(asking.project(x_cf))).reshape(count, -1)
    change = lead[:, 1:] - lead[:, :1]
    once, twice = change.tensor_split(2, dim=1)
    proportional = (twice - 2 * once).abs() <= 0.25 * twice.abs()
    answers = (proportional & (twice != 0)).double().mean(1)
    smooth[able] = answers >= 0.75
    return smooth
