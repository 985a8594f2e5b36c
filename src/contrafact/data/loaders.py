"""Datasets by name or by path. Nothing here reaches the network."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contrafact.data import cleaning
from contrafact.data.cleaning import Array, describe_nonfinite, fill_missing
from contrafact.data.dataset import Dataset, as_labels, check_same_shape
from contrafact.data.readers import SUFFIXES, Instances, Reading, Source, read_path
from contrafact.data.splitting import stratified_split

if TYPE_CHECKING:
    import pandas as pd


class Bundled(NamedTuple):
    """A row of `list_datasets`; a length of None varies from series to series."""

    name: str
    modality: str
    train: int
    test: int
    shape: tuple[int | None, ...]
    classes: int


# Written down, not measured, so that listing is instant; a test compares it with the real data.
AEON = (
    Bundled("ACSF1", "series", 100, 100, (1, 1460), 10),
    Bundled("ArrowHead", "series", 36, 175, (1, 251), 3),
    Bundled("BasicMotions", "series", 40, 40, (6, 100), 4),
    Bundled("Covid3Month_disc", "series", 140, 61, (1, 84), 3),
    Bundled("GunPoint", "series", 50, 150, (1, 150), 2),
    Bundled("ItalyPowerDemand", "series", 67, 1029, (1, 24), 2),
    Bundled("JapaneseVowels", "series", 270, 370, (12, None), 9),
    Bundled("OSULeaf", "series", 200, 242, (1, 427), 6),
    Bundled("PickupGestureWiimoteZ", "series", 50, 50, (1, None), 10),
    Bundled("UnitTest", "series", 20, 22, (1, 24), 2),
)
SKLEARN = (
    Bundled("breast_cancer", "row", 398, 171, (30,), 2),
    Bundled("digits", "image", 1258, 539, (1, 8, 8), 10),
    Bundled("iris", "row", 105, 45, (4,), 3),
    Bundled("wine", "row", 125, 53, (13,), 3),
)
BY_NAME = {entry.name.lower(): entry for entry in (*AEON, *SKLEARN)}


def list_datasets() -> pd.DataFrame:
    """The datasets that `load_dataset` knows by name.

    One row each: name, modality, train and test sizes, shape of an instance, number of classes.
    A length of None varies: load such a set with `pad=True`.

    Examples
    --------
    >>> list_datasets().set_index("name").loc["GunPoint", "shape"]
    (1, 150)
    """
    import pandas as pd

    return pd.DataFrame([*AEON, *SKLEARN], columns=list(Bundled._fields))


def load_dataset(
    name_or_path: str | os.PathLike[str],
    *,
    pad: bool = False,
    fill: bool = False,
    label: str | None = None,
    modality: str | None = None,
) -> Dataset:
    """Load a bundled dataset by name, or your own by path.

    Parameters
    ----------
    name_or_path : str or path
        A name from `list_datasets`, in any case, or a path: a folder with <Name>_TRAIN.ts and <Name>_TEST.ts
        (or .tsv, or .txt: label first, whitespace between), one such file, an .npz with X_train, y_train,
        X_test, y_test or X, y, and optionally modality (else 2-D is rows, 3-D series, 4-D images), or a .csv:
        names of the columns in the first line, then one instance per line.
        A name comes before a file of that name: write "./GunPoint" for a folder.
    pad : bool, default=False
        Extend shorter series to the longest by their last value; without it unequal lengths are an error.
    fill : bool, default=False
        Impute NaN: series linearly in time, images by channel mean, rows by the column mean of the training
        part; without it NaN is an error.
    label : str, optional
        The label column of a .csv; default: the one called label, class, target or y, in any case.
    modality : "series", "image" or "row", optional
        What a .csv or .npz holds, if it does not say so. A .csv holds rows; with "series" its columns are
        the steps of one channel, or of several if they are called x_0, x_1, …, y_0, y_1, ….

    Notes
    -----
    Data without a split (scikit-learn's, a .csv, a file without its partner, X and y) are shuffled and split
    70/30 within each class, the same way every time. Text labels from .ts files are lower case, as aeon reads
    them.

    Examples
    --------
    >>> load_dataset("gunpoint")
    Dataset('GunPoint', series, train (50, 1, 150), test (150, 1, 150), classes '1', '2')
    """
    source = _open(name_or_path, Reading(label, modality), pad, fill)
    if len(source.parts) == 1:
        source = _split(source)
    if fill:
        source = _filled(source)
    (X_train, y_train), (X_test, y_test) = source.parts
    assert y_train is not None and y_test is not None
    return Dataset(
        source.name,
        source.modality,
        np.asarray(X_train),
        y_train,
        np.asarray(X_test),
        y_test,
        source.names,
    )


def read_parts(
    name_or_path: str | os.PathLike[str],
    *,
    pad: bool = False,
    fill: bool = False,
    label: str | None = None,
    modality: str | None = None,
    columns: Sequence[str] | None = None,
) -> Source:
    """What there is to explain: as `load_dataset`, but whole where it has no split, and labels may be absent.

    columns : the columns of a .csv to take, in this order, where it holds rows; others may then hold text.

    Examples
    --------
    >>> source = read_parts("iris")
    >>> [X.shape for X, y in source.parts], source.names[0]
    ([(105, 4), (45, 4)], 'sepal length (cm)')
    """
    source = _open(name_or_path, Reading(label, modality, columns, unlabeled=True), pad, fill)
    return _filled(source) if fill else source


def _open(name_or_path: str | os.PathLike[str], reading: Reading, pad: bool, fill: bool) -> Source:
    """The parts as arrays, with labels checked; NaN is refused unless it will be filled."""
    source = _find(name_or_path, reading)
    endings = ("_train", "_test") if len(source.parts) == 2 else ("",)
    X = _stacked(source, pad)
    parts: list[tuple[Instances, Array | None]] = []
    for x, (_, y), end in zip(X, source.parts, endings, strict=True):
        parts.append((x, None if y is None else as_labels(y, f"y{end}", len(x))))
    if not fill:
        for x, end in zip(X, endings, strict=True):
            _refuse_missing(x, f"X{end}")
    return source._replace(parts=parts)


def _find(name_or_path: str | os.PathLike[str], reading: Reading) -> Source:
    entry = BY_NAME.get(name_or_path.lower()) if isinstance(name_or_path, str) else None
    if entry is not None:
        if reading.label is not None and not reading.unlabeled:
            raise ValueError(
                f"label {reading.label!r} names a column of a .csv; {entry.name} is bundled."
            )
        if reading.modality not in (None, entry.modality):
            raise ValueError(f"{entry.name} holds {entry.modality} data, not {reading.modality!r}.")
        return _from_aeon(entry.name) if entry in AEON else _from_sklearn(entry)
    path = Path(name_or_path).expanduser()
    if path.exists():
        return read_path(path, reading)
    if not isinstance(name_or_path, str) or len(path.parts) > 1 or path.suffix.lower() in SUFFIXES:
        raise FileNotFoundError(f"name_or_path {str(name_or_path)!r} does not exist.")
    close = [
        BY_NAME[key].name
        for key in difflib.get_close_matches(name_or_path.lower(), BY_NAME, cutoff=0.7)
    ]
    names = ", ".join(map(repr, close or [entry.name for entry in BY_NAME.values()]))
    raise ValueError(
        f"name_or_path {name_or_path!r} is not a bundled dataset. "
        f"{f'Did you mean {names}?' if close else f'Bundled: {names}.'} For your own data give a path, "
        "e.g. 'data/Mine' (a folder with Mine_TRAIN.ts and Mine_TEST.ts), 'data/mine.csv' or 'data/mine.npz'."
    )


def _from_aeon(name: str) -> Source:
    import aeon

    # Not aeon's load_classification: it downloads what it does not find.
    source = read_path(Path(aeon.__file__).parent / "datasets" / "data" / name, Reading())
    return source._replace(name=name)


def _from_sklearn(entry: Bundled) -> Source:
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{entry.name}")()
    if entry.modality == "image":
        return _split(Source(entry.name, "image", [(bunch.images[:, None], bunch.target)]))
    names = tuple(map(str, bunch.feature_names))
    return _split(
        Source(entry.name, "row", [(bunch.data, bunch.target_names[bunch.target])], names)
    )


def _split(source: Source) -> Source:
    ((X, y),) = source.parts
    X = np.asarray(X)
    assert y is not None
    return source._replace(parts=[(X[rows], y[rows]) for rows in stratified_split(y)])


def _stacked(source: Source, pad: bool) -> list[Array]:
    """One array for each part; only series can need padding for it."""
    parts = [part[0] for part in source.parts]
    lengths = sorted({x.shape[-1] for part in parts for x in part})
    if source.modality != "series" or len(lengths) == 1:
        return [np.asarray(part) for part in parts]
    if pad:
        return [cleaning.pad(part, length=lengths[-1]) for part in parts]
    which = ", ".join(map(str, lengths))
    if len(lengths) > 10:
        which = f"{len(lengths)} different ones, from {lengths[0]} to {lengths[-1]}"
    raise ValueError(
        f"{source.name} has series of unequal lengths: {which}. "
        "Pad them, e.g. load_dataset(..., pad=True) or contrafact.data.pad(X)."
    )


def _refuse_missing(X: Array, name: str) -> None:
    problem = describe_nonfinite(
        X, name, remedy="load_dataset(..., fill=True), --fill on the command line,"
    )
    if problem:
        raise ValueError(problem)


def _filled(source: Source) -> Source:
    X, y = zip(*source.parts, strict=True)
    if source.modality == "series":
        filled = [fill_missing(x, "linear") for x in X]
    else:
        first = fill_missing(X[0], "mean")
        filled = [first, *(_filled_like(first, x, source.modality) for x in X[1:])]
    return source._replace(parts=list(zip(filled, y, strict=True)))


def _filled_like(train: Array, test: Array, modality: str) -> Array:
    check_same_shape(train, test)
    if modality == "image":
        return fill_missing(test, "mean")
    # Imputing by the mean leaves the mean alone, so this is the mean of what was observed in training.
    return np.where(np.isnan(test), train.mean(axis=0), test)
