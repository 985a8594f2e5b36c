"""Plain sentences about one counterfactual and about a whole result."""

from __future__ import annotations

import numpy as np

from ..engine.result import Counterfactuals, as_numpy
from ..metrics import Reference
from ..metrics.realism import edited_series, real_differences
from ..metrics.regions import count_regions
from ..models.classifier import Array
from .captions import PLACES
from .change_words import changes_of, stretch_text
from .grammar import counted, listed, one_line
from .words import (
    label_text,
    name_of,
    number_text,
    over_instances,
    percent_text,
    target_probability,
)

#: how many changes a sentence names before it only counts the rest
MOST_NAMED = 3
#: the same for tables, where a change that is not named may be taken for one that is not needed
MOST_COLUMNS = 8
#: a window longer than this fraction of the series says nothing about where changes gather
MOST_OF_SERIES = 0.4


def sentence(result: Counterfactuals, i: int, known: Reference | None = None) -> str:
    """Describe counterfactual i in one plain sentence, and what speaks for it in another.

    Parameters
    ----------
    result : Counterfactuals
        The result. Its `info` may have "seam" and "kink", ratios as the metrics of these names give
        them, and "committee_votes" and "committee_size": how many retrained models say the target
        class, and how many there are.
    i : int
        Row of the result.
    known : Reference, optional
        Real series to compare the joins of a change with; without it, what `info` has is said.

    Returns
    -------
    str
        What would have to change, or that nothing was changed, or that no change was found. Of a
        change also, where it is known, whether it joins as real series run and whether retrained
        models agree.
    """
    label = label_text(result.labels[i])
    target = label_text(result.target[i])
    noun = result.modality
    if result.status[i] == "already_target":
        return f"The model calls this {noun} {label} already; nothing was changed."
    if not result.valid[i]:
        best = target_probability(result, i)
        return f"No change that makes the model say {target} was found; the best has {best}."
    changes = changes_of(result, i)
    if not changes:
        return f"The model says {target} of this {noun} as it is; nothing was changed."
    is_table = result.table is not None
    most = MOST_COLUMNS if is_table else MOST_NAMED
    largest = sorted(changes, key=lambda change: -change.size)[:most]
    named = sorted(largest, key=lambda change: change.place)
    phrases = [change.words for change in named]
    words = "; ".join(phrases) if is_table else listed(phrases)
    rest = len(changes) - len(named)
    unnamed = f" ({counted(rest, 'smaller change')} not named)" if rest else ""
    verb = "would need" if noun == "row" else "would have to"
    instead = "" if label == target else f" instead of {label}"
    change = f"To be called {target}{instead}, this {noun} {verb} {words}{unnamed}."
    return " ".join([change, *evidence(result, i, known)])


def outcome(result: Counterfactuals) -> list[str]:
    """Describe what was asked and what came of it, over all rows.

    Parameters
    ----------
    result : Counterfactuals
        The result.

    Returns
    -------
    list of str
        Sentences: how many reached their class, how many had it before, how much changed, where.
    """
    if len(result) == 0:
        return ["Nothing was asked."]
    already = result.status == "already_target"
    reached = result.valid & ~already
    sentences = []
    asked = int((~already).sum())
    if asked:
        several = len(np.unique(result.source)) < len(result)
        alternatives = " options" if result.table is not None else " alternatives"
        noun = alternatives if several else ""
        sentences.append(
            f"{int(reached.sum())} of {asked}{noun} now get the class that was asked for."
        )
    if already.any():
        sentences.append(_already_sentence(int(already.sum()), asked))
    if result.changed_fraction[reached].any():
        sentences.append(_typical_change(result[reached]))
        sentences.extend(_where_changes_gather(result[reached]))
    return sentences


def evidence(result: Counterfactuals, i: int, known: Reference | None) -> list[str]:
    """Say whether the change joins as real series run, and how many retrained models agree.

    Parameters
    ----------
    result : Counterfactuals
        The result.
    i : int
        Row of the result.
    known : Reference, optional
        Real series to compare joins with.

    Returns
    -------
    list of str
        Sentences; none where nothing is known.
    """
    told = []
    if result.modality == "series" and known is not None:
        limits = real_differences(known, result)
        edited = edited_series(result[i])
        seams = limits.seam_ratios(*edited)[0].numpy()
        kinks = limits.kink_ratios(*edited)[0].numpy()
        told.append(_join_sentence(result, seams, kinks))
    elif "seam" in result.info and "kink" in result.info:
        seams, kinks = (np.asarray(result.info[name][i]) for name in ("seam", "kink"))
        told.append(_join_sentence(result, seams, kinks))
    told.append(votes_sentence(result, i))
    if "robustness_radius" in result.info:
        radius = float(result.info["robustness_radius"][i])
        told.append(_radius_sentence(result, i, radius) if np.isfinite(radius) else "")
    return [words for words in told if words]


def votes_sentence(result: Counterfactuals, i: int) -> str:
    """Say how many members of the committee agree; empty where there is none."""
    if "committee_votes" not in result.info or "committee_size" not in result.info:
        return ""
    votes = int(result.info["committee_votes"][i])
    size = int(result.info["committee_size"][i])
    verb = "agrees" if size == 1 else "agree"
    return f"{votes} of {counted(size, _member(result))} {verb}." if size else ""


def _radius_sentence(result: Counterfactuals, i: int, radius: float) -> str:
    """Say how far the instance is from every other decision, which a prototype model proves."""
    units = ", in units of the schema" if result.table is not None else ""
    least = number_text(0.9995 * radius)  # four digits, rounded down
    said = f"No change shorter than {least} (Euclidean{units}) makes the model decide otherwise"
    if result.table is not None or radius <= 0:
        return f"{said}."
    change = as_numpy(result.X_cf[i]).astype(float) - as_numpy(result.X[i])
    size = float(np.linalg.norm(change))
    ratio = _times(size / radius)
    return f"{said}, which is proved; this one has length {number_text(size)}, {ratio}."


def _times(ratio: float) -> str:
    """Say how many times a bound a length is."""
    return (
        f"{number_text(round(ratio, 2))} times that" if ratio >= 1.005 else "within 0.5 % of that"
    )


def _member(result: Counterfactuals) -> str:
    """Say what the members of the committee are: trained anew on the data, or given by the user."""
    described = str(result.provenance.get("options", {}).get("committee") or "")
    retrained = not described or "bootstraps" in described
    return "retrained model" if retrained else "further model"


def _join_sentence(result: Counterfactuals, seams: Array, kinks: Array) -> str:
    """Say how a change joins; ratios (channels, places) tell where, a single one does not."""
    for name, ratios in (("jump", seams), ("kink", kinks)):
        if ratios.max(initial=0) > 1:
            where = _place_of_largest(result, ratios)
            return f"The change leaves a {name}{where} that real series do not show."
    if max(seams.max(initial=0), kinks.max(initial=0)) == 0:
        return ""  # no edge, so nothing was joined
    return "The change joins without a jump or kink that real series do not show."


def _place_of_largest(result: Counterfactuals, ratios: Array) -> str:
    """Say where the largest ratio is, if that is known: the step after a jump or within a kink."""
    if ratios.ndim == 0:
        return ""
    channel, before = np.unravel_index(ratios.argmax(), ratios.shape)
    place = f" at t = {before + 1}"
    return f"{place} of {name_of(result, int(channel))}" if len(ratios) > 1 else place


def _already_sentence(already: int, asked: int) -> str:
    """Say how many had the target class before."""
    target = "it" if asked else "the class that was asked for"
    left = "was left as it is" if already == 1 else "were left as they are"
    return f"{already} had {target} already and {left}."


def _typical_change(reached: Counterfactuals) -> str:
    """Say the median change of rows that reached their class by a change."""
    share = f"{percent_text(float(np.median(reached.changed_fraction)))} of the values"
    alternatives = "alternatives"
    if reached.table is not None:
        count = reached.changed_parts.sum(1)
        n_columns = counted(len(reached.table.schema.parts), "column")
        share = f"{number_text(float(np.median(count)))} of {n_columns}"
        alternatives = "options"
    if reached.modality == "image":
        pixels = reached.visible_pixels
        share = f"{percent_text(float(np.median(pixels.mean(axis=(1, 2)))))} of the pixels visibly"
    where = ""
    if reached.modality != "row":
        is_image = reached.modality == "image"
        changed = pixels[:, None] if is_image else as_numpy(reached.changed)
        count = count_regions(changed, reached.modality)
        places = round(float(np.median(count)))
        where = f", in {counted(places, PLACES[reached.modality])}"
    instances = len(np.unique(reached.source))
    over = over_instances(instances, already=0)
    several = f"of {len(reached)} {alternatives} " if instances < len(reached) else ""
    return f"Typical change: {share}{where} (median {several}{over})."


def _where_changes_gather(result: Counterfactuals) -> list[str]:
    """Say where the changes of many rows gather, if they do."""
    if len(result) < 2 or result.modality == "image":
        return []
    if result.table is not None:
        names = [one_line(part, 40) for part in result.table.schema.parts]
        return [_most_often(names, result.changed_parts.sum(0), len(result))]
    last_axis = result.X.shape[-1]
    changed = as_numpy(result.changed).reshape(len(result), -1, last_axis)
    often = changed.any(1).sum(0)
    if result.modality == "row":
        return [_most_often([name_of(result, j) for j in range(last_axis)], often, len(result))]
    start, stop = _shortest_half(often)
    if stop - start > MOST_OF_SERIES * last_axis:
        return []
    return [f"Half of all changes fall {stretch_text(start, stop, last_axis)}."]


def _most_often(names: list[str], often: Array, n: int) -> str:
    """Name the features that changed most often."""
    most = np.argsort(-often, kind="stable")[:MOST_NAMED].tolist()
    words = [f"{names[j]} (in {often[j]} of {n})" for j in most if often[j]]
    return f"Changed most often: {listed(words)}."


def _shortest_half(often: Array) -> tuple[int, int]:
    """Return start and stop of the shortest window that holds half of the counts."""
    total = np.concatenate([[0], np.cumsum(often)])
    half = total[-1] / 2
    stops = np.searchsorted(total, total[:-1] + half)
    exists = stops < len(total)
    widths = np.where(exists, stops - np.arange(len(often)), len(total))
    start = int(widths.argmin())
    return start, int(stops[start])
