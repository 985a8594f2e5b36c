"""Read what a model answers: columns and labels, one row for each row asked about."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np
from torch import Tensor

from ..data.cleaning import Array
from ..validation import brief


def read_columns(out: Any, n_rows: int, source: str) -> Array:
    """Return an answer as float64 numbers, one row for each row asked about.

    Parameters
    ----------
    out : object
        What the model returned.
    n_rows : int
        How many rows it was asked about.
    source : str
        What was asked, for messages, such as "predict_proba of SVC".

    Returns
    -------
    array of shape (n_rows, columns) or (n_rows,)
        The numbers.

    Raises
    ------
    ValueError
        If the answer is nothing, is of several outputs, or has another shape.

    Examples
    --------
    >>> read_columns([[0.5, 0.5]], 1, "The function")
    array([[0.5, 0.5]])
    """
    if _is_list_of_tables(out):
        raise ValueError(
            f"{source} returned {len(out)} tables of probabilities: the model is multi-output. "
            "Counterfactuals are for one output; wrap one, e.g. "
            "as_classifier(lambda X: model.predict_proba(X)[0], classes=model.classes_[0])."
        )
    values = as_array(out, source)
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{source} must give numbers, got {values.dtype} values.")
    _check_rows(values, n_rows, source)
    if values.ndim > 1 and values.shape[1] == 0:
        raise ValueError(f"{source} must give one column per class, got shape {values.shape}.")
    return values.astype(np.float64)


def read_labels(out: Any, n_rows: int, source: str) -> Array:
    """Return an answer as labels, one for each row asked about.

    Parameters
    ----------
    out : object
        What the model returned: (n_rows,), or a column.
    n_rows : int
        How many rows it was asked about.
    source : str
        What was asked, for messages.

    Returns
    -------
    array of shape (n_rows,)
        The labels.

    Raises
    ------
    ValueError
        If the answer is nothing, has several labels per row, or has another number of rows.

    Examples
    --------
    >>> read_labels([["a"], ["b"]], 2, "The function")
    array(['a', 'b'], dtype='<U1')
    """
    values = as_array(out, source)
    _check_rows(values, n_rows, source)
    for label in values.flat if values.dtype.kind == "O" else ():
        if not isinstance(label, (str, bytes, Number)):
            raise ValueError(f"{source} must give text or numbers as labels, got {brief(label)}.")
    if values.ndim == 2 and values.shape[1] != 1:
        raise ValueError(
            f"{source} returned {values.shape[1]} labels per row: the model is multi-label or "
            "multi-output. Counterfactuals are for one label per row; wrap one of them."
        )
    return values.reshape(n_rows)


def refuse_several_outputs(model: Any) -> None:
    """Raise ValueError where a fitted estimator says that it has several outputs or labels.

    Parameters
    ----------
    model : estimator
        A fitted estimator.
    """
    name = type(model).__name__
    n_outputs = getattr(model, "n_outputs_", 1)
    classes = getattr(model, "classes_", None)
    is_table = getattr(classes, "ndim", 1) > 1
    is_list_of_classes = isinstance(classes, list) and any(np.ndim(each) for each in classes)
    if classes is not None and (is_list_of_classes or is_table):
        raise ValueError(
            f"model {name} is multi-output: it has classes_ for {len(classes)} outputs. "
            "Counterfactuals are for one output; wrap one, e.g. "
            "as_classifier(lambda X: model.predict(X)[:, 0], classes=model.classes_[0])."
        )
    if getattr(model, "multilabel_", False) is True:
        raise ValueError(
            f"model {name} is multi-label: it may give a row several labels. Counterfactuals are "
            "for one label per row; wrap one of its labels as a function."
        )
    # Networks count their outputs here too: as many as classes, or one.
    of_classes = classes is not None and n_outputs in (1, len(classes))
    if isinstance(n_outputs, int) and n_outputs > 1 and not of_classes:
        raise ValueError(
            f"model {name} is multi-output (n_outputs_ = {n_outputs}). Counterfactuals are for "
            "one output; wrap one of them as a function."
        )


def _is_list_of_tables(out: Any) -> bool:
    """Tell whether an answer is one table of probabilities for each of several outputs."""
    return isinstance(out, list) and len(out) > 0 and getattr(out[0], "ndim", 0) == 2


def as_array(out: Any, source: str) -> Array:
    """Convert an answer to an array.

    Parameters
    ----------
    out : object
        What the model returned.
    source : str
        What was asked, for messages.

    Returns
    -------
    array
        The answer.

    Raises
    ------
    ValueError
        If the answer is nothing, or its rows have unequal lengths.
    """
    if out is None:
        raise ValueError(f"{source} returned None instead of an answer for every row.")
    if isinstance(out, Tensor):
        return np.asarray(out.detach().cpu().numpy())
    if hasattr(out, "toarray"):  # a sparse matrix
        return np.asarray(out.toarray())
    try:
        return np.asarray(out)
    except ValueError as error:  # the rows of a list have unequal lengths
        raise ValueError(
            f"{source} must give one row of equal length for every row, got {brief(out)}: {error}."
        ) from error


def _check_rows(values: Array, n_rows: int, source: str) -> None:
    """Refuse answers that are neither (rows,) nor (rows, columns)."""
    if values.ndim in (1, 2) and len(values) == n_rows:
        return
    raise ValueError(
        f"{source} must give (rows, classes) probabilities or (rows,) labels for {n_rows} rows, "
        f"got shape {values.shape}."
    )
