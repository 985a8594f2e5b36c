"""Datasets by name or by path. Nothing here uses the network."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..catalog import AEON, SKLEARN, Bundled
from ..catalog import BY_NAME as BY_NAME
from ..validation import Boolean, Instance, Integer, Nothing, OneOf, check_parameters
from . import cleaning
from .archives import MAX_BYTES
from .bundled import read_bundled
from .cleaning import Array, describe_nonfinite, fill_missing
from .dataset import SHAPES, Dataset, as_labels, check_same_shape
from .readers import SUFFIXES, Instances, Reading, Source, read_path
from .splitting import split_source

if TYPE_CHECKING:
    import pandas as pd

_RULES = {
    "name_or_path": Instance(str, "a name") | Instance(os.PathLike, "a path"),
    "pad": Boolean(),
    "fill": Boolean(),
    "label": Instance(str, "the name of a column") | Nothing(),
    "modality": OneOf(*SHAPES) | Nothing(),
    "max_bytes": Integer(at_least=1),
}


def list_datasets() -> pd.DataFrame:
    """List the datasets that `load_dataset` knows by name.

    Returns
    -------
    pandas.DataFrame
        One row each: name, modality, numbers of training and test instances, shape of an instance,
        number of classes. A length of None varies: load such a set with `pad=True`.

    Examples
    --------
    >>> list_datasets().set_index("name").loc["GunPoint", "shape"]
    (1, 150)
    """
    import pandas as pd

    return pd.DataFrame(
        [*AEON, *SKLEARN],
        columns=list(Bundled._fields),
    )


def load_dataset(
    name_or_path: str | os.PathLike[str],
    *,
    pad: bool = False,
    fill: bool = False,
    label: str | None = None,
    modality: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> Dataset:
    """Load a bundled dataset by name, or your own by path.

    Parameters
    ----------
    name_or_path : str or path
        A name from `list_datasets`, in upper or lower case, or a path: a folder with
        <Name>_TRAIN.ts and <Name>_TEST.ts (or .tsv, or .txt: label first, whitespace between); one
        such file; an .npz with X_train, y_train, X_test, y_test or X, y, and optionally modality
        (else 2-D is rows, 3-D series, 4-D images); or a .csv: names of the columns in the first
        line, then one instance per line.
        A name comes before a file of that name: write "./GunPoint" for a folder.
    pad : bool, default=False
        Extend shorter series to the longest by their last value; without it unequal lengths are an
        error.
    fill : bool, default=False
        Impute NaN: series linearly in time, images by channel mean, rows by the column mean of the
        training part; without it NaN is an error.
    label : str, optional
        The label column of a .csv; default: the one called label, class, target or y, in upper or
        lower case.
    modality : {"series", "image", "row"}, optional
        What a .csv or .npz holds, if it does not say so. A .csv holds rows; with "series" its
        columns are the steps of one channel, or of several if they are called x_0, x_1, …, y_0,
        y_1, ….
    max_bytes : int, default=4 GiB
        How many bytes the arrays of an .npz may take; more is refused before it is unpacked.

    Returns
    -------
    Dataset
        The training and test part.

    Raises
    ------
    ValueError
        If the name is unknown, or the data cannot be read or are not ready to use; the message says
        what helps.
    FileNotFoundError
        If the path does not exist.

    Notes
    -----
    Data without a split (scikit-learn's, a .csv, a file without its partner, X and y) are shuffled
    and split 70/30 within each class, the same way every time. Text labels from .ts files are lower
    case, as aeon reads them.

    Examples
    --------
    >>> load_dataset("gunpoint")
    Dataset('GunPoint', series, train (50, 1, 150), test (150, 1, 150), classes '1', '2')
    """
    given = {
        "name_or_path": name_or_path,
        "pad": pad,
        "fill": fill,
        "label": label,
        "modality": modality,
        "max_bytes": max_bytes,
    }
    check_parameters("load_dataset", _RULES, given)
    reading = Reading(label, modality, max_bytes=max_bytes)
    source = _open(name_or_path, reading, pad, fill)
    if len(source.parts) == 1:
        source = split_source(source)
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
    """Read data to explain: as `load_dataset`, but without splitting, and labels are optional.

    Parameters
    ----------
    name_or_path : str or path
        As in `load_dataset`.
    pad, fill : bool, default=False
        As in `load_dataset`.
    label, modality : str, optional
        As in `load_dataset`.
    columns : sequence of str, optional
        The columns of a .csv to take, in this order, where it holds rows; others may hold text.

    Returns
    -------
    Source
        One part where there is no split, else two.

    Examples
    --------
    >>> source = read_parts("iris")
    >>> [X.shape for X, y in source.parts], source.names[0]
    ([(105, 4), (45, 4)], 'sepal length (cm)')
    """
    reading = Reading(label, modality, columns, unlabeled=True)
    source = _open(name_or_path, reading, pad, fill)
    return _filled(source) if fill else source


def _open(
    name_or_path: str | os.PathLike[str],
    reading: Reading,
    pad: bool,
    fill: bool,
) -> Source:
    """Read parts as arrays; an error names the file."""
    try:
        return _read(name_or_path, reading, pad, fill)
    except (ValueError, TypeError) as error:
        path = Path(name_or_path).expanduser()
        if str(path) in str(error) or not path.exists():
            raise
        raise ValueError(f"{path}: {error}") from error


def _read(
    name_or_path: str | os.PathLike[str],
    reading: Reading,
    pad: bool,
    fill: bool,
) -> Source:
    """Read parts as arrays, with labels checked; refuse NaN unless it will be filled."""
    source = _find(name_or_path, reading)
    endings = ("_train", "_test") if len(source.parts) == 2 else ("",)
    arrays = _stacked(source, pad)
    parts: list[tuple[Instances, Array | None]] = []
    for X, (_, y), ending in zip(arrays, source.parts, endings, strict=True):
        if y is not None:
            y = as_labels(y, f"y{ending}", len(X))
        parts.append((X, y))
    if not fill:
        for X, ending in zip(arrays, endings, strict=True):
            _refuse_missing(X, f"X{ending}")
    return source._replace(parts=parts)


def _find(name_or_path: str | os.PathLike[str], reading: Reading) -> Source:
    """Read a bundled dataset or a path, whichever it is."""
    if isinstance(name_or_path, str):
        entry = BY_NAME.get(name_or_path.lower())
        if entry is not None:
            return read_bundled(entry, reading)
    path = Path(name_or_path).expanduser()
    if path.exists():
        return read_path(path, reading)
    is_path = len(path.parts) > 1 or path.suffix.lower() in SUFFIXES
    if is_path or not isinstance(name_or_path, str):
        raise FileNotFoundError(f"name_or_path {str(name_or_path)!r} does not exist.")
    raise _unknown_name(name_or_path)


def _unknown_name(name: str) -> ValueError:
    """Make an error that suggests similar names, or lists all."""
    close = difflib.get_close_matches(name.lower(), BY_NAME, cutoff=0.7)
    names = ", ".join(repr(BY_NAME[key].name) for key in close or BY_NAME)
    suggestion = f"Did you mean {names}?" if close else f"Bundled: {names}."
    return ValueError(
        f"name_or_path {name!r} is not a bundled dataset. {suggestion} For your own data give a "
        "path, e.g. 'data/Mine' (a folder with Mine_TRAIN.ts and Mine_TEST.ts), 'data/mine.csv' or "
        "'data/mine.npz'."
    )


def _stacked(source: Source, pad: bool) -> list[Array]:
    """Make one array of each part; only series can need padding for it."""
    parts = [instances for instances, _ in source.parts]
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
    """Raise an error that says where the first NaN is, and how to fill it."""
    remedy = "load_dataset(..., fill=True), --fill on the command line,"
    problem = describe_nonfinite(X, name, remedy)
    if problem:
        raise ValueError(problem)


def _filled(source: Source) -> Source:
    """Impute NaN; rows of the second part by the column means of the first."""
    first: Array | None = None
    parts: list[tuple[Instances, Array | None]] = []
    for instances, y in source.parts:
        X = np.asarray(instances)
        if source.modality == "series":
            X = fill_missing(X, "linear")
        elif first is None:
            X = first = fill_missing(X, "mean")
        else:
            X = _filled_like(first, X, source.modality)
        parts.append((X, y))
    return source._replace(parts=parts)


def _filled_like(train: Array, test: Array, modality: str) -> Array:
    """Impute the test part of images or rows."""
    check_same_shape(train, test)
    if modality == "image":
        return fill_missing(test, "mean")
    # Imputing by the mean leaves the mean alone, so this is the mean of what was observed in
    # training.
    return np.where(np.isnan(test), train.mean(axis=0), test)
