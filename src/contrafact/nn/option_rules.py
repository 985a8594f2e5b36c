"""Rules for the options of networks and of their training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..validation import Boolean, Integer, Nothing, Real, Rule, Satisfies

#: channels, features, classes, widths of layers
SIZE = Integer(at_least=1, at_most=10**6)
#: layers, members of an ensemble
FEW = Integer(at_least=1, at_most=1000)
#: steps, epochs, restarts
STEPS = Integer(at_least=1, at_most=10**6)
#: largest factor of a step; single precision holds it
MOST = 1e30
#: seed of torch and NumPy
SEED = Integer(at_least=0, at_most=2**63 - 1)


def _is_device(value: Any) -> bool:
    """Return whether torch can compute on the device of this name."""
    if not isinstance(value, str | torch.device):
        return False
    try:
        # torch raises AssertionError where it was built without the device.
        return not torch.empty(0, device=value).is_meta
    except (RuntimeError, AssertionError):
        return False


def _is_share_or_pair(value: Any) -> bool:
    """Return whether the value is a share to hold out, or a pair (X_val, y_val)."""
    if isinstance(value, tuple):
        return len(value) == 2
    return Real(at_least=0, below=1).accepts(value)


class Sizes(Rule):
    """Accept a sequence of sizes.

    Parameters
    ----------
    *lengths : int
        Accepted numbers of entries; default: one or more.
    empty : bool, default=False
        Accept no entries as well.
    """

    def __init__(self, *lengths: int, empty: bool = False) -> None:
        self.lengths = lengths
        self.empty = empty

    def accepts(self, value: Any) -> bool:
        """Return whether the value is such a sequence."""
        is_sequence = isinstance(value, Sequence) and not isinstance(value, str | bytes)
        if not is_sequence and not (isinstance(value, np.ndarray) and value.ndim == 1):
            return False
        if self.lengths and len(value) not in self.lengths:
            return False
        return (self.empty or len(value) > 0) and all(SIZE.accepts(size) for size in value)

    def __str__(self) -> str:
        """Describe the accepted values."""
        count = " or ".join(map(str, self.lengths)) + " " if self.lengths else ""
        return f"a sequence of {count}whole numbers at least 1"


DEVICE_NAME = Satisfies(_is_device, "the name of a torch device that is here, e.g. 'cpu'")
DEVICE = DEVICE_NAME | Nothing()

#: options of every function that trains a network
TRAINING_RULES: dict[str, Rule] = {
    "validation": Satisfies(
        _is_share_or_pair,
        "a share from 0 to below 1, a pair (X_val, y_val)",
    )
    | Nothing(),
    "max_epochs": STEPS,
    "batch_size": Integer(at_least=1, at_most=10**12),
    "learning_rate": Real(at_least=0, at_most=MOST),
    "weight_decay": Real(at_least=0, at_most=MOST),
    "patience": Integer(at_least=0),
    "random_state": SEED,
    "progress": Boolean(),
    "device": DEVICE,
}
