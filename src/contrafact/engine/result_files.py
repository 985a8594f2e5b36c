"""Counterfactuals in .npz files, without pickled objects."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..data.archives import MAX_BYTES, read_npz
from ..data.writing import complete_file
from ..tables.plain_tables import few_fixed_values, table_from_plain, table_to_plain
from ..validation import FilePath, Integer, Rule, brief, check_parameters
from .result import Counterfactuals, as_numpy

#: fields that are stored in another form, or not at all
NOT_ARRAYS = ("info", "provenance", "table", "exceptions")
#: fields that a file may lack, or never has
OPTIONAL = ("info", "names", "table", "exceptions")
#: fields that it has to have
NEEDED = {f.name for f in fields(Counterfactuals)} - set(OPTIONAL)
RULES: dict[str, Rule] = {"path": FilePath(), "max_bytes": Integer(at_least=1)}
#: how the names of entries of `info` begin
INFO = "info/"


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
    check_parameters("Counterfactuals.save", RULES, {"path": path})
    path = _with_suffix(path)
    arrays: dict[str, Any] = {}
    for f in fields(result):
        value = getattr(result, f.name)
        if f.name not in NOT_ARRAYS and value is not None:
            arrays[f.name] = as_numpy(value)
    for name, values in result.info.items():
        arrays[INFO + name] = values
    if result.table is not None:
        # The rows of other people, which the reference holds, do not belong into the file.
        table, codes_cf = few_fixed_values(result.table, as_numpy(result.X_cf))
        arrays |= {"X": table.codes, "X_cf": codes_cf}
        arrays["table"] = np.array(json.dumps(table_to_plain(table), allow_nan=False))
    arrays["kind"] = np.array("torch" if isinstance(result.X, Tensor) else "numpy")
    arrays["provenance"] = np.array(json.dumps(result.provenance, default=str))
    with complete_file(path) as draft:
        np.savez_compressed(draft, **arrays)
    return path


def load(path: str | Path, max_bytes: int = MAX_BYTES) -> Counterfactuals:
    """Read a result from an .npz file, and check it whole.

    Parameters
    ----------
    path : str or Path
        The file, with or without ".npz".
    max_bytes : int
        How many bytes its arrays may take.

    Returns
    -------
    Counterfactuals
        What `save` wrote.

    Raises
    ------
    ValueError
        If the file is damaged, too large, or contradicts itself; the message names it.
    ImportError
        If it holds frames of a library that is not installed.
    FileNotFoundError
        If there is no such file.
    """
    check_parameters("Counterfactuals.load", RULES, {"path": path, "max_bytes": max_bytes})
    path = Path(path) if Path(path).is_file() else _with_suffix(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is no file. Accepted: what Counterfactuals.save wrote.")
    if not _looks_like_archive(path):
        raise ValueError(f"{path} is not a saved Counterfactuals: it is not an .npz file.")
    arrays: dict[str, Any] = {**read_npz(path, _is_entry, max_bytes)}
    missing = NEEDED - set(arrays)
    if missing:
        raise ValueError(
            f"{path} is not a saved Counterfactuals: it lacks {', '.join(sorted(missing))}."
        )
    try:
        return _from_arrays(arrays)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} cannot be used. {error}") from error
    except ImportError as error:
        raise ImportError(f"{path} cannot be used: {error}") from error


def _looks_like_archive(path: Path) -> bool:
    """Return whether a file begins as a zip archive does."""
    with path.open("rb") as file:
        return file.read(2) == b"PK"


def _is_entry(name: str) -> bool:
    """Return whether a result has an entry of this name."""
    return name in NEEDED or name in ("kind", "names", "table") or name.startswith(INFO)


def _from_arrays(arrays: dict[str, Any]) -> Counterfactuals:
    """Make a result of the arrays of a file; the constructor checks that they agree."""
    kind = _text(arrays, "kind") if "kind" in arrays else "numpy"
    provenance = _provenance(_text(arrays, "provenance"))
    info = {
        name.removeprefix(INFO): arrays.pop(name) for name in list(arrays) if name.startswith(INFO)
    }
    arrays["modality"] = _text(arrays, "modality")
    if kind not in ("numpy", "torch"):
        raise ValueError(f"kind must be 'numpy' or 'torch', got {kind!r}.")
    if kind == "torch":
        for name in ("X", "X_cf"):
            arrays[name] = torch.from_numpy(arrays[name])
    if "table" in arrays:
        plain = json.loads(_text(arrays, "table"))
        arrays["table"] = table_from_plain(plain, _rows(arrays["X"]))
    return Counterfactuals(**arrays, info=info, provenance=provenance)


def _rows(X: Any) -> Any:
    """Check that the rows of a table are numbers of the accepted type."""
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype != np.float64:
        raise ValueError("X must be an array of float64 of shape (rows, columns), for a table.")
    return X


def _provenance(text: str) -> Any:
    """Read the provenance, which is written as JSON."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"provenance must be JSON, got {brief(text)}: {error}.") from error
    except RecursionError:
        raise ValueError("provenance is nested too deeply.") from None


def _text(arrays: dict[str, Any], name: str) -> str:
    """Take an entry that holds one text."""
    value = arrays.pop(name)
    if value.shape != () or value.dtype.kind != "U":
        raise ValueError(f"{name} must be one text, got shape {value.shape}, dtype {value.dtype}.")
    return str(value)


def _with_suffix(path: str | Path) -> Path:
    path = Path(path)
    return path if path.suffix == ".npz" else path.with_name(path.name + ".npz")
