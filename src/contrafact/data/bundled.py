"""Datasets that come with aeon and scikit-learn, by name. Nothing here uses the network."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from .readers import Reading, Source, read_path
from .splitting import split_source


class Bundled(NamedTuple):
    """One bundled dataset, as `list_datasets` shows it.

    train, test : numbers of instances.
    shape : shape of an instance; a length of None varies from series to series.
    classes : number of classes.
    """

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
#: All of them, by name in lower case.
BY_NAME = {entry.name.lower(): entry for entry in (*AEON, *SKLEARN)}


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
