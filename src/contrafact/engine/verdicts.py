"""Reading verdicts: the target's value, its lead, and which rows are usable."""

from __future__ import annotations

import torch
from torch import Tensor

from ..models.classifier import Verdict


def target_value(values: Tensor, target: Tensor) -> Tensor:
    """Pick the target's value in every row.

    Parameters
    ----------
    values : Tensor of shape (n, classes)
        Probabilities or scores.
    target : Tensor of shape (n,)
        Column to pick.

    Returns
    -------
    Tensor of shape (n,)
        values[j, target[j]].
    """
    return values.gather(1, target[:, None])[:, 0]


def lead(values: Tensor, target: Tensor) -> Tensor:
    """Compute how far the target's value is above the best of the other classes.

    Parameters
    ----------
    values : Tensor of shape (n, classes)
        Probabilities or scores.
    target : Tensor of shape (n,)
        Column of the target.

    Returns
    -------
    Tensor of shape (n,)
        Positive where the target leads.
    """
    others = values.scatter(1, target[:, None], -torch.inf)
    return target_value(values, target) - others.amax(1)


def is_finite(verdict: Verdict) -> Tensor:
    """Return the mask of the rows whose probabilities and scores are all finite."""
    return verdict.proba.isfinite().all(1) & verdict.score.isfinite().all(1)


def choose_rows(mask: Tensor, first: Verdict, second: Verdict) -> Verdict:
    """Combine two verdicts: rows of the first where `mask` is True, of the second elsewhere."""
    return Verdict(
        torch.where(mask[:, None], first.proba, second.proba),
        torch.where(mask, first.label, second.label),
        torch.where(mask[:, None], first.score, second.score),
    )
