"""Sections: the parts of the page that are there before any script runs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from ..engine.constraints import Constraints
from ..engine.result import Counterfactuals
from ..metrics import Reference, aggregate, evaluate, list_metrics
from ..models.classifier import Array
from .constraint_table import audit
from .sentences import outcome
from .words import counted, note, percent, row_name, shorten

#: what is worth a column; those that need reference data come when it is given
METRICS = (
    "valid",
    "target_confidence",
    "sparsity",
    "segments",
    "l2",
    "linf",
    "lof",
    "knn_distance",
    "calls",
    "seconds",
)
MISSING = "–"
MOST_REASONS = 20
MOST_PROVENANCE = 20_000


def scores(result: Counterfactuals, known: Reference | None) -> pd.DataFrame:
    """The metrics of the page, for every row."""
    needs = list_metrics().set_index("name")["needs"]
    return evaluate(
        result, [name for name in METRICS if known is not None or not needs[name]], known
    )


def scope(results: Mapping[str, Counterfactuals]) -> str:
    """How many of what, and by which methods."""
    result = next(iter(results.values()))
    number, (*channels, length) = len(np.unique(result.source)), result.X.shape[1:]
    if result.modality == "row":
        what = f"{counted(number, 'row')} of {counted(length, 'feature')}"
    elif result.modality == "image":
        what = f"{counted(number, 'image')} of {channels[-1]} × {length} pixels"
    else:
        what = f"{number} series of {counted(length, 'time step')}"
    several = f" in {channels[0]} channels" if channels and channels[0] > 1 else ""
    return f"<p>{what}{several} · {escape(', '.join(results))}</p>"


def summary(results: Mapping[str, Counterfactuals], without_picture: int) -> str:
    """What was asked and what came of it, method by method; failures with their reasons."""
    compared = len(results) > 1 and all(len(result) for result in results.values())
    lines = [f"<p>{escape(_winner(results))}</p>"] if compared else []
    for name, result in results.items():
        method = f"<strong>{escape(name)}.</strong> " if len(results) > 1 else ""
        lines.append(f"<p>{method}{escape(' '.join(outcome(result)))}</p>")
        reasons: dict[str, list[str]] = defaultdict(list)
        for i in np.flatnonzero(~result.valid).tolist():
            reasons[note(result, i)].append(row_name(result, i))
        if reasons:
            # One method's failures are the news of the page; those of several are a click away.
            opened = " open" if len(results) == 1 else ""
            said = f"{int((~result.valid).sum())} did not get there"
            lines.append(f'<details{opened}><summary class="bad">{said}</summary><ul>')
            frequent = sorted(reasons.items(), key=lambda item: -len(item[1]))
            for reason, rows in frequent[:MOST_REASONS]:
                rows_and_reason = f"{shorten(', '.join(rows), 200)}: {shorten(reason, 1000)}"
                lines.append(f"<li>{escape(rows_and_reason)}</li>")
            rest = sum(len(rows) for _, rows in frequent[MOST_REASONS:])
            lines += [f"<li>and {rest} more, see the table</li>"] * (rest > 0) + ["</ul></details>"]
    if without_picture:
        has = "instance is" if without_picture == 1 else "instances are"
        lines.append(
            f"<p>{without_picture} {has} listed without a picture, to keep this file small.</p>"
        )
    return "\n".join(lines)


def _winner(results: Mapping[str, Counterfactuals]) -> str:
    """Who reaches most rows, and of those that do, who changes least."""
    reached = {name: float(result.valid.mean()) for name, result in results.items()}
    most = max(reached.values())
    best = [name for name, share in reached.items() if share == most]
    changed = {name: float(np.mean(results[name].changed_fraction)) for name in best}
    least = min(best, key=lambda name: changed[name])
    if len(best) == 1:
        return (
            f"{least} reaches the class asked for most often ({percent(most)}), changing "
            f"{percent(changed[least])} of the values on average."
        )
    tied = len(best) == len(results)
    everyone = "Both methods" if len(best) == 2 else f"All {len(best)} methods"
    who = everyone if tied else f"{len(best)} of {len(results)} methods"
    return (
        f"{who} reach the class asked for {'equally' if tied else 'most'} often ({percent(most)}); of these "
        f"{least} changes the fewest values ({percent(changed[least])} on average)."
    )


def figures(tables: Mapping[str, pd.DataFrame]) -> str:
    """A line per method, a column per metric: means over all requests; the best in bold."""
    averages = {
        name: aggregate(frame, n_resamples=1) for name, frame in tables.items() if len(frame)
    }
    if not averages:
        return "<p>Nothing was asked.</p>"
    means = {name: _by_metric(table["mean"].map(_figure)) for name, table in averages.items()}
    direction = _by_metric(next(iter(averages.values()))["direction"])
    meaning = meanings()
    head = "".join(
        f'<th scope="col" class="number" title="{escape(meaning[m])}">{m} {"↓" if way == "min" else "↑"}</th>'
        for m, way in direction.items()
    )
    # Compared as they are shown: of two figures that read the same, neither is better.
    known = {m: [line[m] for line in means.values() if line[m] != MISSING] for m in direction}
    best = {
        m: (min if direction[m] == "min" else max)(known[m], key=float, default="")
        for m in direction
    }
    lines = [
        _wide("Metrics by method"),
        f'<thead><tr><th scope="col">method</th>{head}</tr></thead><tbody>',
    ]
    for name, line in means.items():
        cells = "".join(
            f'<td class="number{" best" if len(means) > 1 and line[m] == best[m] else ""}">{line[m]}</td>'
            for m in direction
        )
        lines.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    lines.append("</tbody></table></div>")
    lines.append(
        '<p class="small">Means over all requests, failures included; ↓ less is better, ↑ more is.</p>'
    )
    lines.append("<details><summary>What the columns mean</summary>")
    lines.append(
        "<p>x is the instance, x' what it was changed to, d its number of values, c the class asked for.</p>"
    )
    terms = "".join(f"<dt>{m}</dt><dd>{escape(meaning[m])}</dd>" for m in direction)
    return "\n".join([*lines, f"<dl>{terms}</dl></details>"])


def _figure(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else MISSING


def _wide(name: str) -> str:
    """The start of a table that scrolls by itself, with the keyboard too."""
    return f'<div class="wide" role="region" aria-label="{name}" tabindex="0"><table>'


def meanings() -> dict[str, str]:
    """What each metric says, in the signs of the page."""
    meaning = list_metrics().set_index("name")["meaning"]
    return {str(name): str(words).replace("NaN", MISSING) for name, words in meaning.items()}


def _by_metric(column: pd.Series[Any]) -> dict[str, Any]:
    return {str(metric): value for metric, value in column.items()}


def limits(results: Mapping[str, Counterfactuals], constraints: Constraints | None) -> str:
    """Every limit, and how many keep it; or that there were some, which can't be checked here."""
    if constraints is None:
        options = [result.provenance.get("options", {}) for result in results.values()]
        kinds = sorted({str(kind) for each in options for kind in each.get("constraints", [])})
        return (
            f"<p>In force: {escape(', '.join(kinds))}. Not checked again here.</p>" if kinds else ""
        )
    kept = {name: audit(result, constraints) for name, result in results.items()}
    if not next(iter(kept.values())):
        return ""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in results)
    lines = []
    for words in next(iter(kept.values())):
        cells = "".join(_tally(each[words]) for each in kept.values())
        lines.append(f'<tr><th scope="row">{escape(words)}</th>{cells}</tr>')
    return (
        "<p>Who keeps them, checked once more on the arrays of this page.</p>"
        f'{_wide("Limits by method")}<thead><tr><th scope="col">limit</th>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _tally(kept: Array) -> str:
    mark = "" if kept.all() else " bad"
    return f'<td class="tally{mark}">{int(kept.sum())} of {len(kept)}</td>'


def made(results: Mapping[str, Counterfactuals], command: str | None) -> str:
    """The line that makes it again, and the provenance of every method."""
    lines = [] if command is None else [f"<p>Again:</p><pre>{escape(shorten(command, 4000))}</pre>"]
    for name, result in results.items():
        text = json.dumps(result.provenance, indent=2, ensure_ascii=False, default=str)
        if len(text) > MOST_PROVENANCE:
            rest = counted(len(text) - MOST_PROVENANCE, "more character")
            text = f"{text[:MOST_PROVENANCE]}\n… {rest}"
        lines.append(
            f"<details><summary>{escape(name)}</summary><pre>{escape(text)}</pre></details>"
        )
    return "\n".join(lines)
