"""What the page is told about columns: kinds, options, ranges and distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..models.classifier import Array
from ..report.table_words import value_text
from ..tables import Column
from .workspace import Workspace

#: bars of a distribution, options that are listed, and points along a column
BINS = 24
MOST_OPTIONS = 200
PROFILE_POINTS = 41

KINDS = {
    "continuous": "number",
    "integer": "integer",
    "step": "number",
    "ordered": "ordered",
    "categorical": "category",
    "boolean": "boolean",
    "fixed": "frozen",
}


def value_ranges(workspace: Workspace) -> list[list[float]]:
    """Return the least and largest value of every channel or column of the reference."""
    rows = workspace.travel(workspace.reference)
    by_part = np.moveaxis(rows, 1, 0).reshape(rows.shape[1], -1)
    ranges = []
    for values in by_part:
        known = values[~np.isnan(values)]
        ranges.append([float(known.min()), float(known.max())] if len(known) else [0.0, 1.0])
    return ranges


def column_views(workspace: Workspace) -> list[dict[str, Any]] | None:
    """Return what each column holds, with its distribution; None for series and images."""
    if workspace.modality != "row":
        return None
    rows = workspace.travel(workspace.reference)
    names = workspace.names or [f"feature {j}" for j in range(workspace.shape[0])]
    return [
        _view(workspace, j, name, rows[:, j], *value_range)
        for j, (name, value_range) in enumerate(zip(names, value_ranges(workspace), strict=True))
    ]


def _view(
    workspace: Workspace, j: int, name: str, values: Array, low: float, high: float
) -> dict[str, Any]:
    view: dict[str, Any] = {
        "name": name,
        "kind": "number",
        "options": None,
        "low": low,
        "high": high,
        "step": None,
        "missing": False,
        "group": None,
    }
    known = values[~np.isnan(values)]
    if workspace.schema is not None:
        column = workspace.schema.columns[j]
        step = column.step
        if step is None and column.decimals is not None and column.is_numeric:
            step = 10.0**-column.decimals
        view |= {
            "kind": KINDS[column.kind],
            "options": _options(workspace, j, column),
            "step": step,
            "missing": bool(column.missing),
            "group": column.group,
        }
        if not column.is_numeric:
            size = int(known.max(initial=-1)) + 1 if column.kind == "fixed" else len(column.levels)
            counts = np.bincount(known.astype(int), minlength=size)[:MOST_OPTIONS]
            return {**view, "histogram": {"counts": counts.tolist()}}
    counts, edges = np.histogram(known, bins=BINS, range=(low, high) if low < high else None)
    return {**view, "histogram": {"edges": edges.tolist(), "counts": counts.tolist()}}


def _options(workspace: Workspace, j: int, column: Column) -> list[str] | None:
    """Return the texts of the levels of a column, or of the values of one that never changes."""
    table = workspace.table
    assert table is not None
    count = len(table.fixed.values.get(column.name, ())) or len(column.levels)
    if count == 0 or count > MOST_OPTIONS:
        return None
    row = np.zeros(len(table.schema))
    texts = []
    for code in range(count):
        row[j] = code
        texts.append(value_text(table, column.name, row))
    return texts


def profile_points(workspace: Workspace, j: int, row: Array) -> Array:
    """Return the values along a column at which the model is asked, with the row's own."""
    low, high = value_ranges(workspace)[j]
    own = float(row[0, j])
    column = None if workspace.schema is None else workspace.schema.columns[j]
    if column is not None and column.kind == "fixed":
        raise ValueError(f"column {column.name!r} never changes.")
    if column is not None and not column.is_numeric:
        return np.arange(len(column.levels), dtype=float)
    if not np.isnan(own):
        low, high = min(low, own), max(high, own)
    points = np.linspace(low, high, PROFILE_POINTS)
    if column is not None and column.step is not None:
        points = column.center + np.round((points - column.center) / column.step) * column.step
    return np.unique(points if np.isnan(own) else np.append(points, own))


def clear_group(workspace: Workspace, rows: Array, j: int) -> None:
    """Set the other columns of a one-hot group to 0 where column j is 1."""
    group = None if workspace.schema is None else workspace.schema.columns[j].group
    if workspace.schema is None or group is None:
        return
    others = [member for member in workspace.schema.groups[group] if member != j]
    rows[np.ix_(rows[:, j] == 1, others)] = 0
