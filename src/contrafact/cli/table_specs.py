"""Parsers for the limits of `contrafact explain` that speak of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine import Constraints
from ..tables import Schema
from .specs import Layout, parse_assignment, parse_interval

if TYPE_CHECKING:
    from .explain_request import ExplainRequest


def make_table_constraints(
    request: ExplainRequest, layout: Layout, schema: Schema
) -> Constraints | None:
    """Make the constraints on a table that the options ask for.

    Parameters
    ----------
    request : ExplainRequest
        What was typed.
    layout : Layout
        The columns.
    schema : Schema
        What they hold.

    Returns
    -------
    Constraints or None
        None where nothing is limited.

    Raises
    ------
    ValueError
        If a value cannot be parsed, or an option does not apply to tables.
    """
    if request.max_step is not None:
        raise ValueError("--max-step applies to series; these are row data.")
    lower, upper, bounds = _bounds(request.bounds, schema)
    constraints = Constraints(
        lower=lower,
        upper=upper,
        frozen=_frozen(request.freeze, layout, schema),
        bounds=bounds or None,
        increasing=[name.strip() for name in request.increasing] or None,
        decreasing=[name.strip() for name in request.decreasing] or None,
        max_changed=request.max_changed,
        relations=list(request.relations) or None,
        forbidden=_forbidden(request.forbidden, schema) or None,
    )
    return constraints if constraints.kinds else None


def _frozen(specs: Sequence[str], layout: Layout, schema: Schema) -> list[str] | None:
    """Return the names of the columns that --freeze names, also by number or as a group."""
    names: list[str] = []
    for spec in specs:
        if spec.strip() in schema.groups:
            names.append(spec.strip())
            continue
        mask = np.asarray(layout.frozen([spec]))
        names += [schema.names[i] for i in np.flatnonzero(mask)]
    return names or None


def _bounds(
    specs: Sequence[str], schema: Schema
) -> tuple[float | None, float | None, dict[str, tuple[Any, Any]]]:
    """Parse --bounds: intervals for all numbers, or for one column."""
    lower = upper = None
    by_column: dict[str, tuple[Any, Any]] = {}
    for spec in specs:
        name, _, interval = spec.rpartition("=")
        if not name:
            lower, upper = parse_interval(spec, interval)
            continue
        column = schema[name.strip()]
        if column.kind == "ordered":
            by_text = {"": None, **{str(level): level for level in column.levels}}
            low, _, high = interval.partition(":")
            by_column[column.name] = (by_text.get(low, low), by_text.get(high, high))
        else:
            by_column[column.name] = parse_interval(spec, interval)
    return lower, upper, by_column


def _forbidden(specs: Sequence[str], schema: Schema) -> dict[str, list[tuple[Any, Any]]]:
    """Parse --forbidden: NAME=BEFORE:AFTER."""
    pairs: dict[str, list[tuple[Any, Any]]] = {}
    for spec in specs:
        accepted = "NAME=BEFORE:AFTER, e.g. married=yes:no"
        name, move = parse_assignment("--forbidden", spec, accepted)
        before, colon, after = move.partition(":")
        if not colon:
            raise ValueError(f"--forbidden {spec!r} is not understood. Accepted: {accepted}.")
        by_text = {str(level): level for level in schema[name].levels}
        pair = (by_text.get(before, before), by_text.get(after, after))
        pairs.setdefault(name, []).append(pair)
    return pairs
