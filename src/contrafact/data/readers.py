"""Readers of labeled files: .ts, .tsv and .txt as in the UCR archive, .csv, and .npz."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .archives import MAX_BYTES, entry_names, read_npz
from .cleaning import Array, as_float
from .dataset import SHAPES, check_shape
from .table_columns import ColumnChoice
from .tables import check_text, read_table, split_channels

#: One array, or one (channels, length) array per instance where lengths differ.
Instances = Array | Sequence[Array]


class Source(NamedTuple):
    """Contents of a file, before any cleaning.

    name : name of the dataset.
    modality : "series", "image" or "row".
    parts : instances and labels, one part where there is no split, else train and test.
    names : names of the columns or channels, where they are known.
    """

    name: str
    modality: str
    parts: list[tuple[Instances, Array | None]]
    names: tuple[str, ...] | None = None


class Reading(NamedTuple):
    """Options of reading, for what a file does not tell itself.

    label : the label column of a .csv.
    modality : "series", "image" or "row".
    columns : the columns of a .csv to take, in this order, where it holds rows.
    unlabeled : whether labels may be absent, and so may the column that `label` names.
    max_bytes : how many bytes the arrays of an .npz may take.
    """

    label: str | None = None
    modality: str | None = None
    columns: Sequence[str] | None = None
    unlabeled: bool = False
    max_bytes: int = MAX_BYTES


def read_path(path: Path, reading: Reading) -> Source:
    """Read a UCR folder, one file of a UCR pair, a .csv or an .npz.

    Parameters
    ----------
    path : Path
        An existing file or folder.
    reading : Reading
        Options, for what the file does not tell itself.

    Returns
    -------
    Source

    Raises
    ------
    ValueError
        If the file cannot be read, or an option does not apply to it.
    """
    suffix = path.suffix.lower()
    if suffix == ".csv" and path.is_file():
        return _read_csv(path, reading)
    if reading.label is not None and not reading.unlabeled:
        raise ValueError(f"label {reading.label!r} names a column of a .csv; {path} is none.")
    if path.is_dir():
        return _read_ucr(_training_file_in(path), reading)
    if suffix == ".npz":
        return _read_npz(path, reading)
    if suffix in UCR_READERS:
        return _read_ucr(path, reading)
    raise ValueError(
        f"{path} has suffix {path.suffix!r}. Accepted: {', '.join(SUFFIXES)}, or a folder."
    )


def _training_file_in(folder: Path) -> Path:
    """Find the training file of the one dataset that a folder holds."""
    pairs = [
        train
        for suffix in UCR_READERS
        for train in sorted(folder.glob(f"*_TRAIN{suffix}"))
        if _partner(train).exists()
    ]
    names = {_stem(train) for train in pairs}
    wanted = next(iter(names), None)
    if len(names) > 1:
        # aeon keeps variants of a set beside it (JapaneseVowels_eq_TRAIN.ts): the name of the
        # folder decides.
        wanted = folder.resolve().name
    for train in pairs:
        if _stem(train) == wanted:
            return train
    if pairs:
        raise ValueError(
            f"{folder} holds several sets: {', '.join(sorted(names))}. Give the path of one file."
        )
    raise ValueError(
        f"{folder} holds no pair of files. Accepted: <Name>_TRAIN and <Name>_TEST with suffix "
        f"{', '.join(UCR_READERS)}."
    )


def _stem(path: Path) -> str:
    """Return the name of a dataset from the name of one of its files."""
    return path.stem.removesuffix("_TRAIN").removesuffix("_TEST")


def _partner(path: Path) -> Path:
    """Return the path of the other file of a pair."""
    other = "_TEST" if path.stem.endswith("_TRAIN") else "_TRAIN"
    return path.with_name(_stem(path) + other + path.suffix)


def _read_ucr(path: Path, reading: Reading) -> Source:
    """Read a file of the UCR archive, together with its partner if that exists."""
    if reading.modality not in (None, "series"):
        raise ValueError(
            f"{path} holds series; modality {reading.modality!r} does not apply to it."
        )
    files = [path]
    if path.stem.endswith(("_TRAIN", "_TEST")) and _partner(path).exists():
        files = [path, _partner(path)]
        files.sort(key=lambda file: file.stem.endswith("_TEST"))
    parts = [_read_labeled(file, reading.unlabeled) for file in files]
    return Source(_stem(path), "series", parts)


def _read_labeled(path: Path, unlabeled: bool) -> tuple[Instances, Array | None]:
    """Read one file of the UCR archive; errors name the file."""
    suffix = path.suffix.lower()
    check_text(path)
    try:
        X, y = UCR_READERS[suffix](path)
        if y is None and not unlabeled:
            raise ValueError("its header declares no class labels, and a classifier needs them.")
    except (OSError, ValueError, IndexError, TypeError, KeyError, AttributeError) as error:
        # aeon reports bad content as OSError too; a real one, such as a missing permission, has
        # an error number.
        if getattr(error, "errno", None) is not None:
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path} cannot be read as {suffix}: {reason}") from error
    if len(X) == 0:
        raise ValueError(f"{path} holds no instances.")
    return X, y


def _read_ts(path: Path) -> tuple[Instances, Array | None]:
    """Read series and labels from a .ts file."""
    from aeon.datasets import load_from_ts_file

    X, y, header = load_from_ts_file(str(path), return_meta_data=True)
    if len(X) == 0:
        raise ValueError("it holds no series after a line @data.")
    if header["timestamps"]:
        # aeon's reader of time stamps drops minus signs.
        raise ValueError("it has time stamps. Accepted: values only (@timeStamps false).")
    has_labels = header["classlabel"] and not header["targetlabel"]
    return X, np.char.strip(y) if has_labels else None


def _read_tsv(path: Path) -> tuple[Instances, Array]:
    """Read series and labels from a .tsv file."""
    from aeon.datasets import load_from_tsv_file

    X, y = load_from_tsv_file(str(path))
    return X.astype(np.float64), _whole_numbers(y)


def _read_txt(path: Path) -> tuple[Instances, Array]:
    """Read series and labels from a .txt file: label first, whitespace between."""
    with warnings.catch_warnings():
        # NumPy warns of an empty file, which is an error here.
        warnings.simplefilter("ignore", UserWarning)
        table = np.loadtxt(path, ndmin=2)
    return table[:, None, 1:], _whole_numbers(table[:, 0])


def _whole_numbers(y: Array) -> Array:
    """Convert float labels to integers where all of them are whole."""
    if y.dtype.kind != "f" or not np.isfinite(y).all():
        return y
    is_whole = y == np.rint(y)
    return y.astype(np.int64) if is_whole.all() else y


UCR_READERS = {".ts": _read_ts, ".tsv": _read_tsv, ".txt": _read_txt}
NPZ_ENTRIES = ("X", "y", "X_train", "y_train", "X_test", "y_test", "modality")
SUFFIXES = (*UCR_READERS, ".csv", ".npz")


def _read_csv(path: Path, reading: Reading) -> Source:
    """Read rows, or series in a wide table, from a .csv file."""
    modality = reading.modality or "row"
    columns = reading.columns if modality == "row" else None
    table = read_table(path, ColumnChoice(reading.label, columns, reading.unlabeled))
    if modality == "series":
        X, names = split_channels(table)
        return Source(path.stem, modality, [(X, table.y)], names)
    check_shape(table.X, modality, str(path))
    return Source(
        path.stem,
        modality,
        [(table.X, table.y)],
        table.names,
    )


def _read_npz(path: Path, reading: Reading) -> Source:
    """Read an .npz file with X and y, or with X_train, y_train, X_test and y_test."""
    arrays = read_npz(path, NPZ_ENTRIES.__contains__, reading.max_bytes)
    pairs = [("X", "y")]
    if "X_train" in arrays:
        pairs = [("X_train", "y_train"), ("X_test", "y_test")]
    _check_entries(path, arrays, pairs, reading.unlabeled)
    modality = reading.modality
    if modality is None and "modality" in arrays:
        modality = str(arrays["modality"])
    parts: list[tuple[Instances, Array | None]] = []
    for X_name, y_name in pairs:
        X = as_float(arrays[X_name], X_name)
        modality = modality or _modality_of(X, X_name)
        parts.append((_shaped(X, modality, X_name), arrays.get(y_name)))
    assert modality is not None
    return Source(path.stem, modality, parts)


def _check_entries(
    path: Path,
    arrays: dict[str, Array],
    pairs: list[tuple[str, str]],
    unlabeled: bool,
) -> None:
    """Raise an error that names the first entry an .npz file lacks."""
    for X_name, y_name in pairs:
        needed = (X_name,) if unlabeled else (X_name, y_name)
        for key in needed:
            if key not in arrays:
                known = ", ".join(map(repr, entry_names(path)[:20]))
                raise ValueError(
                    f"{path} has no entry {key!r}; it has {known}. "
                    "Accepted: X_train, y_train, X_test, y_test, or X, y; and modality."
                )


def _modality_of(X: Array, name: str) -> str:
    """Infer the modality from the number of dimensions."""
    for modality, axes in SHAPES.items():
        if X.ndim == len(axes):
            return modality
    raise ValueError(
        f"{name} has shape {X.shape}. Accepted: 2 (rows), 3 (series) or 4 (images) dimensions."
    )


def _shaped(X: Array, modality: str, name: str) -> Array:
    """Add the channel axis that declared series (n, length) and images (n, height, width) lack."""
    if (modality, X.ndim) in (("series", 2), ("image", 3)):
        X = X[:, None]
    check_shape(X, modality, name)
    return X
