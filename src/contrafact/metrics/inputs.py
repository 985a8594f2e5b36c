"""Reference: the rows counterfactuals are compared with; MetricInputs: all that is passed besides the result."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..data.cleaning import describe_nonfinite
from ..data.dataset import Dataset, as_labels
from ..engine.result import Counterfactuals
from ..models.classifier import Array, Classifier, as_classifier
from .metric import as_array, instance_shape

#: numbers handed to a model at once, which bounds memory
MAX_ELEMENTS = 2**24


class Reference:
    """Reference rows and their labels. Detectors are fitted to it once: keep it to score several results.

    Parameters
    ----------
    X : rows of the same shape as the instances explained.
    y : their classes, optional.

    Examples
    --------
    >>> reference = Reference([[0.0, 1.0], [1.0, 0.0]], ["a", "b"])
    >>> reference.rows.shape
    (2, 2)
    """

    def __init__(self, X: Any, y: Any = None) -> None:
        self.X = as_array(X)
        problem = describe_nonfinite(self.X, "The reference") if self.X.dtype.kind == "f" else None
        if problem:
            raise ValueError(problem)
        self.rows: Array = self.X.reshape(len(self.X), int(np.prod(self.X.shape[1:]))).astype(
            np.float64
        )
        self.labels = (
            None if y is None else as_labels(as_array(y), "The reference's y", len(self.X))
        )
        self._fitted: dict[Hashable, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Reference, (self.X, self.labels)  # what was fitted is fitted again on the other side

    @classmethod
    def read(cls, reference: Any, result: Counterfactuals) -> Reference:
        """`X`, a pair `(X, y)`, a Dataset or a Reference, checked against the instances of a result."""
        if isinstance(reference, Dataset):
            reference = (reference.X_train, reference.y_train)
        if isinstance(reference, tuple) and len(reference) != 2:
            raise ValueError(
                f"reference is a tuple of {len(reference)}; accepted: X, or the pair (X, y)."
            )
        if isinstance(reference, Reference):
            known = reference
        else:
            known = cls(*reference) if isinstance(reference, tuple) else cls(reference)
        given, shape = known.X.shape, instance_shape(result)
        lifted = (1, *given[1:]) if result.modality == "series" and len(given) == 2 else given[1:]
        if lifted != shape or not given[0]:
            raise ValueError(
                f"The reference has shape {given}; the instances of this result have shape {shape}, so "
                f"accepted is (m, {', '.join(map(str, shape))}) with at least one row."
            )
        labels = known.labels
        if labels is not None and not set(labels.tolist()) & set(result.classes.tolist()):
            found, wanted = (
                ", ".join(map(repr, np.unique(c)[:9].tolist())) for c in (labels, result.classes)
            )
            raise ValueError(
                f"The reference's labels are {found}; the classes of this result are {wanted}."
            )
        return known

    def fitted(self, key: Hashable, fit: Callable[[], Any]) -> Any:
        """What `fit` makes of the reference, made once."""
        if key not in self._fitted:
            self._fitted[key] = fit()
        return self._fitted[key]

    def of_class(self, label: Any) -> Array:
        """Rows that carry a label, (m, d)."""
        assert self.labels is not None
        return np.asarray(self.rows[self.labels == label])

    def spread(self, result: Counterfactuals) -> Array:
        """Standard deviation per value, (d,): of a feature, or of all the values of a channel."""
        if result.modality == "row":
            return np.asarray(self.rows.std(0))
        shape = instance_shape(result)
        per_channel = self.rows.reshape(len(self.rows), shape[0], -1).std((0, 2))
        return np.repeat(per_channel, int(np.prod(shape[1:])))


@dataclass
class MetricInputs:
    """What was passed besides the result, and scores that several metrics share."""

    reference: Reference | None = None
    model: Any = None
    explainer: Any = None
    other_model: Any = None
    autoencoder: Any = None
    shared: dict[Hashable, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.model is None:
            self.model = getattr(self.explainer, "classifier_", None)

    def kinds(self, result: Counterfactuals) -> frozenset[str]:
        """Which of `NEEDS` are there."""
        parts = ("reference", "model", "explainer", "other_model", "autoencoder")
        found = {part for part in parts if getattr(self, part) is not None}
        if self.reference is not None and self.reference.labels is not None:
            found.add("labels")
        if {"saliency", "importance"} & set(result.info):
            found.add("saliency")
        return frozenset(found)

    def known(self) -> Reference:
        """The reference; for metrics that need one."""
        assert self.reference is not None
        return self.reference


def classifier_of(model: Any, name: str, result: Counterfactuals) -> Classifier:
    """The user's model, which has to know the classes wanted."""
    nameless = not isinstance(model, Classifier) and not hasattr(model, "classes_")
    # A module or function has no class names of its own; those of the result are meant.
    classifier = as_classifier(model, classes=result.classes if nameless else None)
    if len(result):
        classifier.infer_classes(as_array(result.X[:1]), result.classes)
        known = classifier.classes.tolist()
        unknown = [label for label in result.target.tolist() if label not in known]
        if unknown:
            raise ValueError(
                f"{name} does not know the class {unknown[0]!r}. Its classes: {known}."
            )
    return classifier


def ask(
    classifier: Classifier, result: Counterfactuals, variants: Callable[[Array], Array], count: int
) -> tuple[Array, Array]:
    """What a model says of `count` variants of every row: labels and P(c), both (n, count).

    variants : positions of rows → (rows, count, d); called for some rows at a time, which bounds memory.
    """
    n, shape = len(result), tuple(result.X.shape[1:])
    step = max(1, MAX_ELEMENTS // max(1, count * int(np.prod(shape))))
    column = {label: i for i, label in enumerate(classifier.classes.tolist())} if n else {}
    wanted = np.array([column[label] for label in result.target.tolist()], dtype=int)
    labels, p = [result.target[:0].reshape(0, count)], [np.empty((0, count))]
    for start in range(0, n, step):
        rows = np.arange(start, min(n, start + step))
        verdict = classifier.verdict(variants(rows).reshape(-1, *shape))
        labels.append(classifier.classes[verdict.label.cpu().numpy()].reshape(-1, count))
        proba = verdict.proba.cpu().numpy().reshape(len(rows), count, -1)
        p.append(np.take_along_axis(proba, wanted[rows, None, None], 2)[:, :, 0])
    return np.concatenate(labels), np.concatenate(p)
