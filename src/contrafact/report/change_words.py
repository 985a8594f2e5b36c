"""What changed in one counterfactual, as phrases with their place and size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..engine.result import Counterfactuals
from ..metrics.regions import runs
from ..metrics.table_rows import part_changes
from ..models.classifier import Array
from .pairs import changed_mask, pair, relative_change
from .table_words import change_phrase, rows_of
from .words import different_texts, name_of

#: below this fraction of the spread it had before, a stretch counts as flat
FLAT = 0.25
#: above this fraction of the whole change in one direction, the change goes that way
ONE_WAY = 0.9
MOVEMENTS = {1: "be higher", -1: "be lower", 0: "run differently"}
LOOKS = {1: "brighter", -1: "darker", 0: "different"}
THIRDS = (
    ("upper left", "top", "upper right"),
    ("left", "center", "right"),
    ("lower left", "bottom", "lower right"),
)


@dataclass(frozen=True)
class Change:
    """One thing that changed.

    Parameters
    ----------
    words : str
        What would have to be, to follow "would have to" or, for rows, "would need".
    place : tuple of two int
        Sorts the changes of an instance into reading order.
    size : float
        Sorts them by importance.
    """

    words: str
    place: tuple[int, int]
    size: float


def changes_of(result: Counterfactuals, i: int) -> list[Change]:
    """Find what changed in counterfactual i.

    Parameters
    ----------
    result : Counterfactuals
        The result.
    i : int
        Row of the result.

    Returns
    -------
    list of Change
        Features of a row, columns of a table, stretches of a series or parts of an image; in no
        particular order.
    """
    if result.table is not None:
        return _columns(result, i)
    x, x_cf = pair(result, i)
    changed = changed_mask(result, i)
    if result.modality == "row":
        return _features(result, x, x_cf, changed)
    if result.modality == "image":
        visible = result[i].visible_pixels
        # What can be seen is named; where nothing can be, all that changed.
        return _parts(x_cf - x, changed & visible if visible.any() else changed)
    return _stretches(result, x, x_cf, changed)


def stretch_text(start: int, stop: int, length: int) -> str:
    """Say where a stretch of time lies.

    Parameters
    ----------
    start, stop : int
        First time step, and one past the last.
    length : int
        Number of time steps of the whole series.

    Returns
    -------
    str
        As in "between t = 10 and 19".
    """
    if stop - start == length:
        return "from beginning to end"
    if stop - start == 1:
        return f"at t = {start}"
    return f"between t = {start} and {stop - 1}"


def _columns(result: Counterfactuals, i: int) -> list[Change]:
    """Find the changed columns of a table, with both values."""
    table, before, after = rows_of(result, i)
    row = result[i]
    size = part_changes(row)[0]
    parts = list(table.schema.parts)
    return [
        Change(change_phrase(table, parts[j], before, after), place=(j, 0), size=float(size[j]))
        for j in np.flatnonzero(row.changed_parts[0]).tolist()
    ]


def _features(result: Counterfactuals, x: Array, x_cf: Array, changed: Array) -> list[Change]:
    """Find the changed features, with both values."""
    size = relative_change(x, x_cf)
    found = []
    for j in np.flatnonzero(changed).tolist():
        before, after = different_texts(x[j], x_cf[j])
        words = f"{name_of(result, j)} {after} instead of {before}"
        found.append(
            Change(
                words,
                place=(j, 0),
                size=float(size[j]),
            )
        )
    return found


def _stretches(result: Counterfactuals, x: Array, x_cf: Array, changed: Array) -> list[Change]:
    """Find the changed stretches; those a few steps apart are joined."""
    channels, length = x.shape
    found = []
    for channel in range(channels):
        where = "" if channels == 1 else f" in {name_of(result, channel)}"
        for start, stop in joined_runs(changed[channel]):
            before = x[channel, start:stop]
            after = x_cf[channel, start:stop]
            words = f"{_movement(before, after)} {stretch_text(start, stop, length)}{where}"
            size = float(((after - before) ** 2).sum())
            found.append(
                Change(
                    words,
                    place=(start, channel),
                    size=size,
                )
            )
    return found


def joined_runs(mask: Array) -> list[tuple[int, int]]:
    """Return the stretches of True in a mask over time; those a few steps apart are joined.

    Parameters
    ----------
    mask : array of bool, shape (length,)
        Which time steps changed.

    Returns
    -------
    list of (int, int)
        First step of each stretch, and one past its last.
    """
    gap = max(1, len(mask) // 50)
    joined: list[tuple[int, int]] = []
    for start, stop in runs(mask):
        if joined and start - joined[-1][1] <= gap:
            first, _ = joined.pop()
            joined.append((first, stop))
        else:
            joined.append((start, stop))
    return joined


def _movement(before: Array, after: Array) -> str:
    """Say how a stretch moved."""
    if len(before) > 3 and after.std() < FLAT * before.std():
        return "stay flat"
    return MOVEMENTS[_direction(after - before)]


def _direction(delta: Array) -> int:
    """Return 1 where nearly all of the change goes up, −1 down, 0 both ways."""
    up = np.clip(delta, 0, None).sum() / np.abs(delta).sum()
    if up > ONE_WAY:
        return 1
    if up < 1 - ONE_WAY:
        return -1
    return 0


def place_text(vertical: int, horizontal: int) -> str:
    """Say which of the nine parts of an image is meant, counted from the upper left."""
    where = THIRDS[vertical][horizontal]
    return f"{'in' if where == 'center' else 'at'} the {where}"


def _parts(delta: Array, changed: Array) -> list[Change]:
    """Find the changes of an image in its nine parts."""
    if changed.all() and _direction(delta):
        look = LOOKS[_direction(delta)]
        return [
            Change(
                f"be {look} all over",
                place=(0, 0),
                size=1.0,
            )
        ]
    _, height, width = delta.shape
    row_third = thirds(height)
    column_third = thirds(width)
    found = []
    for vertical, horizontal in np.ndindex(3, 3):
        inside = np.outer(row_third == vertical, column_third == horizontal)
        if not changed[:, inside].any():
            continue
        part = delta[:, inside]
        words = f"be {LOOKS[_direction(part)]} {place_text(vertical, horizontal)}"
        size = float((part**2).sum())
        found.append(
            Change(
                words,
                place=(vertical, horizontal),
                size=size,
            )
        )
    return found


def thirds(size: int) -> Array:
    """Return for each pixel along an axis the third, 0 to 2, that holds its middle."""
    middle = 2 * np.arange(size) + 1
    return middle * 3 // (2 * size)
