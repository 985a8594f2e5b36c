"""Limits: whether counterfactuals keep their constraints, checked anew on the arrays themselves."""

from __future__ import annotations

import numpy as np

from ..engine.constraints import Constraints, spread
from ..engine.result import Counterfactuals
from ..metrics.metric import as_array
from ..models.classifier import Array
from .sentences import MOST_NAMED, listed
from .words import name_of


def audit(result: Counterfactuals, constraints: Constraints) -> dict[str, Array]:
    """For each limit in force, which rows keep it. A row that was not to be changed keeps them all."""
    x, x_cf = (as_array(values).astype(np.float64) for values in (result.X, result.X_cf))
    if result.modality == "series" and x.ndim == 2:
        x, x_cf = x[:, None], x_cf[:, None]
    shape = x.shape[1:]
    checks: dict[str, Array] = {}
    if constraints.lower is not None:
        lower = spread(constraints.lower, shape, "lower")
        if np.isfinite(lower).any():
            checks[f"nothing below {_range(result, lower)}"] = (x_cf >= lower) | _rounded(
                x, x_cf, lower
            )
    if constraints.upper is not None:
        upper = spread(constraints.upper, shape, "upper")
        if np.isfinite(upper).any():
            checks[f"nothing above {_range(result, upper)}"] = (x_cf <= upper) | _rounded(
                x, x_cf, upper
            )
    if constraints.frozen is not None:
        frozen = spread(constraints.frozen, shape, "frozen", bool)
        checks[_frozen(result, frozen)] = ~frozen | (x_cf == x)
    step = constraints.max_step
    if step is not None:
        checks[f"no step larger than {step:g}"] = np.abs(np.diff(x_cf, axis=-1)) <= step * (
            1 + 1e-6
        )
    exempt = result.status == "already_target"
    return {
        words: kept.all(axis=tuple(range(1, kept.ndim))) | exempt for words, kept in checks.items()
    }


def _rounded(x: Array, x_cf: Array, bound: Array) -> Array:
    """Values of the instance itself that only their rounding to the model's precision brings to the bound."""
    return np.asarray((x_cf == x) & (x.astype(np.float32) == bound.astype(np.float32)))


def _range(result: Counterfactuals, bound: Array) -> str:
    low, high = bound.min(), bound.max()
    if low == high:
        return f"{low:g}"
    by_part = bound.reshape(len(bound), -1)
    limited = np.flatnonzero(np.isfinite(by_part).any(1))
    few = len(limited) <= MOST_NAMED and len(limited) < len(bound)
    if few and (by_part == by_part[:, :1]).all():
        return listed([f"{by_part[j, 0]:g} in {name_of(result, j)}" for j in limited])
    finite = bound[np.isfinite(bound)]
    return f"a bound of its own each, from {finite.min():g} to {finite.max():g}"


def _frozen(result: Counterfactuals, frozen: Array) -> str:
    words = f"{int(frozen.sum())} of {frozen.size} values frozen"
    by_part = frozen.reshape(len(frozen), -1)
    whole = np.flatnonzero(by_part.all(1))
    if (
        0 < len(whole) <= MOST_NAMED
        and len(whole) < len(frozen)
        and not by_part[~by_part.all(1)].any()
    ):
        return f"{words}: {listed([name_of(result, j) for j in whole])}"
    return words
