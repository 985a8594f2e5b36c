"""Train the small models of the checks, and wrap models to change how they answer."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import numpy as np
import torch

from ..models.classifier import Array, Classifier

#: Kinds of model that most explainers are checked with.
MODELS = ("torch", "linear", "forest", "rocket", "callable")
#: Kinds of model for explainers that take prototype models only.
PROTOTYPE_MODELS = ("prototype",)

EPOCHS = 80
LEARNING_RATE = 0.02


def train(model_kind: str, X: Array, y: Array) -> Any:
    """Train a small model of one kind.

    Parameters
    ----------
    model_kind : str
        One of `MODELS` or `PROTOTYPE_MODELS`.
    X : array of shape (n, ...)
        Training instances.
    y : array of shape (n,)
        Their labels.

    Returns
    -------
    object
        The trained model, as its own library makes it; a forest with quick votes.
    """
    flat = X.reshape(len(X), -1)
    if model_kind == "torch":
        return train_module(X, y)
    if model_kind == "linear":
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(C=0.5).fit(flat, y)
    if model_kind == "forest":
        from sklearn.ensemble import RandomForestClassifier

        return with_quick_votes(RandomForestClassifier(7, random_state=0).fit(flat, y))
    if model_kind == "rocket":
        from aeon.classification.convolution_based import RocketClassifier

        model = RocketClassifier(n_kernels=20, random_state=0).fit(X, y)
        model.pipeline_ = CachedPipeline(model.pipeline_)
        return model
    if model_kind == "callable":
        return NearestCenter(X, y)
    if model_kind == "prototype":
        from ..prototypes import GLVQ

        return GLVQ(n_prototypes=2, random_state=0).fit(X, y)
    known = ", ".join(MODELS + PROTOTYPE_MODELS)
    raise ValueError(f"model kind {model_kind!r} is unknown; kinds: {known}.")


def train_module(X: Array, y: Array) -> torch.nn.Module:
    """Train a small network and leave it in training mode.

    Explaining must neither need evaluation mode nor change the mode it finds.

    Parameters
    ----------
    X : array of shape (n, ...)
        Training instances.
    y : array of shape (n,)
        Their labels, of three classes.

    Returns
    -------
    torch.nn.Module
        The network; its outputs are logits of shape (n, 3).
    """
    inputs = torch.tensor(X, dtype=torch.float32)
    columns = np.unique(y, return_inverse=True)[1]
    targets = torch.from_numpy(columns)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = torch.nn.Sequential(
            torch.nn.Flatten(),
            torch.nn.Linear(inputs[0].numel(), 16),
            torch.nn.BatchNorm1d(16),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.2),
            torch.nn.Linear(16, 3),
        )
        optimizer = torch.optim.Adam(module.parameters(), lr=LEARNING_RATE)
        for _ in range(EPOCHS):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(module(inputs), targets)
            loss.backward()
            optimizer.step()
    module.zero_grad(set_to_none=True)
    return module


def with_quick_votes(forest: Any) -> Any:
    """Let a fitted forest of scikit-learn answer without what surrounds its trees.

    A call takes some milliseconds otherwise, whatever its size, and the checks ask many thousand
    times. Its type, and its answers to arrays of finite numbers, stay the same; it must not be
    fitted again.

    Parameters
    ----------
    forest : RandomForestClassifier
        The forest; it is changed.

    Returns
    -------
    RandomForestClassifier
        The same forest.
    """
    forest.predict_proba = Votes(forest)
    return forest


class Votes:
    """Average the probabilities of the trees of a forest.

    Parameters
    ----------
    forest : RandomForestClassifier
        A fitted forest.
    """

    def __init__(self, forest: Any) -> None:
        self.trees = [tree.tree_ for tree in forest.estimators_]
        self.n_features = forest.n_features_in_

    def __call__(self, X: Array) -> Array:
        """Return probabilities of shape (n, classes)."""
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(f"X has shape {X.shape}, but the forest takes (n, {self.n_features}).")
        rows = np.ascontiguousarray(X, dtype=np.float32)
        total = sum(tree.predict(rows) for tree in self.trees)
        return np.asarray(total / len(self.trees))


class NearestCenter:
    """Predict by a softmax over squared distances to class centers.

    A smooth model without gradients, used as a plain function.
    """

    def __init__(self, X: Array, y: Array) -> None:
        centers = [X[y == label].mean(0).ravel() for label in np.unique(y)]
        self.centers = np.stack(centers)

    def __call__(self, X: Array) -> Array:
        """Return probabilities of shape (n, classes)."""
        difference = X.reshape(len(X), 1, -1) - self.centers  # (n, classes, values)
        distance = (difference**2).sum(2) / 4
        weight = np.exp(distance.min(1, keepdims=True) - distance)
        return np.asarray(weight / weight.sum(1, keepdims=True))


class CachedPipeline:
    """Keep the answers of a fitted pipeline, row by row.

    A call to aeon takes milliseconds whatever its size, and the checks ask about the same rows
    many times. Answers also stay the same to the last bit, whatever other rows are asked about.

    Parameters
    ----------
    pipeline : object
        Has `decision_function` and `predict`.
    limit : int, default=500_000
        Number of answers above which the cache is emptied; more than the checks of one explainer
        need, since a row that is asked again in another batch may be rounded differently.
    """

    def __init__(self, pipeline: Any, limit: int = 500_000) -> None:
        self.pipeline = pipeline
        self.limit = limit
        self.cache: dict[tuple[str, bytes], Array] = {}

    def decision_function(self, X: Array) -> Array:
        """Return the decision values of the rows of X."""
        return self._cached("decision_function", X)

    def predict(self, X: Array) -> Array:
        """Return the labels of the rows of X."""
        return self._cached("predict", X)

    def _cached(self, method: str, X: Array) -> Array:
        """Return what a method says of the rows; rows that are not in the cache are asked."""
        if len(self.cache) > self.limit:
            self.cache.clear()
        keys = [(method, blake2b(row.tobytes(), digest_size=16).digest()) for row in X]
        missing = {key: i for i, key in enumerate(keys) if key not in self.cache}
        if missing:
            new_rows = X[list(missing.values())]
            answers = getattr(self.pipeline, method)(new_rows)
            self.cache.update(zip(missing, answers, strict=True))
        return np.stack([self.cache[key] for key in keys])


class FirstClasses:
    """Predict probabilities of the first classes of a classifier, as a plain function.

    Parameters
    ----------
    classifier : Classifier
        The classifier that is asked.
    n : int
        Number of classes to keep; their probabilities are scaled to sum to 1.
    """

    def __init__(self, classifier: Classifier, n: int) -> None:
        self.classifier = classifier
        self.n = n

    def __call__(self, X: Array) -> Array:
        """Return probabilities of shape (n, classes)."""
        proba = self.classifier.predict_proba(X)
        kept = proba[:, : self.n] + 1e-9
        return np.asarray(kept / kept.sum(1, keepdims=True))


class FailingModel:
    """Predict like a classifier, but fail on one instance.

    Parameters
    ----------
    classifier : Classifier
        The classifier that is asked.
    instance : array
        The instance, of the shape of one row of X, on which to fail.
    raises : bool, default=True
        Whether to raise an exception; otherwise probabilities of the instance are NaN.
    """

    message = "sensor offline"

    def __init__(self, classifier: Classifier, instance: Array, raises: bool = True) -> None:
        self.classifier = classifier
        self.instance = instance
        self.raises = raises

    def __call__(self, X: Array) -> Array:
        """Return probabilities of shape (n, classes)."""
        difference = np.abs(X - self.instance).reshape(len(X), -1)
        fails = difference.max(1) < 1e-6
        proba = self.classifier.predict_proba(X)
        if fails.any() and self.raises:
            raise RuntimeError(self.message)
        proba[fails] = np.nan
        return proba


class PrototypeModelWithFunction:
    """Combine the prototypes of a model with probabilities from a function.

    Parameters
    ----------
    model : object
        A fitted prototype model.
    function : function of instances of shape (n, ...)
        Gives their probabilities, of shape (n, classes).
    shape : tuple of int
        Shape of one instance; scikit-learn models are asked with flat rows.
    """

    def __init__(
        self, model: Any, function: Callable[[Array], Array], shape: tuple[int, ...]
    ) -> None:
        self.classes_ = model.classes_
        self.n_features_in_ = model.n_features_in_
        self.prototypes_ = model.prototypes_
        self.prototype_labels_ = model.prototype_labels_
        self.metric_ = model.metric_
        self.function = function
        self.shape = shape

    def predict_proba(self, X: Array) -> Array:
        """Return the function's probabilities of flat rows."""
        instances = X.reshape(-1, *self.shape)
        return np.asarray(self.function(instances))

    def predict(self, X: Array) -> Array:
        """Return the most probable labels of flat rows."""
        columns = self.predict_proba(X).argmax(1)
        return np.asarray(self.classes_[columns])
