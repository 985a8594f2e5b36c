"""The one invariant of a result: sizes, types and values agree, and no status contradicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from ..models.classifier import Array
from ..models.verdict import SUM_TOLERANCE
from ..tables import Table
from ..tables.code_checks import wrong_code
from ..validation import Boolean, Instance, Integer, ListOf, Nothing, OneOf, Real, Rule, brief
from .statuses import STATUSES

if TYPE_CHECKING:
    from .result import Counterfactuals

#: statuses of rows that the model puts in the target class
REACHED = ("valid", "already_target")

#: axes of X by modality; series may lack the channel axis
AXES = {"row": (2,), "series": (2, 3), "image": (4,)}
LABEL_KINDS = "biufUS"
#: fields with one value per row, and the kinds of dtype that each may have
COLUMNS = {
    "source": "iu",
    "labels": LABEL_KINDS,
    "cf_labels": LABEL_KINDS,
    "target": LABEL_KINDS,
    "valid": "b",
    "status": "U",
    "message": "U",
    "seconds": "f",
    "calls": "iu",
}
#: entries of info that metrics, plots and reports compute with
INFO_NUMBERS = (
    "guide_index",
    "saliency",
    "importance",
    "mask",
    "seam",
    "kink",
    "path",
    "loss_curve",
    "iterations",
    "committee_votes",
    "committee_size",
)
#: what is read of the provenance and of the options in it
PROVENANCE: dict[str, Rule] = {
    "method": Instance(str, "a text"),
    "options": Instance(dict, "a dictionary"),
    "remarks": ListOf(Instance(str), "texts"),
    "seed": Integer() | Nothing(),
}
OPTIONS: dict[str, Rule] = {
    "k": Integer(at_least=1),
    "refine": Boolean() | OneOf("minimal", "believable"),
    "confidence": Real(above=0, below=1) | Nothing(),
    "committee": Instance(str, "a text") | Nothing(),
    "constraints": ListOf(Instance(str), "texts"),
}
KINDS = {
    "b": "booleans",
    "iu": "whole numbers",
    "f": "numbers",
    "U": "text",
    LABEL_KINDS: "labels",
}


def check_result(result: Counterfactuals) -> None:
    """Raise a ValueError that names the first contradiction in a result.

    Parameters
    ----------
    result : Counterfactuals
        The result.

    Raises
    ------
    ValueError
        If sizes, types or values of the fields do not agree; the message names the field and, where
        there is one, the row.
    """
    _check_arrays(result)
    for name, kinds in COLUMNS.items():
        _check_column(getattr(result, name), name, kinds, len(result.source))
    _check_costs(result)
    _check_classes(result)
    _check_statuses(result)
    _check_probabilities(result.proba, "proba", result)
    _check_probabilities(result.cf_proba, "cf_proba", result)
    _check_info(result)
    _check_names(result)
    _check_table(result)


def as_numpy(values: Any) -> Array:
    """Return a NumPy or torch array as a NumPy array."""
    if isinstance(values, Tensor):
        values = values.detach().cpu()
    return np.asarray(values)


def same_values(a: Array, b: Array) -> Array:
    """Return which values of two arrays are equal; NaN, a missing value, is equal to NaN."""
    return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)))


def _check_arrays(result: Counterfactuals) -> None:
    """Check kind, shape and values of X and X_cf."""
    if not isinstance(result.modality, str) or result.modality not in AXES:
        raise _problem(f"modality must be 'series', 'image' or 'row', got {result.modality!r}")
    if type(result.X) is not type(result.X_cf):
        kinds = f"{type(result.X).__name__} and {type(result.X_cf).__name__}"
        raise _problem(f"X and X_cf must be of one kind, got {kinds}")
    for name in ("X", "X_cf"):
        values = as_numpy(getattr(result, name))
        if values.dtype.kind not in "iuf":
            raise _problem(f"{name} must hold numbers, got dtype {values.dtype}")
        if values.ndim not in AXES[result.modality]:
            raise _problem(f"{name} has shape {values.shape}, which is not {result.modality} data")
        if result.table is None:
            _refuse(_any_in_row(~np.isfinite(values)), name, "contains NaN or inf")
        else:
            _refuse(_any_in_row(np.isinf(values)), name, "contains inf")
    if result.X.shape != result.X_cf.shape:
        shapes = f"{tuple(result.X.shape)} and {tuple(result.X_cf.shape)}"
        raise _problem(f"X and X_cf must have one shape, got {shapes}")
    if 0 in result.X.shape[1:]:
        raise _problem(f"X has shape {tuple(result.X.shape)}: its instances are empty")
    if _shape(result.source) != (len(result.X),):
        raise _problem(
            f"source must have one entry for each of the {len(result.X)} rows of X, "
            f"got {brief(result.source)}"
        )


def _check_column(values: Any, name: str, kinds: str, n: int) -> None:
    """Check that a field has one value of an accepted type per row."""
    if not _is_plain(values):
        raise _problem(f"{name} must be an array, got {type(values).__name__}")
    if values.shape != (n,):
        raise _problem(f"{name} must have shape ({n},), got {values.shape}")
    if values.dtype.kind not in kinds:
        raise _problem(f"{name} must hold {KINDS[kinds]}, got dtype {values.dtype}")


def _check_costs(result: Counterfactuals) -> None:
    """Check that row numbers and costs are not negative."""
    for name in ("source", "seconds", "calls"):
        values = getattr(result, name)
        good = np.isfinite(values) & (values >= 0)
        _refuse(~good, name, "must be at least 0", values)


def _check_classes(result: Counterfactuals) -> None:
    """Check that every label is among the classes."""
    classes = result.classes
    if not _is_plain(classes) or classes.ndim != 1 or not len(classes):
        raise _problem(f"classes must be an array of labels, got {brief(classes)}")
    if classes.dtype.kind not in LABEL_KINDS:
        raise _problem(f"classes must hold labels, got dtype {classes.dtype}")
    if len(np.unique(classes)) < len(classes):
        raise _problem(f"classes must be distinct, got {classes.tolist()}")
    for name in ("labels", "cf_labels", "target"):
        labels = getattr(result, name)
        if (labels.dtype.kind in "US") != (classes.dtype.kind in "US"):
            raise _problem(f"{name} has dtype {labels.dtype}, classes {classes.dtype}")
        unknown = ~np.isin(labels, classes)
        _refuse(unknown, name, f"is not among the classes {classes.tolist()}", labels)


def _check_statuses(result: Counterfactuals) -> None:
    """Check that status, validity, labels and arrays agree."""
    status = result.status
    _refuse(~np.isin(status, STATUSES), "status", f"is not one of {', '.join(STATUSES)}", status)
    valid = result.valid
    reached = np.isin(status, REACHED)
    answered = status != "error"
    already = status == "already_target"
    decided = result.cf_labels == result.target
    moved = _any_in_row(~same_values(as_numpy(result.X), as_numpy(result.X_cf)))
    contradictions = {
        "valid is True": valid & ~reached,
        "valid is False": ~valid & reached,
        "cf_labels is not the target": reached & ~decided,
        "cf_labels is the target": answered & ~reached & decided,
        "labels is not the target": already & (result.labels != result.target),
        "X_cf differs from X": already & moved,
    }
    for what, wrong in contradictions.items():
        if wrong.any():
            row = int(wrong.argmax())
            raise _problem(f"row {row} has the status {str(status[row])!r}, but {what}")


def _check_probabilities(proba: Any, name: str, result: Counterfactuals) -> None:
    """Check that rows are probabilities; NaN stands for rows that ended in an error."""
    shape = (len(result.source), len(result.classes))
    if not _is_plain(proba) or proba.shape != shape or proba.dtype.kind not in "iuf":
        given = f"{_shape(proba)}, dtype {getattr(proba, 'dtype', type(proba).__name__)}"
        raise _problem(f"{name} must hold numbers of shape {shape}, got shape {given}")
    known = ~np.isnan(proba).any(1)
    _refuse(~known & (result.status != "error"), name, "is NaN, but the status is", result.status)
    wrong_sum = np.abs(proba.sum(1) - 1) > SUM_TOLERANCE
    outside = (proba < 0).any(1)
    _refuse(known & (wrong_sum | outside), name, "is not a row of probabilities", proba)


def _check_info(result: Counterfactuals) -> None:
    """Check that every entry of info has one value per row."""
    if not isinstance(result.info, dict) or not isinstance(result.provenance, dict):
        kinds = f"{type(result.info).__name__} and {type(result.provenance).__name__}"
        raise _problem(f"info and provenance must be dictionaries, got {kinds}")
    _check_provenance(result.provenance, PROVENANCE, "provenance")
    _check_provenance(result.provenance.get("options", {}), OPTIONS, "provenance['options']")
    for name, values in result.info.items():
        if not isinstance(values, np.ndarray) or values.shape[:1] != (len(result.source),):
            raise _problem(
                f"info[{name!r}] must be an array of one entry for each of the "
                f"{len(result.source)} rows, got {brief(values)}"
            )
        if name in INFO_NUMBERS and values.dtype.kind not in "biuf":
            raise _problem(f"info[{name!r}] must hold numbers, got dtype {values.dtype}")


def _check_provenance(values: dict[str, Any], rules: dict[str, Rule], name: str) -> None:
    """Check what metrics and reports read of the provenance, where it is there."""
    for key, rule in rules.items():
        if key in values and not rule.accepts(values[key]):
            raise _problem(f"{name}[{key!r}] must be {rule}, got {brief(values[key])}")


def _check_names(result: Counterfactuals) -> None:
    """Check that every feature or channel has a name, where there are names."""
    if result.names is None:
        return
    is_flat_series = result.modality == "series" and len(result.X.shape) == 2
    parts = 1 if is_flat_series else result.X.shape[1]
    if _shape(result.names) != (parts,):
        raise _problem(
            f"names must have one entry for each of the {parts} features or channels, "
            f"got {brief(result.names)}"
        )


def _check_table(result: Counterfactuals) -> None:
    """Check that X holds the rows of the table, and that all levels and fixed values exist."""
    table = result.table
    if table is None:
        return
    if not isinstance(table, Table):
        raise _problem(f"table must be a Table, got {type(table).__name__}")
    X, X_cf = as_numpy(result.X), as_numpy(result.X_cf)
    if table.codes.shape != X.shape or not same_values(table.codes, X).all():
        raise _problem("X does not hold the rows of the table")
    if result.names is None or result.names.tolist() != list(table.schema.names):
        raise _problem("names are not those of the columns of the table")
    if table.index is not None and len(table.index) != len(X):
        raise _problem(f"the table has {len(table.index)} labels for {len(X)} rows")
    for name, codes in (("X", X), ("X_cf", X_cf)):
        wrong = wrong_code(table, codes)
        if wrong:
            raise _problem(f"{name}{wrong}")


def _shape(values: Any) -> tuple[int, ...] | None:
    """Return the shape of an array; None where it is something else."""
    return values.shape if isinstance(values, np.ndarray) else None


def _is_plain(values: Any) -> bool:
    """Return whether a value is an array that NumPy computes with as such: no mask, no matrix."""
    return type(values) is np.ndarray


def _any_in_row(mask: Array) -> Array:
    """Return whether any value of a row is True."""
    return np.asarray(mask.any(tuple(range(1, mask.ndim))))


def _refuse(wrong: Array, name: str, why: str, values: Array | None = None) -> None:
    """Raise an error that names the first wrong row, and shows its value where one is given."""
    if not wrong.any():
        return
    row = int(wrong.argmax())
    shown = "" if values is None else f": {values[row].tolist()!r}"
    raise _problem(f"{name}[{row}] {why}{shown}")


def _problem(text: str) -> ValueError:
    """Make the error of a result that contradicts itself."""
    return ValueError(f"Counterfactuals: {text}.")
