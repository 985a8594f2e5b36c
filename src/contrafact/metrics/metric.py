"""The base class of metrics, and views of a result that metrics share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from ..engine.result import Counterfactuals, as_numpy
from ..models.classifier import Array
from .table_rows import part_changes, table_coordinates

if TYPE_CHECKING:
    from .inputs import MetricInputs

#: what a metric can need, and how to pass it
NEEDS = {
    "reference": "reference=X, rows of the same shape as those explained",
    "labels": "reference=(X, y), rows of the same shape as those explained and their classes",
    "model": "model=, the model that was explained",
    "explainer": "explainer=, the fitted explainer",
    "other_model": "other_model=, a model for the same classes that was trained independently",
    "other_models": "other_models=[...], models for the same classes that were trained otherwise",
    "autoencoder": (
        'autoencoder=, a fitted Autoencoder, or "cnn" or "lstm" to fit one to the reference'
    ),
    "saliency": 'a result whose info has "saliency" or "importance", as CELS and NativeGuide give',
}


class Metric(ABC):
    """Score every counterfactual of a result with one number.

    A metric scores every row, failed ones too: a failure keeps its best attempt, and that attempt
    is measured. To write one, set the attributes below and implement `compute`. The first line of
    the docstring is the definition that `list_metrics` and reports show.

    Attributes
    ----------
    name : str
        The column that the metric fills. No two definitions share a name.
    direction : {"min", "max"}
        "min" when less is better, "max" when more is better.
    needs : frozenset of str, default=frozenset()
        What the metric takes besides the result: any of "reference", "labels", "model",
        "explainer", "other_model", "other_models", "autoencoder", "saliency".
    modalities : tuple of str, default=("series", "image", "row")
        The kinds of data that the metric is defined for.
    tables : bool, default=True
        Whether it is defined for tables with categories and missing values too, not for arrays
        alone.

    Examples
    --------
    >>> class Largest(Metric):
    ...     '''Largest value of x'.'''
    ...     name = "largest"
    ...     direction = "min"
    ...     def compute(self, result, inputs):
    ...         return as_numpy(result.X_cf).reshape(len(result), -1).max(axis=1)
    >>> Largest().direction
    'min'
    """

    name: ClassVar[str]
    direction: ClassVar[Literal["min", "max"]]
    needs: ClassVar[frozenset[str]] = frozenset()
    modalities: ClassVar[tuple[str, ...]] = ("series", "image", "row")
    tables: ClassVar[bool] = True

    @abstractmethod
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        """Compute the score of every row.

        Parameters
        ----------
        result : Counterfactuals
            n counterfactuals, failed ones included.
        inputs : MetricInputs
            What was passed besides the result; everything in `needs` is there.

        Returns
        -------
        ndarray of float, shape (n,)
            NaN only where the metric's docstring says that it is undefined.
        """

    def lacks(self, result: Counterfactuals, inputs: MetricInputs) -> str:
        """Return why the metric can't be computed here.

        Parameters
        ----------
        result : Counterfactuals
            The result to be scored.
        inputs : MetricInputs
            What was passed besides the result.

        Returns
        -------
        str
            The reason, to follow the name of the metric; empty where it can be computed.
        """
        if result.modality not in self.modalities:
            accepted = " and ".join(self.modalities)
            return f"is for {accepted} data; this result holds {result.modality} data"
        if result.table is not None and not self.tables:
            return "is for arrays; this result holds the rows of a table"
        missing = set(self.needs - inputs.available(result))
        if not missing:
            return ""
        if "labels" in missing:
            missing.discard("reference")  # the hint for labels says how to pass both
        hints = [NEEDS.get(need, need) for need in sorted(missing)]
        return f"needs more than the result: pass {' and '.join(hints)}"


def flat_arrays(result: Counterfactuals) -> tuple[Array, Array]:
    """Return X and X_cf as float64 of shape (n, d), so that differences are not rounded twice.

    The rows of a table are in coordinates without units, where no value is missing.
    """
    if result.table is not None:
        x, x_cf = flat_values(result)
        return table_coordinates(result.table, x), table_coordinates(result.table, x_cf)
    return flat_values(result)


def flat_values(result: Counterfactuals) -> tuple[Array, Array]:
    """Return X and X_cf as float64 of shape (n, d), as models are asked about them."""
    size = int(np.prod(instance_shape(result)))
    x = as_numpy(result.X).reshape(len(result), size)
    x_cf = as_numpy(result.X_cf).reshape(len(result), size)
    return x.astype(np.float64), x_cf.astype(np.float64)


def absolute_change(result: Counterfactuals) -> Array:
    """Return |x' − x| as float64 of shape (n, d); of a table by columns, in units of its schema."""
    if result.table is not None:
        return part_changes(result)
    x, x_cf = flat_arrays(result)
    return np.asarray(np.abs(x_cf - x))


def flat_changed(result: Counterfactuals) -> Array:
    """Return the mask of changed values, `result.changed`, with shape (n, d).

    Of a table by columns, where a one-hot group counts as one.
    """
    if result.table is not None:
        return result.changed_parts
    size = int(np.prod(instance_shape(result)))
    return as_numpy(result.changed).reshape(len(result), size)


def n_values(result: Counterfactuals) -> int:
    """Return d, the number of values of an instance: of a table, of its columns."""
    if result.table is not None:
        return len(result.table.schema.parts)
    return int(np.prod(instance_shape(result)))


def part_of_value(result: Counterfactuals) -> Any:
    """Return which value of `flat_changed` each value of `flat_values` belongs to, as an index."""
    if result.table is None:
        return slice(None)
    part = np.empty(len(result.table.schema), dtype=int)
    for number, members in enumerate(result.table.schema.parts.values()):
        part[list(members)] = number
    return part


def instance_shape(result: Counterfactuals) -> tuple[int, ...]:
    """Return the shape of one instance; series have their channel axis."""
    shape = tuple(result.X.shape[1:])
    if result.modality == "series" and len(shape) == 1:
        return (1, *shape)
    return shape
