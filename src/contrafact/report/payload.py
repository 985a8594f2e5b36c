"""What the page's script puts into place and draws: finished strings and packed arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pandas as pd

from ..engine.constraints import Constraints, broadcast_over_instance
from ..engine.result import Counterfactuals, as_numpy
from ..metrics import Reference
from ..models.classifier import Array
from .captions import changed_share, headline, kind_of
from .constraint_table import kept_constraints
from .grammar import counted, shorten
from .packing import json_numbers, pack_bits, pack_values
from .page_metrics import PageMetric, metric_definitions, metric_label, shown_metrics
from .pairs import changed_mask, pair, relative_change
from .panels import relevant_classes
from .sentences import sentence
from .table_sheets import sheet
from .words import (
    class_probability,
    column_of,
    different_texts,
    instance_name,
    label_text,
    name_of,
    note,
    number_text,
    percent_text,
)

#: once the drawings fill this many characters, further instances are listed without one
MOST_CHARACTERS = 6_000_000
#: keys of `info` that say how much each value mattered; the first that is there is drawn
SALIENCY = ("saliency", "importance")


def payload(
    results: Mapping[str, Counterfactuals],
    scores: Mapping[str, pd.DataFrame],
    reference: Reference | None,
    constraints: Constraints | None,
) -> dict[str, Any]:
    """Collect the instances, each once, with every method's counterfactuals of it.

    Parameters
    ----------
    results : mapping of str to Counterfactuals
        By method, of the same instances.
    scores : mapping of str to DataFrame
        By method, the metrics of each row.
    reference : Reference, optional
        Rows that guides are taken from and that joins are compared with.
    constraints : Constraints, optional
        Constraints to check and to draw.

    Returns
    -------
    dict
        Of strings, lists and numbers that JSON can hold.
    """
    first = next(iter(results.values()))
    shape = pair(first, 0)[0].shape if len(first) else ()
    sources = dict.fromkeys(int(s) for result in results.values() for s in result.source)
    metrics = [m for m in shown_metrics(next(iter(scores.values()))) if m.for_instances]
    methods = [
        _Method(
            result=result,
            scores=_score_texts(scores[name], metrics),
            kept={} if constraints is None else kept_constraints(result, constraints),
            reference=reference,
            constraints=constraints,
            metrics=[metric_label(metric, kind_of(first)) for metric in metrics],
        )
        for name, result in results.items()
    ]
    dtype = _step_type(results)
    is_table = first.table is not None
    known = None if reference is None or is_table else reference.rows.reshape(-1, *shape)
    instances: list[dict[str, Any]] = []
    guides: dict[str, Any] = {}
    spent = 0
    for source in sources:
        entry = _instance(methods, source, dtype if spent < MOST_CHARACTERS else None)
        new_guides = _guides(entry, known, dtype, guides)
        instances.append(entry)
        guides |= new_guides
        spent += len(json.dumps(entry)) + len(json.dumps(new_guides))
    parts = shape[0] if shape else 0
    definitions = metric_definitions()
    return {
        "modality": kind_of(first),
        "shape": shape,
        "names": [name_of(first, j) for j in range(parts)],
        "all_parts": f"all {parts} {'features' if first.modality == 'row' else 'channels'}",
        "classes": [label_text(label, 60) for label in first.classes.tolist()],
        "methods": list(results),
        "metrics": [
            {"label": metric_label(metric, kind_of(first)), "meaning": definitions[metric.name]}
            for metric in metrics
        ],
        "instances": instances,
        "guides": guides,
        "limits": {} if is_table else _drawn_limits(shape, constraints),
    }


@dataclass(frozen=True)
class _Method:
    """A method's result, the texts of its scores by row, and what its rows are checked against."""

    result: Counterfactuals
    scores: list[list[str]]
    kept: dict[str, Array]
    reference: Reference | None
    constraints: Constraints | None
    metrics: list[str]


def _score_texts(scores: pd.DataFrame, metrics: list[PageMetric]) -> list[list[str]]:
    """Write the scores of every row, in the order of `metrics`."""
    columns = [scores[metric.name].to_numpy(float) for metric in metrics]
    return [
        [metric.text(column[i]) for metric, column in zip(metrics, columns, strict=True)]
        for i in range(len(scores))
    ]


def _step_type(results: Mapping[str, Counterfactuals]) -> type[np.unsignedinteger[Any]]:
    """Choose two bytes for a value, or one where two would leave many instances undrawn."""
    values = as_numpy(next(iter(results.values())).X).size
    values += sum(int(as_numpy(result.changed).sum()) for result in results.values())
    return np.uint16 if 4 * values < MOST_CHARACTERS else np.uint8


def _instance(methods: list[_Method], source: int, dtype: Any) -> dict[str, Any]:
    """Collect one instance and its answers; without a drawing if `dtype` is None."""
    answers = []
    sheets = []
    x = None
    name = f"row {source}"
    for method in methods:
        rows = np.flatnonzero(method.result.source == source).tolist()
        answers.append([_answer(method, i, dtype) for i in rows])
        sheets.append(_sheet(method, rows) if rows and dtype is not None else None)
        if rows:
            name = instance_name(method.result, rows[0])
        if x is None and rows and dtype is not None:
            x = _packed_instance(method.result, rows[0], dtype)
    return {"source": source, "name": name, "x": x, "answers": answers, "sheets": sheets}


def _sheet(method: _Method, rows: list[int]) -> dict[str, Any] | None:
    """Collect the options of a row of a table; None for other data."""
    if method.result.table is None:
        return None
    texts = zip(*(method.scores[i] for i in rows), strict=True)
    figures = [(name, list(each)) for name, each in zip(method.metrics, texts, strict=True)]
    return sheet(method.result, rows, method.constraints, figures)


def _packed_instance(result: Counterfactuals, i: int, dtype: Any) -> Any:
    """Pack an instance to be drawn; a row is a table of texts."""
    x, _ = pair(result, i)
    if result.table is not None:
        return []  # the sheet has its values
    if result.modality == "row":
        return [number_text(value) for value in x.tolist()]
    return pack_values(x, dtype)


def _answer(method: _Method, i: int, dtype: Any) -> dict[str, Any]:
    """Collect what is shown of counterfactual i."""
    result = method.result
    changed = changed_share(result, i)
    broken = [words for words, kept in method.kept.items() if not kept[i]]
    answer = {
        "headline": headline(result, i, 60, probabilities=False),
        "outcome": _outcome(result, i),
        "valid": bool(result.valid[i]),
        "legend": "after" if result.valid[i] else "best attempt",
        "label": column_of(result, result.labels[i]),
        "target": column_of(result, result.target[i]),
        "changed": changed,
        "changed_text": _changed_text(result, i, changed),
        # No line ends within "t = 42".
        "sentence": sentence(result, i, method.reference).replace("t = ", "t\u00a0=\u00a0"),
        "note": shorten(note(result, i), 1000),
        "broken": [f"Constraint broken: {words}." for words in broken],
        "scores": method.scores[i],
        **_probabilities(result, i),
    }
    if dtype is not None and result.table is None:
        answer |= _drawing(result, i, dtype)
    return answer


def _changed_text(result: Counterfactuals, i: int, share: float) -> str:
    """Say how much of row i changed, for a narrow column."""
    if result.table is None:
        return percent_text(share)
    changed = result[i].changed_parts
    return f"{int(changed.sum())} of {changed.size}"


def _outcome(result: Counterfactuals, i: int) -> str:
    """Say in one or two words what came of row i."""
    if result.status[i] == "already_target":
        return "already"
    return "reached" if result.valid[i] else "not reached"


def _probabilities(result: Counterfactuals, i: int) -> dict[str, Any]:
    """Collect the bars of the classes that matter, and say how many are left out."""
    before = result.proba[i]
    after = result.cf_proba[i]
    shown = relevant_classes(result, i)
    bars = [
        {
            "class": column,
            "before": json_numbers(np.nan_to_num(before[[column]]))[0],
            "before_text": class_probability(before, column),
            "after": json_numbers(np.nan_to_num(after[[column]]))[0],
            "after_text": class_probability(after, column),
        }
        for column in shown
    ]
    hidden = len(result.classes) - len(shown)
    verb = "is" if hidden == 1 else "are"
    more = f"{counted(hidden, 'more class')} {verb} not shown." if hidden else ""
    return {"probabilities": bars, "more_classes": more}


def _drawing(result: Counterfactuals, i: int, dtype: Any) -> dict[str, Any]:
    """Collect what changed, and to what; the rest is drawn as the instance has it."""
    x, x_cf = pair(result, i)
    mask = changed_mask(result, i)
    if result.modality == "row":
        return {"features": _feature_changes(x, x_cf, mask)}
    drawing: dict[str, Any] = {
        "mask": pack_bits(mask),
        "x": pack_values(x_cf, dtype, mask),
        "guide": _guide_index(result, i),
    }
    if result.modality == "image":
        largest = number_text(float(np.abs(x_cf - x).max()))
        drawing["difference"] = f"difference (red: up, blue: down, at most {largest})"
    saliency = _saliency(result, i, x.shape)
    if saliency is not None:
        drawing["saliency"] = pack_values(saliency, np.uint8)
    return drawing


def _feature_changes(x: Array, x_cf: Array, mask: Array) -> list[dict[str, Any]]:
    """List the changed features of a row, the most changed first."""
    size = relative_change(x, x_cf)
    by_size = np.argsort(-size, kind="stable")
    lines = []
    for j in by_size.tolist():
        if not mask[j]:
            continue
        before, after = different_texts(x[j], x_cf[j])
        sign = "+" if x_cf[j] > x[j] else "−"
        lines.append(
            {
                "feature": j,
                "before": before,
                "after": after,
                "change": sign + number_text(abs(x_cf[j] - x[j])),
                "share": round(min(float(size[j]), 1.0), 4),
            }
        )
    return lines


def _guides(
    entry: Mapping[str, Any], known: Array | None, dtype: Any, packed: Mapping[str, Any]
) -> dict[str, Any]:
    """Pack the reference rows that an instance's counterfactuals followed, where not packed yet."""
    if known is None:
        return {}
    followed = {answer.get("guide", -1) for found in entry["answers"] for answer in found}
    return {
        str(index): pack_values(known[index], dtype)
        for index in sorted(followed)
        if 0 <= index < len(known) and str(index) not in packed
    }


def _guide_index(result: Counterfactuals, i: int) -> int:
    """Return the reference row that was followed; −1 for none."""
    index = result.info.get("guide_index")
    if index is None or not np.isfinite(index[i]):
        return -1
    return int(index[i])


def _saliency(result: Counterfactuals, i: int, shape: tuple[int, ...]) -> Array | None:
    """Return how much each value mattered, where the method says so."""
    for key in SALIENCY:
        if key not in result.info:
            continue
        values = np.asarray(result.info[key][i], dtype=float)
        # Channels may share their weights.
        fits = values.size in (prod(shape), prod(shape[1:]))
        if fits and np.isfinite(values).all():
            return np.broadcast_to(np.abs(values).reshape(-1, *shape[1:]), shape)
    return None


def _drawn_limits(shape: tuple[int, ...], constraints: Constraints | None) -> dict[str, Any]:
    """Collect bounds over a series and frozen values over any instance."""
    drawn: dict[str, Any] = {}
    if constraints is None or not shape:
        return drawn
    for name in ("lower", "upper"):
        bound = getattr(constraints, name)
        if len(shape) == 2 and bound is not None:
            drawn[name] = json_numbers(broadcast_over_instance(bound, shape, name).reshape(-1))
    if constraints.frozen is not None:
        drawn["frozen"] = pack_bits(
            broadcast_over_instance(constraints.frozen, shape, "frozen", bool)
        )
    return drawn
