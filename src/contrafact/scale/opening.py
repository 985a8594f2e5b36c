"""Open what a user calls a source: an array, a file or a folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..data.arrays import read_array
from ..tables import is_frame
from .parquet_source import ParquetSource
from .sources import ArraySource, NpySource, Source, ZarrSource, open_npz

#: files that a folder has which is a zarr array or group
ZARR_FILES = ("zarr.json", ".zarray", ".zgroup")
ACCEPTED = "an array or data frame, an .npy, .npz or .parquet file, a folder of these, or .zarr"


def check_source(source: Any) -> None:
    """Refuse a path that does not exist, or of a kind that is not read in chunks.

    Parameters
    ----------
    source : object
        What the user gave.
    """
    if not isinstance(source, str | os.PathLike):
        return
    path = Path(source)
    if not path.exists():
        raise FileNotFoundError(f"source {path} does not exist.")
    if path.is_file() and path.suffix.lower() not in (".npy", ".npz", ".parquet"):
        raise ValueError(f"source {path} has suffix {path.suffix!r}. Accepted: {ACCEPTED}.")


def open_source(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    label: str | None = None,
    ids: str | None = None,
    are_steps: bool = False,
) -> Source:
    """Open a source; nothing but its head is read.

    Parameters
    ----------
    source : array, DataFrame, str or Path
        The instances.
    columns, label, ids, are_steps
        Of Parquet files; see `ParquetSource`.

    Returns
    -------
    Source
        To be read some rows at a time.

    Raises
    ------
    ValueError, TypeError
        If it is nothing that can be read so.
    FileNotFoundError
        If there is no such path.
    """
    check_source(source)
    if not isinstance(source, str | os.PathLike):
        return _open_array(source)
    path = Path(source).resolve()  # other processes may work in another folder
    if path.is_dir() and any((path / name).exists() for name in ZARR_FILES):
        return ZarrSource(path)
    if path.is_dir() or path.suffix.lower() == ".parquet":
        return ParquetSource(path, columns, label, ids, are_steps)
    if path.suffix.lower() == ".npz":
        return open_npz(path)
    return NpySource.open(path)


def _open_array(values: Any) -> Source:
    """Open instances in memory; what can be sliced stays as it is."""
    if not is_frame(values) and not (hasattr(values, "shape") and hasattr(values, "__getitem__")):
        values = read_array(values, "source")
    shape = tuple(getattr(values, "shape", ()))
    if len(shape) < 2:
        raise ValueError(f"source has shape {shape}. Accepted: {ACCEPTED}; instances (n, ...).")
    return ArraySource(values)
