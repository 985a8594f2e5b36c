"""Adapter for scikit-learn estimators and what behaves like them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import torch
from sklearn.frozen import FrozenEstimator
from torch import Tensor
from typing_extensions import override

from ..data.dataset import as_labels
from ..process_state import keeping_threads
from .answers import read_columns, read_labels, refuse_several_outputs
from .class_labels import distinct_labels, label_index
from .classifier import Classifier
from .input_forms import InputForm, first_answer, possible_forms
from .layout_hints import layout_hint
from .twins import make_twin
from .verdict import Verdict

#: Families whose `predict` is the argmax of their own probabilities or decision function.
_ARGMAX_FAMILIES = (
    "sklearn.calibration.",
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
    without that, 1 for the predicted class. The first question finds out in which form the model
    takes instances, flat or not, in float64 or in float32; the others use this form.

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
        refuse_several_outputs(model)
        super().__init__(_choose_classes(model, classes), batch_size)
        self.model = model
        self.n_features: int | None = getattr(model, "n_features_in_", None)
        self._forms: dict[tuple[int, ...], InputForm] = {}
        self._set_output(_output_method(model, len(self.classes)))
        self._twin = make_twin(model)
        self.differentiable = self._twin is not None

    def _set_output(self, output: str) -> None:
        """Take answers from this method of the model."""
        self._output = output
        self._predict_apart = output != "predict" and not _predicts_argmax(self.model)
        self.rows_per_evaluation = 2 if self._predict_apart else 1
        self.rows_per_verdict = 1 if output == "predict" else 2

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
        labels = read_labels(self._ask("predict", x), len(x), self._source("predict"))
        return label_index(labels, self.classes)

    def _read(self, x: Tensor) -> Verdict:
        """Ask for probabilities or decision values, and take the label from them."""
        try:
            out = self._columns(self._output, x)
        except AttributeError:
            # The method may be there without what it needs: an SVC without probabilities inside.
            if self._output != "predict_proba":
                raise
            self._set_output(_output_without_proba(self.model, len(self.classes)))
            return self._decide(x)
        if self._output == "predict_proba":
            if out.ndim == 1:
                raise ValueError(
                    f"{self._source(self._output)} must give one column per class, got shape "
                    f"{tuple(out.shape)}."
                )
            return Verdict.of_proba(out)
        score = score_columns(out)
        return Verdict(score.softmax(1), score.argmax(1), score)

    def _columns(self, method: str, x: Tensor) -> Tensor:
        """Call a method of the model on rows; its numbers in float64."""
        out = read_columns(self._ask(method, x), len(x), self._source(method))
        return torch.from_numpy(out)

    def _source(self, method: str) -> str:
        """Name a method of the model, for messages."""
        return f"{method} of {type(self.model).__name__}"

    @keeping_threads()
    def _ask(self, method: str, x: Any) -> Any:
        """Call a method of the model on rows, in the form that it takes; on a frame as it is."""
        ask = getattr(self.model, method)
        if not isinstance(x, Tensor):
            return ask(x)
        row = tuple(x.shape[1:])
        if row in self._forms:
            return ask(self.as_model_input(x))
        forms = self._possible_forms(row)
        form, answer, failures = first_answer(lambda form: ask(self._convert(x, form)), forms)
        if form is None:
            raise self._refusal(ask, x, forms, failures) from failures[0]
        self._forms[row] = form
        self.dtype = form.dtype
        return answer

    def _possible_forms(self, row: tuple[int, ...]) -> list[InputForm]:
        """List the forms to try."""
        return possible_forms(row, self.n_features, self.dtype)

    def as_model_input(self, x: Tensor) -> Any:
        """Convert rows to what the model was trained on: an array, or a DataFrame by its names."""
        row = tuple(x.shape[1:])
        form = self._forms.get(row) or self._possible_forms(row)[0]
        return self._convert(x, form)

    def _convert(self, x: Tensor, form: InputForm) -> Any:
        """Convert rows to a form."""
        rows = form.apply(x)
        names = getattr(self.model, "feature_names_in_", None)
        if names is None or rows.shape[1:] != (len(names),):
            return rows
        import pandas as pd

        return pd.DataFrame(rows, columns=names)

    def _refusal(
        self,
        ask: Callable[[Any], Any],
        x: Tensor,
        forms: Sequence[InputForm],
        failures: Sequence[Exception],
    ) -> Exception:
        """Make the error for a model that answers in none of the forms."""
        row = tuple(x.shape[1:])
        n_values = prod(row)
        said = [f"{type(error).__name__}: {_first_line(error)}" for error in failures]
        fits = self.n_features in (None, n_values)
        hint = layout_hint(lambda other: ask(other.numpy()), x)
        if fits and not hint and len(set(said)) == 1:
            return failures[0]  # the form is not to blame
        problem = f"{type(self.model).__name__} answers for none of the forms of X that were tried."
        if not fits:
            problem = (
                f"The model was trained on {self.n_features} features per row, "
                f"but X has {n_values} (shape {tuple(x.shape)})."
            )
        tried = dict.fromkeys(
            f"{form.describe(row)}: {text}" for form, text in zip(forms, said, strict=True)
        )
        return ValueError(f"{problem}{hint} Tried: {'; '.join(tried)}")


def _first_line(error: Exception) -> str:
    """Return the first line of an error, shortened."""
    line, _, _ = str(error).strip().partition("\n")
    return line if len(line) <= 200 else f"{line[:199]}…"


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
    if classes is None:
        return own
    given = distinct_labels(classes)
    if not np.array_equal(as_labels(own, "classes_"), given):
        raise ValueError(
            f"classes {given.tolist()} differ from the model's own classes_ "
            f"{np.asarray(own).tolist()}."
        )
    return own


def _output_method(model: Any, n_classes: int) -> str:
    """Name the most informative method of a model."""
    if hasattr(model, "predict_proba"):
        return "predict_proba"
    return _output_without_proba(model, n_classes)


def _output_without_proba(model: Any, n_classes: int) -> str:
    """Name the most informative method of a model besides `predict_proba`."""
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
    if type(model) is FrozenEstimator:
        return _last_step(model.estimator)
    if hasattr(model, "best_estimator_"):
        return _last_step(model.best_estimator_)
    if hasattr(model, "steps"):
        _, final = model.steps[-1]
        return _last_step(final)
    return model
