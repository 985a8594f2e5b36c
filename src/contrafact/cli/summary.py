"""Summarize the outcome of `contrafact explain`: sentences for a reader, a dictionary for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..report.sentences import outcome as outcome_sentences
from ..report.sentences import sentence
from ..report.words import note, row_name
from .console import print_table, print_text

if TYPE_CHECKING:
    import pandas as pd

    from ..engine import Counterfactuals
    from .explain_request import ExplainOutcome, ExplainRequest

#: How many changes, and how many failures, are printed one by one.
MOST_EXAMPLES = 3
MOST_FAILURES = 5


def summarize(
    request: ExplainRequest, outcome: ExplainOutcome, notes: Sequence[str]
) -> dict[str, Any]:
    """Return everything about an outcome, for `print_json`.

    Parameters
    ----------
    request : ExplainRequest
        What was typed.
    outcome : ExplainOutcome
        What was found.
    notes : sequence of str
        Notes printed on the way.

    Returns
    -------
    dict
        The command, the data, and for each method its settings, costs and rows.
    """
    methods = [
        {"method": name, **summarize_result(result)} for name, result in outcome.results.items()
    ]
    return {
        "command": request.command,
        "modality": outcome.inputs.layout.modality,
        "classes": outcome.inputs.classifier.classes,
        "notes": notes,
        "methods": methods,
        "files": {"report": request.report, "save": outcome.saved},
    }


def summarize_result(result: Counterfactuals) -> dict[str, Any]:
    """Return counts, costs, settings and rows of one result."""
    statuses, counts = np.unique(result.status, return_counts=True)
    already = result.status == "already_target"
    moved = result.status == "valid"
    typical_change = None
    if moved.any():
        typical_change = float(np.median(result.changed_fraction[moved]))
    return {
        "asked": _count_sources(result, ~already),
        "reached": _count_sources(result, result.valid & ~already),
        "already": _count_sources(result, already),
        "statuses": dict(zip(statuses.tolist(), counts.tolist(), strict=True)),
        "changed_fraction": typical_change,
        "seconds": float(result.seconds.sum()),
        "calls": int(result.calls.sum()),
        "parameters": result.provenance["parameters"],
        "options": result.provenance["options"],
        "seed": result.provenance["seed"],
        "rows": _summarize_rows(result),
    }


def _count_sources(result: Counterfactuals, mask: Any) -> int:
    """Count the instances that have a counterfactual in the mask."""
    return len(np.unique(result.source[mask]))


def _summarize_rows(result: Counterfactuals) -> list[dict[Any, Any]]:
    """Return the table of a result with a sentence for each row, and for rows their changes."""
    rows: list[dict[Any, Any]] = result.to_frame().to_dict(orient="records")
    changes = _changes(result) if result.modality == "row" else None
    for i, row in enumerate(rows):
        row["sentence"] = sentence(result, i)
        if changes is not None:
            row["changes"] = changes[i]
    return rows


def _changes(result: Counterfactuals) -> list[dict[str, list[Any]]]:
    """Return what changed in each row, before and after, by the name of the column.

    Of a table as `Counterfactuals.changes` lists it: a one-hot group is one entry.
    """
    found: list[dict[str, list[Any]]] = [{} for _ in range(len(result))]
    if result.table is not None:
        rows, _ = np.nonzero(result.changed_parts)
        lines = result.changes(only_valid=False)[["column", "before", "after"]]
        for row, (name, *values) in zip(rows.tolist(), lines.to_numpy().tolist(), strict=True):
            found[row][name] = values
        return found
    names = range(result.X.shape[1]) if result.names is None else result.names
    for row, j in zip(*np.nonzero(result.changed), strict=True):
        found[row][str(names[j])] = [result.X[row, j], result.X_cf[row, j]]
    return found


def print_outcome(request: ExplainRequest, outcome: ExplainOutcome) -> None:
    """Print the results, the files written and the command that repeats the request.

    Parameters
    ----------
    request : ExplainRequest
        What was typed.
    outcome : ExplainOutcome
        What was found.
    """
    results = outcome.results
    if len(results) == 1:
        (result,) = results.values()
        _print_result(result)
    else:
        title = "Means over all rows, failures included"
        print_table(_comparison(results), title)
        for name, result in results.items():
            _print_result(result, name)
    if request.report is not None:
        print_text(f"Report: {request.report}")
    if outcome.saved:
        print_text(f"Arrays: {', '.join(map(str, outcome.saved))}")
    print_text(f"Again: {request.command}")


def _print_result(result: Counterfactuals, name: str | None = None) -> None:
    """Print one result: how many were reached, some changes, and failures with their reasons.

    With a name, as one of several methods, the changes are left out.
    """
    prefix = "" if name is None else f"{name}: "
    print_text(prefix + " ".join(outcome_sentences(result)))
    if name is None:
        reached = np.flatnonzero(result.status == "valid").tolist()
        for i in reached[:MOST_EXAMPLES]:
            print_text(f"  {row_name(result, i)}: {sentence(result, i)}")
    failed = np.flatnonzero(~result.valid).tolist()
    for i in failed[:MOST_FAILURES]:
        print_text(f"  {row_name(result, i)}: {note(result, i)}")
    more = len(failed) - MOST_FAILURES
    if more > 0:
        print_text(f"  … and {more} more that were not reached; --json or --report lists all.")


def _comparison(results: dict[str, Counterfactuals]) -> pd.DataFrame:
    """Return the table that compares methods."""
    import pandas as pd

    from ..metrics import evaluate

    rows = []
    for name, result in results.items():
        scores = evaluate(result, ["valid", "sparsity", "l2", "calls", "seconds"])
        means = scores.mean(numeric_only=True)
        rows.append(
            {
                "method": name,
                "reached": f"{means['valid']:.0%}",
                "changed": f"{means['sparsity']:.1%}",
                "distance (l2)": f"{means['l2']:.3g}",
                "model rows each": f"{means['calls']:.0f}",
                "seconds each": f"{means['seconds']:.3g}",
            }
        )
    return pd.DataFrame(rows)
