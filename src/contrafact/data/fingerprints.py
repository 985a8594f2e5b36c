"""Fingerprints: short names made of content, to tell whether something is the same as before."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from torch import Tensor

from .dataset import Dataset


def digest(thing: Any) -> str:
    """Return a name made of the content: 32 hexadecimal digits.

    Parameters
    ----------
    thing : object
        What JSON can hold.

    Returns
    -------
    str
        The same for equal content, in every process.
    """
    text = json.dumps(thing, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def describe(part: Any) -> Any:
    """Describe an object by what JSON can hold: equal descriptions, equal objects.

    Parameters
    ----------
    part : object
        Plain values, arrays, data sets, estimators, functions, or objects made of these.

    Returns
    -------
    object
        Plain values; of an array, a digest of its content.
    """
    if part is None or isinstance(part, bool | int | float | str):
        return part
    if isinstance(part, Mapping):
        return {str(name): describe(value) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [describe(value) for value in part]
    if isinstance(part, np.ndarray):
        content = hashlib.sha256(np.ascontiguousarray(part).data).hexdigest()
        return {"array": content, "shape": list(part.shape)}
    if isinstance(part, Tensor):
        return describe(part.detach().cpu().numpy())
    if isinstance(part, Dataset):
        return _describe_dataset(part)
    return _describe_object(part)


def _describe_dataset(data: Dataset) -> dict[str, Any]:
    """Describe a data set by its name and content."""
    arrays = [
        data.X_train,
        data.X_test,
        np.asarray(data.y_train, str),
        np.asarray(data.y_test, str),
    ]
    return {
        "dataset": data.name,
        "modality": data.modality,
        "content": [describe(array) for array in arrays],
    }


def _describe_object(part: Any) -> dict[str, Any]:
    """Describe a class or function by its name, and an object by its class and attributes."""
    named = inspect.isclass(part) or inspect.isroutine(part)
    kind = part if named else type(part)
    description = {"type": f"{kind.__module__}.{kind.__qualname__}"}
    if isinstance(part, BaseEstimator):
        description["parameters"] = describe(part.get_params(deep=False))
    elif inspect.isfunction(part):
        description["code"] = hashlib.sha256(part.__code__.co_code).hexdigest()
    elif not inspect.isclass(part):
        description["attributes"] = describe(vars(part))
    return description
