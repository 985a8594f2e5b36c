"""Which counterfactuals keep which constraint, with words for each constraint."""

from __future__ import annotations

import numpy as np
import torch

from ..engine.constraints import Constraints, broadcast_over_instance
from ..engine.result import Counterfactuals, as_numpy
from ..engine.table_constraints import describe, table_limits
from ..metrics.metric import instance_shape
from ..models.classifier import Array
from ..tables import TableSpace
from .grammar import listed
from .sentences import MOST_NAMED
from .words import name_of, number_text


def kept_constraints(result: Counterfactuals, constraints: Constraints) -> dict[str, Array]:
    """Check every row against the constraints once more.

    Parameters
    ----------
    result : Counterfactuals
        The result.
    constraints : Constraints
        The constraints that were asked for.

    Returns
    -------
    dict of str to bool ndarray of shape (n,)
        For each constraint in words, which rows keep it. A row that was already in the target
        class was not to be changed and keeps them all.
    """
    exempt = result.status == "already_target"
    if result.table is not None:
        by_table = _kept_by_table(result, constraints)
        return {words: kept | exempt for words, kept in by_table.items()}
    shape = instance_shape(result)
    x = as_numpy(result.X).astype(np.float64).reshape(len(result), *shape)
    x_cf = as_numpy(result.X_cf).astype(np.float64).reshape(len(result), *shape)
    kept = constraints.check(x, x_cf)
    return {
        words: kept[kind] | exempt
        for kind, words in _words_by_kind(result, constraints, shape).items()
    }


def _kept_by_table(result: Counterfactuals, constraints: Constraints) -> dict[str, Array]:
    """Check the rows of a table; by the words of each constraint, which rows keep it."""
    limits = table_limits(constraints, TableSpace(result.table_cf))
    kept = limits.take(torch.from_numpy(result.source)).check_rows(
        as_numpy(result.X_cf), as_numpy(result.X)
    )
    words = {
        "frozen": describe(_only(constraints, "frozen", "forbidden")),
        "bounds": describe(
            _only(constraints, "lower", "upper", "bounds", "increasing", "decreasing")
        ),
        "max_changed": describe(_only(constraints, "max_changed")),
        "linked": f"{listed(list(constraints.linked or ()))} as computed from the other columns",
    }
    told = {words.get(name, name): rows for name, rows in kept.items()}
    return {text: rows for text, rows in told.items() if text}


def _only(constraints: Constraints, *names: str) -> Constraints:
    """Return some of the constraints."""
    return Constraints(**{name: getattr(constraints, name) for name in names})


def _words_by_kind(
    result: Counterfactuals, constraints: Constraints, shape: tuple[int, ...]
) -> dict[str, str]:
    """Put the constraints into words; bounds that are infinite everywhere are left out."""
    words = {}
    for kind, relation in (("lower", "below"), ("upper", "above")):
        value = getattr(constraints, kind)
        if value is None:
            continue
        bound = broadcast_over_instance(value, shape, kind)
        if np.isfinite(bound).any():
            words[kind] = f"nothing {relation} {_bound_text(result, bound)}"
    if constraints.frozen is not None:
        words["frozen"] = _frozen_text(
            result, broadcast_over_instance(constraints.frozen, shape, "frozen", bool)
        )
    steps = constraints.step_limits(shape)
    if steps is not None and np.isfinite(steps).any():
        words["max_step"] = f"no step larger than {_bound_text(result, steps)}"
    return words


def _bound_text(result: Counterfactuals, bound: Array) -> str:
    """Say a bound: one number, one for each of a few parts, or its range."""
    if bound.min() == bound.max():
        return number_text(bound.min())
    by_part = bound.reshape(len(bound), -1)
    limited = np.flatnonzero(np.isfinite(by_part).any(1)).tolist()
    few = len(limited) <= MOST_NAMED and len(limited) < len(bound)
    constant = by_part == by_part[:, :1]
    if few and constant.all():
        return listed([f"{number_text(by_part[j, 0])} in {name_of(result, j)}" for j in limited])
    finite = bound[np.isfinite(bound)]
    low = number_text(finite.min())
    high = number_text(finite.max())
    return f"a bound of its own each, from {low} to {high}"


def _frozen_text(result: Counterfactuals, frozen: Array) -> str:
    """Say how many values are frozen, and which parts where only a few whole parts are."""
    words = f"{int(frozen.sum())} of {frozen.size} values frozen"
    by_part = frozen.reshape(len(frozen), -1)
    whole = by_part.all(1)
    only_whole = not by_part[~whole].any()
    few = 0 < whole.sum() <= MOST_NAMED and not whole.all()
    if few and only_whole:
        names = [name_of(result, j) for j in np.flatnonzero(whole).tolist()]
        return f"{words}: {listed(names)}"
    return words
