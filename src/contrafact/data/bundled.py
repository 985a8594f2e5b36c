"""Datasets that come with aeon and scikit-learn, by name. Nothing here uses the network."""

from __future__ import annotations

from pathlib import Path

from ..catalog import AEON, Bundled
from .readers import Reading, Source, read_path
from .splitting import split_source


def read_bundled(entry: Bundled, reading: Reading) -> Source:
    """Read a bundled dataset.

    Parameters
    ----------
    entry : Bundled
        Which one.
    reading : Reading
        Options; an option that does not apply to the dataset is an error.

    Returns
    -------
    Source
        With the split that the dataset has, or the usual one.
    """
    if reading.label is not None and not reading.unlabeled:
        raise ValueError(
            f"label {reading.label!r} names a column of a .csv; {entry.name} is bundled."
        )
    if reading.modality not in (None, entry.modality):
        raise ValueError(f"{entry.name} holds {entry.modality} data, not {reading.modality!r}.")
    if entry in AEON:
        return _from_aeon(entry.name)
    return _from_sklearn(entry)


def _from_aeon(name: str) -> Source:
    """Read a dataset from the files that come with aeon."""
    import aeon

    # Not aeon's load_classification: it downloads what it does not find.
    folder = Path(aeon.__file__).parent / "datasets" / "data" / name
    return read_path(folder, Reading())._replace(name=name)


def _from_sklearn(entry: Bundled) -> Source:
    """Load a dataset from scikit-learn, and split it."""
    from sklearn import datasets

    load = getattr(datasets, f"load_{entry.name}")
    bunch = load()
    if entry.modality == "image":
        X = bunch.images[:, None]
        return split_source(
            Source(
                entry.name,
                "image",
                [(X, bunch.target)],
            )
        )
    y = bunch.target_names[bunch.target]
    names = tuple(map(str, bunch.feature_names))
    return split_source(
        Source(
            entry.name,
            "row",
            [(bunch.data, y)],
            names,
        )
    )
