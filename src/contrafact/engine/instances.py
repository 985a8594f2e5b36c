"""Reading what users pass: arrays of instances, checked before any work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ..data.arrays import for_torch
from ..data.cleaning import as_float, describe_nonfinite
from ..models.adapters import as_classifier
from ..models.classifier import Array, Classifier
from ..models.reshaped import Reshaped
from ..models.tabular import Tabular
from ..tables import Schema, Table, TableSpace, check_columns, is_frame
from ..validation import brief

Modality = Literal["series", "image", "row"]
DIMENSIONS: dict[str, int] = {"series": 3, "image": 4, "row": 2}
PLURALS: dict[str, str] = {"series": "series", "image": "images", "row": "rows"}


@dataclass(frozen=True)
class Instances:
    """The user's array as the engine uses it, and how to return results in the same form.

    Parameters
    ----------
    values : float array of shape (n, *shape)
        Series and images with their channel axis.
    modality : {"series", "image", "row"}
        Kind of data.
    channel_added : bool
        Whether a 2-D array of series was given, so that results are 2-D as well.
    torch_device : torch.device or None
        Set when a torch tensor was given.
    names : array of str or None
        Column names, when a data frame of rows was given.
    table : Table or None
        The rows of the data frame, whose coordinates are `values`; also where an array was given
        for a table whose columns are all numbers.
    space : TableSpace or None
        How rows and coordinates are converted.
    """

    values: Array
    modality: Modality
    channel_added: bool
    torch_device: torch.device | None
    names: Array | None = None
    table: Table | None = None
    space: TableSpace | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one instance."""
        return tuple(self.values.shape[1:])

    def doubt_layout(self) -> str | None:
        """Return a warning where series seem to be (n, length, channels)."""
        if self.modality != "series" or self.channel_added:
            return None
        channels, length = self.shape
        if length > 1 or channels == 1:
            return None
        n = len(self)
        return (
            f"X has shape {(n, channels, length)}: {channels} channels of length 1. Series are "
            "(n, channels, length); if these are (n, length, channels), pass X.transpose(0, 2, 1), "
            "and a model that takes this layout."
        )

    def take(self, rows: Array) -> Instances:
        """Return some of the instances."""
        table = None if self.table is None else self.table.take(rows)
        return replace(self, values=self.values[rows], table=table)

    def as_given(self, values: Array, source: Array) -> Array:
        """Convert coordinates of a table to its rows; arrays stay as they are.

        Parameters
        ----------
        values : array of shape (n, *shape)
            Instances or counterfactuals as the engine holds them.
        source : array of int, shape (n,)
            The instance each belongs to: columns that were not changed are taken from it.

        Returns
        -------
        array
            Of a table, of shape (n, columns).
        """
        if self.table is None or self.space is None:
            return values
        own = self.table.codes[source]
        changed = values != self.values[source]
        coordinates, columns = changed.shape[1], own.shape[1]
        belongs = np.zeros((coordinates, columns))
        belongs[np.arange(coordinates), self.space.column.numpy()] = 1
        is_changed = changed @ belongs > 0
        return np.where(is_changed, self.space.codes(torch.from_numpy(values)).numpy(), own)

    def restore(self, values: Array) -> Any:
        """Convert an array of the engine to the user's kind and number of dimensions."""
        if self.channel_added:
            values = values[:, 0]
        if self.space is not None and self.names is None:
            values = np.asarray(self.space.numbers(torch.from_numpy(values)))
        if self.torch_device is None:
            return values
        return torch.from_numpy(values).to(self.torch_device)

    def check_names(self, expected: Sequence[str] | None, source: str) -> None:
        """Refuse a data frame whose columns are not those expected, in their order.

        Parameters
        ----------
        expected : sequence of str or None
            The names in order; None where they are not known.
        source : str
            What they are expected by, for the message.
        """
        if expected is None or self.names is None:
            return
        check_columns(self.names.tolist(), [str(name) for name in expected], source)


def read_instances(
    X: Any,
    name: str,
    modality: Modality | None,
    modalities: tuple[str, ...] = tuple(DIMENSIONS),
    *,
    schema: Schema | None = None,
    space: TableSpace | None = None,
    tables: bool = True,
) -> Instances:
    """Check an array of instances: numeric, finite, of a shape that is accepted.

    Parameters
    ----------
    X : array, tensor or data frame
        The instances.
    name : str
        Name of the argument, for messages.
    modality : {"series", "image", "row"} or None
        Kind of data. None reads it off the dimensions: 3-D series, 4-D images, 2-D rows where
        rows are accepted and univariate series otherwise.
    modalities : tuple of str
        Kinds of data that are accepted.
    schema : Schema, optional
        What the columns of a data frame hold; default: it is inferred.
    space : TableSpace, optional
        Coordinates of the table that X has to be like.
    tables : bool, default=True
        Whether a data frame of rows is read as a table, and not as an array with names.

    Returns
    -------
    Instances
        The array as the engine uses it. A data frame of rows is read as a table.
    """
    is_table = is_frame(X) and "row" in modalities and modality in (None, "row")
    if (is_table and tables) or space is not None:
        return _read_table(X, name, schema, space)
    if schema is not None:
        raise ValueError(f"schema describes a table; {name} has to be a data frame of rows.")
    values = _as_float_array(X, name)
    modality = _find_modality(values, name, modality, modalities)
    channel_added = modality == "series" and values.ndim == 2
    if channel_added:
        values = values[:, None]  # (n, 1, length)
    if values.ndim != DIMENSIONS[modality]:
        raise ValueError(f"{name} has shape {values.shape}, which is not {modality} data.")
    if 0 in values.shape[1:]:
        raise ValueError(f"{name} has shape {values.shape}: its instances are empty.")
    problem = describe_nonfinite(values, name)
    if problem:
        raise ValueError(problem)
    names = None
    columns = getattr(X, "columns", None)
    if columns is not None and modality == "row":
        # The columns of a frame of series are time steps, not channels.
        names = np.array([str(column) for column in columns])
    device = X.device if isinstance(X, Tensor) else None
    return Instances(values, modality, channel_added, device, names)


def _read_table(X: Any, name: str, schema: Schema | None, space: TableSpace | None) -> Instances:
    """Read a data frame, in the coordinates of one that was read before where there is one."""
    if space is None:
        table = Table.read(X, schema, argument=name)
        space = TableSpace(table)
    else:
        frame = X if is_frame(X) else _frame_of_numbers(X, name, space)
        table = Table.read(frame, like=space.table, argument=name)
    values = space.embed(torch.from_numpy(table.codes)).numpy()
    names = np.array(table.schema.names) if is_frame(X) else None
    device = X.device if isinstance(X, Tensor) else None
    return Instances(values, "row", False, device, names, table, space)


def _frame_of_numbers(X: Any, name: str, space: TableSpace) -> Any:
    """Take an array for a table whose columns are all numbers or stand for some."""
    values = as_float(X, name)
    columns = space.schema.columns
    if values.ndim != 2 or values.shape[1] != len(columns):
        raise ValueError(
            f"{name} has shape {values.shape}; fit saw a table of {len(columns)} columns."
        )
    if space.numbers(torch.zeros(1, len(columns), dtype=torch.float64)) is None:
        raise ValueError(f"{name} must be a data frame with the columns that fit saw.")
    return space.table.form.build(list(values.T.astype(np.float64)))


def _as_float_array(X: Any, name: str) -> Array:
    """Convert to float32 or float64 in native byte order, contiguous, as torch needs it."""
    values = as_float(X, name)
    dtype = np.float32 if values.dtype.itemsize <= 4 else np.float64
    values = for_torch(np.asarray(values, dtype))
    if values.ndim not in (2, 3, 4):
        raise ValueError(
            f"{name} has shape {values.shape}; accepted are rows (n, features), series (n, length) "
            "or (n, channels, length), images (n, channels, height, width). "
            "One instance x: pass x[None]."
        )
    return values


def _find_modality(
    values: Array,
    name: str,
    modality: Modality | None,
    modalities: tuple[str, ...],
) -> Modality:
    if modality is None:
        flat: Modality = "row" if "row" in modalities else "series"
        by_dimensions: dict[int, Modality] = {2: flat, 3: "series", 4: "image"}
        modality = by_dimensions[values.ndim]
    if not isinstance(modality, str) or modality not in DIMENSIONS:
        raise ValueError(
            f"modality {brief(modality)} is unknown; accepted: 'series', 'image', 'row'."
        )
    if modality not in modalities:
        raise ValueError(
            f"{name} holds {modality} data (shape {values.shape}); accepted here: "
            f"{', '.join(modalities)}."
        )
    return modality


def wrap_model(model: Any, instances: Instances) -> Classifier:
    """Wrap a model as a Classifier that takes instances as the engine holds them.

    Parameters
    ----------
    model : object
        Anything `as_classifier` takes.
    instances : Instances
        Instances of the shape the model will be asked about.

    Returns
    -------
    Classifier
        The model; where a channel axis was added to series, it is removed again before asking.
    """
    classifier = as_classifier(model)
    if instances.space is not None:
        inner = classifier.inner if isinstance(classifier, Tabular) else classifier
        return Tabular(inner, instances.space)
    if not instances.channel_added:
        return classifier
    return Reshaped(classifier, instances.shape[1:])
