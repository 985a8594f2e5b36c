"""Whether the numbers that stand for the rows of a table can do so."""

from __future__ import annotations

import numpy as np

from .frames import Array
from .table import Table


def wrong_code(table: Table, codes: Array) -> str:
    """Find the first number that stands for nothing in its column.

    Parameters
    ----------
    table : Table
        The table; only its schema and its fixed values are used.
    codes : array of float64, shape (n, columns)
        Rows.

    Returns
    -------
    str
        As in "[3] is not among the values of column 'sex'"; empty where all are good.
    """
    schema = table.schema
    chosen = [i for i, column in enumerate(schema) if not column.is_numeric]
    levels = [schema.columns[i].levels for i in chosen]
    fixed = [table.fixed.values.get(schema.names[i], ()) for i in chosen]
    sizes = [len(own or values) for own, values in zip(levels, fixed, strict=True)]
    may_miss = [column.missing or column.kind == "fixed" for column in schema]
    values = codes[:, chosen]
    exists = (values >= 0) & (values < sizes) & (values == np.rint(values))
    unknown = np.zeros(codes.shape, dtype=bool)
    unknown[:, chosen] = ~exists & ~np.isnan(values)
    missing = np.isnan(codes) & ~np.array(may_miss)
    for wrong, why in (
        (unknown, "is not among the values of"),
        (missing, "is missing, which the schema forbids, in"),
    ):
        if wrong.any():
            row, column = np.argwhere(wrong)[0].tolist()
            return f"[{row}] {why} column {schema.names[column]!r}"
    return ""
