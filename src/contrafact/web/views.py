"""What the page is told about instances, explanations and the whole workspace, ready for JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine import Counterfactuals
from ..engine.result import as_numpy
from ..explainers.support.prototype_model import is_prototype_model
from ..models.classifier import Array
from ..report.captions import change_text, changed_share
from ..report.grammar import shorten
from ..report.pairs import changed_mask, pair
from ..report.sentences import outcome, sentence, votes_sentence
from ..report.table_words import value_text
from ..report.words import label_text, note
from .column_views import column_views, value_ranges
from .explorer_messages import MAX_CALLS, MAX_K
from .giving_back import stretches
from .jobs import Job
from .methods import Methods
from .workspace import Workspace

#: neighbors that are shown of an instance
MOST_NEIGHBORS = 12
#: seconds without an answer of the model after which an explanation says so
SILENT_SECONDS = 5.0


def overview(workspace: Workspace, methods: Methods, words: dict[str, str]) -> dict[str, Any]:
    """Return what does not change while the page is open, and the verdicts of all instances."""
    known = workspace.known
    proba = known.proba.copy()
    rows = np.arange(len(workspace))
    top = np.nan_to_num(proba[rows, known.labels])
    proba[rows, known.labels] = -1
    second = np.where(known.labels < 0, -1, np.nan_to_num(proba, nan=-1).argmax(1))
    return {
        "kind": workspace.kind,
        "shape": list(workspace.shape),
        "names": workspace.names or default_names(workspace),
        "classes": [workspace.class_text(c) for c in range(len(workspace.classes))],
        **words,
        "instances": {
            "count": len(workspace),
            "complete": known.complete.is_set(),
            "label": known.labels.tolist(),
            "truth": None if workspace.truth is None else workspace.truth.tolist(),
            "p": np.where(known.labels < 0, 0, top).round(4).tolist(),
            "second": second.tolist(),
            "names": workspace.instance_names,
        },
        "methods": methods.listed(),
        "range": value_ranges(workspace),
        "has_prototypes": is_prototype_model(workspace.model),
        "max_k": MAX_K,
        "max_calls": MAX_CALLS,
        "columns": column_views(workspace),
    }


def default_names(workspace: Workspace) -> list[str]:
    """Return names of channels or columns that have none."""
    part = "feature" if workspace.modality == "row" else "channel"
    return [f"{part} {j}" for j in range(workspace.shape[0])]


def instance_view(
    workspace: Workspace, i: int, proba: Array, label: int, prototypes: Any
) -> dict[str, Any]:
    """Return one instance with its neighbors and prototypes."""
    row = workspace.row(i)
    names = workspace.instance_names
    return {
        "index": i,
        "name": f"row {i if names is None else names[i]}",
        "values": json_values(row[0]),
        "texts": value_texts(workspace, row[0]),
        "probabilities": proba.tolist(),
        "label": label,
        "truth": -1 if workspace.truth is None else int(workspace.truth[i]),
        "neighbors": neighbor_views(workspace, row, proba),
        "prototypes": prototypes,
    }


def neighbor_views(workspace: Workspace, row: Array, proba: Array) -> list[dict[str, Any]]:
    """Return the nearest reference instance of every class, likely classes first."""
    nearest = workspace.nearest(row)
    likely = sorted(nearest, key=lambda column: -proba[column])
    return [_neighbor(workspace, column, nearest[column]) for column in likely[:MOST_NEIGHBORS]]


def _neighbor(workspace: Workspace, column: int, number: int) -> dict[str, Any]:
    values = workspace.reference_row(number)[0]
    return {
        "index": number,
        "label": column,
        "values": json_values(values),
        "texts": value_texts(workspace, values),
        "words": f"nearest {label_text(workspace.classes[column])}",
    }


def preview_view(workspace: Workspace, row: Array, target: int) -> dict[str, Any] | None:
    """Return the real instance that a change leads toward; None where the class has none."""
    number = workspace.nearest(row).get(target)
    if number is None:
        return None
    name = label_text(workspace.classes[target])
    found = _neighbor(workspace, target, number)
    return {**found, "words": f"a real {workspace.modality} that the model calls {name}"}


def job_view(workspace: Workspace, job: Job) -> dict[str, Any]:
    """Return the state of a job and what it found."""
    result = job.result
    message = job.message
    silent = workspace.gate.busy_seconds
    if job.state == "running" and silent > SILENT_SECONDS:
        message = f"The model has not answered for {silent:.0f} s."
    return {
        "version": job.version,
        "state": job.state,
        "asked": job.asked,
        "allowed": job.question.allowed,
        "seconds": round(job.seconds, 3),
        "preview": job.preview,
        "message": message,
        "sentence": "" if result is None else " ".join(outcome(result)),
        "alternatives": [] if result is None else alternatives(workspace, job, result),
    }


def alternatives(workspace: Workspace, job: Job, result: Counterfactuals) -> list[dict[str, Any]]:
    """Return the counterfactuals of a result, from smaller to more believable."""
    n = len(result)
    fixed = np.array([], dtype=int)
    if workspace.schema is not None:
        fixed = np.flatnonzero([column.kind == "fixed" for column in workspace.schema])
    columns = {label: column for column, label in enumerate(workspace.classes.tolist())}
    found = []
    for i in range(n):
        values, changed = _after(result, i)
        # Columns that never change have numbers of their own in every result.
        values[fixed] = job.question.row[0][fixed]
        found.append(
            {
                "values": json_values(values),
                "texts": value_texts(workspace, values),
                "changed": changed.tolist(),
                "valid": bool(result.valid[i]),
                "status": str(result.status[i]),
                # No line ends within "t = 42".
                "sentence": sentence(result, i).replace("t = ", "t\u00a0=\u00a0"),
                "note": shorten(note(result, i), 1000),
                "probabilities": np.nan_to_num(result.cf_proba[i]).tolist(),
                "label": columns[result.cf_labels[i].item()],
                "target": columns[result.target[i].item()],
                "changed_share": changed_share(result, i),
                "changed_text": change_text(result, i),
                "stretches": stretches(result, i) if result.modality == "series" else [],
                "votes_text": votes_sentence(result, i),
                "distance": i / (n - 1) if n > 1 else 0.0,
            }
        )
    return found


def _after(result: Counterfactuals, i: int) -> tuple[Array, Array]:
    """Return a counterfactual as it travels, and the mask of what changed."""
    if result.table is not None:
        return as_numpy(result.X_cf)[i].copy(), changed_mask(result, i)
    _, x_cf = pair(result, i)
    return x_cf, changed_mask(result, i)


def json_values(values: Array) -> Any:
    """Return an instance as nested lists; None where a value is missing."""
    if not np.isnan(values).any():
        return values.tolist()
    return [None if np.isnan(value) else value for value in values.tolist()]


def value_texts(workspace: Workspace, codes: Array) -> list[str] | None:
    """Return the values of a row of a table as a person reads them; None for other data."""
    if workspace.table is None:
        return None
    schema = workspace.table.schema
    parts = {members[0]: name for name, members in schema.parts.items()}
    return [
        value_text(workspace.table, parts[j], codes) if j in parts else f"{codes[j]:g}"
        for j in range(len(schema))
    ]
