"""Readers of labeled files: UCR's .ts, .tsv and .txt, .csv, and NumPy's .npz."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from contrafact.data.cleaning import Array, as_float
from contrafact.data.dataset import SHAPES, check_shape
from contrafact.data.tables import read_table, split_channels

# One array, or one (channels, length) array per instance where lengths differ.
Instances = Array | Sequence[Array]


class Source(NamedTuple):
    """What a file holds, before any cleaning; one part where it has no split, else train and test."""

    name: str
    modality: str
    parts: list[tuple[Instances, Array | None]]
    names: tuple[str, ...] | None = None


class Reading(NamedTuple):
    """How a file is to be read, where it does not say so itself.

    label : the label column of a .csv.
    modality : "series", "image" or "row".
    columns : the columns of a .csv to take, in this order, where it holds rows.
    unlabeled : labels may be absent, and so may the column that `label` names.
    """

    label: str | None = None
    modality: str | None = None
    columns: Sequence[str] | None = None
    unlabeled: bool = False


def read_path(path: Path, reading: Reading) -> Source:
    """Read a UCR folder, one file of a UCR pair, a .csv or an .npz."""
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
    pairs = [
        train
        for suffix in UCR_READERS
        for train in sorted(folder.glob(f"*_TRAIN{suffix}"))
        if _partner(train).exists()
    ]
    names = {_stem(train) for train in pairs}
    # aeon keeps variants of a set beside it (JapaneseVowels_eq_TRAIN.ts): the folder's name decides.
    wanted = folder.resolve().name if len(names) > 1 else next(iter(names), None)
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
    return path.stem.removesuffix("_TRAIN").removesuffix("_TEST")


def _partner(path: Path) -> Path:
    other = "_TEST" if path.stem.endswith("_TRAIN") else "_TRAIN"
    return path.with_name(_stem(path) + other + path.suffix)


def _read_ucr(path: Path, reading: Reading) -> Source:
    if reading.modality not in (None, "series"):
        raise ValueError(
            f"{path} holds series; modality {reading.modality!r} does not apply to it."
        )
    files = [path]
    if path.stem.endswith(("_TRAIN", "_TEST")) and _partner(path).exists():
        files = sorted([path, _partner(path)], key=lambda file: file.stem.endswith("_TEST"))
    return Source(_stem(path), "series", [_read_labeled(file, reading.unlabeled) for file in files])


def _read_labeled(path: Path, unlabeled: bool) -> tuple[Instances, Array | None]:
    suffix = path.suffix.lower()
    try:
        X, y = UCR_READERS[suffix](path)
        if y is None and not unlabeled:
            raise ValueError("its header declares no class labels, and a classifier needs them.")
    except (OSError, ValueError, IndexError) as error:
        # aeon reports bad content as OSError too; a real one, such as a missing permission, has a number.
        if getattr(error, "errno", None) is not None:
            raise
        raise ValueError(f"{path} cannot be read as {suffix}: {error}") from error
    if len(X) == 0:
        raise ValueError(f"{path} holds no instances.")
    return X, y


def _read_ts(path: Path) -> tuple[Instances, Array | None]:
    from aeon.datasets import load_from_ts_file

    X, y, header = load_from_ts_file(str(path), return_meta_data=True)
    if header["timestamps"]:
        # aeon's reader of time stamps drops minus signs.
        raise ValueError("it has time stamps. Accepted: values only (@timeStamps false).")
    return X, None if header["targetlabel"] or not header["classlabel"] else np.char.strip(y)


def _read_tsv(path: Path) -> tuple[Instances, Array]:
    from aeon.datasets import load_from_tsv_file

    X, y = load_from_tsv_file(str(path))
    return X.astype(np.float64), _whole_numbers(y)


def _read_txt(path: Path) -> tuple[Instances, Array]:
    table = np.loadtxt(path, ndmin=2)
    return table[:, None, 1:], _whole_numbers(table[:, 0])


def _whole_numbers(y: Array) -> Array:
    if y.dtype.kind == "f" and np.isfinite(y).all() and (y == np.rint(y)).all():
        return y.astype(np.int64)
    return y


UCR_READERS = {".ts": _read_ts, ".tsv": _read_tsv, ".txt": _read_txt}
SUFFIXES = (*UCR_READERS, ".csv", ".npz")


def _read_csv(path: Path, reading: Reading) -> Source:
    modality = reading.modality or "row"
    columns = reading.columns if modality == "row" else None
    table = read_table(path, label=reading.label, columns=columns, unlabeled=reading.unlabeled)
    if modality == "series":
        X, names = split_channels(table)
        return Source(path.stem, modality, [(X, table.y)], names)
    check_shape(table.X, modality, str(path))
    return Source(path.stem, modality, [(table.X, table.y)], table.names)


def _read_npz(path: Path, reading: Reading) -> Source:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = dict(archive)
    except (ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} cannot be read as .npz: {error} Accepted: plain arrays, with labels as text or numbers."
        ) from error
    pairs = [("X_train", "y_train"), ("X_test", "y_test")] if "X_train" in arrays else [("X", "y")]
    needed = [X for X, _ in pairs] if reading.unlabeled else [key for pair in pairs for key in pair]
    absent = [key for key in needed if key not in arrays]
    if absent:
        raise ValueError(
            f"{path} has no entry {absent[0]!r}; it has {', '.join(map(repr, arrays))}. "
            "Accepted: X_train, y_train, X_test, y_test, or X, y; and modality."
        )
    parts = [(as_float(arrays[X], X), arrays.get(y)) for X, y in pairs]
    said = reading.modality or (str(arrays["modality"]) if "modality" in arrays else None)
    modality = said or _modality_of(parts[0][0], pairs[0][0])
    return Source(
        path.stem,
        modality,
        [(_shaped(X, modality, name), y) for (X, y), (name, _) in zip(parts, pairs, strict=True)],
    )


def _modality_of(X: Array, name: str) -> str:
    for modality, axes in SHAPES.items():
        if X.ndim == len(axes):
            return modality
    raise ValueError(
        f"{name} has shape {X.shape}. Accepted: 2 (rows), 3 (series) or 4 (images) dimensions."
    )


def _shaped(X: Array, modality: str, name: str) -> Array:
    # Declared series (n, length) and images (n, height, width) have one channel that goes without saying.
    if (modality, X.ndim) in (("series", 2), ("image", 3)):
        X = X[:, None]
    check_shape(X, modality, name)
    return X
