"""What differentiable twins are made of: numbers of a fitted estimator, decisions as logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

Twin = Callable[[Tensor], Tensor]


def copied(values: Any) -> Tensor:
    """Copy values into a tensor, so that refitting the estimator does not change its twin."""
    dense = values.toarray() if hasattr(values, "toarray") else values
    return torch.tensor(np.asarray(dense, dtype=np.float64))


def as_logits(decision: Tensor) -> Tensor:
    """Turn decision values (n, classes), or (n, 1) for two classes, into logits."""
    if decision.shape[1] > 1:
        return decision
    return torch.cat([torch.zeros_like(decision), decision], dim=1)
