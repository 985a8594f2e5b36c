"""Limits that were set on the page, as constraints of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..engine import Constraints
from ..models.classifier import Array
from ..tables import Column
from .explorer_messages import LimitsMessage
from .workspace import Workspace


def make_constraints(workspace: Workspace, limits: LimitsMessage) -> Constraints | None:
    """Make the constraints that a client asked for.

    Parameters
    ----------
    workspace : Workspace
        What is explored.
    limits : LimitsMessage
        What the client sent.

    Returns
    -------
    Constraints or None
        None where nothing is limited.

    Raises
    ------
    ValueError
        If a limit has the wrong shape or does not apply here.
    """
    frozen = read_frozen(workspace, limits)
    lower = _per_part(workspace, limits.lower, "lower", -np.inf)
    upper = _per_part(workspace, limits.upper, "upper", np.inf)
    max_step = _per_part(workspace, limits.max_step, "max_step", np.inf)
    if workspace.schema is None:
        given: dict[str, Any] = {
            "frozen": frozen,
            "lower": _over_instance(lower, workspace),
            "upper": _over_instance(upper, workspace),
            "max_step": max_step,
        }
    else:
        if max_step is not None:
            raise ValueError("max_step applies to series; these are rows of a table.")
        columns = workspace.schema.columns
        names = [] if frozen is None else [columns[j].name for j in np.flatnonzero(frozen)]
        given = {"frozen": names or None, "bounds": _bounds(columns, lower, upper) or None}
    constraints = Constraints(
        **given,
        increasing=limits.increasing or None,
        decreasing=limits.decreasing or None,
        max_changed=limits.max_changed,
    )
    return constraints if constraints.kinds else None


def read_frozen(workspace: Workspace, limits: LimitsMessage) -> Array | None:
    """Return the mask of what may not change, shaped as an instance; None where all may."""
    if limits.frozen is None:
        return None
    try:
        mask = np.array(limits.frozen)
    except ValueError:
        mask = np.array(None)
    if mask.dtype != bool or mask.shape != workspace.shape:
        raise ValueError(f"frozen must hold true and false in the shape {workspace.shape}.")
    return mask if mask.any() else None


def _per_part(
    workspace: Workspace, values: Sequence[float | None] | None, name: str, nothing: float
) -> Array | None:
    """Return one number per channel or column; None where there is no limit at all."""
    if values is None or all(value is None for value in values):
        return None
    if len(values) != workspace.shape[0]:
        raise ValueError(
            f"{name} has {len(values)} entries. Accepted: {workspace.shape[0]}, one for each "
            "channel or column."
        )
    return np.array([nothing if value is None else value for value in values])


def _over_instance(bound: Array | None, workspace: Workspace) -> Array | None:
    """Give a bound by channel the shape that cannot be mistaken for another."""
    if bound is None:
        return None
    return bound.reshape(-1, *[1] * (len(workspace.shape) - 1))


def _bounds(
    columns: Sequence[Column], lower: Array | None, upper: Array | None
) -> dict[str, tuple[Any, Any]]:
    """Return the ranges of columns of a table by name."""
    bounds = {}
    for j, column in enumerate(columns):
        low = _end(column, lower, j)
        high = _end(column, upper, j)
        if low is not None or high is not None:
            bounds[column.name] = (low, high)
    return bounds


def _end(column: Column, bound: Array | None, j: int) -> Any:
    """Return one end of a range: a number, a level of an ordered column, or None."""
    if bound is None or np.isinf(bound[j]):
        return None
    if column.kind == "ordered":
        return column.levels[int(np.clip(bound[j], 0, len(column.levels) - 1))]
    return float(bound[j])
