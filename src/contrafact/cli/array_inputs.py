"""Files of arrays that are read in chunks: .npy, .zarr, and Parquet files with lists."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..data.readers import Source
from ..scale.opening import ZARR_FILES, open_source
from ..scale.parquet_source import ParquetSource


def is_array_file(path: str) -> bool:
    """Return whether a path is a file or folder of arrays that can be read in chunks.

    Parameters
    ----------
    path : str
        What was typed.

    Returns
    -------
    bool
        True for .npy, zarr, and Parquet whose columns are lists; not for .npz, which is read
        otherwise, and not for tables.
    """
    place = Path(path)
    if place.is_dir():
        if any((place / name).exists() for name in ZARR_FILES):
            return True
        return any(place.rglob("*.parquet")) and _has_lists(place)
    if not place.is_file():
        return False
    suffix = place.suffix.lower()
    return suffix == ".npy" or (suffix == ".parquet" and _has_lists(place))


def read_array_file(path: str, label: str | None, modality: str | None) -> Source:
    """Read such a file whole, as data to explain or to learn from.

    Parameters
    ----------
    path : str
        The file.
    label : str or None
        The label column of Parquet files.
    modality : str or None
        The kind of data; default: lists are series, other arrays by their dimensions.

    Returns
    -------
    Source
        One part, with labels where there are any.
    """
    source = open_source(path, label=label)
    rows = source.read(0, len(source))
    X = np.asarray(rows.X)
    if modality is None:
        flat = "series" if isinstance(source, ParquetSource) else "row"
        modality = {2: flat, 3: "series", 4: "image"}.get(X.ndim, "row")
    if modality == "series" and X.ndim == 2:
        X = X[:, None]
    return Source(Path(path).stem, modality, [(X, rows.y)])


def _has_lists(path: Path) -> bool:
    """Return whether the columns of Parquet files are lists."""
    from ..extras import require_extra

    require_extra("parquet", f"{path}")
    try:
        return ParquetSource(path).holds_lists
    except ValueError:
        return False  # whoever reads it as a table says what is wrong
