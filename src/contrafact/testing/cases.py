"""Make the small problems of the checks: every kind of model on every kind of data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from ..engine.constraints import Constraints
from ..engine.instances import Modality
from ..engine.result import Counterfactuals
from ..models.adapters import as_classifier
from ..models.classifier import Array, Classifier
from ..validation import OneOf, Rule, check_parameters
from .case_models import (
    MODELS,
    PROTOTYPE_MODELS,
    FirstClasses,
    PrototypeModelWithFunction,
    train,
)
from .table_cases import TABLE_LABELS, make_table, train_on_table

#: Shape of one instance of each kind of data.
SHAPES: dict[str, tuple[int, ...]] = {
    "series": (1, 24),
    "multivariate": (3, 20),
    "image": (1, 8, 8),
    "row": (6,),
    "table": (13,),
}
#: Modality of each kind of data.
MODALITIES: dict[str, Modality] = {
    "series": "series",
    "multivariate": "series",
    "image": "image",
    "row": "row",
    "table": "row",
}
LABELS = np.array(["a", "b", "c"])
_RULES: dict[str, Rule] = {
    "model_kind": OneOf(*MODELS, *PROTOTYPE_MODELS),
    "data_kind": OneOf(*SHAPES),
}


@dataclass(frozen=True)
class Case:
    """Hold a trained model, its reference data and the instances to explain.

    The checks of one explainer share a case, its fit and its results: explaining changes nothing,
    so a check that starts from the fit of another one starts from the same state. A changed copy
    (`dataclasses.replace`) shares nothing with the original.

    Parameters
    ----------
    model_kind, data_kind : str
        Kind of model and kind of data.
    model : object
        The trained model.
    X_reference : array of shape (n_reference, ...), or data frame
        Reference instances.
    y_reference : array of shape (n_reference,)
        Their labels.
    X : array of shape (n, ...), or data frame
        Instances to explain.
    labels : array of shape (n_classes,)
        Names of the model's outputs, in order.
    """

    model_kind: str
    data_kind: str
    model: Any
    X_reference: Any
    y_reference: Array
    X: Any
    labels: Array
    _fitted_state: dict[str, Any] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _results: dict[str, tuple[Counterfactuals, int]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _shared: dict[str, Classifier] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def modality(self) -> Modality:
        """Modality of the instances."""
        return MODALITIES[self.data_kind]

    def classifier(self, batch_size: int | None = None) -> Classifier:
        """Wrap the model anew, so that its count of evaluated rows starts at 0.

        Parameters
        ----------
        batch_size : int, optional
            Rows per call of the model.

        Returns
        -------
        Classifier
            The wrapped model.
        """
        model = self.model
        if self.model_kind == "prototype" and not hasattr(model, "prototypes_"):
            # A function of a prototype model: explainers still need to find the prototypes.
            original = model.classifier.model
            model = PrototypeModelWithFunction(original, model, SHAPES[self.data_kind])
        classes = None if hasattr(model, "classes_") else self.labels
        return as_classifier(model, classes=classes, batch_size=batch_size)

    def fit(self, explainer: Any, classifier: Classifier | None = None) -> Any:
        """Fit an explainer to this case.

        Parameters
        ----------
        explainer : Explainer
            The explainer to fit.
        classifier : Classifier, optional
            The classifier to fit it to. By default the explainer gets the fit that all checks of
            this case share, which is computed once.

        Returns
        -------
        Explainer
            The same explainer, fitted.
        """
        shared = classifier is None
        if shared and self._fitted_state:
            vars(explainer).update(self._fitted_state)
            return explainer
        classifier = classifier or self.classifier()
        explainer.fit(classifier, self.X_reference, self.y_reference, modality=self.modality)
        if shared:
            self._fitted_state.update(vars(explainer))
            self._shared["classifier"] = classifier
        return explainer

    def explain(self, explainer: Any, **options: Any) -> Counterfactuals:
        """Explain all instances with the shared fit; equal requests are computed once.

        Parameters
        ----------
        explainer : Explainer
            The explainer; it is fitted first.
        **options : object
            Options of `Explainer.explain`.

        Returns
        -------
        Counterfactuals
            The result, shared between checks: not to be written to.
        """
        result, _ = self.explain_counted(explainer, **options)
        return result

    def explain_counted(self, explainer: Any, **options: Any) -> tuple[Counterfactuals, int]:
        """Explain as `explain` does; count the rows that the model saw meanwhile.

        Parameters
        ----------
        explainer : Explainer
            The explainer; it is fitted first.
        **options : object
            Options of `Explainer.explain`.

        Returns
        -------
        result : Counterfactuals
            The result, shared between checks: not to be written to.
        seen : int
            Rows that the model evaluated for it.
        """
        request = str({name: _in_full(value) for name, value in options.items()})
        self.fit(explainer)
        if request not in self._results:
            classifier = self._shared["classifier"]
            before = classifier.rows_evaluated
            result = explainer.explain(self.X, **options)
            self._results[request] = result, classifier.rows_evaluated - before
        return self._results[request]

    def relabeled(self, labels: Array) -> Case:
        """Return the same problem with other class names.

        Parameters
        ----------
        labels : array of shape (n,)
            The new names. If there are fewer than classes, the first n classes are kept, and so
            are the reference rows of these classes.

        Returns
        -------
        Case
            The changed copy.
        """
        kept = np.isin(self.y_reference, self.labels[: len(labels)])
        X_reference = self.X_reference[kept]
        columns = {label: i for i, label in enumerate(self.labels.tolist())}
        old_columns = [columns[label] for label in self.y_reference[kept].tolist()]
        y_reference = labels[old_columns]
        if self.model_kind == "prototype":
            model = train("prototype", X_reference, y_reference)
        else:
            model = FirstClasses(self.classifier(), len(labels))
        return replace(
            self,
            model=model,
            X_reference=X_reference,
            y_reference=y_reference,
            labels=labels,
        )


def make_data(data_kind: str, n: int, seed: int) -> tuple[Array, Array]:
    """Draw instances of three classes that differ by the position of a bump.

    Parameters
    ----------
    data_kind : str
        A key of `SHAPES`.
    n : int
        Number of instances; classes take turns.
    seed : int
        Seed of the noise.

    Returns
    -------
    X : array of shape (n, ...)
        The instances.
    y : array of shape (n,)
        Their labels.
    """
    shape = SHAPES[data_kind]
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(0.0, 0.3, (n, *shape))
    for row, c in enumerate(y):
        if data_kind == "row":
            X[row, c] += 2.0
        elif data_kind == "image":
            square = slice(2 * c, 2 * c + 3)
            X[row, :, square, square] += 1.5
        else:
            channels, length = shape
            center = length * (c + 1) / 4
            time = np.arange(length)
            X[row, c % channels] += 2.0 * np.exp(-0.5 * ((time - center) / 1.5) ** 2)
    return X, LABELS[y]


def _in_full(option: Any) -> Any:
    """Return what tells an option from others; constraints print only the shapes of arrays."""
    return vars(option) if isinstance(option, Constraints) else option


def make_case(model_kind: str, data_kind: str) -> Case:
    """Make a case; the same arguments give the same object, so a model is trained once.

    Parameters
    ----------
    model_kind : str
        One of `MODELS` or `PROTOTYPE_MODELS`.
    data_kind : str
        A key of `SHAPES`.

    Returns
    -------
    Case
        The case; its arrays are read-only.
    """
    check_parameters("make_case", _RULES, {"model_kind": model_kind, "data_kind": data_kind})
    return _make_case(model_kind, data_kind)


@cache
def _make_case(model_kind: str, data_kind: str) -> Case:
    """Train a model and draw its data, once."""
    if data_kind == "table":
        reference, labels = make_table(60, seed=1)
        frame, _ = make_table(8, seed=2)
        model = train_on_table(model_kind, reference, labels)
        return Case(model_kind, data_kind, model, reference, labels, frame, TABLE_LABELS)
    X_reference, y_reference = make_data(data_kind, 36, seed=1)
    X, _ = make_data(data_kind, 6, seed=2)
    model = train(model_kind, X_reference, y_reference)
    for array in (X_reference, y_reference, X):
        array.setflags(write=False)
    return Case(model_kind, data_kind, model, X_reference, y_reference, X, LABELS)
