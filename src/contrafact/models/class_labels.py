"""The labels of classes and the output columns of models."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..data.arrays import Array, read_array
from ..data.dataset import as_labels
from ..validation import brief


def distinct_labels(classes: Any) -> Array:
    """Read the labels of classes, and refuse repeated ones."""
    labels = as_labels(classes, "classes")
    if len(labels) == 0:
        raise ValueError("classes is empty. Accepted: one label per output of the model.")
    if len(np.unique(labels)) != len(labels):
        raise ValueError(f"classes must be distinct, got {labels.tolist()}.")
    return labels


def name_outputs(n_outputs: int, y: Array) -> Array:
    """Choose labels for the output columns of a model.

    Parameters
    ----------
    n_outputs : int
        Number of columns the model returns.
    y : array of shape (n,)
        Labels of the reference rows.

    Returns
    -------
    array of shape (n_outputs,)
        The sorted labels of `y`, or 0 to n_outputs - 1 where `y` holds some of these integers.

    Raises
    ------
    ValueError
        If the labels cannot be matched to the columns.

    Examples
    --------
    >>> name_outputs(3, np.array([0, 2, 2])).tolist()
    [0, 1, 2]
    """
    found = np.unique(y)
    if len(found) == n_outputs:
        return found
    if found.dtype.kind in "iu" and found.min() >= 0 and found.max() < n_outputs:
        return np.arange(n_outputs)
    raise ValueError(
        f"The model gives {n_outputs} outputs per row, "
        f"but y has {len(found)} classes: {found.tolist()}. "
        "Wrap the model with as_classifier(model, classes=[...]) to name its outputs."
    )


def label_index(labels: Any, classes: Array) -> Tensor:
    """Return the positions of labels among the classes.

    Parameters
    ----------
    labels : array-like of shape (n,) or (n, 1)
        Labels, each of them one of the classes.
    classes : array of shape (classes,)
        The classes, in any order.

    Returns
    -------
    Tensor of shape (n,)
        Index of each label in `classes`.

    Raises
    ------
    ValueError
        If a label is not among the classes.

    Examples
    --------
    >>> label_index(["b", "a", "b"], np.array(["b", "a"]))
    tensor([0, 1, 0])
    """
    labels = np.asarray(labels).ravel()  # some models predict a column
    order = np.argsort(classes)
    place = np.searchsorted(classes, labels, sorter=order)
    place = place.clip(max=len(classes) - 1)
    index = order[place]
    unknown = classes[index] != labels
    if unknown.any():
        raise ValueError(
            f"The model predicts labels {np.unique(labels[unknown]).tolist()} "
            f"that are not in classes {classes.tolist()}."
        )
    return torch.from_numpy(index)


def read_targets(target: Any, classes: Array, n: int) -> Array | None:
    """Convert target labels to columns of the probabilities.

    Parameters
    ----------
    target : None, label, or one label per instance
        None stays None: the method chooses.
    classes : array
        The model's classes in order.
    n : int
        Number of instances.

    Returns
    -------
    array of int, shape (n,), or None
        Column of each instance's target.

    Raises
    ------
    ValueError, TypeError
        If it is neither a class of the model nor one for each instance.

    Examples
    --------
    >>> read_targets("b", np.array(["a", "b"]), 3).tolist()
    [1, 1, 1]
    """
    if target is None:
        return None
    if isinstance(target, (str, bytes, Number)):
        return np.full(n, _column_of(target, classes), dtype=np.int64)
    if not isinstance(target, (list, tuple)) and not hasattr(target, "__array__"):
        raise TypeError(f"target must be a label, or one per instance, got {brief(target)}.")
    labels = read_array(target, "target")
    if labels.ndim == 0:
        return np.full(n, _column_of(labels.item(), classes), dtype=np.int64)
    if labels.ndim > 1:
        raise ValueError(
            f"target has shape {labels.shape}; give one label, or one for each instance."
        )
    if len(labels) != n:
        raise ValueError(
            f"target has {len(labels)} labels for {n} instances; give one label, or one for each."
        )
    known = as_labels(target, "target").tolist() if n else []
    return np.array([_column_of(label, classes) for label in known], dtype=np.int64)


def _column_of(label: Any, classes: Array) -> int:
    """Return the column of a class; a number is no text, and True is no number."""
    if isinstance(label, np.generic):
        label = label.item()
    known: list[Any] = classes.tolist()
    kind = classes.dtype.kind
    is_other_kind = isinstance(label, str) != (kind == "U") or isinstance(label, bool) != (
        kind == "b"
    )
    if is_other_kind or label not in known:
        listed = ", ".join(repr(known_label) for known_label in known)
        raise ValueError(f"target {brief(label)} is not a class of this model. Classes: {listed}.")
    return known.index(label)
