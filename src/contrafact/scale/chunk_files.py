"""Counterfactuals as Parquet files: one line per counterfactual, arrays as lists of fixed size."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.result import Counterfactuals, as_numpy
from ..models.classifier import Array
from ..tables.plain_tables import few_fixed_values, table_from_plain, table_to_plain
from .sources import Rows

#: of the layout of the files
FORMAT = 1
#: where a file keeps what holds for all its rows
KEY = b"contrafact"
INFO = "info."
#: columns of numbers, truth values and text, by the field of the result
PLAIN = {"row": "source", "valid": "valid", "status": "status", "message": "message"}
COSTS = {"calls": "calls", "seconds": "seconds"}
LABELS = {"label": "labels", "target": "target", "cf_label": "cf_labels"}
LISTS = ("proba", "cf_proba", "X", "X_cf")


def chunk_bytes(result: Counterfactuals, rows: Rows, mark: dict[str, Any]) -> bytes:
    """Write counterfactuals as the content of a Parquet file.

    Parameters
    ----------
    result : Counterfactuals
        Of all rows of the chunk, with their numbers in the source.
    rows : Rows
        What was explained.
    mark : dict
        Which chunk of which run this is.

    Returns
    -------
    bytes
        The file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, X_cf = as_numpy(result.X), as_numpy(result.X_cf)
    about = {**mark, **_about(result)}
    if result.table is not None:
        # The rows of other people, which the reference holds, do not belong into the file.
        table, X_cf = few_fixed_values(result.table, X_cf)
        X = table.codes
        about["table"] = table_to_plain(table)
    place = result.source - mark["start"]
    columns: dict[str, Any] = {"row": result.source}
    if rows.ids is not None:
        columns["id"] = rows.ids[place]
    if rows.y is not None:
        columns["y"] = rows.y[place]
    for name, field in LABELS.items():
        columns[name] = _as_text(getattr(result, field))
    columns |= {name: getattr(result, field) for name, field in list(PLAIN.items())[1:]}
    lists = zip(LISTS, (result.proba, result.cf_proba, X, X_cf), strict=True)
    columns |= {name: _as_lists(values) for name, values in lists}
    columns["changed_fraction"] = result.changed_fraction
    columns |= {name: getattr(result, field) for name, field in COSTS.items()}
    columns |= {INFO + name: result.info[name] for name in about["info"]}
    arrow = pa.table({name: pa.array(values) for name, values in columns.items()})
    arrow = arrow.replace_schema_metadata({KEY: json.dumps(about, allow_nan=False)})
    buffer = io.BytesIO()
    texts = [name for name in (*LABELS, "status", "message") if name in columns]
    pq.write_table(
        arrow, buffer, compression="zstd", use_dictionary=texts, write_page_checksum=True
    )
    return buffer.getvalue()


def read_about(path: Path) -> dict[str, Any]:
    """Read what holds for all rows of a file, from its end; the rows are not read.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict
        The mark, shapes, types, and the number of counterfactuals as "size".

    Raises
    ------
    ValueError
        If the file is damaged, or was not written here.
    """
    import pyarrow.parquet as pq

    try:
        head = pq.read_metadata(path)
        about: dict[str, Any] = json.loads(head.metadata[KEY])
        return {**about, "size": head.num_rows}
    # Errors of Arrow are ValueErrors, or OSErrors without a number.
    except (OSError, ValueError, KeyError, TypeError) as error:
        if getattr(error, "errno", None) is not None:
            raise
        raise ValueError(damage(path, error)) from error


def read_columns(path: Path, columns: Sequence[str] | None = None) -> Any:
    """Read some columns of a file, with their checksums.

    Parameters
    ----------
    path : Path
        The file.
    columns : sequence of str, optional
        Their names; default: all.

    Returns
    -------
    pyarrow.Table
        The columns.

    Raises
    ------
    ValueError
        If the file is damaged.
    """
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
        wanted = columns
        if columns is not None:
            wanted = [name for name in columns if name in file.schema_arrow.names]
        return file.read(wanted)
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) is not None:
            raise
        raise ValueError(damage(path, error)) from error


def read_chunk(path: Path, provenance: dict[str, Any]) -> Counterfactuals:
    """Read a file as counterfactuals, and check them whole.

    Parameters
    ----------
    path : Path
        The file.
    provenance : dict
        How the run was made.

    Returns
    -------
    Counterfactuals
        All of the file.

    Raises
    ------
    ValueError
        If the file is damaged, or contradicts itself.
    """
    arrow = read_columns(path)
    about = read_about(path)
    try:
        return _from_table(arrow, about, provenance)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise ValueError(damage(path, error)) from error


def list_column(table: Any, name: str) -> Array:
    """Return the numbers of a column of lists.

    Parameters
    ----------
    table : pyarrow.Table
        What was read.
    name : str
        The column.

    Returns
    -------
    array of shape (n, size)
        The numbers.
    """
    column = table.column(name)
    numbers = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return np.array(numbers).reshape(len(column), column.type.list_size)


def damage(path: Path, error: Exception) -> str:
    """Say that a file is damaged, and what helps."""
    reason = " ".join(str(error).split())[:200].rstrip(".")
    return f"{path} is damaged ({reason}). Remove it, and run explain_dataset again to mend it."


def _about(result: Counterfactuals) -> dict[str, Any]:
    """Return what is the same for all rows of a result, as JSON can hold it."""
    plain = {
        name: values.dtype.str
        for name, values in result.info.items()
        if values.ndim == 1 and values.dtype.kind in "biufU"
    }
    return {
        "shape": list(result.X.shape[1:]),
        "modality": result.modality,
        "classes": _as_text(result.classes).tolist(),
        "label_type": result.classes.dtype.str,
        "names": None if result.names is None else result.names.tolist(),
        "info": plain,
        "table": None,
    }


def _from_table(arrow: Any, about: dict[str, Any], provenance: dict[str, Any]) -> Counterfactuals:
    """Make a result of the columns of a file; the constructor checks that they agree."""
    label_type = np.dtype(about["label_type"])
    classes = np.array(about["classes"]).astype(label_type)
    fields: dict[str, Any] = {}
    for name, field in {**PLAIN, **COSTS}.items():
        values = arrow.column(name).to_numpy()
        fields[field] = values.astype(str) if values.dtype == object else values
    for name, field in LABELS.items():
        values = arrow.column(name).to_numpy()
        fields[field] = values.astype(str if values.dtype == object else None).astype(label_type)
    shape = about["shape"]
    for name in LISTS:
        values = list_column(arrow, name)
        fields[name] = values.reshape(len(values), *shape) if name.startswith("X") else values
    info = {}
    for name, kind in about["info"].items():
        values = arrow.column(INFO + name).to_numpy()
        info[name] = (values.astype(str) if values.dtype == object else values).astype(kind)
    if about["table"] is not None:
        fields["table"] = table_from_plain(about["table"], fields["X"])
    return Counterfactuals(
        **fields,
        classes=classes,
        modality=about["modality"],
        info=info,
        provenance=provenance,
        names=None if about["names"] is None else np.array(about["names"]),
    )


def _as_text(labels: Array) -> Array:
    """Return labels that Arrow has a type for."""
    return labels.astype(str) if labels.dtype.kind == "S" else labels


def _as_lists(values: Array) -> Any:
    """Return an array of one list of fixed size for each row."""
    import pyarrow as pa

    flat = np.ascontiguousarray(values).reshape(-1)
    size = int(np.prod(values.shape[1:]))
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), size)
