"""Reference rows that counterfactuals are compared with."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ..data.cleaning import as_float, describe_nonfinite
from ..data.dataset import Dataset, as_labels
from ..engine.result import Counterfactuals
from ..models.classifier import Array
from ..tables import Schema, Table
from .metric import instance_shape
from .table_rows import table_coordinates


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


def _listed(values: Array) -> str:
    """Return up to nine different values, as text."""
    different = np.unique(values).tolist()
    return ", ".join(map(repr, different[:9]))
