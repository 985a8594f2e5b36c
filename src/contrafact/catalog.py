"""What `contrafact methods` and `contrafact datasets` list, without importing any library.

It is written down, not found, so that listing is instant; tests compare it with the methods and
with the real data.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

#: width of the widest table on a terminal, and of its narrowest last column
MOST_WIDTH, LEAST_WIDTH = 120, 24


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


class Method(NamedTuple):
    """One method, as `list_explainers` shows it."""

    method: str
    does: str
    modalities: str
    multivariate: bool
    gradient: bool
    constraints: str


#: every kind of constraint
ALL_KINDS = (
    "bounds, decreasing, forbidden, frozen, increasing, linked, max_changed, max_step, relations"
)
METHODS = (
    Method(
        "CELS",
        "Copy the stretches of a neighbor that a learned saliency map selects.",
        "series",
        True,
        True,
        ALL_KINDS,
    ),
    Method(
        "CoMTE",
        "Take over the fewest channels of a distractor that change the class.",
        "series, row",
        True,
        False,
        ALL_KINDS,
    ),
    Method(
        "DiCE",
        "Evolve k rows of the target class that are near, change few columns and differ.",
        "row",
        True,
        False,
        ALL_KINDS,
    ),
    Method(
        "FACE",
        "Walk along reference rows, through dense regions, to a row of the target class.",
        "row",
        True,
        False,
        ALL_KINDS,
    ),
    Method(
        "Glacier",
        "Slide along the decision boundary to the nearest point, in a weighted metric.",
        "series",
        True,
        True,
        ALL_KINDS,
    ),
    Method(
        "Graft",
        "Graft a short stretch of a real series of the target class, so that the seam does not "
        "show.",
        "series, image, row",
        True,
        False,
        ALL_KINDS,
    ),
    Method(
        "GrowingSpheres",
        "Return the nearest sample of the target class in layers of growing radius, made sparse.",
        "row",
        True,
        False,
        ALL_KINDS,
    ),
    Method(
        "LatentCF",
        "Move an instance's code until the model decides for the target.",
        "series, image",
        True,
        True,
        ALL_KINDS,
    ),
    Method(
        "LineSearch",
        "Return the first point of the target class on the straight line to a guide, by bisection.",
        "series, image, row",
        True,
        False,
        ALL_KINDS,
    ),
    Method(
        "NICE",
        "Copy columns of the nearest unlike neighbor, one by one, until the model decides for c.",
        "row",
        True,
        False,
        ALL_KINDS,
    ),
    Method(
        "NativeGuide",
        "Copy the shortest window of a neighbor that changes the class, or blend with the "
        "neighbor.",
        "series",
        True,
        False,
        ALL_KINDS,
    ),
    Method(
        "NearestUnlike",
        "Return the nearest unlike neighbor itself: a reference row of the target class.",
        "series, image, row",
        True,
        False,
        ALL_KINDS,
    ),
    Method(
        "PrototypeCounterfactual",
        "Find the smallest counterfactual of a prototype model, and prove that it is.",
        "series, image, row",
        True,
        False,
        "bounds, decreasing, forbidden, frozen, increasing, linked, max_changed, relations",
    ),
    Method(
        "RandomMask",
        "Copy segments of the guide in random order, as few as change the class.",
        "series, image, row",
        True,
        False,
        ALL_KINDS,
    ),
    Method(
        "RandomTarget",
        "Return a random reference row that the model puts in the target class.",
        "series, image, row",
        True,
        False,
        ALL_KINDS,
    ),
    Method(
        "SETS",
        "Remove shapelets of the instance's class and insert shapelets of the target class.",
        "series",
        True,
        False,
        ALL_KINDS,
    ),
    Method(
        "SVCE",
        "Find the most convincing instance of the target class within an l_p ball.",
        "series, image, row",
        True,
        True,
        ALL_KINDS,
    ),
    Method(
        "TSEvo",
        "Evolve series that reach the target class, stay near and change few values, by NSGA-II.",
        "series",
        True,
        False,
        ALL_KINDS,
    ),
    Method(
        "TSNUC",
        "Move an instance's code toward the nearest unlike cluster with a network of its own.",
        "series, image",
        True,
        False,
        ALL_KINDS,
    ),
    Method(
        "Wachter",
        "Move an instance down the gradient until the model decides for the target.",
        "row",
        True,
        True,
        ALL_KINDS,
    ),
)


def methods_text() -> str:
    """Return the methods as a table for a terminal."""
    # A terminal is too narrow for all columns; JSON has them.
    rows = [(entry.method, entry.modalities, entry.does) for entry in METHODS]
    table = _text_table(("method", "modalities", "does"), rows)
    return f"{table}\nDefault: Graft; PrototypeCounterfactual for prototype models."


def datasets_text() -> str:
    """Return the bundled data sets as a table for a terminal."""
    return _text_table(Bundled._fields, (*AEON, *SKLEARN))


def _text_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table as text; its last column wraps where the terminal is too narrow."""
    lines = [tuple(columns), *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) + 2 for column in zip(*lines, strict=True)]
    indent = sum(widths[:-1])
    room = min(shutil.get_terminal_size().columns, MOST_WIDTH) - indent
    text = []
    for *cells, last in lines:
        start = "".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=False))
        wrapped = textwrap.wrap(last, max(room, LEAST_WIDTH))
        text.append(start + f"\n{' ' * indent}".join(wrapped))
    return "\n".join(text)
