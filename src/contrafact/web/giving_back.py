"""Why a change is not smaller: what the model says when one part of it is given back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import ndimage

from ..engine import Counterfactuals
from ..engine.result import as_numpy
from ..metrics.regions import runs
from ..models.classifier import Array
from ..report.change_words import joined_runs, place_text, stretch_text, thirds
from ..report.grammar import one_line
from ..report.pairs import changed_mask, pair
from ..report.table_words import change_phrase, rows_of
from ..report.words import (
    class_probability,
    column_of,
    label_text,
    name_of,
    probability_phrase,
)

#: parts that are asked about at most, the largest first
MOST_PARTS = 24


@dataclass(frozen=True)
class Part:
    """One part of a change.

    Parameters
    ----------
    words : str
        Where it is, to follow "the change".
    mask : array of bool, shaped as an instance travels
        What is given back.
    place : dict
        Where the page draws it.
    """

    words: str
    mask: Array
    place: dict[str, Any]


def stretches(result: Counterfactuals, i: int) -> list[dict[str, Any]]:
    """Return the changed stretches of a series: channels, first step, one past the last."""
    changed = changed_mask(result, i)
    return [
        {
            "channels": np.flatnonzero(changed[:, start:stop].any(1)).tolist(),
            "start": start,
            "stop": stop,
        }
        for start, stop in joined_runs(np.asarray(changed.any(0)))
    ]


def parts_of(result: Counterfactuals, i: int) -> list[Part]:
    """Divide the change of counterfactual i into parts that can be given back on their own.

    Parameters
    ----------
    result : Counterfactuals
        The result.
    i : int
        Row of the result.

    Returns
    -------
    list of Part
        Stretches of a series with all channels that change there, regions of an image, or columns.
    """
    if result.table is not None:
        found = _columns_of_table(result, i)
    elif result.modality == "series":
        found = _stretches(result, i)
    elif result.modality == "image":
        found = _regions(result, i)
    else:
        changed = changed_mask(result, i)
        found = [
            Part(f"of {name_of(result, j)}", np.arange(len(changed)) == j, {"columns": [j]})
            for j in np.flatnonzero(changed).tolist()
        ]
    return sorted(found, key=lambda part: -int(part.mask.sum()))[:MOST_PARTS]


def trials(result: Counterfactuals, i: int, parts: Sequence[Part]) -> Array:
    """Return counterfactual i with each part given back, (parts, *shape)."""
    if result.table is not None:
        x, x_cf = as_numpy(result.X)[i], as_numpy(result.X_cf)[i]
    else:
        x, x_cf = pair(result, i)
    return np.stack([np.where(part.mask, x, x_cf) for part in parts])


def tell(
    result: Counterfactuals, i: int, parts: Sequence[Part], proba: Array, labels: Array
) -> list[dict[str, Any]]:
    """Say what the model decides without each part.

    Parameters
    ----------
    result : Counterfactuals
        The result.
    i : int
        Row of the result.
    parts : sequence of Part
        As `parts_of` gives them.
    proba : array of shape (parts, classes)
        The model's probabilities of the `trials`.
    labels : array of int, shape (parts,)
        The classes it decides for.

    Returns
    -------
    list of dict
        What the page shows of each part, in reading order.
    """
    target = column_of(result, result.target[i])
    told = []
    for part, p, label in zip(parts, proba, labels.tolist(), strict=True):
        stays = label == target
        told.append(
            {
                "words": part.words,
                **part.place,
                "probability": float(p[target]),
                "label": label,
                "stays": stays,
                "sentence": _sentence(result, i, part, p, label, stays=stays),
            }
        )
    return sorted(told, key=lambda entry: (entry.get("start", 0), entry.get("columns", [0])))


def _sentence(
    result: Counterfactuals, i: int, part: Part, p: Array, label: int, *, stays: bool
) -> str:
    """Say what the model decides when one part is given back."""
    column = column_of(result, result.target[i])
    before = class_probability(result.cf_proba[i], column)
    said = label_text(result.classes[label])
    without = f"Without the change {part.words} the model"
    chance = f"{probability_phrase(result.target[i], p, column)} instead of {before}"
    if not stays:
        return f"{without} says {said}, with {chance}: this part is needed."
    if p[column] < result.cf_proba[i][column]:
        return f"{without} still says {said}, with {chance}: smaller, but less certain."
    return f"{without} still says {said}, with {chance}: this part alone is not needed."


def _stretches(result: Counterfactuals, i: int) -> list[Part]:
    """Return the stretches of a series; where it is but one, its quarters."""
    changed = changed_mask(result, i)
    n_channels, length = changed.shape
    places = stretches(result, i)
    if len(places) == 1:
        places = _quarters(changed, places[0]["start"], places[0]["stop"])
    found = []
    for place in places:
        start, stop = place["start"], place["stop"]
        mask = np.zeros_like(changed)
        mask[:, start:stop] = changed[:, start:stop]
        words = stretch_text(start, stop, length)
        if n_channels > 1 and len(place["channels"]) == 1:
            words += f" in {name_of(result, place['channels'][0])}"
        found.append(Part(words, mask, place))
    return found


def _quarters(changed: Array, start: int, stop: int) -> list[dict[str, Any]]:
    """Divide a stretch into four; without all of it nothing would be left to look at."""
    edges = np.unique(np.linspace(start, stop, 5).round().astype(int)).tolist()
    return [
        {"channels": channels, "start": first, "stop": last}
        for first, last in pairwise(edges)
        if (channels := np.flatnonzero(changed[:, first:last].any(1)).tolist())
    ]


def _regions(result: Counterfactuals, i: int) -> list[Part]:
    """Return the connected regions of an image; where it is but one, its ninths."""
    changed = changed_mask(result, i)
    pixels = changed.any(0)
    numbers, count = ndimage.label(pixels)
    if count == 1:
        third_of_line, third_of_column = thirds(pixels.shape[0]), thirds(pixels.shape[1])
        numbers = np.where(pixels, 1 + 3 * third_of_line[:, None] + third_of_column, 0)
    found = []
    for number in np.unique(numbers[numbers > 0]).tolist():
        region = numbers == number
        lines, columns = (np.flatnonzero(region.any(axis)) for axis in (1, 0))
        middle = (int(lines.mean()), int(columns.mean()))
        where = place_text(
            int(thirds(pixels.shape[0])[middle[0]]), int(thirds(pixels.shape[1])[middle[1]])
        )
        box = [int(lines[0]), int(lines[-1]) + 1, int(columns[0]), int(columns[-1]) + 1]
        found.append(Part(where, changed & region, {"box": box, "lines": _spans(region)}))
    return found


def _spans(region: Array) -> list[list[int]]:
    """Return the pixels of a region as [line, first column, one past the last]."""
    return [
        [line, start, stop]
        for line in np.flatnonzero(region.any(1)).tolist()
        for start, stop in runs(region[line])
    ]


def _columns_of_table(result: Counterfactuals, i: int) -> list[Part]:
    table, before, after = rows_of(result, i)
    found = []
    parts = list(table.schema.parts.items())
    for number in np.flatnonzero(result[i].changed_parts[0]).tolist():
        name, members = parts[number]
        mask = np.isin(np.arange(len(before)), members)
        place = {"columns": list(members), "change": change_phrase(table, name, before, after)}
        found.append(Part(f"of {one_line(name, 40)}", mask, place))
    return found
