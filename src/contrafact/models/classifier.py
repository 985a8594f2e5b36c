"""Classifier: one interface for every kind of model, which counts the rows it is asked about."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from math import prod
from typing import Any, ClassVar, TypeAlias

import numpy as np
import torch
from torch import Tensor

from ..process_state import using_threads
from ..validation import check_parameters
from .arguments import RULES, read_rows
from .class_labels import distinct_labels, name_outputs
from .remarks import Remarks
from .verdict import Verdict, check_probabilities

Array: TypeAlias = np.ndarray[Any, Any]
Rows: TypeAlias = Array | Tensor

#: How many rows a model is probed with.
PROBE_ROWS = 2


class Classifier(ABC):
    """Give a trained model one interface: `predict_proba`, `predict`, `logits`, `classes`.

    Made by `as_classifier`. Adapters implement `_evaluate`, which turns rows into a `Verdict`.

    Parameters
    ----------
    classes : array-like of labels, optional
        Names of the output columns, in their order.
    batch_size : int, optional
        Rows handed to the model at once; default: as many as `max_batch_elements` allows.

    Attributes
    ----------
    classes : array of shape (classes,)
        Labels, in the order of the probability columns.
    feature_names : list of str or None
        Columns the model was trained on.
    differentiable : bool
        Whether `logits` has gradients.
    dtype, device : torch.dtype, torch.device
        What the model computes in, and where.
    n_threads : int or None
        Threads while the model is asked; None: as many as are used at that time.
    rows_evaluated : int
        How many rows the model has been asked about so far.
    remarks : Remarks
        What users should know about the model, found by `probe` and by `Explainer.fit`.
    order_in_doubt : bool
        Whether the outputs were named by the sorted labels of reference rows, and nothing has
        confirmed this order yet.
    known_reference : tuple of rows and Verdict, or None
        What the model said of the reference rows, while a method is fitted.
    rows_per_evaluation, rows_per_verdict, rows_per_gradient : int
        Rows the model sees for one row of `evaluate`, of `verdict` and of `logits`.
    max_batch_elements : int
        Largest number of values handed to the model at once, which bounds memory.

    Examples
    --------
    >>> from contrafact import as_classifier
    >>> classifier = as_classifier(lambda X: np.hstack([1 - X, X]))
    >>> classifier.predict(np.array([[0.2], [0.9]])).tolist()
    [0, 1]
    """

    differentiable: bool = False
    dtype: torch.dtype = torch.float64
    device: torch.device = torch.device("cpu")
    rows_per_evaluation: int = 1
    rows_per_verdict: int = 1
    rows_per_gradient: int = 1
    n_threads: int | None = None
    max_batch_elements: ClassVar[int] = 2**22
    #: False where contrafact itself computed the probabilities, or checked them before
    checks_probabilities: ClassVar[bool] = True

    def __init__(self, classes: Any = None, batch_size: int | None = None) -> None:
        check_parameters(type(self).__name__, RULES, {"batch_size": batch_size})
        self._classes: Array | None = None if classes is None else distinct_labels(classes)
        self.batch_size = None if batch_size is None else int(batch_size)
        self.rows_evaluated = 0
        self.remarks = Remarks()
        self.order_in_doubt = False
        self._probed = False
        self.known_reference: tuple[Rows, Verdict] | None = None

    @property
    def classes(self) -> Array:
        """The user's labels, in the order of the probability columns."""
        if self._classes is None:
            raise ValueError(
                "The classes of this model are not known yet: pass classes=[...] to as_classifier, "
                "or ask it for a prediction first."
            )
        return self._classes

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the columns the model was trained on; None where it has none."""
        return None

    @abstractmethod
    def _evaluate(self, x: Tensor) -> Verdict:
        """Ask the model about one internal batch."""

    def _decide(self, x: Tensor) -> Verdict:
        """Do the same with the label of the model's own `predict`, where it has one."""
        return self._evaluate(x)

    def evaluate(self, x: Rows) -> Verdict:
        """Ask about many rows, in internal batches; searches use this.

        Parameters
        ----------
        x : array or Tensor of shape (n, ...)
            Rows in the shape the model takes.

        Returns
        -------
        Verdict
            About n rows; the label may differ from `predict` where the two are separate and equal
            probabilities leave a choice.
        """
        return self._in_batches(x, self._evaluate, self.rows_per_evaluation)

    def verdict(self, x: Rows) -> Verdict:
        """Ask about many rows, with the labels of the model's own `predict`.

        Parameters
        ----------
        x : array or Tensor of shape (n, ...)
            Rows in the shape the model takes.

        Returns
        -------
        Verdict
            About n rows; decides whether a counterfactual is valid.
        """
        return self._in_batches(x, self._decide, self.rows_per_verdict)

    def final_verdict(self, x: Array) -> Verdict:
        """Ask about rows in the form in which they are returned to the user.

        Parameters
        ----------
        x : array of shape (n, ...)
            Rows; of a table as a `Table` holds them.

        Returns
        -------
        Verdict
            As of `verdict`.
        """
        return self.verdict(x)

    def probe(self, x: Rows) -> None:
        """Ask about a few rows twice, once for each model, and remark what should be known.

        Parameters
        ----------
        x : array or Tensor of shape (n, ...)
            Rows in the shape the model takes; the first few are used.
        """
        if self._probed or len(x) == 0:
            return
        few = self.as_input(x[:PROBE_ROWS])
        self.rows_evaluated += 2 * self.rows_per_evaluation * len(few)
        first = self._evaluate(few).proba
        again = self._evaluate(few).proba
        self.remarks.compare(first, again)
        self._probe_gradients(few)
        self._probed = True

    def _probe_gradients(self, x: Tensor) -> None:  # noqa: B027 - most adapters know
        """Find out whether gradients pass through the model, where that is not known."""

    def reference_verdict(self, x: Rows) -> Verdict:
        """Ask about reference rows, unless `known_reference` has the answer.

        Parameters
        ----------
        x : array or Tensor of shape (n, ...)
            Rows in the shape the model takes.

        Returns
        -------
        Verdict
            As of `verdict`.
        """
        if self.known_reference is not None:
            rows, verdict = self.known_reference
            if rows is x:
                return verdict
        return self.verdict(x)

    def _in_batches(
        self,
        x: Rows,
        ask: Callable[[Tensor], Verdict],
        passes: int,
    ) -> Verdict:
        """Ask in internal batches, and count `passes` rows for each."""
        x = self.as_input(x)
        if len(x) == 0:
            no_label = torch.empty(0, dtype=torch.long, device=self.device)
            return Verdict.of_label(no_label, len(self.classes))
        self.rows_evaluated += passes * len(x)
        size = self.internal_batch(x)
        batches = x.split(size) if len(x) > size else [x]
        with nullcontext() if self.n_threads is None else using_threads(self.n_threads):
            verdict = Verdict.concat([ask(batch) for batch in batches])
        if self.checks_probabilities:
            check_probabilities(verdict.proba)
        self._check_n_outputs(verdict.proba.shape[1])
        return verdict

    def internal_batch(self, x: Tensor) -> int:
        """Return how many rows go to the model at once.

        Parameters
        ----------
        x : Tensor of shape (n, ...)
            At least one row; only the shape of a row is used.

        Returns
        -------
        int
            `batch_size`, or else at most 1024 rows and `max_batch_elements` values.
        """
        if self.batch_size is not None:
            return self.batch_size
        elements_per_row = max(1, prod(x.shape[1:]))
        fitting = self.max_batch_elements // elements_per_row
        return max(1, min(1024, fitting))

    def as_input(self, x: Rows) -> Tensor:
        """Convert rows to a tensor of the model's dtype on its device.

        Parameters
        ----------
        x : array or Tensor of shape (n, ...)
            Rows; never written to.

        Returns
        -------
        Tensor of shape (n, ...)
            The rows, without gradient history.
        """
        rows = read_rows(x)
        if rows.requires_grad:
            rows = rows.detach()
        return rows.to(self.device, self.dtype)

    def _check_n_outputs(self, n_outputs: int) -> None:
        """Check the number of columns; number the classes where they have no labels."""
        if self._classes is None:
            self._classes = np.arange(n_outputs)
        elif len(self._classes) != n_outputs:
            raise ValueError(
                f"The model gives {n_outputs} outputs per row, but classes has "
                f"{len(self._classes)} labels: {self._classes.tolist()}."
            )

    def infer_classes(self, x: Rows, y: Array | None) -> None:
        """Name the outputs of a model that has no labels of its own.

        Parameters
        ----------
        x : array or Tensor of shape (n, ...)
            Reference rows; the model is asked about the first.
        y : array of shape (n,) or None
            Labels of the reference rows; None numbers the outputs.

        Raises
        ------
        ValueError
            If the labels cannot be matched to the outputs.
        """
        if self._classes is not None:
            return
        first = self.as_input(x)[:1]
        n_outputs = self._evaluate(first).proba.shape[1]
        self.rows_evaluated += 1
        if self._classes is not None:
            return  # the answer named them
        self._classes = np.arange(n_outputs) if y is None else name_outputs(n_outputs, y)
        self.order_in_doubt = y is not None

    def predict_proba(self, X: Rows) -> Array:
        """Return probabilities.

        Parameters
        ----------
        X : array or Tensor of shape (n, ...)
            Rows in the shape the model takes.

        Returns
        -------
        array of shape (n, classes)
            The model's own probabilities, in the order of `classes`.
        """
        proba = self.evaluate(X).proba
        return np.asarray(proba.cpu().numpy())

    def predict(self, X: Rows) -> Array:
        """Return the user's labels.

        Parameters
        ----------
        X : array or Tensor of shape (n, ...)
            Rows in the shape the model takes.

        Returns
        -------
        array of shape (n,)
            The label the model's own `predict` gives each row.
        """
        label = self.verdict(X).label.cpu().numpy()
        return np.asarray(self.classes[label])

    def logits(self, x: Tensor) -> Tensor:
        """Compute scores whose softmax is the model's probability, with gradients.

        Parameters
        ----------
        x : Tensor of shape (n, ...)
            Rows of the model's dtype on its device, few enough for one batch.

        Returns
        -------
        Tensor of shape (n, classes)
            Logits that depend on `x` differentiably.

        Raises
        ------
        TypeError
            If the model is not `differentiable`.
        """
        raise TypeError(
            f"{type(self).__name__} has no gradients; check `differentiable` first, or use "
            "contrafact.numerics.zeroth_order_gradient."
        )

    def __repr__(self) -> str:
        classes = "unknown" if self._classes is None else self._classes.tolist()
        gradients = "differentiable" if self.differentiable else "no gradients"
        rows = f"{self.rows_evaluated} rows evaluated"
        return f"{type(self).__name__}(classes={classes}, {gradients}, {rows})"
