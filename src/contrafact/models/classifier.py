"""Classifier: one face for every kind of model, and the count of the rows it was asked about."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import torch
from torch import Tensor

from ..data.dataset import as_labels

Array: TypeAlias = np.ndarray[Any, Any]
Rows: TypeAlias = Array | Tensor


@dataclass(frozen=True)
class Verdict:
    """What a model says of m rows.

    proba : (m, classes), the model's own probabilities.
    label : (m,), index of the class it decides for.
    score : (m, classes), what a search may climb on: log-probabilities, or the decision function where
        the model has one and its probabilities are steps.
    """

    proba: Tensor
    label: Tensor
    score: Tensor

    def __getitem__(self, rows: Tensor) -> Verdict:
        return Verdict(self.proba[rows], self.label[rows], self.score[rows])

    @staticmethod
    def concat(parts: Sequence[Verdict]) -> Verdict:
        return Verdict(
            torch.cat([p.proba for p in parts]),
            torch.cat([p.label for p in parts]),
            torch.cat([p.score for p in parts]),
        )

    @staticmethod
    def of_proba(proba: Tensor) -> Verdict:
        """The plain case: the model decides for its most probable class."""
        proba = proba.double()
        return Verdict(proba, proba.argmax(1), log_floor(proba))


def log_floor(proba: Tensor) -> Tensor:
    """log p, finite at p = 0."""
    return proba.clamp_min(torch.finfo(proba.dtype).tiny).log()


class Classifier(ABC):
    """A trained model behind one interface: `predict_proba`, `predict`, `logits`, `classes`.

    Made by `as_classifier`; adapters write `_evaluate` (rows in, `Verdict` out).

    Attributes
    ----------
    classes : array of the user's labels, in the order of the probability columns.
    differentiable : whether `logits` gives gradients.
    dtype, device : what the model computes in; nothing is rounded on the way to it.
    rows_evaluated : how many rows the model has been asked about so far.
    """

    differentiable: bool = False
    dtype: torch.dtype = torch.float64
    device: torch.device = torch.device("cpu")
    #: rows the model sees for one row of `evaluate` and of `verdict`: 2 where `predict` and probabilities are
    #: asked apart
    rows_per_evaluation: int = 1
    rows_per_verdict: int = 1
    #: upper bound on the numbers handed to the model at once, which bounds memory whatever the shape
    max_batch_elements: ClassVar[int] = 2**22

    def __init__(self, classes: Any = None, batch_size: int | None = None) -> None:
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}.")
        labels = None if classes is None else as_labels(classes, "classes")
        if labels is not None and len(np.unique(labels)) != len(labels):
            raise ValueError(f"classes must be distinct, got {labels.tolist()}.")
        self._classes: Array | None = labels
        self.batch_size = batch_size
        self.rows_evaluated = 0

    @property
    def classes(self) -> Array:
        if self._classes is None:
            raise ValueError(
                "The classes of this model are not known yet: pass classes=[...] to as_classifier, "
                "or ask it for a prediction first."
            )
        return self._classes

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the columns the model was trained on, or None where it knows none."""
        return None

    @abstractmethod
    def _evaluate(self, x: Tensor) -> Verdict:
        """Ask the model about one internal batch."""

    def _decide(self, x: Tensor) -> Verdict:
        """As `_evaluate`, with the label taken from the model's own `predict` where it has one."""
        return self._evaluate(x)

    def evaluate(self, x: Rows) -> Verdict:
        """Ask about many rows, in internal batches: what searches use."""
        return self._in_batches(x, self._evaluate, self.rows_per_evaluation)

    def verdict(self, x: Rows) -> Verdict:
        """The final word: the label is what the model's own `predict` says."""
        return self._in_batches(x, self._decide, self.rows_per_verdict)

    def _in_batches(self, x: Rows, ask: Any, passes: int) -> Verdict:
        x = self.as_input(x)
        if len(x) == 0:
            empty = torch.empty(0, len(self.classes), dtype=torch.float64, device=self.device)
            return Verdict(empty, torch.empty(0, dtype=torch.long, device=self.device), empty)
        self.rows_evaluated += passes * len(x)
        verdict = Verdict.concat([ask(part) for part in x.split(self.internal_batch(x))])
        self._check_n_outputs(verdict.proba.shape[1])
        return verdict

    def internal_batch(self, x: Tensor) -> int:
        """How many rows of this shape go to the model at once."""
        return self.batch_size or max(1, min(1024, self.max_batch_elements // max(1, x[0].numel())))

    def as_input(self, x: Rows) -> Tensor:
        """`x` as a tensor of the model's dtype on its device; the caller's array is never written to."""
        if not isinstance(x, Tensor):
            # torch takes neither read-only memory nor negative strides
            x = np.require(x, requirements=["C", "W"])
        return torch.as_tensor(x).detach().to(self.device, self.dtype)

    def _check_n_outputs(self, n_outputs: int) -> None:
        if self._classes is None:
            self._classes = np.arange(n_outputs)
        elif len(self._classes) != n_outputs:
            raise ValueError(
                f"The model gives {n_outputs} outputs per row, but classes has {len(self._classes)} "
                f"labels: {self._classes.tolist()}."
            )

    def infer_classes(self, x: Rows, y: Array | None) -> None:
        """Name the outputs of a model that carries no labels, from the labels `y` of the reference rows."""
        if self._classes is not None:
            return
        n_outputs = self._evaluate(self.as_input(x)[:1]).proba.shape[1]
        self.rows_evaluated += 1
        self._classes = np.arange(n_outputs) if y is None else name_outputs(n_outputs, y)

    def predict_proba(self, X: Rows) -> Array:
        """Probabilities, one column per class."""
        return np.asarray(self.evaluate(X).proba.cpu().numpy())

    def predict(self, X: Rows) -> Array:
        """The user's labels."""
        label = self.verdict(X).label.cpu().numpy()
        return np.asarray(self.classes[label])

    def logits(self, x: Tensor) -> Tensor:
        """Differentiable scores whose softmax is the model's probability; only where `differentiable`."""
        raise TypeError(
            f"{type(self).__name__} has no gradients; ask `differentiable` first, or use "
            "contrafact.models.zeroth_order_gradient."
        )

    def __repr__(self) -> str:
        classes = self._classes.tolist() if self._classes is not None else "unknown"
        gradients = "differentiable" if self.differentiable else "no gradients"
        return f"{type(self).__name__}(classes={classes}, {gradients}, {self.rows_evaluated} rows evaluated)"


class Reshaped(Classifier):
    """Asks `inner` in the shape it was trained on, e.g. (length,) where the engine holds (1, length)."""

    def __init__(self, inner: Classifier, shape: tuple[int, ...]) -> None:
        self.inner, self.shape = inner, shape
        super().__init__(inner._classes, inner.batch_size)
        self.differentiable, self.dtype, self.device = (
            inner.differentiable,
            inner.dtype,
            inner.device,
        )
        self.rows_per_evaluation, self.rows_per_verdict = (
            inner.rows_per_evaluation,
            inner.rows_per_verdict,
        )

    @property
    def _classes(self) -> Array | None:
        return self.inner._classes

    @_classes.setter
    def _classes(self, classes: Array | None) -> None:
        self.inner._classes = classes

    @property
    def feature_names(self) -> list[str] | None:
        return self.inner.feature_names

    def _inside(self, x: Tensor) -> Tensor:
        return x.reshape(len(x), *self.shape)

    def _evaluate(self, x: Tensor) -> Verdict:
        return self.inner.evaluate(self._inside(x))

    def _decide(self, x: Tensor) -> Verdict:
        return self.inner.verdict(self._inside(x))

    def infer_classes(self, x: Rows, y: Array | None) -> None:
        if self._classes is None:
            self.rows_evaluated += 1
            self.inner.infer_classes(self._inside(self.as_input(x)), y)

    def logits(self, x: Tensor) -> Tensor:
        self.rows_evaluated += len(x)
        return self.inner.logits(self._inside(x))


def name_outputs(n_outputs: int, y: Array) -> Array:
    """Labels for a model's output columns: the sorted labels of `y`, or 0…n−1 where `y` holds such ints."""
    found = np.unique(y)
    if len(found) == n_outputs:
        return found
    if found.dtype.kind in "iu" and found.min() >= 0 and found.max() < n_outputs:
        return np.arange(n_outputs)
    raise ValueError(
        f"The model gives {n_outputs} outputs per row, but y has {len(found)} classes: {found.tolist()}. "
        "Wrap the model with as_classifier(model, classes=[...]) to name its outputs."
    )


def as_classifier(
    model: Any, *, classes: Any = None, batch_size: int | None = None, device: Any = None
) -> Classifier:
    """Wrap any trained classifier.

    Parameters
    ----------
    model : torch module, scikit-learn or aeon classifier, function of an array, or Classifier
        A module gives one column per class (logits or probabilities); a function gives probabilities, or
        labels, then `classes` is needed.
    classes : sequence of labels, optional
        Names of the output columns; scikit-learn and aeon models bring their own.
    batch_size : int, optional
        Rows handed to the model at once; default: as many as fit in a few MB.
    device : optional
        Run a torch module there (on a copy; the module itself is never moved).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = as_classifier(LogisticRegression(max_iter=500).fit(X, y))
    >>> classifier.differentiable, classifier.predict(X[:2]).tolist()
    (True, [0, 0])
    """
    from .adapters import CallableClassifier, EstimatorClassifier, TorchClassifier
    from .aeon_adapter import AeonClassifier

    if isinstance(model, Classifier):
        if classes is None and batch_size is None and device is None:
            return model
        raise ValueError(
            "model is a Classifier already; give classes, batch_size and device when making it."
        )
    if isinstance(model, type):
        raise TypeError(
            f"model must be a trained model, got the class {model.__name__}; create and fit it."
        )
    if isinstance(model, torch.nn.Module):
        return TorchClassifier(model, classes, batch_size, device)
    if device is not None:
        raise ValueError(
            f"device applies to torch modules only, got device={device!r} for {model!r}."
        )
    if any(base.__module__.startswith("aeon.") for base in type(model).__mro__):
        return AeonClassifier(model, classes, batch_size)
    if hasattr(model, "predict"):
        return EstimatorClassifier(model, classes, batch_size)
    if callable(model):
        return CallableClassifier(model, classes, batch_size)
    raise TypeError(
        f"model must be a torch module, a scikit-learn or aeon classifier, or a function, "
        f"got {type(model).__name__}."
    )
