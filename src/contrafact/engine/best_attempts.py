"""The best candidate of every instance among all that the model was asked about."""

from __future__ import annotations

import torch
from torch import Tensor

from ..models.classifier import Verdict
from .verdicts import lead


class BestAttempts:
    """Keep, per instance, the smallest candidate of the target class, else the closest to it.

    Parameters
    ----------
    x : Tensor of shape (n, *shape)
        The instances; until something was tried, an instance is its own best attempt.
    """

    def __init__(self, x: Tensor) -> None:
        self._x_cf = x.clone()
        self._merit = torch.full((len(x),), -torch.inf, dtype=torch.float64)

    def __getitem__(self, row: Tensor) -> Tensor:
        """Return the best attempts of some instances."""
        return self._x_cf[row]

    def update(
        self,
        x_cf: Tensor,
        row: Tensor,
        x: Tensor,
        verdict: Verdict,
        target: Tensor,
    ) -> None:
        """Take candidates into account.

        Parameters
        ----------
        x_cf : Tensor of shape (m, *shape)
            Candidates.
        row : Tensor of shape (m,)
            Instance of each candidate.
        x : Tensor of shape (m, *shape)
            The instances themselves.
        verdict : Verdict
            What the model says of the candidates.
        target : Tensor of shape (m,)
            Class wanted for each.
        """
        merit = _merit(x_cf, x, verdict, target).cpu()
        row = row.cpu()
        best = torch.full_like(self._merit, -torch.inf)
        best = best.scatter_reduce(0, row, merit, "amax")
        is_best = merit == best[row]
        is_new = merit > self._merit[row]
        winners = (is_best & is_new).nonzero().flatten()
        self._merit = torch.maximum(self._merit, best)
        self._x_cf[row[winners].to(self._x_cf.device)] = x_cf[winners.to(x_cf.device)]


def _merit(x_cf: Tensor, x: Tensor, verdict: Verdict, target: Tensor) -> Tensor:
    """Score candidates: above 1 in the target class, the smaller the change the higher."""
    distance = (x_cf - x).double().flatten(1).abs().mean(1)
    closeness = lead(verdict.score, target).sigmoid()
    return torch.where(verdict.label == target, 1 + 1 / (1 + distance), closeness)
