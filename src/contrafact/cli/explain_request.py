"""What is asked: a model, instances, reference rows and a target, read from what was typed."""

from __future__ import annotations

import copy
import difflib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.cleaning import Array
from ..data.loaders import read_parts
from ..engine.instances import PLURALS
from .specs import Layout, parse_rows

if TYPE_CHECKING:
    from ..engine import Constraints
    from ..explainers.support.explainer import Explainer
    from ..models import Classifier

#: Without --rows, a page that still opens quickly.
MOST_ROWS = 200
#: Below this share of labels that the model agrees with, its outputs may be in another order.
LITTLE_AGREEMENT = 0.5

Note = Callable[[str], None]


@dataclass(frozen=True)
class Question:
    """Instances, which rows of the data they are, and what they are compared with."""

    X: Array
    rows: Array
    reference: tuple[Array, Array | None]
    layout: Layout
    classifier: Classifier


def read_question(
    model: Any,
    data: str,
    reference: str | None,
    rows: str | None,
    label: str | None,
    modality: str | None,
    pad: bool,
    fill: bool,
    note: Note,
) -> Question:
    """Read the data as the model takes it, and have the model answer once."""
    names = getattr(model, "feature_names_in_", None)
    columns = None if names is None else [str(name) for name in names]

    def read(path: str, modality: str | None, columns: Sequence[str] | None) -> Any:
        return read_parts(path, pad=pad, fill=fill, label=label, modality=modality, columns=columns)

    source = read(data, modality, columns)
    noun = PLURALS[source.modality]
    X = np.asarray(source.parts[-1][0])
    chosen = parse_rows(rows, len(X), MOST_ROWS)
    if rows is None and len(X) > MOST_ROWS:
        note(f"Explaining the first {MOST_ROWS} of {len(X)} {noun}; --rows chooses others.")
    if reference is not None:
        other = read(reference, source.modality, columns or source.names)
        X_ref, y_ref = other.parts[0]
        if X_ref.shape[1:] != X.shape[1:]:
            raise ValueError(
                f"--reference {reference} holds instances of shape {X_ref.shape[1:]}, {data} of "
                f"{X.shape[1:]}. Accepted: one shape for both."
            )
    else:
        X_ref, y_ref = source.parts[0]
        if len(source.parts) == 1:
            note(f"Reference: {data} itself, all {len(X)} {noun}; --reference gives others.")
    if label is not None and y_ref is None:
        raise ValueError(f"--label {label!r}: there is no such column in {reference or data}.")
    if y_ref is not None and len(np.unique(y_ref)) == 1:
        raise ValueError(
            f"{reference or data} holds one class only ({y_ref[0]!s:.60}): --reference has to give others."
        )
    classifier, flat = _meet(model, X_ref, y_ref, source.modality, data, note)
    if y_ref is not None:
        y_ref = as_classes(y_ref, classifier.classes)
    layout = Layout(X.shape[1:], source.modality, source.names)
    X, X_ref = (values[:, 0] if flat else values for values in (X[chosen], X_ref))
    return Question(X, chosen, (X_ref, y_ref), layout, classifier)


def _meet(
    model: Any, X: Array, y: Array | None, modality: str, data: str, note: Note
) -> tuple[Classifier, bool]:
    """The model as a Classifier that has answered once, and whether it wants series without a channel."""
    from ..models import as_classifier

    classifier = as_classifier(model)
    forms = [X, X[:, 0]] if modality == "series" and X.shape[1] == 1 else [X]
    failures: list[Exception] = []
    for form in forms:
        try:
            copy.copy(classifier).predict_proba(form[:1])
            break
        # Torch has no narrower ones for shapes that do not fit; a TypeError is an output that is no tensor.
        except (RuntimeError, ValueError, TypeError) as error:
            failures.append(error)
    else:
        reason = (
            str(failures[0]).strip().rpartition("\n")[2].removeprefix("RuntimeError: ").rstrip(".")
        )
        hint = ""
        if modality == "row" and Path(data).suffix.lower() == ".csv":
            hint = (
                " If the columns are time steps, pass --modality series; columns that the model does not "
                "know, such as an identifier, have to be left out of the file."
            )
        raise ValueError(
            f"The model cannot answer for an instance of shape {X.shape[1:]}: {reason}.{hint}"
        ) from failures[0]
    unnamed = classifier._classes is None
    classifier.infer_classes(form, y)
    if unnamed:
        _check_order(classifier, form[:MOST_ROWS], None if y is None else y[:MOST_ROWS], note)
    return classifier, bool(failures)


def _check_order(classifier: Classifier, X: Array, y: Array | None, note: Note) -> None:
    """The outputs of a torch model have no names: their order is a guess, and labels can tell a wrong one."""
    order = ", ".join(map(repr, classifier.classes.tolist()[:10]))
    if y is None:
        note(
            f"The model does not name its classes: they are called {order}. Labels in --reference name them."
        )
        return
    agreement = float(np.mean(classifier.predict(X) == y))
    if agreement < LITTLE_AGREEMENT:
        note(
            f"The model agrees with {agreement:.0%} of the labels only. Its outputs were taken for {order}, "
            "in this order; is it so?"
        )


def as_classes(y: Array, classes: Array) -> Array:
    """Labels that read like the model's classes, as these: 1 for '1'."""
    by_text = {str(label): label for label in classes.tolist()}
    if (y.dtype.kind in "US") == (classes.dtype.kind in "US") or not {*map(str, y.tolist())} <= {
        *by_text
    }:
        return y
    return np.array([by_text[str(label)] for label in y.tolist()])


def find_target(text: str | None, classes: Array) -> Any:
    """The class that was typed, whatever its type."""
    if text is None:
        return None
    labels = classes.tolist()
    for label in labels:
        if text == str(label) or (isinstance(label, float) and _is_number(text, label)):
            return label
    known = ", ".join(map(repr, labels[:20])) + (f", … ({len(labels)})" if len(labels) > 20 else "")
    raise ValueError(f"--target {text!r} is not a class of this model. Classes: {known}.")


def _is_number(text: str, value: float) -> bool:
    try:
        return float(text) == value
    except ValueError:
        return False


def method_names(typed: Sequence[str]) -> list[str]:
    """Methods by their names, in any case."""
    from ..explainers.registry import explainer_classes

    known = {name.lower(): name for name in explainer_classes()}
    for name in typed:
        if name.lower() not in known:
            close = difflib.get_close_matches(name.lower(), known, n=1)
            guess = f" Did you mean {known[close[0]]}?" if close else ""
            raise ValueError(
                f"--method {name!r} is unknown.{guess} Methods: {', '.join(known.values())}."
            )
    return list(dict.fromkeys(known[name.lower()] for name in typed))


def choose_methods(
    names: Sequence[str], question: Question, constraints: Constraints | None, note: Note
) -> dict[str, Explainer]:
    """The explainers asked for, or the default one, able to take these data and limits."""
    from ..explainers.registry import explainer_classes

    if not names:
        names = [_default_method(question, constraints)]
        note(f"Method: {names[0]}, the default here; --method takes others.")
    known, modality = explainer_classes(), question.layout.modality
    for name in names:
        tags = known[name].tags
        if modality not in tags.modalities:
            raise ValueError(
                f"--method {name} takes {' and '.join(tags.modalities)} data, not {modality}."
            )
        missing = sorted(constraints.kinds - tags.constraints) if constraints else []
        if missing:
            raise ValueError(
                f"--method {name} cannot keep limits of this kind: {', '.join(missing)}."
            )
    return {name: known[name]() for name in names}


def _default_method(question: Question, constraints: Constraints | None) -> str:
    if _is_exact(question, constraints):
        return "PrototypeCounterfactual"
    if question.layout.modality == "image":
        # Without gradients SVCE asks the model far too often.
        return "SVCE" if question.classifier.differentiable else "LineSearch"
    return {"series": "CELS", "row": "CoMTE"}[question.layout.modality]


def _is_exact(question: Question, constraints: Constraints | None) -> bool:
    from ..explainers import PrototypeCounterfactual

    if constraints is not None and constraints.kinds - PrototypeCounterfactual.tags.constraints:
        return False
    X, y = question.reference
    try:
        PrototypeCounterfactual().fit(question.classifier, X, y, modality=question.layout.modality)
    except TypeError:  # not a prototype model, or not one with a metric
        return False
    return True


def check_output(
    option: str, path: Path | None, suffixes: Sequence[str], inputs: Sequence[str]
) -> None:
    """Refuse before the work starts what could not be written after it."""
    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        raise ValueError(
            f"{option} {path} has suffix {path.suffix!r}. Accepted: {', '.join(suffixes)}."
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{option} {path}: the folder {path.parent} does not exist.")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise ValueError(f"{option} {path} cannot be written.")
    for name in inputs:
        if path.exists() and Path(name).exists() and path.samefile(name):
            raise ValueError(f"{option} {path} would overwrite what is read. Give another name.")
