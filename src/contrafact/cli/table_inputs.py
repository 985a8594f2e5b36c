"""Read the tables of `contrafact explain`: rows with columns of any kind."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data.cleaning import Array
from ..data.table_columns import ColumnChoice
from ..data.tables import CsvFrame, read_frame
from ..data.writing import complete_file
from ..engine.instances import read_instances, wrap_model
from ..models import Classifier
from ..tables import Schema
from .specs import parse_assignment

if TYPE_CHECKING:
    import pandas as pd

    from .explain_request import ExplainRequest

#: files that hold tables
SUFFIXES = (".csv", ".parquet")


def is_table(path: str, modality: str | None) -> bool:
    """Return whether a file is read as a table.

    Parameters
    ----------
    path : str
        The file.
    modality : str or None
        The kind of data that was asked for.

    Returns
    -------
    bool
        True for a .csv or .parquet, unless its columns are time steps.
    """
    return Path(path).suffix.lower() in SUFFIXES and modality in (None, "row")


def read_tables(
    request: ExplainRequest,
    columns: Sequence[str] | None,
) -> tuple[CsvFrame, CsvFrame]:
    """Read the rows to explain and the reference.

    Parameters
    ----------
    request : ExplainRequest
        What was typed.
    columns : sequence of str or None
        The columns that the model was trained on, where it knows them.

    Returns
    -------
    data, reference : CsvFrame
        The same where no reference is given.
    """
    data = _read(request, request.data, columns)
    if request.reference is None:
        return data, data
    names = columns or [str(name) for name in data.frame.columns]
    return data, _read(request, request.reference, names)


def _read(request: ExplainRequest, path: str, columns: Sequence[str] | None) -> CsvFrame:
    """Read one file; --fill replaces missing numbers by the mean of their column."""
    if not Path(path).exists():
        raise FileNotFoundError(f"{path} does not exist.")
    choice = ColumnChoice(request.label, columns, unlabeled=True)
    found = read_frame(Path(path), choice)
    if not request.fill:
        return found
    return CsvFrame(found.frame.fillna(found.frame.mean(numeric_only=True)), found.y)


def make_schema(request: ExplainRequest, frame: Any) -> Schema:
    """Make the schema: read from --schema or inferred from the reference, with --cost.

    Parameters
    ----------
    request : ExplainRequest
        What was typed.
    frame : DataFrame
        The reference.

    Returns
    -------
    Schema
        What the columns hold.
    """
    schema = Schema.infer(frame) if request.schema is None else _read_schema(request.schema)
    for spec in request.costs:
        name, text = parse_assignment("--cost", spec, "NAME=NUMBER, e.g. age=2")
        try:
            schema = schema.edit(name, cost=float(text))
        except ValueError as error:
            raise ValueError(f"--cost {spec!r}: {error}") from None
    return schema


def _read_schema(path: Path) -> Schema:
    """Read a schema from a .json file."""
    try:
        return Schema.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"--schema {path} cannot be used: {error}") from error


def infer_schema(path: Path, label: str | None) -> Schema:
    """Infer the schema of a file.

    Parameters
    ----------
    path : Path
        The table.
    label : str or None
        The label column, which is left out.

    Returns
    -------
    Schema
        What the columns hold.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{path} has suffix {path.suffix!r}. Accepted: {', '.join(SUFFIXES)}.")
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    return Schema.infer(read_frame(path, ColumnChoice(label, unlabeled=True)).frame)


def write_schema(schema: Schema, path: Path) -> None:
    """Write a schema as a .json file, to be corrected by hand."""
    text = json.dumps(schema.to_dict(), indent=1, ensure_ascii=False, default=str)
    with complete_file(path) as draft:
        draft.write_text(text, encoding="utf-8")


def find_table_form(
    classifier: Classifier,
    frames: Sequence[pd.DataFrame],
    y: Array | None,
    data: str,
) -> list[Any]:
    """Bring frames into the form that the model was trained on, and name its classes.

    A file does not say which texts are categories: where the model does not take texts, it is
    asked with categories.

    Parameters
    ----------
    classifier : Classifier
        The model; its classes are named by the labels where it does not name them.
    frames : sequence of DataFrame
        The reference first.
    y : array or None
        Labels of the reference.
    data : str
        The file, for messages.

    Returns
    -------
    list of DataFrame
        The frames as the model takes them.

    Raises
    ------
    ValueError
        If the model answers in no form.
    """
    texts = [
        name for name, dtype in frames[0].dtypes.items() if dtype.kind == "O" or dtype == "str"
    ]
    forms = [list(frames)]
    if texts:
        forms.append([frame.astype(dict.fromkeys(texts, "category")) for frame in frames])
    failures: list[Exception] = []
    for form in forms:
        instances = read_instances(form[0], "X", "row")
        try:
            wrap_model(copy.copy(classifier), instances).verdict(instances.values[:1])
        # What a model raises for a form that it does not take, nothing narrower tells.
        except Exception as error:
            failures.append(error)
            continue
        wrap_model(classifier, instances).infer_classes(instances.values, y)
        return form
    reason = " ".join(str(failures[0]).split())
    raise ValueError(
        f"The model cannot answer for the rows of {data}: {reason[:300]} If the columns are time "
        "steps, pass --modality series; columns that the model does not know, such as an "
        "identifier, have to be left out of the file; --fill imputes missing numbers."
    ) from failures[0]
