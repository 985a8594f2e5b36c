"""Words: one counterfactual in plain sentences, the same in every picture and on the page."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine.result import Counterfactuals
from ..metrics.metric import as_array
from ..metrics.regions import count_regions
from ..models.classifier import Array

PLACES = {"series": "stretch", "image": "region"}
#: what stands between the parts of `detail`
BETWEEN = "   ·   "


def label_text(label: Any, limit: int = 30) -> str:
    """A label as one would write it in code, on one line of at most `limit` characters."""
    return shorten(repr(label.item() if isinstance(label, np.generic) else label), limit)


def shorten(text: str, limit: int) -> str:
    """The text on one line of at most `limit` characters."""
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    closing = text[-1] if text[0] == text[-1] and text[0] in "'\"" else ""
    return text[: limit - 1 - len(closing)] + "…" + closing


def one_line(name: object, limit: int) -> str:
    """A name on one line of at most `limit` characters, without those that no file can hold or no eye see."""
    return shorten("".join(sign if sign.isprintable() else " " for sign in str(name)), limit)


def name_of(result: Counterfactuals, j: int, limit: int = 40) -> str:
    """What feature or channel j is called."""
    number = f"{'feature' if result.modality == 'row' else 'channel'} {j}"
    return number if result.names is None else one_line(result.names[j], limit) or number


def probability_text(p: float, digits: int = 2) -> str:
    """Two decimals, or as many as told; never 1.00 or 0.00 for what is not certain."""
    if np.isnan(p):
        return "unknown"
    least = 10.0**-digits
    if 0 < p < least / 2:
        return f"<{least:g}"
    return f">{1 - least:g}" if 1 - least / 2 <= p < 1 else f"{p:.{digits}f}"


def digits_apart(proba: Array) -> int:
    """How many decimals tell the likeliest class from the next: two, or up to four near the boundary."""
    first, second = np.sort(np.nan_to_num(proba))[-1:-3:-1]
    return next((digits for digits in (2, 3) if f"{first:.{digits}f}" != f"{second:.{digits}f}"), 4)


def percent(fraction: float) -> str:
    """A share in percent, with as many digits as it takes to see it; 100 % is all of it."""
    if 0.99 < fraction < 1:
        return f"{np.floor(1000 * fraction) / 10:.1f} %"
    return f"{100 * fraction:.1g} %" if 0 < fraction < 0.01 else f"{100 * fraction:.0f} %"


def headline(result: Counterfactuals, i: int, limit: int = 30) -> str:
    """The class and its probability, before → after; labels of at most `limit` characters."""
    label, cf_label, target = (
        label_text(values[i], limit) for values in (result.labels, result.cf_labels, result.target)
    )
    columns = result.classes.tolist()
    before = probability_text(result.proba[i, columns.index(result.labels[i].item())])
    after = probability_text(result.cf_proba[i, columns.index(result.cf_labels[i].item())])
    if result.status[i] == "already_target":
        return f"{row_name(result, i)}: already {label} ({before})"
    if np.isnan(result.cf_proba[i]).any():
        return f"{row_name(result, i)}: {label} ({before}) → no answer, wanted {target}"
    still = "still " if result.cf_labels[i] == result.labels[i] else ""
    wanted = "" if result.valid[i] else f", wanted {target}"
    return f"{row_name(result, i)}: {label} ({before}) → {still}{cf_label} ({after}){wanted}"


def row_name(result: Counterfactuals, i: int) -> str:
    """The row of the input, and which of its counterfactuals where it has several."""
    siblings = np.flatnonzero(result.source == result.source[i])
    which = f" ({siblings.tolist().index(i) + 1} of {len(siblings)})" if len(siblings) > 1 else ""
    return f"row {result.source[i]}{which}"


def detail(result: Counterfactuals, i: int) -> str:
    """How much changed, what that did to the target's probability, and who did it."""
    before, after = (probability_text(p) for p in result[i].target_proba[0])
    target = f"P({label_text(result.target[i])}): {before} → {after}"
    method = shorten(str(result.provenance.get("method", "")), 40)
    return BETWEEN.join(filter(None, [change_text(result, i), target, method]))


def change_text(result: Counterfactuals, i: int) -> str:
    """How much changed, and in how many places."""
    row = result[i]
    places = int(count_regions(as_array(row.changed), result.modality)[0])
    if not places:
        return "nothing changed"
    if result.modality == "row":
        return f"{places} of {row.X.shape[1]} features changed"
    share = percent(row.changed_fraction[0])
    return f"{share} of the values changed, in {counted(places, PLACES[result.modality])}"


def counted(number: int, noun: str) -> str:
    """1 class, 2 classes, 3 regions."""
    ending = "es" if noun.endswith(("ch", "s")) else "s"
    return f"{number} {noun}{'' if number == 1 else ending}"


def note(result: Counterfactuals, i: int) -> str:
    """What went wrong, or what else there is to know; empty when all is well."""
    status, message = str(result.status[i]), str(result.message[i])
    if result.valid[i]:
        return message if status in ("valid", "already_target") else f"{status}: {message}"
    reason = message.removeprefix("not reached").lstrip(" ;:,")
    return f"not reached ({status})" + (f": {reason}" if reason else "")
