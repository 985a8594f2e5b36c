"""Compare a user's labels with the classes of a model: matching, lookup, and the class order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from .class_labels import label_index
from .classifier import Array, Classifier, Rows

#: By how much kappa has to rise for another order of the outputs to be clearly better.
LEAST_GAIN = 0.1
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


@contextmanager
def class_order_checked(classifier: Classifier, x: Rows, y: Array | None) -> Iterator[None]:
    """Compare the order of outputs that have no names of their own with labels, once.

    The model is asked about the reference rows; in the block, `Classifier.reference_verdict` knows
    the answer, so that a method which needs it does not ask again.

    Parameters
    ----------
    classifier : Classifier
        The model, with its classes known.
    x : array or Tensor of shape (n, ...)
        Reference rows.
    y : array of shape (n,) or None
        Their labels.
    """
    if y is None or not classifier.order_in_doubt:
        yield
        return
    verdict = classifier.verdict(x)
    doubt = doubt_class_order(verdict.label.cpu().numpy(), y, classifier.classes)
    if doubt is not None:
        classifier.remarks.add(doubt)
    classifier.order_in_doubt = False
    classifier.known_reference = (x, verdict)
    try:
        yield
    finally:
        classifier.known_reference = None


def doubt_class_order(predicted: Array, y: Array, classes: Array) -> str | None:
    """Return a warning where the outputs of a model seem to be in another order than its classes.

    The outputs of a module or a function have no names, so that their order is an assumption.
    Agreement is corrected for chance (Cohen's kappa); the best order is found by assignment on the
    table of predicted and true classes.

    Parameters
    ----------
    predicted : array of int, shape (n,)
        The output that the model decides for, for each reference row.
    y : array of shape (n,)
        Labels of these rows.
    classes : array of shape (n_classes,)
        The names that the outputs were given.

    Returns
    -------
    str or None
        The warning, with the order that agrees best; None where the labels support the order.

    Examples
    --------
    >>> doubt_class_order(np.array([0, 0, 1]), np.array(["a", "a", "b"]), np.array(["a", "b"]))
    """
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    true = label_index(y, classes).numpy()
    np.add.at(counts, (predicted, true), 1)
    _, order = linear_sum_assignment(counts, maximize=True)
    kappa, agreement = _agreement(counts)
    best_kappa, best_agreement = _agreement(counts[:, order])
    gained = (best_agreement - agreement) * len(y)
    clearly_better = gained > 2 * np.sqrt(len(y)) and best_kappa > kappa + LEAST_GAIN
    if kappa > 0 and not clearly_better:
        return None
    names = ", ".join(repr(label) for label in classes.tolist()[:MOST_LISTED])
    text = (
        f"The model agrees with {agreement:.0%} of the labels of the reference rows when its "
        f"outputs are read as {names}, in this order (the labels, sorted)."
    )
    if best_kappa > max(kappa, 0):
        better = classes[order].tolist()
        text += (
            f" In the order {better} it agrees with {best_agreement:.0%}. If that is the order of "
            f"its outputs, say so: as_classifier(model, classes={better}), on the command line "
            f"--classes {','.join(map(str, better))}."
        )
    else:
        text += " Check the labels and the model; classes=[...] names the outputs in their order."
    return text


def _agreement(counts: Array) -> tuple[float, float]:
    """Return Cohen's kappa and the share of agreement of a table of predicted and true classes."""
    n = counts.sum()
    observed = counts.trace() / n
    by_chance = (counts.sum(0) * counts.sum(1)).sum() / n**2
    if by_chance == 1:
        return float(observed), float(observed)
    kappa = (observed - by_chance) / (1 - by_chance)
    return float(kappa), float(observed)
