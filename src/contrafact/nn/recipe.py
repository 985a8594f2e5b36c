"""How a network was trained, and networks to train again."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from .networks import seeded


@dataclass(frozen=True)
class TrainingRecipe:
    """Remember how `fit_classifier` trained a network, to train others in the same way.

    Parameters
    ----------
    network : str or None
        Name of the network; None: a module that the user gave.
    holds_out : bool
        Whether some instances were held out to stop early.
    options : mapping of str to object
        Options of `fit_classifier`, but for data, seed and validation.
    """

    network: str | None
    holds_out: bool
    options: Mapping[str, Any]

    def untrained(self, module: nn.Module, random_state: int) -> str | nn.Module | None:
        """Return what to train.

        Parameters
        ----------
        module : torch.nn.Module
            The module that was trained; never changed.
        random_state : int
            Seed of new weights.

        Returns
        -------
        str, torch.nn.Module or None
            The name of the network, or a copy of the module with new weights; None where some part
            of the module has weights but no `reset_parameters`.
        """
        if self.network is not None:
            return self.network
        if not all(_can_reset(part) for part in module.modules()):
            return None
        fresh = copy.deepcopy(module)
        with seeded(random_state):
            for part in fresh.modules():
                reset = getattr(part, "reset_parameters", None)
                if reset is not None:
                    reset()
        return fresh


def _can_reset(part: nn.Module) -> bool:
    """Tell whether the weights that a module itself holds can be drawn anew."""
    has_weights = any(True for _ in part.parameters(recurse=False))
    return not has_weights or hasattr(part, "reset_parameters")
