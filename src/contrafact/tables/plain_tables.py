"""Tables as JSON can hold them, but for their numbers: schema, form, labels and fixed values."""

from __future__ import annotations

from typing import Any

import numpy as np

from .code_checks import wrong_code
from .frames import Array
from .plain_types import form_from_plain, form_to_plain, pandas_from_plain, pandas_to_plain
from .plain_values import from_plain, to_plain
from .schema import Schema
from .table import FixedValues, Table

#: what entries of the wrong type make the standard library and the libraries of frames raise
DAMAGE = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    NotImplementedError,
    FloatingPointError,
    RecursionError,
)


def table_to_plain(table: Table) -> dict[str, Any]:
    """Convert a table to plain values; its numbers are left out.

    Parameters
    ----------
    table : Table
        The table. All values that its fixed columns know are written: see `few_fixed_values`.

    Returns
    -------
    dict
        What JSON can hold.

    Raises
    ------
    ValueError
        If a value or type cannot be saved; the message names the column.
    """
    plain = {"form": form_to_plain(table.form), "index": _index_to_plain(table.index)}
    schema = table.schema.to_dict()
    for column in schema["columns"]:
        column["levels"] = _listed(column["name"], column["levels"])
    fixed = {name: _listed(name, values) for name, values in table.fixed.values.items()}
    return {**plain, "schema": schema, "fixed": fixed}


def table_from_plain(plain: Any, codes: Array) -> Table:
    """Read what `table_to_plain` returned, and check it by making the frame and reading it again.

    Parameters
    ----------
    plain : dict
        Plain values.
    codes : array of float64, shape (n, columns)
        The rows.

    Returns
    -------
    Table
        The table.

    Raises
    ------
    ValueError
        If it is no such table, or the rows do not agree with it.
    ImportError
        If the library of the frame is not installed.
    """
    try:
        table = _read(plain, codes)
        wrong = wrong_code(table, codes)
        if wrong:
            raise ValueError(f"X{wrong}")
        with np.errstate(invalid="raise"):
            again = Table.read(table.frame(), table.schema)
    except DAMAGE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"its table cannot be read: {reason.rstrip('.')}.") from error
    kept = [i for i, column in enumerate(table.schema) if column.kind != "fixed"]
    # Dates are held in days, which rounds them.
    if not np.allclose(again.codes[:, kept], codes[:, kept], 1e-12, 1e-9, equal_nan=True):
        raise ValueError(
            "its table cannot be read: X does not agree with the types of the columns."
        )
    return table


def few_fixed_values(table: Table, codes_cf: Array) -> tuple[Table, Array]:
    """Return a table that knows only the fixed values of its own rows, not of the reference's.

    Parameters
    ----------
    table : Table
        The table.
    codes_cf : array of float64, shape (n, columns)
        Counterfactuals, numbered as the table.

    Returns
    -------
    table : Table
        The table with its fixed values numbered anew.
    codes_cf : array of float64, shape (n, columns)
        The counterfactuals, numbered alike.
    """
    few = FixedValues()
    codes = table.codes.copy()
    codes_cf = codes_cf.copy()
    for i, column in enumerate(table.schema):
        if column.kind == "fixed":
            both = np.concatenate([codes[:, i], codes_cf[:, i]])
            numbers = few.translate(column.name, both, table.fixed)
            codes[:, i], codes_cf[:, i] = np.split(numbers, 2)
    return Table(table.schema, table.form, codes, table.index, few), codes_cf


def _read(plain: Any, codes: Array) -> Table:
    """Read the parts of a table."""
    schema = dict(plain["schema"])
    schema["columns"] = [
        {**column, "levels": [from_plain(level) for level in column["levels"]]}
        for column in schema["columns"]
    ]
    described = Schema.from_dict(schema)
    form = form_from_plain(plain["form"])
    if form.names != described.names or codes.shape[1:] != (len(described),):
        raise ValueError("schema, labels and X do not have the same columns")
    fixed = FixedValues()
    for name, values in plain["fixed"].items():
        numbers = fixed.number(name, _objects([from_plain(value) for value in values]))
        if not np.array_equal(numbers, np.arange(len(values))):
            raise ValueError(f"the values of column {name!r} are missing or repeated")
    index = _index_from_plain(plain["index"])
    if index is not None and len(index) != len(codes):
        raise ValueError(f"there are {len(index)} labels for {len(codes)} rows")
    return Table(described, form, codes, index, fixed)


def _objects(values: list[Any]) -> Array:
    """Return values as an array of objects, whatever they are."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _listed(name: str, values: Any) -> list[Any]:
    """Convert the values of a column."""
    try:
        return [to_plain(value) for value in values]
    except ValueError as error:
        raise ValueError(f"column {name!r}: {error}.") from None


def _index_to_plain(index: Any) -> list[dict[str, Any]] | None:
    """Convert the labels of rows, level by level; None where there are none."""
    if index is None:
        return None
    levels = [index.get_level_values(level) for level in range(index.nlevels)]
    return [
        {
            "name": None if level.name is None else to_plain(level.name),
            "type": pandas_to_plain(level.dtype),
            "values": _listed("index", level.to_list()),
        }
        for level in levels
    ]


def _index_from_plain(plain: list[dict[str, Any]] | None) -> Any:
    """Read the labels of rows."""
    if plain is None:
        return None
    import pandas as pd

    levels = [
        pd.Index([from_plain(value) for value in level["values"]], dtype=_type_of(level))
        for level in plain
    ]
    names = [None if level["name"] is None else from_plain(level["name"]) for level in plain]
    if len(levels) == 1:
        return levels[0].rename(names[0])
    return pd.MultiIndex.from_arrays(levels, names=names)


def _type_of(level: dict[str, Any]) -> Any:
    return pandas_from_plain(level["type"])
