"""Inputs of metrics besides the result: reference rows, models, and scores that metrics share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from ..deprecation import warn_renamed
from ..engine.result import Counterfactuals, as_numpy
from ..models.adapters import as_classifier
from ..models.classifier import Array, Classifier
from ..models.tabular import Tabular
from ..tables import TableSpace
from .metric import flat_values
from .reference import Reference

#: numbers passed to a model at once, which bounds memory
MAX_ELEMENTS = 2**24


@dataclass
class MetricInputs:
    """Hold what was passed besides the result, and scores that several metrics share.

    Parameters
    ----------
    reference : Reference, optional
        Rows to compare with.
    model : object, optional
        The model that was explained; default: that of the explainer.
    explainer : object, optional
        The fitted explainer.
    other_model : object, optional
        A model for the same classes that was trained independently.
    autoencoder : Autoencoder or str, optional
        A fitted autoencoder, or the name of one to fit to the reference.
    shared : dict, default={}
        Scores that were computed already, for metrics that build on the same ones.
    other_models : sequence of object, default=()
        Models for the same classes, for instance the same model trained again.
    """

    reference: Reference | None = None
    model: Any = None
    explainer: Any = None
    other_model: Any = None
    autoencoder: Any = None
    shared: dict[Hashable, Any] = field(default_factory=dict)
    other_models: Sequence[Any] = ()

    def __post_init__(self) -> None:
        if self.model is None:
            self.model = getattr(self.explainer, "classifier_", None)
        if not isinstance(self.other_models, Sequence) or isinstance(self.other_models, str):
            given = type(self.other_models).__name__
            raise TypeError(f"other_models must be a list of models, got {given}.")

    def available(self, result: Counterfactuals) -> frozenset[str]:
        """Return which of the things a metric can need are there.

        Parameters
        ----------
        result : Counterfactuals
            The result to be scored; its `info` may have a saliency map.

        Returns
        -------
        frozenset of str
            Values that `Metric.needs` can have.
        """
        parts = ("reference", "model", "explainer", "other_model", "autoencoder")
        found = {part for part in parts if getattr(self, part) is not None}
        if len(self.other_models):
            found.add("other_models")
        if self.reference is not None and self.reference.labels is not None:
            found.add("labels")
        if "saliency" in result.info or "importance" in result.info:
            found.add("saliency")
        return frozenset(found)

    def require_reference(self) -> Reference:
        """Return the reference.

        Returns
        -------
        Reference
            Never None.

        Raises
        ------
        ValueError
            Where there is none: the metric did not list "reference" in its `needs`.
        """
        if self.reference is None:
            raise ValueError(
                'No reference was passed. A metric that uses it lists "reference" in its `needs`.'
            )
        return self.reference

    def kinds(self, result: Counterfactuals) -> frozenset[str]:
        """Return `available(result)`; the old name."""
        warn_renamed("MetricInputs.kinds", "MetricInputs.available")
        return self.available(result)

    def known(self) -> Reference:
        """Return `require_reference()`; the old name."""
        warn_renamed("MetricInputs.known", "MetricInputs.require_reference")
        return self.require_reference()


def classifier_of(
    model: Any,
    name: str,
    result: Counterfactuals,
) -> Classifier:
    """Wrap a user's model, and check that it knows the target classes of a result.

    Parameters
    ----------
    model : object
        Anything that `as_classifier` accepts.
    name : str
        The argument that it was passed as, for the message.
    result : Counterfactuals
        The result whose target classes have to be known.

    Returns
    -------
    Classifier
        The wrapped model, its classes named.

    Raises
    ------
    ValueError
        Where a target class is unknown to the model.
    """
    if result.table is not None:
        # The classes of a table's model are those of the model inside.
        model = model.inner if isinstance(model, Tabular) else model
    has_names = isinstance(model, Classifier) or hasattr(model, "classes_")
    # A module or function has no class names of its own, so those of the result are meant.
    classifier = as_classifier(model, classes=None if has_names else result.classes)
    if len(result) == 0:
        return classifier
    if result.table is not None:
        classifier = Tabular(classifier, TableSpace(result.table))
        x, _ = flat_values(result)
        rows = classifier.space.embed(torch.from_numpy(x))
        classifier.probe(rows)
        classifier.infer_classes(rows, result.classes)
        return _checked_classes(classifier, name, result)
    classifier.infer_classes(as_numpy(result.X[:1]), result.classes)
    return _checked_classes(classifier, name, result)


def _checked_classes(classifier: Classifier, name: str, result: Counterfactuals) -> Classifier:
    """Raise where a target class is unknown to a model."""
    known = classifier.classes.tolist()
    for label in result.target.tolist():
        if label not in known:
            raise ValueError(f"{name} does not know the class {label!r}. Its classes: {known}.")
    return classifier


def ask_variants(
    classifier: Classifier,
    result: Counterfactuals,
    make_variants: Callable[[Array], Array],
    count: int,
) -> tuple[Array, Array]:
    """Ask a model about several variants of every row.

    Parameters
    ----------
    classifier : Classifier
        The model.
    result : Counterfactuals
        n counterfactuals; P(c) is that of each row's target class.
    make_variants : function
        Maps positions of rows, shape (rows,), to variants, shape (rows, count, d). It is called
        for some rows at a time, which bounds memory.
    count : int
        Number of variants per row.

    Returns
    -------
    labels : ndarray of shape (n, count)
        The model's class of every variant.
    p_target : ndarray of float, shape (n, count)
        P(c) of every variant.
    """
    n = len(result)
    shape = tuple(result.X.shape[1:])
    row_elements = count * int(np.prod(shape))
    step = max(1, MAX_ELEMENTS // max(1, row_elements))
    wanted = _target_columns(classifier, result)
    labels = [result.target[:0].reshape(0, count)]
    p_target = [np.empty((0, count))]
    for start in range(0, n, step):
        rows = np.arange(start, min(n, start + step))
        variants = make_variants(rows)  # (rows, count, d)
        verdict = classifier.final_verdict(variants.reshape(-1, *shape))
        index = verdict.label.cpu().numpy()
        labels.append(classifier.classes[index].reshape(-1, count))
        proba = verdict.proba.cpu().numpy()
        proba = proba.reshape(len(rows), count, -1)  # (rows, count, classes)
        column = wanted[rows, None, None]
        p_wanted = np.take_along_axis(proba, column, axis=2)
        p_target.append(p_wanted[:, :, 0])
    return np.concatenate(labels), np.concatenate(p_target)


def _target_columns(classifier: Classifier, result: Counterfactuals) -> Array:
    """Return the position of every row's target among the classes of the model, shape (n,)."""
    if len(result) == 0:
        return np.empty(0, dtype=int)
    classes = classifier.classes.tolist()
    columns = [classes.index(label) for label in result.target.tolist()]
    return np.array(columns, dtype=int)
