"""Fitted explainers in .npz files, without pickled objects and without the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...data.archives import MAX_BYTES, read_npz
from ...data.writing import complete_file
from ...tables.plain_tables import table_from_plain, table_to_plain
from ...validation import FilePath, Integer, Rule, check_parameters
from .plain_state import PlainReader, PlainWriter

if TYPE_CHECKING:
    from .explainer import Explainer

RULES: dict[str, Rule] = {"path": FilePath(), "max_bytes": Integer(at_least=1)}
#: made again when they are needed: models that are not contrafact's cannot be stored
MADE_AGAIN = ("committee_",)
#: what a damaged file makes the reader raise
DAMAGE = (ValueError, TypeError, KeyError, IndexError, AttributeError, RuntimeError, ImportError)


def save_explainer(explainer: Explainer, path: str | Path) -> Path:
    """Write a fitted explainer to an .npz file: parameters, reference data and what was fitted.

    Parameters
    ----------
    explainer : Explainer
        Fitted.
    path : str or Path
        The file; ".npz" is added where it is missing.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    TypeError
        If a parameter or what was fitted is of a kind that cannot be stored.
    """
    check_parameters("Explainer.save", RULES, {"path": path})
    path = Path(path)
    if path.suffix != ".npz":
        path = path.with_name(path.name + ".npz")
    x, labels = explainer._reference
    writer = PlainWriter(_known(explainer))
    parameters = explainer.get_params(deep=False)
    name = type(explainer).__name__
    state = {key: value for key, value in vars(explainer).items() if _is_fitted(explainer, key)}
    content = {
        "method": name,
        "version": _version(),
        "parameters": {key: writer.write(value, key) for key, value in parameters.items()},
        "labels": writer.write(labels, "y"),
        "classes": writer.write(explainer.classifier_.classes, "classes"),
        # Last, as it is read: it may refer to what was written before.
        "state": {key: writer.write(value, f"{name}.{key}") for key, value in state.items()},
        "modality": explainer.modality_,
        "names": explainer._names,
        "channel_added": explainer._channel_added,
        "table": None,
    }
    values = x.cpu().numpy()
    if explainer.space_ is not None:
        values = explainer.space_.codes(x).numpy()
        content["table"] = table_to_plain(explainer.space_.table.with_codes(values))
    arrays: dict[str, Any] = {**writer.arrays, "reference": values}
    arrays["explainer"] = np.array(json.dumps(content, allow_nan=False))
    with complete_file(path) as draft, draft.open("wb") as stream:
        np.savez(stream, **arrays)
    return path


def load_explainer(path: str | Path, model: Any, max_bytes: int = MAX_BYTES) -> Explainer:
    """Read a fitted explainer; no code of the file runs.

    Parameters
    ----------
    path : str or Path
        A file that `save_explainer` wrote with this version of contrafact.
    model : object
        The model that it was fitted to; anything `as_classifier` takes.
    max_bytes : int
        How many bytes the arrays of the file may take.

    Returns
    -------
    Explainer
        Ready to explain.

    Raises
    ------
    ValueError
        If the file is damaged, was written by another version, or the model has other classes.
    """
    check_parameters("Explainer.load", RULES, {"path": path, "max_bytes": max_bytes})
    path = Path(path)
    arrays = read_npz(path, lambda name: True, max_bytes)
    try:
        content = json.loads(str(arrays["explainer"]))
        version, name = content["version"], content["method"]
    except (*DAMAGE, RecursionError) as error:
        raise ValueError(f"{path} holds no explainer that Explainer.save wrote.") from error
    if version != _version():
        raise ValueError(
            f"{path} was written by contrafact {version!s:.20}, this is {_version()}. Fit again."
        )
    try:
        return _read_explainer(name, content, arrays, model)
    except (*DAMAGE, RecursionError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path} cannot be loaded: {reason}") from error


def _read_explainer(name: Any, content: Any, arrays: Any, model: Any) -> Explainer:
    from ..registry import find_explainer

    cpu = torch.device("cpu")
    plain = PlainReader(arrays, {}, cpu)
    parameters = {key: plain.read(value) for key, value in content["parameters"].items()}
    explainer = find_explainer(name)(**parameters)
    values = arrays["reference"]
    schema = None
    if content["table"] is not None:
        table = table_from_plain(content["table"], values)
        values, schema = table.frame(), table.schema
    elif content["channel_added"]:
        values = values[:, 0]
    labels = plain.read(content["labels"])
    explainer._open(model, values, labels, content["modality"], schema)
    explainer._names = content["names"]
    classes = plain.read(content["classes"])
    given = explainer.classifier_.classes
    if classes.tolist() != given.tolist():
        raise ValueError(
            f"the model has the classes {given.tolist()}, the explainer was fitted to one with "
            f"{classes.tolist()}"
        )
    reader = PlainReader(arrays, _known(explainer), explainer.classifier_.device)
    reader.share(plain)
    for key, value in content["state"].items():
        if not _is_fitted(explainer, key):
            raise ValueError(f"{key!r} is not what is fitted")
        setattr(explainer, key, reader.read(value))
    return explainer


def _known(explainer: Explainer) -> dict[str, Any]:
    """Return the objects that opening an explainer makes again."""
    classifier = explainer.classifier_
    return {
        "classifier": classifier,
        "inner": getattr(classifier, "inner", None),
        "reference": explainer._reference[0],
        "space": explainer.space_,
    }


def _is_fitted(explainer: Explainer, key: str) -> bool:
    """Return whether an attribute is neither a parameter nor what opening makes again."""
    opened = ("classifier_", "shape_", "modality_", "space_", "_names", "_reference")
    others = ("_channel_added", "_differences", *MADE_AGAIN)
    if key in (*opened, *others) or key in explainer.get_params(deep=False):
        return False
    return not hasattr(type(explainer), key)


def _version() -> str:
    from ... import __version__

    return __version__
