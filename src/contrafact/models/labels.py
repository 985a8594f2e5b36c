"""Compare a user's labels with the classes of a model: matching, lookup, and the class order."""

from __future__ import annotations

from typing import Any

import numpy as np

from .classifier import Array, Classifier

#: Share of labels the model has to agree with; below it, its outputs may be in another order.
LEAST_AGREEMENT = 0.5
#: How many classes an error message lists.
MOST_LISTED = 20


def match_labels(y: Array, classes: Array) -> Array:
    """Convert labels that read like a model's classes to these classes.

    Files often hold the number 1 where the model knows the text "1", or the other way round.

    Parameters
    ----------
    y : array of shape (n,)
        Labels.
    classes : array of shape (n_classes,)
        Classes of the model.

    Returns
    -------
    array of shape (n,)
        The classes that the labels stand for; `y` itself where both are text or both are not, or
        where a label reads like no class.

    Examples
    --------
    >>> match_labels(np.array([1, 2, 1]), np.array(["1", "2"])).tolist()
    ['1', '2', '1']
    """
    both_or_neither_text = (y.dtype.kind in "US") == (classes.dtype.kind in "US")
    if both_or_neither_text:
        return y
    by_text = {str(label): label for label in classes.tolist()}
    texts = [str(label) for label in y.tolist()]
    if not set(texts) <= set(by_text):
        return y
    return np.array([by_text[text] for text in texts])


def find_class(text: str, classes: Array, name: str = "target") -> Any:
    """Return the class of a model that a text names.

    Parameters
    ----------
    text : str
        What a user typed.
    classes : array of shape (n_classes,)
        Classes of the model, of any type.
    name : str, default="target"
        Name of the argument, for the error.

    Returns
    -------
    label
        The class, in its own type.

    Raises
    ------
    ValueError
        If the text names no class.

    Examples
    --------
    >>> find_class("2", np.array([1.0, 2.0]))
    2.0
    """
    labels = classes.tolist()
    for label in labels:
        if text == str(label) or _is_number(text, label):
            return label
    known = ", ".join(repr(label) for label in labels[:MOST_LISTED])
    if len(labels) > MOST_LISTED:
        known += f", … ({len(labels)})"
    raise ValueError(f"{name} {text!r} is not a class of this model. Classes: {known}.")


def _is_number(text: str, label: Any) -> bool:
    """Return whether a text is another way to write a label that is a float."""
    if not isinstance(label, float):
        return False
    try:
        return float(text) == label
    except ValueError:
        return False


def has_class_names(classifier: Classifier) -> bool:
    """Return whether the classes of a model are known before it was asked anything."""
    try:
        return len(classifier.classes) > 0
    except ValueError:
        return False


def doubt_class_order(classifier: Classifier, X: Array, y: Array | None) -> str | None:
    """Return a warning where the outputs of a model may not be in the order of its classes.

    The outputs of a torch model have no names, so their order is an assumption; labels that the
    model mostly disagrees with suggest that it is wrong.

    Parameters
    ----------
    classifier : Classifier
        A model whose classes were inferred.
    X : array of shape (n, ...)
        Instances, as the model takes them.
    y : array of shape (n,), optional
        Their labels.

    Returns
    -------
    str or None
        The warning; None where the labels support the order.
    """
    order = ", ".join(repr(label) for label in classifier.classes.tolist()[:10])
    if y is None:
        return f"The model does not name its classes; they are called {order}."
    agreement = float(np.mean(classifier.predict(X) == y))
    if agreement >= LEAST_AGREEMENT:
        return None
    return (
        f"The model agrees with only {agreement:.0%} of the labels. Its outputs were read as the "
        f"classes {order}, in this order. Check that the class order is correct."
    )
