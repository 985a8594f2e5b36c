"""Readers of labelled files: UCR's .ts, .tsv and .txt, and NumPy's .npz."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from contrafact.data.cleaning import Array, as_float
from contrafact.data.dataset import SHAPES, check_shape

# One array, or one (channels, length) array per instance where lengths differ.
Instances = Array | Sequence[Array]


class Source(NamedTuple):
    """What a file holds, before any cleaning; one part where it has no split, else train and test."""

    name: str
    modality: str
    parts: list[tuple[Instances, Array]]


def read_path(path: Path) -> Source:
    """Read a UCR folder, one file of a UCR pair, or an .npz."""
    if path.is_dir():
        return _read_ucr(_training_file_in(path))
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return _read_npz(path)
    if suffix in UCR_READERS:
        return _read_ucr(path)
    raise ValueError(f"{path} has suffix {path.suffix!r}. Accepted: {', '.join(SUFFIXES)}, or a folder.")


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


def _read_ucr(path: Path) -> Source:
    files = [path]
    if path.stem.endswith(("_TRAIN", "_TEST")) and _partner(path).exists():
        files = sorted([path, _partner(path)], key=lambda file: file.stem.endswith("_TEST"))
    return Source(_stem(path), "series", [_read_labelled(file) for file in files])


def _read_labelled(path: Path) -> tuple[Instances, Array]:
    suffix = path.suffix.lower()
    try:
        X, y = UCR_READERS[suffix](path)
    except (OSError, ValueError, IndexError) as error:
        # aeon reports bad content as OSError too; a real one, such as a missing permission, has a number.
        if getattr(error, "errno", None) is not None:
            raise
        raise ValueError(f"{path} cannot be read as {suffix}: {error}") from error
    if len(y) == 0:
        raise ValueError(f"{path} holds no instances.")
    return X, y


def _read_ts(path: Path) -> tuple[Instances, Array]:
    from aeon.datasets import load_from_ts_file

    X, y, header = load_from_ts_file(str(path), return_meta_data=True)
    if header["targetlabel"] or not header["classlabel"]:
        raise ValueError("its header declares no class labels, and a classifier needs them.")
    if header["timestamps"]:
        # aeon's reader of time stamps drops minus signs.
        raise ValueError("it has time stamps. Accepted: values only (@timeStamps false).")
    return X, np.char.strip(y)


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
SUFFIXES = (*UCR_READERS, ".npz")


def _read_npz(path: Path) -> Source:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = dict(archive)
    except (ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} cannot be read as .npz: {error} Accepted: plain arrays, with labels as text or numbers."
        ) from error
    pairs = [("X_train", "y_train"), ("X_test", "y_test")] if "X_train" in arrays else [("X", "y")]
    absent = [key for pair in pairs for key in pair if key not in arrays]
    if absent:
        raise ValueError(
            f"{path} has no entry {absent[0]!r}; it has {', '.join(map(repr, arrays))}. "
            "Accepted: X_train, y_train, X_test, y_test, or X, y; and modality."
        )
    parts = [(as_float(arrays[X], X), arrays[y]) for X, y in pairs]
    modality = str(arrays["modality"]) if "modality" in arrays else _modality_of(parts[0][0], pairs[0][0])
    return Source(
        path.stem,
        modality,
        [(_shaped(X, modality, name), y) for (X, y), (name, _) in zip(parts, pairs, strict=True)],
    )


def _modality_of(X: Array, name: str) -> str:
    for modality, axes in SHAPES.items():
        if X.ndim == len(axes):
            return modality
    raise ValueError(f"{name} has shape {X.shape}. Accepted: 2 (rows), 3 (series) or 4 (images) dimensions.")


def _shaped(X: Array, modality: str, name: str) -> Array:
    # Declared series (n, length) and images (n, height, width) have one channel that goes without saying.
    if (modality, X.ndim) in (("series", 2), ("image", 3)):
        X = X[:, None]
    check_shape(X, modality, name)
    return X
