"""The labels of classes and the output columns of models."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..data.cleaning import Array
from ..data.dataset import as_labels


def distinct_labels(classes: Any) -> Array:
    """Read the labels of classes, and refuse repeated ones."""
    labels = as_labels(classes, "classes")
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
