"""Counterfactuals in .npz files, without pickled objects."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np
import torch
from torch import Tensor

from .result import Counterfactuals, as_numpy

#: fields that are stored in another form, or not at all
NOT_ARRAYS = ("info", "provenance", "exceptions")
#: fields that a file may lack
OPTIONAL = ("info", "names", "exceptions")


def save(result: Counterfactuals, path: str | Path) -> Path:
    """Write a result to an .npz file.

    Parameters
    ----------
    result : Counterfactuals
        What to write; exceptions are left out.
    path : str or Path
        The file; ".npz" is added where it is missing.

    Returns
    -------
    Path
        The file written.
    """
    path = _with_suffix(path)
    arrays: dict[str, Any] = {}
    for f in fields(result):
        value = getattr(result, f.name)
        if f.name not in NOT_ARRAYS and value is not None:
            arrays[f.name] = as_numpy(value)
    for name, values in result.info.items():
        arrays[f"info/{name}"] = values
    arrays["kind"] = np.array("torch" if isinstance(result.X, Tensor) else "numpy")
    arrays["provenance"] = np.array(json.dumps(result.provenance, default=str))
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)
    return path


def load(path: str | Path) -> Counterfactuals:
    """Read a result from an .npz file.

    Parameters
    ----------
    path : str or Path
        The file, with or without ".npz".

    Returns
    -------
    Counterfactuals
        What `save` wrote.
    """
    path = Path(path) if Path(path).exists() else _with_suffix(path)
    if path.is_file() and not is_zipfile(path):
        raise ValueError(f"{path} is not a saved Counterfactuals: it is not an .npz file.")
    with np.load(path, allow_pickle=False) as stored:
        needed = {f.name for f in fields(Counterfactuals)} - set(OPTIONAL)
        missing = needed - set(stored.files)
        if missing:
            raise ValueError(
                f"{path} is not a saved Counterfactuals: it lacks {', '.join(sorted(missing))}."
            )
        arrays: dict[str, Any] = {name: stored[name] for name in stored.files}
    kind = str(arrays.pop("kind", "numpy"))
    provenance = json.loads(str(arrays.pop("provenance")))
    info = {
        name.removeprefix("info/"): arrays.pop(name)
        for name in list(arrays)
        if name.startswith("info/")
    }
    arrays["modality"] = str(arrays["modality"])
    if kind == "torch":
        for name in ("X", "X_cf"):
            arrays[name] = torch.from_numpy(arrays[name])
    return Counterfactuals(**arrays, info=info, provenance=provenance)


def _with_suffix(path: str | Path) -> Path:
    path = Path(path)
    return path if path.suffix == ".npz" else path.with_name(path.name + ".npz")
