"""The sections of the page that need no script: summary, means, constraints, provenance."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from html import escape

import numpy as np
import pandas as pd

from ..engine.constraints import Constraints
from ..engine.result import Counterfactuals
from ..models.classifier import Array
from .captions import kind_of
from .constraint_table import kept_constraints
from .grammar import counted, shorten
from .page_metrics import (
    MethodMeans,
    PageMetric,
    method_means,
    metric_definitions,
    metric_label,
    shown_metrics,
)
from .sentences import outcome
from .words import note, percent_text, row_name

MOST_REASONS = 20
MOST_PROVENANCE = 20_000
ARROWS = {"min": "↓", "max": "↑"}


def scope(results: Mapping[str, Counterfactuals]) -> str:
    """Say how many instances of what kind, and by which methods.

    Parameters
    ----------
    results : mapping of str to Counterfactuals
        By method, of the same instances.

    Returns
    -------
    str
        HTML.
    """
    result = next(iter(results.values()))
    number = len(np.unique(result.source))
    *channels, length = result.X.shape[1:]
    if result.table is not None:
        n_columns = counted(len(result.table.schema.parts), "column")
        what = f"{counted(number, 'row')} of a table of {n_columns}"
    elif result.modality == "row":
        what = f"{counted(number, 'row')} of {counted(length, 'feature')}"
    elif result.modality == "image":
        what = f"{counted(number, 'image')} of {channels[-1]} × {length} pixels"
    else:
        what = f"{number} series of {counted(length, 'time step')}"
    several = f" in {channels[0]} channels" if channels and channels[0] > 1 else ""
    return f"<p>{what}{several} · {escape(', '.join(results))}</p>"


def remarks(results: Mapping[str, Counterfactuals]) -> str:
    """Say what users should know about the model, such as a doubtful order of its classes.

    Parameters
    ----------
    results : mapping of str to Counterfactuals
        By method.

    Returns
    -------
    str
        HTML; empty where there is nothing to say.
    """
    texts = [text for result in results.values() for text in result.provenance.get("remarks", [])]
    lines = [
        f'<p class="bad">About the model: {escape(shorten(str(text), 1000))}</p>'
        for text in dict.fromkeys(texts)
    ]
    return "\n".join(lines)


def means_by_method(
    results: Mapping[str, Counterfactuals], scores: Mapping[str, pd.DataFrame]
) -> dict[str, MethodMeans]:
    """Average the metrics of every method that was asked anything.

    Parameters
    ----------
    results : mapping of str to Counterfactuals
        By method.
    scores : mapping of str to DataFrame
        By method, the metrics of each row.

    Returns
    -------
    dict of str to MethodMeans
        By method.
    """
    return {
        name: method_means(result, scores[name]) for name, result in results.items() if len(result)
    }


def summary(
    results: Mapping[str, Counterfactuals],
    means: Mapping[str, MethodMeans],
    without_picture: int,
) -> str:
    """Say what was asked and what came of it, method by method; failures with their reasons.

    Parameters
    ----------
    results : mapping of str to Counterfactuals
        By method.
    means : mapping of str to MethodMeans
        By method.
    without_picture : int
        How many instances are listed without a drawing.

    Returns
    -------
    str
        HTML.
    """
    lines = []
    if len(means) > 1:
        lines.append(f"<p>{escape(_best_method(means))}</p>")
    for name, result in results.items():
        method = f"<strong>{escape(name)}.</strong> " if len(results) > 1 else ""
        lines.append(f"<p>{method}{escape(' '.join(outcome(result)))}</p>")
        # The failures of a single method are shown at once; those of several are a click away.
        lines.extend(_failures(result, is_open=len(results) == 1))
    if without_picture:
        verb = "is" if without_picture == 1 else "are"
        instances = counted(without_picture, "instance")
        lines.append(
            f"<p>{instances} {verb} listed without a picture, to keep this file small.</p>"
        )
    return "\n".join(lines)


def _failures(result: Counterfactuals, *, is_open: bool) -> list[str]:
    """List the reasons of failure, the most frequent first, with the rows they concern."""
    rows_by_reason: dict[str, list[str]] = defaultdict(list)
    for i in np.flatnonzero(~result.valid).tolist():
        rows_by_reason[note(result, i)].append(row_name(result, i))
    if not rows_by_reason:
        return []
    opened = " open" if is_open else ""
    failed = int((~result.valid).sum())
    lines = [
        f"<details{opened}>",
        f'<summary class="bad">{failed} did not reach the class asked for</summary><ul>',
    ]
    frequent = sorted(rows_by_reason.items(), key=lambda item: -len(item[1]))
    for reason, rows in frequent[:MOST_REASONS]:
        text = f"{shorten(', '.join(rows), 200)}: {shorten(reason, 1000)}"
        lines.append(f"<li>{escape(text)}</li>")
    rest = sum(len(rows) for _, rows in frequent[MOST_REASONS:])
    if rest:
        lines.append(f"<li>and {rest} more, see the table</li>")
    lines.append("</ul></details>")
    return lines


def _best_method(means: Mapping[str, MethodMeans]) -> str:
    """Say which method reaches most, and of those that do, which changes least."""
    reached = {name: each.mean["valid"] for name, each in means.items()}
    changed = {name: each.mean["sparsity"] for name, each in means.items()}
    most = max(reached.values())
    best = [name for name in means if reached[name] == most]
    least = min(best, key=changed.__getitem__)
    over = f"means {means[least].over}"
    share = percent_text(changed[least])
    if len(best) == 1:
        return (
            f"{least} reaches the class asked for most often ({percent_text(most)}), "
            f"changing {share} of the values ({over})."
        )
    if len(best) < len(means):
        who = f"{len(best)} of {len(means)} methods"
        often = "most"
    else:
        who = "Both methods" if len(best) == 2 else f"All {len(best)} methods"
        often = "equally"
    return (
        f"{who} reach the class asked for {often} often ({percent_text(most)}); "
        f"of these {least} changes the fewest values ({share}; {over})."
    )


def means_table(
    results: Mapping[str, Counterfactuals],
    scores: Mapping[str, pd.DataFrame],
    means: Mapping[str, MethodMeans],
) -> str:
    """Make a table of means: a line per method, a column per metric; the best in bold.

    Parameters
    ----------
    results : mapping of str to Counterfactuals
        By method.
    scores : mapping of str to DataFrame
        By method, the metrics of each row.
    means : mapping of str to MethodMeans
        By method.

    Returns
    -------
    str
        HTML.
    """
    if not means:
        return "<p>Nothing was asked.</p>"
    metrics = shown_metrics(next(iter(scores.values())))
    kind = kind_of(next(iter(results.values())))
    directions = next(iter(means.values())).direction
    arrows = {name: ARROWS[way] for name, way in directions.items()}
    labels = {metric.name: metric_label(metric, kind) for metric in metrics}
    definitions = metric_definitions()
    head = "".join(
        f'<th scope="col" class="number" title="{escape(definitions[name])}">'
        f"{label} {arrows[name]}</th>"
        for name, label in labels.items()
    )
    best = {metric.name: _best_text(metric, means) for metric in metrics}
    lines = []
    for method, each in means.items():
        cells = []
        for metric in metrics:
            text = metric.text(each.mean[metric.name])
            mark = " best" if len(means) > 1 and text == best[metric.name] else ""
            cells.append(f'<td class="number{mark}">{text}</td>')
        lines.append(f'<tr><th scope="row">{escape(method)}</th>{"".join(cells)}</tr>')
    terms = "".join(
        f"<dt>{label}</dt><dd>{escape(definitions[name])}</dd>" for name, label in labels.items()
    )
    return "\n".join(
        [
            _scrolling_table("Metrics by method"),
            f'<thead><tr><th scope="col">method</th>{head}</tr></thead><tbody>',
            *lines,
            "</tbody></table></div>",
            f'<p class="small">{escape(_over(means))}</p>',
            "<details><summary>What the columns mean</summary>",
            "<p>x is the instance, x' what it was changed to, d its number of values, "
            "c the class asked for.</p>",
            f"<dl>{terms}</dl></details>",
        ]
    )


def _best_text(metric: PageMetric, means: Mapping[str, MethodMeans]) -> str:
    """Return the best mean as it is shown: of two that read the same, neither is better."""
    known = [each.mean[metric.name] for each in means.values()]
    known = [value for value in known if np.isfinite(value)]
    if not known:
        return ""
    direction = next(iter(means.values())).direction[metric.name]
    return metric.text(min(known) if direction == "min" else max(known))


def _over(means: Mapping[str, MethodMeans]) -> str:
    """Say over which instances the means are, once where all methods agree."""
    texts = {name: each.over for name, each in means.items()}
    rest = "failures included; ↓ less is better, ↑ more is better."
    if len(set(texts.values())) == 1:
        return f"Means {next(iter(texts.values()))}; {rest}"
    by_method = "; ".join(f"{name}: {over}" for name, over in texts.items())
    return f"Means, {rest} {by_method}."


def _scrolling_table(name: str) -> str:
    """Open a table that scrolls by itself, with the keyboard too."""
    return f'<div class="wide" role="region" aria-label="{name}" tabindex="0"><table>'


def constraints_table(
    results: Mapping[str, Counterfactuals], constraints: Constraints | None
) -> str:
    """Make a table of the constraints and how many rows keep each.

    Parameters
    ----------
    results : mapping of str to Counterfactuals
        By method.
    constraints : Constraints or None
        Those that were asked for; None where they are not known here.

    Returns
    -------
    str
        HTML; empty where there are none.
    """
    if constraints is None:
        return _unchecked(results)
    kept = {name: kept_constraints(result, constraints) for name, result in results.items()}
    all_words = list(next(iter(kept.values())))
    if not all_words:
        return ""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in results)
    lines = []
    for words in all_words:
        cells = "".join(_tally(each[words]) for each in kept.values())
        lines.append(f'<tr><th scope="row">{escape(words)}</th>{cells}</tr>')
    return (
        "<p>How many counterfactuals keep each, checked again on the arrays of this page.</p>"
        f"{_scrolling_table('Constraints by method')}"
        f'<thead><tr><th scope="col">constraint</th>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _unchecked(results: Mapping[str, Counterfactuals]) -> str:
    """Name the kinds of constraint that the results were made with."""
    kinds: set[str] = set()
    for result in results.values():
        options = result.provenance.get("options", {})
        kinds.update(str(kind) for kind in options.get("constraints", []))
    if not kinds:
        return ""
    return f"<p>In force: {escape(', '.join(sorted(kinds)))}. Not checked again here.</p>"


def _tally(kept: Array) -> str:
    """Make a cell that counts the rows that keep a constraint."""
    mark = "" if kept.all() else " bad"
    return f'<td class="tally{mark}">{int(kept.sum())} of {len(kept)}</td>'


def provenance(results: Mapping[str, Counterfactuals], command: str | None) -> str:
    """Show the command that makes the page again, and the provenance of every method.

    Parameters
    ----------
    results : mapping of str to Counterfactuals
        By method.
    command : str or None
        The command line, where there is one.

    Returns
    -------
    str
        HTML.
    """
    lines = []
    if command is not None:
        lines.append(f"<p>Command:</p><pre>{escape(shorten(command, 4000))}</pre>")
    for name, result in results.items():
        text = json.dumps(
            result.provenance,
            indent=2,
            ensure_ascii=False,
            default=str,
        )
        if len(text) > MOST_PROVENANCE:
            rest = counted(len(text) - MOST_PROVENANCE, "more character")
            text = f"{text[:MOST_PROVENANCE]}\n… {rest}"
        lines.append(
            f"<details><summary>{escape(name)}</summary><pre>{escape(text)}</pre></details>"
        )
    return "\n".join(lines)
