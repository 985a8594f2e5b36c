"""Inputs of metrics besides the result: reference rows, models, and scores that metrics share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from ..data.cleaning import as_float, describe_nonfinite
from ..data.dataset import Dataset, as_labels
from ..deprecation import warn_renamed
from ..engine.result import Counterfactuals, as_numpy
from ..models.classifier import Array, Classifier, as_classifier
from ..models.tabular import Tabular
from ..tables import Schema, Table, TableSpace
from .metric import flat_values, instance_shape
from .table_rows import table_coordinates

#: numbers passed to a model at once, which bounds memory
MAX_ELEMENTS = 2**24


class Reference:
    """Hold reference rows, their labels, and the detectors fitted to them.

    Every detector is fitted once. Keep the object to score several results against the same rows.

    Parameters
    ----------
    X : array of shape (m, *instance)
        Rows of the same shape as the instances explained, NumPy or torch, all finite.
    y : array of shape (m,), optional
        Their classes.
    schema : Schema, optional
        What the columns hold, where X is a data frame to be compared with results of tables.

    Attributes
    ----------
    X : ndarray of shape (m, *instance)
        The rows as given; of a table with a schema in coordinates without units.
    rows : ndarray of float64, shape (m, d)
        The rows, flattened.
    labels : ndarray of shape (m,) or None
        The classes.

    Raises
    ------
    ValueError
        Where X contains NaN or infinite values, or y has another length.

    Examples
    --------
    >>> reference = Reference([[0.0, 1.0], [1.0, 0.0]], ["a", "b"])
    >>> reference.rows.shape
    (2, 2)
    """

    def __init__(self, X: Any, y: Any = None, schema: Schema | None = None) -> None:
        self._given = X
        self.schema = schema
        self.codes: Array | None = None
        if schema is None:
            self.X = as_float(X, "reference")
        else:
            table = Table.read(X, schema, argument="reference")
            self.codes = table.codes
            self.X = table_coordinates(table, table.codes)
        if self.X.ndim < 2:
            raise ValueError(
                f"reference has shape {self.X.shape}. Accepted: rows of the shape of the instances."
            )
        problem = describe_nonfinite(self.X, "reference")
        if problem:
            raise ValueError(problem)
        size = int(np.prod(self.X.shape[1:]))
        rows = self.X.reshape(len(self.X), size)
        self.rows: Array = rows.astype(np.float64)
        self.labels: Array | None = None
        if y is not None:
            self.labels = as_labels(y, "y of the reference", len(self.X))
        self._fitted: dict[Hashable, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        # Fitted detectors are fitted again after loading.
        return Reference, (self._given, self.labels, self.schema)

    @classmethod
    def read(cls, reference: Any, result: Counterfactuals) -> Reference:
        """Convert reference data and check them against the instances of a result.

        Parameters
        ----------
        reference : array or data frame, tuple (X, y), Dataset or Reference
            Of a Dataset, the training part is taken. For the result of a table, a data frame with
            its columns.
        result : Counterfactuals
            The result to be compared with the reference.

        Returns
        -------
        Reference
            The object given, where it is one already.

        Raises
        ------
        ValueError
            Where shapes do not match, no row is given, or no label is a class of the result.
        """
        schema = None if result.table is None else result.table.schema
        if isinstance(reference, Reference) and reference.schema == schema:
            known = reference
        elif isinstance(reference, Reference):
            known = cls(reference._given, reference.labels, schema)
        elif isinstance(reference, Dataset):
            known = cls(reference.X_train, reference.y_train)
        elif isinstance(reference, tuple):
            if len(reference) != 2:
                raise ValueError(
                    f"reference is a tuple of {len(reference)}; accepted: X, or the pair (X, y)."
                )
            known = cls(*reference, schema)
        else:
            known = cls(reference, None, schema)
        known._check_shape(result)
        known._check_labels(result)
        return known

    def _check_shape(self, result: Counterfactuals) -> None:
        """Raise where the rows do not have the shape of the result's instances."""
        if self.schema is not None and len(self.X) == 0:
            raise ValueError("reference has no rows. Accepted: at least one.")
        if self.schema is not None:
            return  # the columns were compared with the schema
        given = self.X.shape
        wanted = instance_shape(result)
        row_shape = given[1:]
        if result.modality == "series" and len(given) == 2:
            row_shape = (1, *row_shape)
        if row_shape != wanted or given[0] == 0:
            accepted = ", ".join(map(str, wanted))
            raise ValueError(
                f"reference has shape {given}; the instances of this result have shape "
                f"{wanted}, so accepted is (m, {accepted}) with at least one row."
            )

    def _check_labels(self, result: Counterfactuals) -> None:
        """Raise where no label is a class of the result."""
        if self.labels is None:
            return
        known = set(self.labels.tolist())
        if known.intersection(result.classes.tolist()):
            return
        raise ValueError(
            f"The labels of the reference are {_listed(self.labels)}; "
            f"the classes of this result are {_listed(result.classes)}."
        )

    def fitted(self, key: Hashable, fit: Callable[[], Any]) -> Any:
        """Return what `fit` makes of the reference, computed once per key.

        Parameters
        ----------
        key : hashable
            What the fit depends on besides the reference.
        fit : function without arguments
            Called where the key is new.

        Returns
        -------
        object
            The result of `fit`, kept for the next call.
        """
        if key not in self._fitted:
            self._fitted[key] = fit()
        return self._fitted[key]

    def of_class(self, label: Any) -> Array:
        """Return the rows of a label, shape (rows, d); the reference must have labels."""
        assert self.labels is not None
        return np.asarray(self.rows[self.labels == label])

    def spread(self, result: Counterfactuals) -> Array:
        """Compute the standard deviation of every value.

        Parameters
        ----------
        result : Counterfactuals
            Tells the kind of data and the shape of an instance.

        Returns
        -------
        ndarray of shape (d,)
            Of each feature of a row; of series and images, that of all values of the channel; of a
            table that of each column as numbers, missing values left out.
        """
        if self.codes is not None:
            known = ~np.isnan(self.codes)
            count = np.maximum(known.sum(axis=0), 1)
            center = np.nansum(self.codes, axis=0) / count
            square = np.nansum(np.square(self.codes - center), axis=0)
            return np.asarray(np.sqrt(square / count))
        if result.modality == "row":
            return np.asarray(self.rows.std(axis=0))
        n_channels, *rest = instance_shape(result)
        by_channel = self.rows.reshape(len(self.rows), n_channels, -1)
        deviation = by_channel.std(axis=(0, 2))
        return np.repeat(deviation, int(np.prod(rest)))


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


def _listed(values: Array) -> str:
    """Return up to nine different values, as text."""
    different = np.unique(values).tolist()
    return ", ".join(map(repr, different[:9]))
