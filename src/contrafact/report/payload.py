"""Payload: what the page's script draws from, as plain values small enough to travel inside the page."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import pandas as pd

from ..engine.constraints import Constraints, spread
from ..engine.result import Counterfactuals
from ..metrics.metric import as_array
from ..models.classifier import Array
from .constraint_table import audit
from .plots import pair
from .sections import meanings
from .sentences import sentence
from .words import label_text, name_of, note, shorten

#: once the drawings fill this many characters, further instances are listed without one
MOST_CHARACTERS = 6_000_000
#: keys of `info` that say how much each value mattered; the first that is there is drawn
SALIENCY = ("saliency", "importance")


def payload(
    results: Mapping[str, Counterfactuals],
    scores: Mapping[str, pd.DataFrame],
    reference: Array | None,
    constraints: Constraints | None,
) -> dict[str, Any]:
    """Instances, each once, with every method's counterfactuals of it.

    Parameters
    ----------
    results : by method, of the same instances.
    scores : by method, the metrics of each row.
    reference : rows that guides are taken from, flat.
    constraints : limits to check and to draw.
    """
    first = next(iter(results.values()))
    measured = {name: _lines(frame) for name, frame in scores.items()}
    shape = pair(first, 0)[0].shape if len(first) else ()
    kept = {
        name: {} if constraints is None else audit(r, constraints) for name, r in results.items()
    }
    known = None if reference is None else reference.reshape(-1, *shape)
    steps = _steps(results)
    instances: list[dict[str, Any]] = []
    guides: dict[str, Any] = {}
    spent = 0
    for source in dict.fromkeys(int(s) for result in results.values() for s in result.source):
        drawn = spent < MOST_CHARACTERS
        rows = {
            name: np.flatnonzero(result.source == source).tolist()
            for name, result in results.items()
        }
        one, i = next((results[name], found[0]) for name, found in rows.items() if found)
        answers = [
            [
                _answer(results[name], i)
                | {"scores": measured[name][i]}
                | {"broken": [words for words, mask in kept[name].items() if not mask[i]]}
                | (_drawing(results[name], i, steps) if drawn else {})
                for i in found
            ]
            for name, found in rows.items()
        ]
        entry = {
            "source": source,
            "x": _packed(pair(one, i)[0], one.modality, steps) if drawn else None,
            "answers": answers,
        }
        instances.append(entry)
        followed = {answer.get("guide", -1) for found in answers for answer in found}
        new = {
            str(index): _packed(known[index], first.modality, steps)
            for index in sorted(followed)
            if known is not None and 0 <= index < len(known) and str(index) not in guides
        }
        guides |= new
        spent += len(json.dumps(entry)) + len(json.dumps(new))
    meaning = meanings()
    return {
        "modality": first.modality,
        "shape": shape,
        "names": [name_of(first, j) for j in range(shape[0] if shape else 0)],
        "classes": [label_text(label, 60) for label in first.classes.tolist()],
        "methods": list(results),
        "instances": instances,
        "guides": guides,
        "limits": _limits(shape, constraints),
        "meaning": {name: meaning[name] for frame in scores.values() for name in _metrics(frame)},
    }


def _steps(results: Mapping[str, Counterfactuals]) -> Any:
    """The kind of number that values travel as: two bytes, or one where two would leave much undrawn."""
    values = sum(as_array(result.changed).sum() for result in results.values())
    values += as_array(next(iter(results.values())).X).size
    return np.uint16 if 4 * values < MOST_CHARACTERS else np.uint8


def _answer(result: Counterfactuals, i: int) -> dict[str, Any]:
    return {
        "before": {"label": _column(result, result.labels[i]), "proba": _numbers(result.proba[i])},
        "target": _column(result, result.target[i]),
        "label": _column(result, result.cf_labels[i]),
        "valid": bool(result.valid[i]),
        "status": str(result.status[i]),
        "proba": _numbers(result.cf_proba[i]),
        "changed": round(float(result[i].changed_fraction[0]), 6),
        "sentence": sentence(result, i),
        "note": shorten(note(result, i), 1000),
    }


def _drawing(result: Counterfactuals, i: int, steps: Any) -> dict[str, Any]:
    """What changed: where, and to what; the rest is drawn as the instance has it."""
    x, x_cf = pair(result, i)
    mask = x != x_cf
    drawing = {
        "mask": _text(np.packbits(mask, bitorder="little")),
        "x": _packed(x_cf, result.modality, steps, mask),
        "guide": _guide_index(result, i),
    }
    saliency = _saliency(result, i, x.shape)
    if saliency is not None:
        drawing["saliency"] = _packed(saliency, result.modality, np.uint8)
    return drawing


def _lines(scores: pd.DataFrame) -> list[dict[str, float | None]]:
    """Scores as plain numbers, a line per row."""
    metrics = _metrics(scores)
    lines = [_numbers(line) for line in scores[metrics].to_numpy(float)]
    return [dict(zip(metrics, line, strict=True)) for line in lines]


def _metrics(scores: pd.DataFrame) -> list[str]:
    return [str(name) for name in scores if name not in ("source", "status")]


def _packed(values: Array, modality: str, dtype: Any, mask: Array | None = None) -> Any:
    """Rows as numbers; series and images as whole steps between the least and the largest of each channel.

    Of series and images only the values that `mask` marks are there, in order.
    """
    if modality == "row":
        return values.tolist()
    flat = values.reshape(len(values), -1)
    low, high = flat.min(1), flat.max(1)
    steps = np.iinfo(dtype).max
    span = np.where(high > low, high - low, 1)
    whole = np.rint((flat - low[:, None]) / span[:, None] * steps).astype(dtype)
    whole = whole if mask is None else whole[mask.reshape(flat.shape)]
    return {
        "low": low.tolist(),
        "high": high.tolist(),
        "steps": int(steps),
        "data": _text(whole.astype(whole.dtype.newbyteorder("<"))),
    }


def _text(values: Array) -> str:
    return b64encode(values.tobytes()).decode("ascii")


def _numbers(values: Array) -> list[float | None]:
    """Seven digits each; what JSON has no number for is null."""
    return [
        float(f"{v:.7g}") if np.isfinite(v) else None for v in np.asarray(values, float).tolist()
    ]


def _column(result: Counterfactuals, label: Any) -> int:
    return int(result.classes.tolist().index(label.item()))


def _guide_index(result: Counterfactuals, i: int) -> int:
    """The reference row that was followed; −1 for none."""
    index = result.info.get("guide_index")
    return -1 if index is None or not np.isfinite(index[i]) else int(index[i])


def _saliency(result: Counterfactuals, i: int, shape: tuple[int, ...]) -> Array | None:
    for key in SALIENCY:
        values = result.info.get(key)
        if values is None or not np.isfinite(values[i]).all():
            continue
        # Channels may share their weights.
        if len(shape) > 1 and np.size(values[i]) in (prod(shape), prod(shape[1:])):
            return np.broadcast_to(np.abs(values[i]).astype(float).reshape(-1, *shape[1:]), shape)
    return None


def _limits(shape: tuple[int, ...], constraints: Constraints | None) -> dict[str, Any]:
    """Bounds over a series and frozen values over any instance, for drawing."""
    if constraints is None or not shape:
        return {}
    drawn: dict[str, Any] = {}
    for name in ("lower", "upper"):
        if len(shape) == 2 and getattr(constraints, name) is not None:
            drawn[name] = _numbers(spread(getattr(constraints, name), shape, name).reshape(-1))
    if constraints.frozen is not None:
        frozen = spread(constraints.frozen, shape, "frozen", bool)
        drawn["frozen"] = _text(np.packbits(frozen, bitorder="little"))
    return drawn
