"""What a grid is made of: data sets, classifiers and explainers, told by name or brought along."""

from __future__ import annotations

import copy
import hashlib
import importlib
import inspect
import json
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, clone

from ..data import Dataset, load_dataset
from ..explainers.registry import explainer_classes
from ..models import Classifier, as_classifier
from ..models.classifier import Array
from ..nn import fit_classifier
from ..nn.networks import NETWORKS

Selection = Literal["stratified", "random", "all"]


def digest(thing: Any) -> str:
    """A name made of the content: 32 hexadecimal digits."""
    text = json.dumps(thing, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def describe(part: Any) -> Any:
    """What a part of the grid is, in words that JSON holds: equal descriptions, equal parts."""
    if part is None or isinstance(part, bool | int | float | str):
        return part
    if isinstance(part, Mapping):
        return {str(name): describe(value) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [describe(value) for value in part]
    if isinstance(part, np.ndarray):
        return {
            "array": hashlib.sha256(np.ascontiguousarray(part).data).hexdigest(),
            "shape": list(part.shape),
        }
    if isinstance(part, Dataset):
        arrays = (
            part.X_train,
            part.X_test,
            np.asarray(part.y_train, str),
            np.asarray(part.y_test, str),
        )
        return {
            "dataset": part.name,
            "modality": part.modality,
            "content": [describe(a) for a in arrays],
        }
    kind = part if inspect.isclass(part) or inspect.isroutine(part) else type(part)
    told = {"type": f"{kind.__module__}.{kind.__qualname__}"}
    if isinstance(part, BaseEstimator):
        return {**told, "parameters": describe(part.get_params(deep=False))}
    if inspect.isfunction(part):
        return {**told, "code": hashlib.sha256(part.__code__.co_code).hexdigest()}
    return told if inspect.isclass(part) else {**told, "attributes": describe(vars(part))}


def imported(path: str) -> Any:
    """The object that "package.module:name" names."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def read_dataset(part: str | Dataset) -> Dataset:
    return part if isinstance(part, Dataset) else load_dataset(part)


def train_classifier(part: Any, data: Dataset, seed: int) -> Any:
    """A trained model.

    part : the name of a reference network, "module:Class" of an estimator, a table {"model" = one of these,
        and parameters}, an estimator (cloned), or a function of the data set and the seed that gives a model.
        Parameters called random_state are the seed's.
    """
    told = dict(part) if isinstance(part, Mapping) else {"model": part}
    kind, parameters = told.pop("model"), told
    if isinstance(kind, str) and kind in NETWORKS:
        return fit_classifier(kind, data.X_train, data.y_train, random_state=seed, **parameters)
    if isinstance(kind, str):
        kind = imported(kind)
    if inspect.isroutine(kind):
        return kind(data, seed, **parameters)
    model: Any = (
        kind(**parameters) if inspect.isclass(kind) else clone(kind).set_params(**parameters)
    )
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    flat = not type(model).__module__.startswith("aeon.")
    X = data.X_train.astype(np.float64)  # as it will be asked
    return model.fit(X.reshape(len(X), -1) if flat else X, data.y_train)


def make_explainer(part: Any) -> Any:
    """An unfitted explainer.

    part : a method's name, "module:Class", a table {"method" = one of these, and parameters}, or an object
        with `fit(model, X, y)` and `explain(X, target, …)` (copied).
    """
    told = dict(part) if isinstance(part, Mapping) else {"method": part}
    kind, parameters = told.pop("method"), told
    if isinstance(kind, str):
        known = explainer_classes()
        if kind not in known and ":" not in kind:
            raise ValueError(
                f"method {kind!r} is unknown. Methods: {', '.join(known)}, or module:Class."
            )
        kind = known[kind] if kind in known else imported(kind)
    return kind(**parameters) if inspect.isclass(kind) else copy.deepcopy(kind)


def select_instances(
    classifier: Classifier, X: Array, n: int | None, how: Selection, seed: int
) -> tuple[Array, Array]:
    """Which test rows to explain, and the class each is to reach: the runner-up of the model.

    how : "all"; "random"; or "stratified": equally many from each quartile of the model's margin, the lead of
        its class over the runner-up.
    """
    score = classifier.verdict(X).score.cpu().numpy()
    order = np.argsort(-score, axis=1, kind="stable")
    target = classifier.classes[order[:, 1]]
    if how not in ("stratified", "random", "all"):
        raise ValueError(f"selection must be 'stratified', 'random' or 'all', got {how!r}.")
    if how == "all" or n is None or n >= len(X):
        rows = np.arange(len(X))
    else:
        rng = np.random.default_rng(seed)
        if how == "random":
            rows = np.sort(rng.choice(len(X), n, replace=False))
        else:
            margin = np.take_along_axis(score, order[:, :1], 1)[:, 0]
            margin = margin - np.take_along_axis(score, order[:, 1:2], 1)[:, 0]
            strata = np.array_split(np.argsort(margin, kind="stable"), 4)
            # Drawn in turn from each quartile, so that any n is as even as it can be.
            drawn = [rng.permutation(part).tolist() for part in strata]
            turns = [
                part[i] for i in range(max(map(len, drawn))) for part in drawn if i < len(part)
            ]
            rows = np.sort(turns[:n])
    return rows, target[rows]


def as_model(model: Any, data: Dataset) -> Classifier:
    """The trained model behind the one interface, its outputs named."""
    classifier = as_classifier(model)
    classifier.infer_classes(data.X_train, data.y_train)
    return classifier
