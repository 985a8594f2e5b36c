"""Read the data of `contrafact explain` in the form that the model takes."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.cleaning import Array
from ..data.loaders import read_parts
from ..engine.instances import PLURALS
from ..models import Classifier, as_classifier
from ..models.labels import has_class_names, match_labels
from ..nn import load_model
from ..tables import Schema
from .array_inputs import is_array_file, read_array_file
from .console import Notes
from .specs import Layout, parse_rows
from .table_inputs import find_table_form, is_table, make_schema, read_tables

if TYPE_CHECKING:
    from .explain_request import ExplainRequest

#: How many rows are explained without --rows, so that the report still opens quickly.
MOST_ROWS = 200


@dataclass(frozen=True)
class ExplainInputs:
    """Hold instances, reference data and the model that answers for them.

    Attributes
    ----------
    X : array of shape (n, ...) or DataFrame
        Instances to explain, as the model takes them.
    rows : array of shape (n,)
        Their row numbers in the data file.
    y : array of shape (n,) or None
        Their labels, as far as the file has them.
    X_reference : array of shape (m, ...) or DataFrame
        Data that methods may learn from.
    y_reference : array of shape (m,) or None
        Their labels.
    layout : Layout
        Shape, modality and names of an instance as it is in the file.
    classifier : Classifier
        The model, with its classes known.
    schema : Schema or None
        What the columns hold, where the instances are rows of a table.
    is_split : bool
        Whether the reference is the training part of labeled data, and the instances the test part.
    """

    X: Any
    rows: Array
    y: Array | None
    X_reference: Any
    y_reference: Array | None
    layout: Layout
    classifier: Classifier
    schema: Schema | None = None
    is_split: bool = False

    @property
    def reference(self) -> Any:
        """The reference data as reports take them: X, or (X, y) with labels."""
        if self.y_reference is None:
            return self.X_reference
        return self.X_reference, self.y_reference


def load_inputs(request: ExplainRequest, notes: Notes) -> ExplainInputs:
    """Load the model, and read the data and the reference in the form that it takes.

    Parameters
    ----------
    request : ExplainRequest
        What was typed.
    notes : Notes
        Receives what the user should know.

    Returns
    -------
    ExplainInputs
        The data, ready for a method, and the model.
    """
    model = load_model(request.model, trust=request.trust, network=request.network)
    return read_inputs(request, model, notes)


def read_inputs(request: ExplainRequest, model: Any, notes: Notes) -> ExplainInputs:
    """Read the data and the reference, and check that the model can answer for them.

    Parameters
    ----------
    request : ExplainRequest
        What was typed.
    model : object
        The model that was loaded.
    notes : Notes
        Receives what the user should know.

    Returns
    -------
    ExplainInputs
        The data, ready for a method.

    Raises
    ------
    ValueError
        If data, reference and model do not fit together.
    """
    columns = _columns_of(model)
    if is_table(request.data, request.modality) and not is_array_file(request.data):
        return _read_table_inputs(request, model, columns, notes)
    source = _read(request, request.data, request.modality, columns)
    X, y = np.asarray(source.parts[-1][0]), source.parts[-1][1]
    rows = parse_rows(request.rows, len(X), MOST_ROWS)
    noun = PLURALS[source.modality]
    if request.rows is None and len(X) > MOST_ROWS:
        notes.add(f"Explaining the first {MOST_ROWS} of {len(X)} {noun}; --rows chooses others.")

    if request.reference is not None:
        other = _read(request, request.reference, source.modality, columns or source.names)
        X_reference, y_reference = other.parts[0]
        _check_same_shape(request, X, X_reference)
    else:
        X_reference, y_reference = source.parts[0]
        if len(source.parts) == 1:
            notes.add(
                f"Reference: {request.data} itself, all {len(X)} {noun}; --reference gives others."
            )
    _check_reference_labels(request, y_reference)

    classifier = as_classifier(model, classes=_read_classes(request.classes, y_reference))
    without_channel = _find_form(classifier, X_reference, source.modality, request.data)
    layout = Layout(X.shape[1:], source.modality, source.names)
    X = X[rows]
    if without_channel:
        X = X[:, 0]
        X_reference = X_reference[:, 0]
    _infer_classes(classifier, X_reference, y_reference, notes)
    if y_reference is not None:
        y_reference = match_labels(y_reference, classifier.classes)
    return ExplainInputs(
        X=X,
        rows=rows,
        y=None if y is None else y[rows],
        X_reference=X_reference,
        y_reference=y_reference,
        layout=layout,
        classifier=classifier,
        is_split=request.reference is None and len(source.parts) == 2 and y_reference is not None,
    )


def _read_table_inputs(
    request: ExplainRequest, model: Any, columns: Sequence[str] | None, notes: Notes
) -> ExplainInputs:
    """Read rows with columns of any kind."""
    data, reference = read_tables(request, columns)
    rows = parse_rows(request.rows, len(data.frame), MOST_ROWS)
    if request.rows is None and len(data.frame) > MOST_ROWS:
        notes.add(
            f"Explaining the first {MOST_ROWS} of {len(data.frame)} rows; --rows chooses others."
        )
    if request.reference is None:
        notes.add(
            f"Reference: {request.data} itself, all {len(data.frame)} rows; --reference gives "
            "others."
        )
    y = reference.y
    _check_reference_labels(request, y)
    classifier = as_classifier(model, classes=_read_classes(request.classes, y))
    is_named = has_class_names(classifier)
    frames = find_table_form(classifier, [reference.frame, data.frame], y, request.data)
    if not is_named and y is None:
        _note_numbered(classifier, notes)
    names = [str(name) for name in frames[0].columns]
    return ExplainInputs(
        X=frames[1].iloc[rows],
        rows=rows,
        y=None if data.y is None else data.y[rows],
        X_reference=frames[0],
        y_reference=None if y is None else match_labels(y, classifier.classes),
        layout=Layout((len(names),), "row", names),
        classifier=classifier,
        schema=make_schema(request, frames[0]),
    )


def _columns_of(model: Any) -> list[str] | None:
    """Return the columns that a scikit-learn model was trained on, where it knows them."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _read(
    request: ExplainRequest, path: str, modality: str | None, columns: Sequence[str] | None
) -> Any:
    """Read a file or a bundled data set with the options of the request."""
    if is_array_file(path):
        return read_array_file(path, request.label, modality)
    return read_parts(
        path,
        pad=request.pad,
        fill=request.fill,
        label=request.label,
        modality=modality,
        columns=columns,
    )


def _check_same_shape(request: ExplainRequest, X: Array, X_reference: Array) -> None:
    """Check that the reference holds instances like those to explain."""
    if X_reference.shape[1:] != X.shape[1:]:
        raise ValueError(
            f"--reference {request.reference} holds instances of shape {X_reference.shape[1:]}, "
            f"{request.data} of {X.shape[1:]}. Accepted: the same shape in both."
        )


def _check_reference_labels(request: ExplainRequest, y: Array | None) -> None:
    """Check that the label column exists and the reference holds more than one class."""
    place = request.reference or request.data
    if request.label is not None and y is None:
        raise ValueError(f"--label {request.label!r}: there is no such column in {place}.")
    if y is not None and len(np.unique(y)) == 1:
        raise ValueError(
            f"{place} holds one class only ({y[0]!s:.60}). "
            "Give a --reference that holds other classes."
        )


def _find_form(classifier: Classifier, X: Array, modality: str, data: str) -> bool:
    """Return whether the model takes univariate series without their channel axis.

    Raises a ValueError where it takes neither form.
    """
    forms = [X[:1]]
    if modality == "series" and X.shape[1] == 1:
        forms.append(X[:1, 0])
    failures: list[Exception] = []
    for form in forms:
        try:
            # A copy: the first answer would name the classes 0, 1, … before labels can.
            copy.copy(classifier).predict_proba(form)
            return len(failures) > 0
        # torch has no narrower errors for shapes; a TypeError is an output that is no tensor.
        except (RuntimeError, ValueError, TypeError) as error:
            failures.append(error)
    hint = ""
    if modality == "row" and Path(data).suffix.lower() == ".csv":
        hint = (
            " If the columns are time steps, pass --modality series; columns that the model does "
            "not know, such as an identifier, have to be left out of the file."
        )
    raise ValueError(
        f"The model cannot answer for an instance of shape {X.shape[1:]}: "
        f"{_last_line(failures[0])}.{hint}"
    ) from failures[0]


def _last_line(error: Exception) -> str:
    """Return the last line of an error; TorchScript puts its traceback before it."""
    _, _, line = str(error).strip().rpartition("\n")
    return line.removeprefix("RuntimeError: ").rstrip(".")


def _read_classes(text: str | None, y: Array | None) -> list[Any] | None:
    """Read --classes; names that are labels of the reference get their type."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    labels = [] if y is None else np.unique(y).tolist()
    by_text = {str(label): label for label in labels}
    if set(names) <= set(by_text):
        return [by_text[name] for name in names]
    return names


def _infer_classes(classifier: Classifier, X: Array, y: Array | None, notes: Notes) -> None:
    """Name the classes of a model that has no names for them; note where they are numbers."""
    if has_class_names(classifier):
        return
    classifier.infer_classes(X, y)
    if y is None:
        _note_numbered(classifier, notes)


def _note_numbered(classifier: Classifier, notes: Notes) -> None:
    """Note that classes are called by their numbers."""
    order = ", ".join(repr(label) for label in classifier.classes.tolist()[:10])
    notes.add(
        f"The model does not name its classes; they are called {order}. Labels in --reference "
        "or --classes give them their names."
    )
