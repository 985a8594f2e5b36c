"""Candidates: what a method returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from .tasks import Tasks


@dataclass(frozen=True, eq=False)
class Candidates:
    """Counterfactuals that a method found, one per task.

    Parameters
    ----------
    tasks : Tasks
        What each counterfactual is for.
    x : Tensor of shape (n, *shape)
        The counterfactuals.
    info : dict of str to Tensor
        What the method has to tell, one entry per counterfactual.
    """

    tasks: Tasks
    x: Tensor
    info: dict[str, Tensor] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.x)

    @staticmethod
    def concat(parts: Sequence[Candidates]) -> Candidates:
        """Join the candidates of several searches of one request."""
        if len(parts) == 1:
            return parts[0]
        bare = [replace(part.tasks, attached={}) for part in parts]
        names = parts[0].info
        return Candidates(
            parts[0].tasks.concat(bare),
            torch.cat([part.x for part in parts]),
            {name: torch.cat([part.info[name] for part in parts]) for name in names},
        )
