"""Limits: whether counterfactuals keep their constraints, checked anew on the arrays themselves."""

from __future__ import annotations

import numpy as np

from ..engine.constraints import Constraints, spread
from ..engine.result import Counterfactuals
from ..metrics.base import as_array
from ..models.classifier import Array


def audit(result: Counterfactuals, constraints: Constraints) -> dict[str, Array]:
    """For each limit in force, which rows keep it. A row that was not to be changed keeps them all."""
    x, x_cf = (as_array(values).astype(np.float64) for values in (result.X, result.X_cf))
    if result.modality == "series" and x.ndim == 2:
        x, x_cf = x[:, None], x_cf[:, None]
    shape = x.shape[1:]
    checks: dict[str, Array] = {}
    if constraints.lower is not None:
        lower = spread(constraints.lower, shape, "lower")
        checks[f"nothing below {_range(lower)}"] = (x_cf >= lower) | _rounded(x, x_cf, lower)
    if constraints.upper is not None:
        upper = spread(constraints.upper, shape, "upper")
        checks[f"nothing above {_range(upper)}"] = (x_cf <= upper) | _rounded(x, x_cf, upper)
    if constraints.frozen is not None:
        frozen = spread(constraints.frozen, shape, "frozen", bool)
        checks[f"{int(frozen.sum())} of {frozen.size} values frozen"] = ~frozen | (x_cf == x)
    step = constraints.max_step
    if step is not None:
        checks[f"no step larger than {step:g}"] = np.abs(np.diff(x_cf, axis=-1)) <= step * (1 + 1e-6)
    exempt = result.status == "already_target"
    return {words: kept.all(axis=tuple(range(1, kept.ndim))) | exempt for words, kept in checks.items()}


def _rounded(x: Array, x_cf: Array, bound: Array) -> Array:
    """Values of the instance itself that only their rounding to the model's precision brings to the bound."""
    return np.asarray((x_cf == x) & (x.astype(np.float32) == bound.astype(np.float32)))


def _range(bound: Array) -> str:
    low, high = bound.min(), bound.max()
    return f"{low:g}" if low == high else f"a bound of its own each, from {low:g} to {high:g}"
