"""Adapters: torch modules, scikit-learn-like estimators, plain functions."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..data.dataset import as_labels
from .classifier import Array, Classifier, Verdict, log_floor
from .twins import make_twin


class TorchClassifier(Classifier):
    """A torch module that gives logits, log-probabilities or probabilities, one column per class.

    A single column is read as the probability of the second class if it stays within [0, 1] whatever the
    module is asked, else as its logit.
    """

    differentiable = True
    history: dict[str, list[float]]

    def __init__(
        self, module: torch.nn.Module, classes: Any, batch_size: int | None, device: Any
    ) -> None:
        super().__init__(classes, batch_size)
        parameter = next((p for p in module.parameters() if p.is_floating_point()), None)
        # NumPy has no bfloat16: instances stay float32, and such a module sees them rounded.
        self.rounds = parameter is not None and parameter.dtype == torch.bfloat16
        self.dtype = torch.float32 if parameter is None or self.rounds else parameter.dtype
        self.device = torch.device("cpu") if parameter is None else parameter.device
        if device is not None and torch.device(device) != self.device:
            self.device = torch.device(device)
            module = copy.deepcopy(module).to(self.device)
        self.module = module
        self.history = {}
        self._gives_probabilities: bool | None = None

    def _forward(self, x: Tensor) -> Tensor:
        out = self._ask(x)
        if not isinstance(out, Tensor):
            raise TypeError(
                f"The module must give one tensor (rows, classes), got {type(out).__name__}."
            )
        out = out.float() if self.rounds else out
        if out.ndim == 1:
            out = out[:, None]
        if out.ndim != 2 or len(out) != len(x):
            raise ValueError(
                f"The module must give (rows, classes), got {tuple(out.shape)} for input {tuple(x.shape)}."
            )
        finite = out.isfinite().all(1)
        if self._gives_probabilities is None and finite.any():
            self._gives_probabilities = self._looks_like_probabilities(out[finite], x[finite])
        if out.shape[1] == 1:
            out = torch.cat(
                [1 - out if self._gives_probabilities else torch.zeros_like(out), out], 1
            )
        return log_floor(out) if self._gives_probabilities else out

    def _ask(self, x: Tensor) -> Any:
        with evaluating(self.module):
            return self.module(x.bfloat16() if self.rounds else x.clone())  # it may work in place

    def _looks_like_probabilities(self, out: Tensor, x: Tensor) -> bool:
        if out.shape[1] == 1:
            # A few logits may lie within [0, 1] by chance; a probability stays there whatever it is asked.
            with torch.no_grad():
                far = self._ask(
                    torch.cat([scale * (x[:8] + 1) for scale in (-100, -10, -1, 1, 10, 100)])
                )
            out = torch.cat([out, far.to(out).reshape(-1, 1)])
            return bool(((out >= 0) & (out <= 1) | out.isnan()).all())
        return bool(((out >= 0) & (out <= 1)).all() and (out.sum(1) - 1).abs().max() < 1e-4)

    def _evaluate(self, x: Tensor) -> Verdict:
        with torch.no_grad():
            log_proba = self._forward(x).double().log_softmax(1)
        # A class masked out by a logit of −inf is an answer like any other; searches need finite scores.
        return Verdict(log_proba.exp(), log_proba.argmax(1), log_proba.clamp_min(-1e6))

    def logits(self, x: Tensor) -> Tensor:
        self.rows_evaluated += len(x)
        return self._forward(x)


@contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Eval mode inside; every submodule's own mode restored after."""
    training = [m for m in module.modules() if m.training]
    if training:
        module.eval()
    try:
        yield
    finally:
        for m in training:
            m.training = True


class EstimatorClassifier(Classifier):
    """A scikit-learn estimator or pipeline, or anything with `predict` and `classes_`.

    Probabilities are those of `predict_proba`; without it, the softmax of `decision_function`; without that,
    1 for the predicted class. Instances are flattened where the model was trained on flat rows.
    """

    #: families whose `predict` is the argmax of their own probabilities or decision function
    argmax_families = (
        "sklearn.discriminant_analysis.",
        "sklearn.ensemble.",
        "sklearn.linear_model.",
        "sklearn.naive_bayes.",
        "sklearn.neighbors.",
        "sklearn.neural_network.",
        "sklearn.tree.",
    )
    #: their members whose `predict` goes its own way
    argmax_exceptions = ("NearestCentroid", "SGDClassifier", "StackingClassifier")

    def __init__(self, model: Any, classes: Any, batch_size: int | None) -> None:
        own = getattr(model, "classes_", None)
        if own is not None and len(own) == 0:
            own = None  # aeon's, before fit
        if own is None and classes is None:
            raise ValueError(
                f"model {type(model).__name__} has no classes_: fit it first, or pass classes=[...]."
            )
        if (
            own is not None
            and classes is not None
            and not np.array_equal(as_labels(own, "classes_"), classes)
        ):
            raise ValueError(
                f"classes {list(classes)} differ from the model's own classes_ {np.asarray(own).tolist()}."
            )
        super().__init__(own if own is not None else classes, batch_size)
        self.model = model
        self.n_features: int | None = getattr(model, "n_features_in_", None)
        final = last_step(model)
        self._output = next(
            (name for name in ("predict_proba", "decision_function") if hasattr(model, name)),
            "predict",
        )
        if (
            self._output == "decision_function"
            and getattr(final, "decision_function_shape", "") == "ovo"
            and len(self.classes) > 2
        ):
            self._output = "predict"  # one column per pair of classes: no scores of classes to read
        self._predict_apart = self._output != "predict" and not (
            f"{type(final).__module__}.".startswith(self.argmax_families)
            and type(final).__name__ not in self.argmax_exceptions
        )
        self.rows_per_evaluation = 2 if self._predict_apart else 1
        self.rows_per_verdict = 1 if self._output == "predict" else 2
        self._twin = make_twin(model)
        self.differentiable = self._twin is not None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_twin": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = {**state, "_twin": make_twin(state["model"])}

    @property
    def feature_names(self) -> list[str] | None:
        names = getattr(self.model, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def _as_model_input(self, x: Tensor) -> Any:
        rows = x.cpu().numpy().copy()  # the model may work in place
        if self.n_features is None:
            return rows
        rows = rows.reshape(len(rows), -1)
        if rows.shape[1] != self.n_features:
            raise ValueError(
                f"The model was trained on {self.n_features} features per row, but X has {rows.shape[1]} "
                f"(shape {tuple(x.shape)})."
            )
        names = getattr(self.model, "feature_names_in_", None)
        if names is None:
            return rows
        import pandas as pd

        return pd.DataFrame(rows, columns=names)

    def _predict(self, x: Tensor) -> Tensor:
        return label_index(self.model.predict(self._as_model_input(x)), self.classes)

    def _evaluate(self, x: Tensor) -> Verdict:
        return (
            self._decide(x) if self._predict_apart or self._output == "predict" else self._read(x)
        )

    def _read(self, x: Tensor) -> Verdict:
        out = getattr(self.model, self._output)(self._as_model_input(x))
        out = torch.from_numpy(np.asarray(out, dtype=np.float64))
        if self._output == "predict_proba":
            return Verdict.of_proba(out)
        score = torch.stack([torch.zeros_like(out), out], 1) if out.ndim == 1 else out
        return Verdict(score.softmax(1), score.argmax(1), score)

    def _decide(self, x: Tensor) -> Verdict:
        label = self._predict(x)
        if self._output == "predict":
            return one_hot_verdict(label, len(self.classes))
        verdict = self._read(x)
        return Verdict(verdict.proba, label, verdict.score)

    def logits(self, x: Tensor) -> Tensor:
        if self._twin is None:
            return super().logits(x)
        self.rows_evaluated += len(x)
        return self._twin(x.reshape(len(x), -1))


def last_step(model: Any) -> Any:
    """The estimator that decides: behind searches and at the end of pipelines."""
    for inner in ("best_estimator_", "steps"):
        if hasattr(model, inner):
            deeper = getattr(model, inner)
            return last_step(deeper[-1][1] if inner == "steps" else deeper)
    return model


def label_index(labels: Any, classes: Array) -> Tensor:
    """Positions of predicted labels among the classes."""
    labels = np.asarray(labels).ravel()  # some give a column
    order = np.argsort(classes)
    place = np.searchsorted(classes, labels, sorter=order).clip(max=len(classes) - 1)
    index = order[place]
    unknown = classes[index] != labels
    if unknown.any():
        raise ValueError(
            f"The model predicts labels {np.unique(labels[unknown]).tolist()} that are not in classes "
            f"{classes.tolist()}."
        )
    return torch.from_numpy(index)


def one_hot_verdict(label: Tensor, n_classes: int) -> Verdict:
    proba = torch.nn.functional.one_hot(label, n_classes).double()
    return Verdict(proba, label, log_floor(proba))


class CallableClassifier(Classifier):
    """A function of a NumPy array of instances that gives probabilities (n, classes) or labels (n,)."""

    #: how far from 1 a row of probabilities may sum: some services round theirs
    tolerance = 0.05

    def __init__(
        self, function: Callable[[Array], Any], classes: Any, batch_size: int | None
    ) -> None:
        super().__init__(classes, batch_size)
        self.function = function

    def _evaluate(self, x: Tensor) -> Verdict:
        out = self.function(x.cpu().numpy().copy())  # it may work in place
        out = np.asarray(out.detach().cpu() if isinstance(out, Tensor) else out)
        if out.shape[:1] != (len(x),) or out.ndim > 2 or out.shape[1:] == (1,):
            raise ValueError(
                f"The function must give (rows, classes) probabilities or (rows,) labels for {len(x)} rows, "
                f"got shape {out.shape}."
            )
        if out.ndim == 1:
            return one_hot_verdict(label_index(out, self.classes), len(self.classes))
        proba = out.astype(np.float64)
        wrong = (proba < 0).any(1) | (np.abs(proba.sum(1) - 1) > self.tolerance)
        if wrong.any():
            raise ValueError(
                f"The function must give probabilities, one column per class, but a row is "
                f"{proba[wrong][0].tolist()}; apply a softmax to logits."
            )
        return Verdict.of_proba(torch.from_numpy(proba))
