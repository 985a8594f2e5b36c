"""Captions of one counterfactual: the class before and after, how much changed, who did it."""

from __future__ import annotations

import numpy as np

from ..engine.result import Counterfactuals, as_numpy
from ..metrics.regions import count_regions
from .grammar import counted, shorten
from .words import class_probability, column_of, label_text, percent_text, row_name

#: what a separate place of change is called; a place of a row is a feature
PLACES = {"series": "stretch", "image": "region", "row": "feature", "table": "column"}
#: stands between the parts of `detail`
SEPARATOR = "   ·   "


def kind_of(result: Counterfactuals) -> str:
    """Return the kind of data of a result: its modality, or "table" for rows of a table."""
    return "table" if result.table is not None else result.modality


def headline(
    result: Counterfactuals, i: int, limit: int = 30, *, probabilities: bool = True
) -> str:
    """Say which class counterfactual i had before and has after.

    Parameters
    ----------
    result : Counterfactuals
        The result.
    i : int
        Row of the result.
    limit : int, default=30
        The largest number of characters of a label.
    probabilities : bool, default=True
        Whether the model's probability stands behind each class.

    Returns
    -------
    str
        As in "row 12: 'gun' (0.97) → 'point' (0.62)".
    """
    label = label_text(result.labels[i], limit)
    cf_label = label_text(result.cf_labels[i], limit)
    before = after = ""
    if probabilities:
        column = column_of(result, result.labels[i])
        cf_column = column_of(result, result.cf_labels[i])
        before = f" ({class_probability(result.proba[i], column)})"
        after = f" ({class_probability(result.cf_proba[i], cf_column)})"
    name = row_name(result, i)
    if result.status[i] == "already_target":
        return f"{name}: already {label}{before}"
    wanted = f", wanted {label_text(result.target[i], limit)}"
    if np.isnan(result.cf_proba[i]).any():
        return f"{name}: {label}{before} → no answer{wanted}"
    still = "still " if result.cf_labels[i] == result.labels[i] else ""
    missed = "" if result.valid[i] else wanted
    return f"{name}: {label}{before} → {still}{cf_label}{after}{missed}"


def detail(result: Counterfactuals, i: int) -> str:
    """Say how much of row i changed, P(target) before and after, and the method."""
    column = column_of(result, result.target[i])
    before = class_probability(result.proba[i], column)
    after = class_probability(result.cf_proba[i], column)
    target = f"P({label_text(result.target[i])}): {before} → {after}"
    method = shorten(str(result.provenance.get("method", "")), 40)
    parts = [change_text(result, i), target, method]
    return SEPARATOR.join(filter(None, parts))


def change_text(result: Counterfactuals, i: int) -> str:
    """Say how much of row i changed: "12 % of the values changed, in 3 stretches".

    Of an image, what can be seen: "12 % of the pixels changed visibly, in 3 regions".
    """
    row = result[i]
    if row.table is not None:
        count = int(row.changed_parts.sum())
        n_columns = counted(len(row.table.schema.parts), "column")
        return f"{count} of {n_columns} changed" if count else "nothing changed"
    places = int(count_regions(as_numpy(row.changed), result.modality)[0])
    if places == 0:
        return "nothing changed"
    if result.modality == "row":
        return f"{places} of {row.X.shape[1]} features changed"
    share = percent_text(changed_share(result, i))
    if result.modality == "image":
        places = int(count_regions(row.visible_pixels[:, None], "image")[0])
        if places == 0:
            return "no pixel changed visibly"
        return f"{share} of the pixels changed visibly, in {counted(places, PLACES['image'])}"
    return f"{share} of the values changed, in {counted(places, PLACES[result.modality])}"


def changed_share(result: Counterfactuals, i: int) -> float:
    """Return the share of the values of row i that changed; of an image, of its pixels, visibly."""
    row = result[i]
    if result.modality == "image":
        return float(row.visible_pixels.mean())
    return float(row.changed_fraction[0])
