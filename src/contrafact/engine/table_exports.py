"""Results of tables as data frames: one line per changed value, or before and after in a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..data.writing import complete_file
from ..extras import require_extra
from ..models.classifier import Array
from .result import Counterfactuals


def list_changes(result: Counterfactuals, *, only_valid: bool = True) -> Any:
    """Make a frame with one line per changed value.

    Parameters
    ----------
    result : Counterfactuals
        The result of a table.
    only_valid : bool, default=True
        Whether rows that did not reach their class are left out.

    Returns
    -------
    pandas.DataFrame or polars.DataFrame
        Columns row, option, column, before and after.
    """
    table = result.table_cf
    changed = result.changed_parts
    if only_valid:
        changed = changed & result.valid[:, None]
    rows, parts = np.nonzero(changed)
    names = list(table.schema.parts)
    labels = result.row_labels
    columns: dict[str, Any] = {
        "row": [labels[row] for row in rows.tolist()],
        "option": result.options[rows],
        "column": [names[part] for part in parts.tolist()],
        "before": _pick(result, rows, parts, after=False),
        "after": _pick(result, rows, parts, after=True),
    }
    if table.form.library == "pandas":
        import pandas as pd

        for name in ("before", "after"):
            columns[name] = pd.Series(columns[name], dtype=object)
        return pd.DataFrame(columns)
    import polars as pl

    for name in ("before", "after"):
        columns[name] = _one_type(columns[name])
    return pl.DataFrame(columns, schema_overrides={"option": pl.Int64, "column": pl.String})


def write_csv(result: Counterfactuals, path: str | Path) -> Path:
    """Write `side_by_side(result)` to a CSV file, and return its path."""
    frame = side_by_side(result)
    with complete_file(path) as draft:
        if result.table_cf.form.library == "polars":
            frame.write_csv(draft)
        else:
            frame.to_csv(draft, index=False)
    return Path(path)


def write_parquet(result: Counterfactuals, path: str | Path) -> Path:
    """Write `side_by_side(result)` to a Parquet file, and return its path.

    Frames of pandas need pyarrow; where it is missing, an ImportError says how to install it.
    """
    frame = side_by_side(result)
    if result.table_cf.form.library == "polars":
        with complete_file(path) as draft:
            frame.write_parquet(draft)
        return Path(path)
    require_extra("parquet", "Parquet")
    with complete_file(path) as draft:
        frame.to_parquet(draft, index=False, engine="pyarrow")
    return Path(path)


def side_by_side(result: Counterfactuals) -> Any:
    """Make a frame with one line per counterfactual: every column before and after.

    Parameters
    ----------
    result : Counterfactuals
        The result of a table.

    Returns
    -------
    pandas.DataFrame or polars.DataFrame
        Columns row, option, status, label, target, cf_label, p_before and p_after, then of every
        column of the table "age (before)" and "age (after)", in its own type.
    """
    before = result.frame
    after = result.frame_cf
    target_proba = result.target_proba
    question: dict[str, Any] = {
        "row": [_one_label(label) for label in result.row_labels],
        "option": result.options,
        "status": result.status.tolist(),
        "label": result.labels.tolist(),
        "target": result.target.tolist(),
        "cf_label": result.cf_labels.tolist(),
        "p_before": target_proba[:, 0],
        "p_after": target_proba[:, 1],
    }
    pairs = {}
    for label in before.columns:
        pairs[f"{label} (before)"] = before[label]
        pairs[f"{label} (after)"] = after[label]
    if result.table_cf.form.library == "polars":
        import polars as pl

        named = [values.alias(name) for name, values in pairs.items()]
        return pl.DataFrame(question).hstack(named)
    import pandas as pd

    values = {name: series.reset_index(drop=True) for name, series in pairs.items()}
    return pd.concat([pd.DataFrame(question), pd.DataFrame(values)], axis=1)


def _pick(result: Counterfactuals, rows: Array, parts: Array, *, after: bool) -> list[Any]:
    """Return some values before or after, as the frame has them."""
    table = result.table_cf
    if not after:
        table = table.with_codes(np.asarray(result.X))
    columns = list(table.values_by_part().values())
    return [columns[part][row] for row, part in zip(rows.tolist(), parts.tolist(), strict=True)]


def _one_label(label: Any) -> Any:
    """Return a label for a column of a file: that of several levels as one text."""
    return " / ".join(map(str, label)) if isinstance(label, tuple) else label


def _one_type(values: list[Any]) -> list[Any]:
    """Return values for a column of one type: as texts where their types differ."""
    types = {type(value) for value in values if value is not None}
    if len(types) < 2:
        return values
    return [None if value is None else str(value) for value in values]
