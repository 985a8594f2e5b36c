"""Adapter for scikit-learn estimators and what behaves like them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from ..data.dataset import as_labels
from .class_labels import label_index
from .classifier import Classifier
from .twins import make_twin
from .verdict import Verdict

#: Families whose `predict` is the argmax of their own probabilities or decision function.
_ARGMAX_FAMILIES = (
    "sklearn.discriminant_analysis.",
    "sklearn.ensemble.",
    "sklearn.linear_model.",
    "sklearn.naive_bayes.",
    "sklearn.neighbors.",
    "sklearn.neural_network.",
    "sklearn.tree.",
)
#: Their members whose `predict` is computed otherwise.
_ARGMAX_EXCEPTIONS = ("NearestCentroid", "SGDClassifier", "StackingClassifier")


class EstimatorClassifier(Classifier):
    """Wrap a scikit-learn estimator or pipeline, or anything with `predict` and `classes_`.

    Probabilities are those of `predict_proba`; without it, the softmax of `decision_function`;
    without that, 1 for the predicted class. Instances are flattened where the model was trained on
    flat rows.

    Parameters
    ----------
    model : estimator
        A fitted estimator.
    classes : array-like of labels or None
        Names of the output columns, where the model has no `classes_`.
    batch_size : int or None
        Rows handed to the model at once.
    """

    def __init__(self, model: Any, classes: Any, batch_size: int | None) -> None:
        super().__init__(_choose_classes(model, classes), batch_size)
        self.model = model
        self.n_features: int | None = getattr(model, "n_features_in_", None)
        self._output = _output_method(model, len(self.classes))
        self._predict_apart = self._output != "predict" and not _predicts_argmax(model)
        self.rows_per_evaluation = 2 if self._predict_apart else 1
        self.rows_per_verdict = 1 if self._output == "predict" else 2
        self._twin = make_twin(model)
        self.differentiable = self._twin is not None

    def __getstate__(self) -> dict[str, Any]:
        # A twin is made of closures, which cannot be pickled.
        return {**self.__dict__, "_twin": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = {**state, "_twin": make_twin(state["model"])}

    @property
    @override
    def feature_names(self) -> list[str] | None:
        names = getattr(self.model, "feature_names_in_", None)
        if names is None:
            return None
        return [str(name) for name in names]

    @override
    def _evaluate(self, x: Tensor) -> Verdict:
        if self._predict_apart or self._output == "predict":
            return self._decide(x)
        return self._read(x)

    @override
    def _decide(self, x: Tensor) -> Verdict:
        label = self._predict(x)
        if self._output == "predict":
            return Verdict.of_label(label, len(self.classes))
        verdict = self._read(x)
        return Verdict(verdict.proba, label, verdict.score)

    @override
    def logits(self, x: Tensor) -> Tensor:
        if self._twin is None:
            return super().logits(x)
        self.rows_evaluated += len(x)
        return self._twin(x.reshape(len(x), -1))

    def _predict(self, x: Tensor) -> Tensor:
        """Return the index of the class that `predict` gives each row."""
        labels = self.model.predict(self.as_model_input(x))
        return label_index(labels, self.classes)

    def _read(self, x: Tensor) -> Verdict:
        """Ask for probabilities or decision values, and take the label from them."""
        out = self._ask(getattr(self.model, self._output), x)
        if self._output == "predict_proba":
            return Verdict.of_proba(out)
        score = score_columns(out)
        return Verdict(score.softmax(1), score.argmax(1), score)

    def _ask(self, method: Any, x: Tensor) -> Tensor:
        """Call a method of the model on rows; its answer in float64."""
        out = method(self.as_model_input(x))
        return torch.from_numpy(np.asarray(out, dtype=np.float64))

    def as_model_input(self, x: Tensor) -> Any:
        """Convert rows to what the model was trained on: an array, or a DataFrame by its names."""
        rows = x.cpu().numpy().copy()  # the model may work in place
        if self.n_features is None:
            return rows
        rows = rows.reshape(len(rows), -1)
        if rows.shape[1] != self.n_features:
            raise ValueError(
                f"The model was trained on {self.n_features} features per row, "
                f"but X has {rows.shape[1]} (shape {tuple(x.shape)})."
            )
        names = getattr(self.model, "feature_names_in_", None)
        if names is None:
            return rows
        import pandas as pd

        return pd.DataFrame(rows, columns=names)


def score_columns(decision: Tensor) -> Tensor:
    """Give decision values one column per class; (n,) values of two classes become [0, d]."""
    if decision.ndim == 1:
        return torch.stack([torch.zeros_like(decision), decision], 1)
    return decision


def _choose_classes(model: Any, classes: Any) -> Any:
    """Return the model's own classes, or else the given ones; refuse a contradiction."""
    own = getattr(model, "classes_", None)
    if own is None or len(own) == 0:  # aeon's are empty before fit
        if classes is None:
            raise ValueError(
                f"model {type(model).__name__} has no classes_: fit it first, "
                "or pass classes=[...]."
            )
        return classes
    if classes is not None and not np.array_equal(as_labels(own, "classes_"), classes):
        raise ValueError(
            f"classes {list(classes)} differ from the model's own classes_ "
            f"{np.asarray(own).tolist()}."
        )
    return own


def _output_method(model: Any, n_classes: int) -> str:
    """Name the most informative method of a model."""
    if hasattr(model, "predict_proba"):
        return "predict_proba"
    if not hasattr(model, "decision_function"):
        return "predict"
    pairwise = getattr(_last_step(model), "decision_function_shape", "") == "ovo"
    if pairwise and n_classes > 2:
        return "predict"  # one column per pair of classes: there are no scores of classes
    return "decision_function"


def _predicts_argmax(model: Any) -> bool:
    """Tell whether `predict` is known to be the argmax of the other outputs."""
    final = type(_last_step(model))
    known = f"{final.__module__}.".startswith(_ARGMAX_FAMILIES)
    return known and final.__name__ not in _ARGMAX_EXCEPTIONS


def _last_step(model: Any) -> Any:
    """Return the estimator that decides, inside of searches and at the end of pipelines."""
    if hasattr(model, "best_estimator_"):
        return _last_step(model.best_estimator_)
    if hasattr(model, "steps"):
        _, final = model.steps[-1]
        return _last_step(final)
    return model
