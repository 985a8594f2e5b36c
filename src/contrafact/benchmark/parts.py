"""Parts of a grid: data sets, classifiers and explainers, given by name or as objects."""

from __future__ import annotations

import copy
import importlib
import inspect
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from ..data import Dataset, load_dataset
from ..explainers.registry import explainer_classes
from ..models import Classifier, as_classifier
from ..models.classifier import Array
from ..nn import fit_classifier
from ..nn.networks import NETWORKS

Selection = Literal["stratified", "random", "all"]


def imported(path: str) -> Any:
    """Import the object that "package.module:name" names."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def read_dataset(part: str | Dataset) -> Dataset:
    """Return a data set itself, or load the one of a name or path."""
    if isinstance(part, Dataset):
        return part
    return load_dataset(part)


def train_classifier(
    part: Any,
    data: Dataset,
    seed: int,
) -> Any:
    """Train a classifier.

    Parameters
    ----------
    part : object
        The name of a reference network, "module:Class" of an estimator, a table {"model": one of
        these, and parameters}, an estimator (cloned), or a function of the data set and the seed
        that returns a model.
    data : Dataset
        The training part is used.
    seed : int
        Becomes the parameter `random_state`, where the model has one.

    Returns
    -------
    object
        The trained model.
    """
    parameters = dict(part) if isinstance(part, Mapping) else {"model": part}
    kind = parameters.pop("model")
    if isinstance(kind, str) and kind in NETWORKS:
        return fit_classifier(kind, data.X_train, data.y_train, random_state=seed, **parameters)
    if isinstance(kind, str):
        kind = imported(kind)
    if inspect.isroutine(kind):
        return kind(data, seed, **parameters)
    model: Any
    if inspect.isclass(kind):
        model = kind(**parameters)
    else:
        model = clone(kind).set_params(**parameters)
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    X = data.X_train.astype(np.float64)  # the precision that it will be asked with
    takes_series = type(model).__module__.startswith("aeon.")
    if not takes_series:
        X = X.reshape(len(X), -1)
    return model.fit(X, data.y_train)


def make_explainer(part: Any) -> Any:
    """Make an unfitted explainer.

    Parameters
    ----------
    part : object
        A method's name, "module:Class", a table {"method": one of these, and parameters}, or an
        object with `fit(model, X, y)` and `explain(X, target, …)` (copied).

    Returns
    -------
    object
        The explainer.

    Raises
    ------
    ValueError
        Where no method has the name.
    """
    parameters = dict(part) if isinstance(part, Mapping) else {"method": part}
    kind = parameters.pop("method")
    if isinstance(kind, str):
        kind = _explainer_class(kind)
    if inspect.isclass(kind):
        return kind(**parameters)
    return copy.deepcopy(kind)


def _explainer_class(name: str) -> Any:
    """Return the class of a method's name, or the object of "module:Class"."""
    known = explainer_classes()
    if name in known:
        return known[name]
    if ":" not in name:
        raise ValueError(
            f"method {name!r} is unknown. Methods: {', '.join(known)}, or module:Class."
        )
    return imported(name)


def select_instances(
    classifier: Classifier,
    X: Array,
    n: int | None,
    how: Selection,
    seed: int,
) -> tuple[Array, Array]:
    """Choose the test rows to explain, and the class that each is to reach.

    Parameters
    ----------
    classifier : Classifier
        The model.
    X : ndarray of shape (m, *instance)
        The test rows.
    n : int or None
        How many; None for all.
    how : {"stratified", "random", "all"}
        "stratified" takes equally many from each quartile of the model's margin, the lead of its
        class over the runner-up.
    seed : int
        Seed of the choice.

    Returns
    -------
    rows : ndarray of int, shape (n,)
        Positions in X, ascending.
    target : ndarray of shape (n,)
        The model's runner-up class of each.
    """
    if how not in ("stratified", "random", "all"):
        raise ValueError(f"selection must be 'stratified', 'random' or 'all', got {how!r}.")
    score = classifier.verdict(X).score.cpu().numpy()
    order = np.argsort(-score, axis=1, kind="stable")
    second = order[:, 1]
    runner_up = classifier.classes[second]
    if how == "all" or n is None or n >= len(X):
        rows = np.arange(len(X))
    elif how == "random":
        rng = np.random.default_rng(seed)
        rows = rng.choice(len(X), n, replace=False)
        rows = np.sort(rows)
    else:
        ordered = np.take_along_axis(score, order, axis=1)
        margin = ordered[:, 0] - ordered[:, 1]
        rows = _stratified(margin, n, seed)
    return rows, runner_up[rows]


def _stratified(
    margin: Array,
    n: int,
    seed: int,
) -> Array:
    """Draw n rows, in turn from each quartile of the margin, so that any n is drawn evenly."""
    rng = np.random.default_rng(seed)
    order = np.argsort(margin, kind="stable")
    quartiles = np.array_split(order, 4)
    drawn = [rng.permutation(quartile).tolist() for quartile in quartiles]
    in_turn: list[int] = []
    for turn in range(max(map(len, drawn))):
        for rows in drawn:
            in_turn += rows[turn : turn + 1]
    return np.sort(in_turn[:n])


def as_model(model: Any, data: Dataset) -> Classifier:
    """Wrap a trained model, and name its outputs.

    Parameters
    ----------
    model : object
        Anything that `as_classifier` accepts.
    data : Dataset
        The training part tells the order of the classes.

    Returns
    -------
    Classifier
        The wrapped model.
    """
    classifier = as_classifier(model)
    classifier.infer_classes(data.X_train, data.y_train)
    return classifier
