"""Weights in safetensors files: numbers and text, nothing that could run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch import Tensor

from ..data.writing import complete_file
from ..extras import require_extra
from .damage import DAMAGE, damaged

#: How long the header may be, as in the library.
MAX_HEADER = 100_000_000
#: Keys of the metadata that contrafact reads and writes.
NETWORK_KEY = "network"
CLASSES_KEY = "classes"


def is_safetensors(file: Path) -> bool:
    """Return whether a file begins with the length of a JSON object and this object."""
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if length > min(MAX_HEADER, file.stat().st_size - 8):
            return False
        header = stream.read(length)
    if not header.startswith(b"{"):
        return False
    try:
        return isinstance(json.loads(header), dict)
    except (ValueError, RecursionError):
        return False


def read_safetensors(file: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read weights and the metadata beside them.

    Parameters
    ----------
    file : Path
        A safetensors file.

    Returns
    -------
    weights : dict of str to Tensor
        By name, each in memory of its own.
    metadata : dict of str to str
        What the author wrote beside them; not to be relied on.

    Raises
    ------
    ValueError
        If the file is damaged.
    """
    require_extra("files", "A safetensors file")
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt") as stored:
            weights = {name: stored.get_tensor(name).clone() for name in stored.keys()}  # noqa: SIM118
            return weights, dict(stored.metadata() or {})
    except (SafetensorError, AttributeError, *DAMAGE) as error:  # no attribute: an unknown dtype
        raise damaged(file, "safetensors", error) from error


def write_safetensors(file: Path, weights: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Write weights and metadata to a file.

    Parameters
    ----------
    file : Path
        Replaced if it exists.
    weights : dict of str to Tensor
        By name.
    metadata : dict of str to str
        What belongs to them.
    """
    require_extra("files", "A safetensors file")
    from safetensors.torch import save

    # The format knows no views, so that weights shared by two layers are stored twice.
    plain = {name: weight.detach().cpu().contiguous().clone() for name, weight in weights.items()}
    with complete_file(file) as draft:
        draft.write_bytes(save(plain, metadata))


def read_class_names(metadata: dict[str, str], file: Path) -> list[Any] | None:
    """Read the classes that the metadata of a model name.

    Parameters
    ----------
    metadata : dict of str to str
        "classes" holds a JSON list of text or numbers, in the order of the outputs.
    file : Path
        For messages.

    Returns
    -------
    list or None
        The classes; None where the metadata name none.

    Raises
    ------
    ValueError
        If they are no list of labels.
    """
    text = metadata.get(CLASSES_KEY)
    if text is None:
        return None
    try:
        classes = json.loads(text)
    except (ValueError, RecursionError):
        classes = None
    if isinstance(classes, list) and all(isinstance(name, str | int | float) for name in classes):
        return classes
    raise ValueError(
        f"{file}: its metadata name the classes {text[:60]!r}. Accepted: a JSON list of text or "
        'numbers, e.g. ["ok", "faulty"].'
    )
