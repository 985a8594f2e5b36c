"""Workspace: the model, the instances and the reference that the explorer works on."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..data.dataset import as_labels
from ..engine.instances import Instances, Modality, read_instances, wrap_model
from ..models import as_classifier
from ..models.class_labels import label_index
from ..models.classifier import Array, Classifier
from ..models.labels import match_labels
from ..models.wrapper import Wrapper
from ..report.grammar import one_line
from ..tables import Schema, Table
from ..tables.code_checks import wrong_code
from .known_verdicts import KnownVerdicts
from .model_gate import ModelGate

#: seconds after which a question of the page ends without an answer
PATIENCE = 10.0
#: numbers of the reference that are compared with an instance at once; of more, some rows are taken
MOST_COMPARED = 2**25


class Workspace:
    """Hold what is explored, and translate between it and the values that travel.

    Series and images travel with their channel axis, rows as they are, rows of a table as the
    numbers that a `Table` holds.

    Parameters
    ----------
    model : object
        Anything `as_classifier` takes.
    X : array or data frame
        The instances.
    y : array of shape (n,), optional
        Their labels.
    X_reference : array or data frame
        Data that methods may learn from.
    y_reference : array, optional
        Their labels.
    modality : {"series", "image", "row"}, optional
        Kind of data, where the shape does not tell.
    schema : Schema, optional
        What the columns of a table hold.
    names : sequence of str, optional
        Names of the channels or columns.

    Attributes
    ----------
    gate : ModelGate
        The door to the model; its classifier takes instances as the engine holds them.
    model : Classifier
        The model behind the gate, to fit explainers to.
    schema_given : bool
        Whether the schema is the user's, and not inferred.
    kind : {"series", "image", "row", "table"}
        Kind of data.
    shape : tuple of int
        Shape of an instance as it travels.
    instance_names : list of str or None
        What the user calls the rows of a data frame, where that is not their number.
    known : KnownVerdicts
        What the model says of all instances, and of the reference.
    """

    def __init__(
        self,
        model: Any,
        X: Any,
        y: Any = None,
        *,
        X_reference: Any = None,
        y_reference: Any = None,
        modality: Modality | None = None,
        schema: Schema | None = None,
        names: Any = None,
    ) -> None:
        is_own_reference = X_reference is None
        self.schema_given = schema is not None
        self.X = X
        self.X_reference = X if is_own_reference else X_reference
        self.y_reference = y if is_own_reference else y_reference
        argument = "data" if is_own_reference else "reference"
        self.reference = read_instances(self.X_reference, argument, modality, schema=schema)
        self.data = self.reference
        if not is_own_reference:
            self.data = read_instances(
                X, "data", self.reference.modality, space=self.reference.space
            )
        self._check()
        self.modality: Modality = self.reference.modality
        self.schema = None if self.table is None else self.table.schema
        self.kind = self.modality if self.table is None else "table"
        self.shape = tuple(self.travel(self.data).shape[1:])
        self.names = _read_names(names, self.data, self.shape)
        self.instance_names = _read_instance_names(self.table)

        classifier = wrap_model(as_classifier(model), self.reference)
        self.reference.check_names(classifier.feature_names, "the model")
        labels = _read_labels(self.y_reference, argument, len(self.reference))
        truth = labels if is_own_reference else _read_labels(y, "data", len(self.data))
        classifier.probe(self.reference.values)
        classifier.infer_classes(classifier.as_input(self.reference.values), labels)
        self.classes: Array = classifier.classes
        if labels is not None:
            self.y_reference = match_labels(labels, self.classes)
        self.truth = None if truth is None else _truth(truth, self.classes)
        self.gate = ModelGate(classifier, patience=PATIENCE)
        self.model: Classifier = self.gate.classifier
        if isinstance(self.model, Wrapper):
            self.model = self.model.inner
        rows = self.travel(self.data)
        reference_rows = rows if is_own_reference else self.travel(self.reference)
        self.known = KnownVerdicts(self.gate.classifier, rows, reference_rows)
        self._compared = self._flat_reference()

    def _check(self) -> None:
        """Check that instances and reference can be explored together."""
        for name, instances in (("data", self.data), ("reference", self.reference)):
            if len(instances) == 0:
                raise ValueError(f"{name} is empty; the explorer needs instances.")
        if self.data.shape != self.reference.shape:
            raise ValueError(
                f"data holds instances of shape {self.data.shape}, reference of "
                f"{self.reference.shape}. Accepted: the same shape in both."
            )

    @property
    def table(self) -> Table | None:
        """The instances as rows of a table; None for arrays."""
        return self.data.table

    def __len__(self) -> int:
        return len(self.data)

    def close(self) -> None:
        """End what works in the background."""
        self.known.close()
        self.gate.close()

    def class_text(self, column: int) -> str:
        """Return what a class is called on the page."""
        return one_line(self.classes[column], 60) or repr(self.classes[column])

    # --- values: as they travel, as the engine holds them, as the user gave them

    def travel(self, instances: Instances) -> Array:
        """Return instances as they travel, (n, *shape)."""
        return instances.values if instances.table is None else instances.table.codes

    def row(self, i: int) -> Array:
        """Return instance i as it travels, (1, *shape)."""
        return self.travel(self.data)[i : i + 1]

    def read_values(self, values: Any) -> Array:
        """Read an instance that a client sent, (1, *shape).

        Raises
        ------
        ValueError
            If it is not an instance of this workspace.
        """
        try:
            array = np.array(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ValueError("values must be nested lists of numbers.") from None
        if array.shape != self.shape:
            raise ValueError(f"values must have the shape {self.shape}, got {array.shape}.")
        if self.table is not None:
            problem = wrong_code(self.table, array[None])
            if problem or np.isinf(array).any():
                raise ValueError(f"values: {problem or 'infinity is no value'}.")
            return array[None]
        with np.errstate(over="ignore"):
            row = array[None].astype(self.data.values.dtype)
        if not np.isfinite(row).all():
            raise ValueError("values must be finite numbers.")
        return row

    def to_engine(self, rows: Array) -> Array:
        """Return travelling rows as the engine holds them: of a table, its coordinates."""
        if self.data.space is None:
            return rows
        return np.asarray(self.data.space.embed(torch.from_numpy(rows)))

    def as_given(self, rows: Array, i: int | None) -> Any:
        """Return travelling rows as the user gives instances to `explain`.

        Parameters
        ----------
        rows : array of shape (1, *shape)
            An instance.
        i : int or None
            The instance that it was made of, whose name it keeps.

        Returns
        -------
        array or data frame
            One instance.
        """
        if self.table is not None:
            return self.table.take(np.array([i or 0])).with_codes(rows).frame()
        return rows[:, 0] if self.data.channel_added else rows

    def given(self, i: int) -> Any:
        """Return instance i exactly as the user gave it."""
        if self.table is not None:
            return self.table.take(np.array([i])).frame()
        return self.X[i : i + 1]

    # --- neighbors in the reference

    def _flat_reference(self) -> tuple[Array, Array]:
        """Return rows of the reference to compare with, and their numbers."""
        size = int(np.prod(self.reference.shape))
        most = max(1, MOST_COMPARED // size)
        step = -(-len(self.reference) // most)
        numbers = np.arange(0, len(self.reference), step)
        flat = self.reference.values[numbers].reshape(len(numbers), -1)
        return flat.astype(np.float32), numbers

    def nearest(self, row: Array) -> dict[int, int]:
        """Find the nearest reference instance of every class, by the model's decision.

        Parameters
        ----------
        row : array of shape (1, *shape)
            An instance as it travels; the same instance in the reference does not count.

        Returns
        -------
        dict of int to int
            By class, the number of the reference row. A class without one is left out.
        """
        flat, numbers = self._compared
        x = self.to_engine(row).reshape(1, -1).astype(np.float32)
        distance = np.square(flat - x).sum(1)
        distance[distance == 0] = np.inf
        labels = self.known.reference_labels[numbers]
        found = {}
        for column in range(len(self.classes)):
            masked = np.where(labels == column, distance, np.inf)
            best = int(masked.argmin())
            if np.isfinite(masked[best]):
                found[column] = int(numbers[best])
        return found

    def reference_row(self, number: int) -> Array:
        """Return a reference instance as it travels, (1, *shape)."""
        return self.travel(self.reference)[number : number + 1]


def _read_names(names: Any, data: Instances, shape: tuple[int, ...]) -> list[str] | None:
    """Return the names of channels or columns; None where they have none."""
    if names is None:
        names = data.names
    if names is None:
        return None
    if len(names) != shape[0]:
        raise ValueError(f"names has {len(names)} entries. Accepted: {shape[0]}, one for each.")
    return [str(name) for name in names]


def _read_instance_names(table: Table | None) -> list[str] | None:
    """Return the labels of the rows of a data frame; None where they are numbers from 0."""
    if table is None or table.index is None:
        return None
    labels = table.index.tolist()
    if labels == list(range(len(labels))):
        return None
    texts = [" / ".join(map(str, each)) if isinstance(each, tuple) else each for each in labels]
    return [one_line(text, 40) for text in texts]


def _read_labels(y: Any, argument: str, n: int) -> Array | None:
    """Return labels as an array; None where there are none."""
    return None if y is None else as_labels(y, f"y of {argument}", n)


def _truth(y: Array, classes: Array) -> Array:
    """Return the class of every label as a number; -1 for labels the model does not know."""
    y = match_labels(y, classes)
    known = np.isin(y, classes)
    truth = np.full(len(y), -1)
    if known.any():
        truth[known] = label_index(y[known], classes).numpy()
    return truth
