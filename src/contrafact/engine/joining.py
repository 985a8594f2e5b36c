"""Join results, and what methods reported, that were found for some rows each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ..models.classifier import Array
from ..tables import Table
from .blanks import fill_blanks
from .result import SHARED_FIELDS, Counterfactuals, renumbered


def join_results(parts: Sequence[Counterfactuals]) -> Counterfactuals:
    """Join the results of one request for different rows.

    Parameters
    ----------
    parts : sequence of Counterfactuals
        At least one; with the same classes, shape and provenance, as NumPy arrays.

    Returns
    -------
    Counterfactuals
        All rows, in the order given.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    joined: dict[str, Any] = {
        f.name: np.concatenate([getattr(part, f.name) for part in parts])
        for f in fields(first)
        if f.name not in SHARED_FIELDS
    }
    if first.table is not None:
        tables = [_table_of(part) for part in parts]
        joined["X"], joined["X_cf"] = (
            np.concatenate(
                [renumbered(getattr(part, name), _table_of(part), first.table) for part in parts]
            )
            for name in ("X", "X_cf")
        )
        index = first.table.index
        if index is not None:
            index = index.append([table.index for table in tables[1:]])
        joined["table"] = replace(first.table, codes=joined["X"], index=index)
    infos = [part.info for part in parts]
    joined["info"] = join_infos(infos, [len(part) for part in parts])
    exceptions = {row: error for part in parts for row, error in part.exceptions.items()}
    return replace(first, **joined, exceptions=exceptions)


def join_infos(infos: Sequence[dict[str, Array]], sizes: Sequence[int]) -> dict[str, Array]:
    """Join what methods reported; a part where there was nothing to do has nothing.

    Parameters
    ----------
    infos : sequence of dict of str to array
        What was reported, by part.
    sizes : sequence of int
        Rows of each part.

    Returns
    -------
    dict of str to array
        One entry per row of all parts; blanks where a part has none.
    """
    names = sorted({name for info in infos for name in info})
    joined = {}
    for name in names:
        example = next(info[name] for info in infos if name in info)[:0]
        pieces = []
        for info, size in zip(infos, sizes, strict=True):
            blank = fill_blanks(example, np.zeros(size, dtype=bool))
            pieces.append(info.get(name, blank))
        joined[name] = np.concatenate(pieces)
    return joined


def _table_of(part: Counterfactuals) -> Table:
    assert part.table is not None
    return part.table
