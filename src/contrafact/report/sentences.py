"""Sentences: a counterfactual, and a whole result, told to someone who has never heard the word."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..engine.result import Counterfactuals
from ..metrics.metric import as_array
from ..metrics.regions import count_regions, runs
from ..models.classifier import Array
from .words import PLACES, counted, label_text, name_of, percent, probability_text

#: how many changes a sentence names before it only counts
MOST_NAMED = 3
#: after this share of the spread before, a stretch counts as flat
FLAT = 0.25
THIRDS = (
    ("upper left", "top", "upper right"),
    ("left", "center", "right"),
    ("lower left", "bottom", "lower right"),
)


@dataclass(frozen=True)
class Change:
    """One thing that changed: what would have to be, where it comes in reading order, and how large it is."""

    words: str
    place: tuple[int, int]
    size: float


def sentence(result: Counterfactuals, i: int) -> str:
    """Counterfactual i in one plain sentence."""
    label, target = label_text(result.labels[i]), label_text(result.target[i])
    noun = result.modality
    if result.status[i] == "already_target":
        return f"The model calls this {noun} {label} already; nothing was changed."
    if not result.valid[i]:
        best = probability_text(result[i].target_proba[0, 1])
        return f"No change that makes the model say {target} was found; the best has P({target}) = {best}."
    changes = _changes(result, i)
    if not changes:
        return f"The model says {target} of this {noun} as it is; nothing was changed."
    named = sorted(
        sorted(changes, key=lambda change: -change.size)[:MOST_NAMED],
        key=lambda change: change.place,
    )
    rest = len(changes) - len(named)
    unsaid = f" ({counted(rest, 'smaller change')} not named)" if rest else ""
    verb = "would need" if result.modality == "row" else "would have to"
    instead = "" if label == target else f" instead of {label}"
    return f"To be called {target}{instead}, this {noun} {verb} {listed([c.words for c in named])}{unsaid}."


def listed(words: list[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def outcome(result: Counterfactuals) -> list[str]:
    """What was asked and what came of it, over all rows."""
    if len(result) == 0:
        return ["Nothing was asked."]
    already = result.status == "already_target"
    reached, asked = result.valid & ~already, int((~already).sum())
    several = " alternatives" if len(np.unique(result.source)) < len(result) else ""
    sentences = [
        f"{int(reached.sum())} of {asked}{several} now get the class that was asked for."
    ] * (asked > 0)
    if already.any():
        were = "was left as it is" if already.sum() == 1 else "were left as they are"
        it = "it" if asked else "the class that was asked for"
        sentences.append(f"{int(already.sum())} had {it} already and {were}.")
    if result.changed_fraction[reached].any():
        typical = percent(float(np.median(result.changed_fraction[reached])))
        places = round(
            float(np.median(count_regions(as_array(result.changed), result.modality)[reached]))
        )
        where = (
            f", in {counted(places, PLACES[result.modality])}" if result.modality in PLACES else ""
        )
        sentences.append(
            f"Typical change: {typical} of the values{where} (median of those that got there)."
        )
        sentences += _gathering(result[reached])
    return sentences


def _gathering(result: Counterfactuals) -> list[str]:
    """Where the changes of many rows gather, if they do."""
    if len(result) < 2 or result.modality == "image":
        return []
    changed = as_array(result.changed).reshape(len(result), -1, result.X.shape[-1])
    often = changed.any(1).sum(0)
    if result.modality == "row":
        most = [j for j in np.argsort(-often, kind="stable")[:MOST_NAMED] if often[j]]
        words = [f"{name_of(result, j)} (in {often[j]} of {len(result)})" for j in most]
        return [f"Changed most often: {listed(words)}."]
    start, stop = _shortest_half(often)
    if stop - start > 0.4 * len(often):
        return []
    return [f"Half of all changes fall {_stretch(start, stop, len(often))}."]


def _shortest_half(often: Array) -> tuple[int, int]:
    """The shortest window that holds half of the counts."""
    total = np.concatenate([[0], np.cumsum(often)])
    half = total[-1] / 2
    stops = np.searchsorted(total, total[:-1] + half)
    widths = np.where(stops < len(total), stops - np.arange(len(often)), len(total))
    start = int(widths.argmin())
    return start, int(stops[start])


def _changes(result: Counterfactuals, i: int) -> list[Change]:
    x, x_cf = (as_array(values[i]).astype(np.float64) for values in (result.X, result.X_cf))
    if result.modality == "row":
        return _features(result, x, x_cf)
    if result.modality == "image":
        return _regions(x_cf - x)
    return _stretches(result, np.atleast_2d(x), np.atleast_2d(x_cf))


def _features(result: Counterfactuals, x: Array, x_cf: Array) -> list[Change]:
    changed = np.flatnonzero(x != x_cf)
    # Features are measured in units of their own, so what counts is the change beside the value.
    size = np.abs(x_cf - x) / np.fmax(np.fmax(np.abs(x), np.abs(x_cf)), np.finfo(float).tiny)
    return [
        Change(f"{name_of(result, j)} {_values(x_cf[j], x[j])}", (int(j), 0), float(size[j]))
        for j in changed
    ]


def _values(after: float, before: float) -> str:
    """Both values, with as many digits as it takes to tell them apart."""
    texts = ((_number(after, digits), _number(before, digits)) for digits in range(4, 18))
    now, then = next(pair for pair in texts if pair[0] != pair[1])
    return f"{now} instead of {then}"


def _number(value: float, digits: int) -> str:
    """A value of so many digits; whole thousands keep theirs, as people write them."""
    if 1 <= abs(value) < 1e9:
        digits = max(digits, len(str(int(abs(value)))))
    return f"{value:.{digits}g}"


def _stretches(result: Counterfactuals, x: Array, x_cf: Array) -> list[Change]:
    """Changed stretches; those a few steps apart are told as one."""
    found, length = [], x.shape[1]
    for channel in np.flatnonzero((x != x_cf).any(1)):
        for start, stop in _joined(runs(x[channel] != x_cf[channel]), gap=max(1, length // 50)):
            before, after = x[channel, start:stop], x_cf[channel, start:stop]
            of = "" if len(x) == 1 else f" in {name_of(result, channel)}"
            words = f"{_movement(before, after)} {_stretch(start, stop, length)}{of}"
            found.append(Change(words, (start, int(channel)), float(((after - before) ** 2).sum())))
    return found


def _joined(stretches: list[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    joined = stretches[:1]
    for start, stop in stretches[1:]:
        if start - joined[-1][1] <= gap:
            joined[-1] = (joined[-1][0], stop)
        else:
            joined.append((start, stop))
    return joined


def _movement(before: Array, after: Array) -> str:
    if len(before) > 3 and after.std() < FLAT * before.std():
        return "stay flat"
    return {1: "be higher", -1: "be lower", 0: "run differently"}[_direction(after - before)]


def _direction(delta: Array) -> int:
    """1 where nearly all of the change goes up, −1 down, 0 both ways."""
    up = np.clip(delta, 0, None).sum() / np.abs(delta).sum()
    return 1 if up > 0.9 else -1 if up < 0.1 else 0


def _stretch(start: int, stop: int, length: int) -> str:
    if stop - start == length:
        return "from beginning to end"
    return f"at t = {start}" if stop - start == 1 else f"between t = {start} and {stop - 1}"


def _regions(delta: Array) -> list[Change]:
    """Changes of an image by its nine parts."""
    # A pixel belongs to the third that holds its middle.
    rows, columns = ((2 * np.arange(size) + 1) * 3 // (2 * size) for size in delta.shape[1:])
    looks = {1: "brighter", -1: "darker", 0: "different"}
    if (delta != 0).all() and _direction(delta):
        return [Change(f"be {looks[_direction(delta)]} all over", (0, 0), 1.0)]
    found = []
    for v, h in np.ndindex(3, 3):
        part = delta[:, rows == v][:, :, columns == h]
        if not np.any(part):
            continue
        where = THIRDS[v][h]
        at = "in" if where == "center" else "at"
        words = f"be {looks[_direction(part)]} {at} the {where}"
        found.append(Change(words, (v, h), float((part**2).sum())))
    return found
