"""The rule of planted data as a network: whether a template stands in one of several places."""

from __future__ import annotations

import torch
from torch import Tensor

from ..models.classifier import Array


class MatchedFilter(torch.nn.Module):
    """Compute logits (−g, g) with g = sharpness · (max_i z_i(x) − b) / b.

    z_i(x) = ⟨s_i, x⟩, with s_i the template at place i; the second class is "present".

    Parameters
    ----------
    filters : ndarray of shape (places, *instance)
        The template at each place, 0 elsewhere.
    threshold : float
        b.
    sharpness : float, default=5.0
        Slope of the logits.
    """

    def __init__(
        self,
        filters: Array,
        threshold: float,
        sharpness: float = 5.0,
    ) -> None:
        super().__init__()
        values = torch.from_numpy(filters).double()
        self.filters = torch.nn.Parameter(values, requires_grad=False)
        self.threshold = threshold
        self.sharpness = sharpness

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (n, 2) of instances (n, *instance)."""
        z = x.flatten(1) @ self.filters.flatten(1).T  # (n, places)
        excess = (z.amax(dim=1) - self.threshold) / self.threshold
        g = self.sharpness * excess
        return torch.stack([-g, g], dim=1)
