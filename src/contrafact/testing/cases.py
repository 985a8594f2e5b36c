"""Small problems for the checks: every kind of model on every kind of data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import torch

from ..engine.instances import Modality
from ..engine.result import Counterfactuals
from ..models.classifier import Array, Classifier, as_classifier

MODELS = ("torch", "linear", "forest", "rocket", "callable")
#: what explainers of prototype models meet instead
PROTOTYPE_MODELS = ("prototype",)
SHAPES: dict[str, tuple[int, ...]] = {
    "series": (1, 24),
    "multivariate": (3, 20),
    "image": (1, 8, 8),
    "row": (6,),
}
LABELS = np.array(["a", "b", "c"])


@dataclass(frozen=True)
class Case:
    """A trained model, its reference data and instances to explain. `labels` name the model's outputs.

    The checks of one explainer share a case, its fit and its answers: explaining changes nothing, so a check
    that starts where another one ended starts the same. A changed copy (`replace`) shares nothing.
    """

    model_kind: str
    data_kind: str
    model: Any
    X_reference: Array
    y_reference: Array
    X: Array
    labels: Array
    state: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    answers: dict[str, Counterfactuals] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def modality(self) -> Modality:
        return "series" if self.data_kind == "multivariate" else self.data_kind  # type: ignore[return-value]

    def classifier(self, batch_size: int | None = None) -> Classifier:
        """A fresh wrapper, so that counts start at 0."""
        model = self.model
        if self.model_kind == "prototype" and not hasattr(model, "prototypes_"):
            model = Fronted(model.classifier.model, model, SHAPES[self.data_kind])
        own = hasattr(model, "classes_")
        return as_classifier(model, classes=None if own else self.labels, batch_size=batch_size)

    def fitted(self, explainer: Any, classifier: Classifier | None = None) -> Any:
        """The explainer, fitted for this classifier; without one, in the state of the fit that is shared."""
        if classifier is None and self.state:
            vars(explainer).update(self.state)
            return explainer
        explainer.fit(
            classifier or self.classifier(),
            self.X_reference,
            self.y_reference,
            modality=self.modality,
        )
        if classifier is None:
            self.state.update(vars(explainer))
        return explainer

    def answer(self, explainer: Any, **options: Any) -> Counterfactuals:
        """What the explainer, in the shared fit, says of all instances; the same question is asked once."""
        question = repr(options)
        if question not in self.answers:
            self.answers[question] = self.fitted(explainer).explain(self.X, **options)
        return self.answers[question]

    def relabeled(self, labels: Array) -> Case:
        """The same decisions under other names."""
        column = {label: i for i, label in enumerate(self.labels.tolist())}
        y = labels[[column[label] for label in self.y_reference.tolist()]]
        if self.model_kind == "prototype":
            model = train("prototype", self.X_reference, y)
        else:
            model = Probabilities(self.classifier(), len(labels))
        return replace(self, model=model, y_reference=y, labels=labels)


class Probabilities:
    """A model as a plain function; of its classes the first `n` are kept."""

    def __init__(self, classifier: Classifier, n: int) -> None:
        self.classifier, self.n = classifier, n

    def __call__(self, X: Array) -> Array:
        proba = self.classifier.predict_proba(X)[:, : self.n] + 1e-9
        return np.asarray(proba / proba.sum(1, keepdims=True))


class Fronted:
    """A prototype model for which a function of the instances, of this shape, answers."""

    def __init__(self, model: Any, answer: Any, shape: tuple[int, ...]) -> None:
        self.classes_, self.n_features_in_ = model.classes_, model.n_features_in_
        self.prototypes_, self.prototype_labels_ = model.prototypes_, model.prototype_labels_
        self.metric_, self.answer, self.shape = model.metric_, answer, shape

    def predict_proba(self, X: Array) -> Array:
        return np.asarray(self.answer(X.reshape(-1, *self.shape)))

    def predict(self, X: Array) -> Array:
        return np.asarray(self.classes_[self.predict_proba(X).argmax(1)])


class NearestCenter:
    """Softmax over squared distances to class centers: a smooth model without gradients."""

    def __init__(self, X: Array, y: Array) -> None:
        self.centers = np.stack([X[y == label].mean(0).ravel() for label in np.unique(y)])

    def __call__(self, X: Array) -> Array:
        distance = ((X.reshape(len(X), 1, -1) - self.centers) ** 2).sum(2) / 4
        weight = np.exp(distance.min(1, keepdims=True) - distance)
        return np.asarray(weight / weight.sum(1, keepdims=True))


class Remembering:
    """A fitted pipeline that answers rows it has met from memory: aeon takes milliseconds for any call, and
    the checks ask about the same rows again and again."""

    def __init__(self, pipeline: Any, limit: int = 20_000) -> None:
        self.pipeline, self.limit = pipeline, limit
        self.memory: dict[tuple[str, bytes], Array] = {}

    def decision_function(self, X: Array) -> Array:
        return self._recall("decision_function", X)

    def predict(self, X: Array) -> Array:
        return self._recall("predict", X)

    def _recall(self, question: str, X: Array) -> Array:
        keys = [(question, row.tobytes()) for row in X]
        if len(self.memory) > self.limit:
            self.memory.clear()
        new = {key: i for i, key in enumerate(keys) if key not in self.memory}
        if new:
            answers = getattr(self.pipeline, question)(X[list(new.values())])
            self.memory.update(zip(new, answers, strict=True))
        return np.stack([self.memory[key] for key in keys])


def make_data(data_kind: str, n: int, seed: int) -> tuple[Array, Array]:
    """Three classes that differ by where a bump is; every class occurs."""
    shape = SHAPES[data_kind]
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(0.0, 0.3, (n, *shape))
    if data_kind == "row":
        X[np.arange(n), y] += 2.0
    elif data_kind == "image":
        for row, c in enumerate(y):
            X[row, :, 2 * c : 2 * c + 3, 2 * c : 2 * c + 3] += 1.5
    else:
        time = np.arange(shape[1])
        for row, c in enumerate(y):
            bump = 2.0 * np.exp(-0.5 * ((time - shape[1] * (c + 1) / 4) / 1.5) ** 2)
            X[row, c % shape[0]] += bump
    return X, LABELS[y]


@cache
def make_case(model_kind: str, data_kind: str) -> Case:
    """The same case every time; models are trained on first use."""
    X_reference, y_reference = make_data(data_kind, 36, seed=1)
    X, _ = make_data(data_kind, 6, seed=2)
    model = train(model_kind, X_reference, y_reference)
    for array in (X_reference, y_reference, X):
        array.setflags(write=False)
    return Case(model_kind, data_kind, model, X_reference, y_reference, X, LABELS)


def train(model_kind: str, X: Array, y: Array) -> Any:
    flat = X.reshape(len(X), -1)
    if model_kind == "torch":
        return train_module(X, y)
    if model_kind == "linear":
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(C=0.5).fit(flat, y)
    if model_kind == "forest":
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(7, random_state=0).fit(flat, y)
    if model_kind == "rocket":
        from aeon.classification.convolution_based import RocketClassifier

        model = RocketClassifier(n_kernels=20, random_state=0).fit(X, y)
        model.pipeline_ = Remembering(model.pipeline_)
        return model
    if model_kind == "callable":
        return NearestCenter(X, y)
    if model_kind == "prototype":
        from ..prototypes import GLVQ

        return GLVQ(n_prototypes=2, random_state=0).fit(X, y)
    raise ValueError(
        f"model kind {model_kind!r} is unknown; kinds: {', '.join(MODELS + PROTOTYPE_MODELS)}."
    )


def train_module(X: Array, y: Array) -> torch.nn.Module:
    """A small network, left in training mode on purpose: explaining must neither need nor change the mode."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        size = int(np.prod(X.shape[1:]))
        module = torch.nn.Sequential(
            torch.nn.Flatten(),
            torch.nn.Linear(size, 16),
            torch.nn.BatchNorm1d(16),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.2),
            torch.nn.Linear(16, 3),
        )
        inputs = torch.tensor(X, dtype=torch.float32)
        targets = torch.from_numpy(np.unique(y, return_inverse=True)[1])
        optimizer = torch.optim.Adam(module.parameters(), lr=0.02)
        for _ in range(80):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(module(inputs), targets).backward()
            optimizer.step()
        module.zero_grad(set_to_none=True)
    return module
