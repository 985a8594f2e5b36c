"""From constraints in words of columns to limits on the rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..data.arrays import read_array
from ..models.classifier import Array
from ..tables import Column, Relation, Schema, TableSpace
from ..validation import brief
from .constraints import Constraints
from .table_limits import TableLimits


def table_limits(constraints: Constraints | None, space: TableSpace) -> TableLimits:
    """Express constraints and the schema of a table as limits on its rows.

    Parameters
    ----------
    constraints : Constraints or None
        What was asked for.
    space : TableSpace
        Coordinates of the table.

    Returns
    -------
    TableLimits
        The limits; without constraints those of the schema.

    Raises
    ------
    ValueError
        If a constraint names a column that there is not, or does not apply to it.
    """
    asked = constraints or Constraints()
    schema = space.schema
    if asked.max_step is not None:
        raise ValueError("constraints.max_step applies to series; X is a table.")
    lower, upper = _ranges(asked, schema)
    return TableLimits(
        space=space,
        lower=space.inward(lower, up=True),
        upper=space.inward(upper, up=False),
        frozen=_frozen(asked, schema),
        rising=_directed(asked, schema, "increasing"),
        falling=_directed(asked, schema, "decreasing"),
        max_changed=None if asked.max_changed is None else min(asked.max_changed, len(schema)),
        relations=_relations(asked, schema),
        forbidden=_forbidden(asked, schema),
        linked=_linked(asked, schema),
        words=describe(asked),
    )


def describe(constraints: Constraints) -> str:
    """Describe constraints on a table in words, for messages.

    Parameters
    ----------
    constraints : Constraints
        What was asked for.

    Returns
    -------
    str
        Parts with commas between them; empty where nothing was asked for.
    """
    parts = []
    if constraints.names_columns:
        parts.append(f"{_listed(constraints.frozen)} frozen")
    elif constraints.frozen is not None:
        parts.append(f"{int(np.sum(constraints.frozen))} columns frozen")
    if constraints.lower is not None or constraints.upper is not None:
        parts.append("bounds on all columns")
    for name, (low, high) in (constraints.bounds or {}).items():
        parts.append(f"{name} within [{_bound(low, '-inf')}, {_bound(high, 'inf')}]")
    if constraints.increasing:
        parts.append(f"{_listed(constraints.increasing)} not falling")
    if constraints.decreasing:
        parts.append(f"{_listed(constraints.decreasing)} not rising")
    if constraints.max_changed is not None:
        plural = "" if constraints.max_changed == 1 else "s"
        parts.append(f"at most {constraints.max_changed} column{plural} changed")
    parts += constraints.relations or ()
    parts += [f"moves of {name} forbidden" for name in constraints.forbidden or ()]
    return ", ".join(parts)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"


def _bound(bound: Any, nowhere: str) -> str:
    if bound is None:
        return nowhere
    return "by row" if np.ndim(bound) else str(bound)


def _position(schema: Schema, name: str, argument: str) -> int:
    """Return the position of a column that a constraint names."""
    try:
        return schema.position(name)
    except ValueError as error:
        raise ValueError(f"constraints.{argument}: {error}") from None


def _positions(schema: Schema, names: Sequence[str], argument: str) -> list[int]:
    """Return the positions of columns and of the columns of one-hot groups."""
    found: list[int] = []
    for name in names:
        if name in schema.groups:
            found += schema.groups[name]
        else:
            found.append(_position(schema, name, argument))
    return found


def _frozen(constraints: Constraints, schema: Schema) -> Tensor:
    """Return the mask of the frozen columns; a one-hot group is frozen as a whole."""
    mask = np.zeros(len(schema), dtype=bool)
    if constraints.names_columns:
        mask[_positions(schema, constraints.frozen, "frozen")] = True
    elif constraints.frozen is not None:
        mask = _over_columns(constraints.frozen, schema, "frozen").astype(bool)
    for members in schema.groups.values():
        mask[list(members)] = mask[list(members)].any()
    return torch.from_numpy(mask)


def _directed(constraints: Constraints, schema: Schema, argument: str) -> Tensor:
    """Return the mask of the columns that may not fall, or not rise."""
    mask = torch.zeros(len(schema), dtype=torch.bool)
    for name in getattr(constraints, argument) or ():
        position = _position(schema, name, argument)
        if schema.columns[position].kind in ("categorical", "fixed"):
            raise ValueError(
                f"constraints.{argument}: column {name!r} is {schema.columns[position].kind}, "
                "which has no order. Accepted: numbers, booleans and ordered levels."
            )
        mask[position] = True
    return mask


def _ranges(constraints: Constraints, schema: Schema) -> tuple[Tensor, Tensor]:
    """Return the range of every column, of shape (1, columns), or (n, columns) by instance."""
    lower = np.array([[column.lower for column in schema]])
    upper = np.array([[column.upper for column in schema]])
    is_numeric = [column.is_numeric for column in schema]
    if constraints.lower is not None:
        asked = _over_columns(constraints.lower, schema, "lower")
        lower = np.where(is_numeric, np.maximum(lower, asked), lower)
    if constraints.upper is not None:
        asked = _over_columns(constraints.upper, schema, "upper")
        upper = np.where(is_numeric, np.minimum(upper, asked), upper)
    for name, (low, high) in (constraints.bounds or {}).items():
        position = _position(schema, name, "bounds")
        low = _read_bound(low, schema.columns[position], -np.inf)
        high = _read_bound(high, schema.columns[position], np.inf)
        sizes = len(low), len(high)
        if min(sizes) > 1 and sizes[0] != sizes[1]:
            raise ValueError(
                f"constraints.bounds[{name!r}] has {sizes[0]} and {sizes[1]} entries; give one "
                "entry per instance."
            )
        if (low > high).any():
            raise ValueError(f"constraints.bounds[{name!r}]: lower is above upper.")
        # A range that was asked for replaces the one that was seen.
        lower = _with_column(lower, position, low)
        upper = _with_column(upper, position, high)
    lower, upper = np.broadcast_arrays(lower, upper)
    return torch.tensor(lower), torch.tensor(upper)


def _over_columns(value: Any, schema: Schema, argument: str) -> Array:
    """Broadcast a limit over the columns."""
    array = read_array(value, f"constraints.{argument}").astype(np.float64)
    try:
        return np.array(np.broadcast_to(array, len(schema)))
    except ValueError:
        raise ValueError(
            f"constraints.{argument} has shape {array.shape}; the table has {len(schema)} columns."
        ) from None


def _read_bound(bound: Any, column: Column, nowhere: float) -> Array:
    """Read a bound: a number, a level of an ordered column, None, or one number per instance."""
    if bound is None:
        return np.array([nowhere])
    if column.kind == "ordered":
        if np.ndim(bound) or bound not in column.levels:
            raise ValueError(
                f"constraints.bounds[{column.name!r}]: {brief(bound)} is not a level. "
                f"Levels: {', '.join(map(repr, column.levels))}."
            )
        return np.array([float(column.levels.index(bound))])
    if not column.is_numeric:
        raise ValueError(
            f"constraints.bounds: column {column.name!r} is {column.kind}. Accepted: numbers and "
            "ordered levels; freeze it, or limit its levels with schema.edit."
        )
    array = np.asarray(bound)
    if array.dtype.kind not in "iuf" or array.ndim > 1 or np.isnan(array.astype(float)).any():
        raise ValueError(
            f"constraints.bounds[{column.name!r}] must be numbers, or None where there is no "
            f"bound, got {brief(bound)}."
        )
    return np.atleast_1d(array.astype(np.float64))


def _with_column(limits: Array, position: int, values: Array) -> Array:
    """Set the limits of one column, for all instances or for each."""
    if len(values) > 1 and len(limits) > 1 and len(values) != len(limits):
        raise ValueError(
            f"constraints.bounds: arrays of {len(limits)} and {len(values)} entries; give one "
            "entry per instance."
        )
    size = max(len(limits), len(values))
    limits = np.array(np.broadcast_to(limits, (size, limits.shape[1])))
    limits[:, position] = values
    return limits


def _relations(constraints: Constraints, schema: Schema) -> tuple[Relation, ...]:
    """Read the relations."""
    relations = [Relation.parse(text, schema.names) for text in constraints.relations or ()]
    for relation in relations:
        for name in relation.columns:
            if not schema[name].is_numeric:
                raise ValueError(
                    f"constraints.relations: {relation.text!r} compares {name!r}, which is "
                    f"{schema[name].kind}. Accepted: columns of numbers."
                )
    return tuple(relations)


def _forbidden(constraints: Constraints, schema: Schema) -> dict[int, Tensor]:
    """Return which levels may not become which."""
    moves = {}
    for name, pairs in (constraints.forbidden or {}).items():
        position = _position(schema, name, "forbidden")
        levels = schema.columns[position].levels
        table = torch.zeros(len(levels), len(levels), dtype=torch.bool)
        for pair in pairs:
            unknown = [level for level in pair if level not in levels]
            if unknown:
                raise ValueError(
                    f"constraints.forbidden[{name!r}]: {brief(unknown[0])} is not a level. "
                    f"Levels: {', '.join(map(repr, levels)) or 'none'}."
                )
            before, after = pair
            table[levels.index(before), levels.index(after)] = True
        moves[position] = table
    return moves


def _linked(constraints: Constraints, schema: Schema) -> dict[int, Callable[[Any], Any]]:
    """Return the functions of linked columns."""
    functions = {}
    for name, function in (constraints.linked or {}).items():
        position = _position(schema, name, "linked")
        if not schema.columns[position].is_numeric:
            raise ValueError(f"constraints.linked: column {name!r} does not hold numbers.")
        functions[position] = function
    return functions
