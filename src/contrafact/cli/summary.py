"""What came of it: told in sentences, or as JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .console import say, show

if TYPE_CHECKING:
    from ..engine import Counterfactuals
    from ..explainers.support.explainer import Explainer
    from .explain_request import Question

#: How many changes, and how many failures, are told one by one.
MOST_EXAMPLES = 3
MOST_REASONS = 5


def explained(
    explainer: Explainer, question: Question, target: Any, **options: Any
) -> Counterfactuals:
    """The result with the rows and names of the file, not those of the request."""
    result = explainer.explain(question.X, target, progress=True, **options)
    names = None if question.layout.names is None else np.array(question.layout.names)
    return replace(result, source=question.rows[result.source], names=names)


def describe(result: Counterfactuals) -> dict[str, Any]:
    statuses, counts = np.unique(result.status, return_counts=True)
    moved = result.status == "valid"
    already = result.status == "already_target"
    return {
        "asked": len(np.unique(result.source[~already])),
        "reached": len(np.unique(result.source[result.valid & ~already])),
        "already": len(np.unique(result.source[already])),
        "statuses": dict(zip(statuses.tolist(), counts.tolist(), strict=True)),
        "changed_fraction": float(np.median(result.changed_fraction[moved]))
        if moved.any()
        else None,
        "seconds": float(result.seconds.sum()),
        "calls": int(result.calls.sum()),
        "parameters": result.provenance["parameters"],
        "options": result.provenance["options"],
        "seed": result.provenance["seed"],
        "rows": [
            {**row, **_what_changed(result, i)}
            for i, row in enumerate(result.to_frame().to_dict(orient="records"))
        ],
    }


def _what_changed(result: Counterfactuals, i: int) -> dict[str, Any]:
    """The sentence of the report, and of a row every value before and after."""
    from ..report.sentences import sentence

    told: dict[str, Any] = {"sentence": sentence(result, i)}
    if result.modality == "row":
        names = range(result.X.shape[1]) if result.names is None else result.names
        told["changes"] = {
            str(names[j]): [result.X[i][j], result.X_cf[i][j]]
            for j in np.flatnonzero(result.changed[i]).tolist()
        }
    return told


def tell(results: dict[str, Counterfactuals]) -> None:
    """What came out, in the words of the report."""
    if len(results) > 1:
        _compare(results)
    for name, result in results.items():
        _tell_one(result, "" if len(results) == 1 else f"{name}: ", examples=len(results) == 1)


def _tell_one(result: Counterfactuals, who: str, examples: bool) -> None:
    from ..report.sentences import outcome, sentence
    from ..report.words import note, row_name

    say(who + " ".join(outcome(result)))
    reached = np.flatnonzero(result.status == "valid").tolist()
    for i in reached[:MOST_EXAMPLES] if examples else []:
        say(f"  {row_name(result, i)}: {sentence(result, i)}")
    failed = np.flatnonzero(~result.valid).tolist()
    for i in failed[:MOST_REASONS]:
        say(f"  {row_name(result, i)}: {note(result, i)}")
    if len(failed) > MOST_REASONS:
        say(
            f"  … and {len(failed) - MOST_REASONS} more that were not reached; --json or --report lists all."
        )


def _compare(results: dict[str, Counterfactuals]) -> None:
    import pandas as pd

    from ..metrics.evaluation import evaluate

    lines = []
    for name, result in results.items():
        scores = evaluate(result, ["valid", "sparsity", "l2", "calls", "seconds"]).mean(
            numeric_only=True
        )
        lines.append(
            {
                "method": name,
                "reached": f"{scores['valid']:.0%}",
                "changed": f"{scores['sparsity']:.1%}",
                "distance (l2)": f"{scores['l2']:.3g}",
                "model rows each": f"{scores['calls']:.0f}",
                "seconds each": f"{scores['seconds']:.3g}",
            }
        )
    show(pd.DataFrame(lines), "Means over all rows, failures included")
