"""The command `contrafact audit`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import completion, parameters
from .console import ARGUMENTS_KEY, Notes, output_to_stderr, print_json, print_text

if TYPE_CHECKING:
    from ..explainers import ModelAudit
    from .explain_request import ExplainRequest

Method = Annotated[
    str | None,
    typer.Option(
        help="How to find the changes, see `contrafact methods`. Default: SVCE for models with "
        "gradients, else Graft.",
        autocompletion=completion.methods,
    ),
]
Starts = Annotated[
    int, typer.Option(min=1, help="Instances of other classes to turn into each class.")
]
Window = Annotated[
    int | None,
    typer.Option(
        min=1, help="Side of a region, in pixels or steps. Default: a sixth of the larger side."
    ),
]


def audit(
    ctx: typer.Context,
    model: parameters.Model,
    data: parameters.Data,
    method: Method = None,
    starts: Starts = 30,
    window: Window = None,
    label: parameters.Label = None,
    modality: parameters.ModalityName = None,
    pad: parameters.Pad = False,
    fill: parameters.Fill = False,
    network: parameters.NetworkName = None,
    classes: parameters.Classes = None,
    trust: parameters.Trust = False,
    seed: parameters.Seed = 0,
    report: parameters.ReportFile = None,
    as_json: parameters.AsJson = False,
) -> None:
    """Rank the classes by how far the model recognizes them by a mark, not by their features.

    DATA are images or series that the model was trained on; of data with a split, the training
    part.
    """
    notes = Notes()
    with output_to_stderr():
        from .explain_request import ExplainRequest
        from .output_files import check_output

        check_output("--report", report, (".html", ".htm"), [model, data])
        request = ExplainRequest(
            model=model,
            data=data,
            methods=[] if method is None else [method],
            rows="0",
            reference=data,  # its training part is what is audited
            label=label,
            modality=modality,
            pad=pad,
            fill=fill,
            network=network,
            classes=classes,
            trust=trust,
            seed=seed,
            command=shlex.join(["contrafact", "audit", *ctx.meta[ARGUMENTS_KEY]]),
        )
        found = _run(request, starts, window, notes)
        if report is not None:
            from ..report import write_audit

            write_audit(found, report, command=request.command)
    if as_json:
        print_json(_summarize(found, report, notes.texts))
        return
    print_text("Classes, the most suspicious first:")
    for entry in found:
        print_text(f"  {found.describe(entry)}")
    if found.unreached:
        print_text(f"Not reached: {', '.join(map(str, found.unreached))}")
    if report is not None:
        print_text(f"Report: {report}")
    print_text(f"Again: {request.command}")


def _run(request: ExplainRequest, starts: int, window: int | None, notes: Notes) -> ModelAudit:
    """Load the model, read the data and audit the classes."""
    from ..explainers import audit_classes
    from ..explainers.class_audit import default_explainer
    from ..explainers.registry import check_support, find_explainer
    from .explain_inputs import load_inputs

    inputs = load_inputs(request, notes)
    if inputs.layout.modality == "row":
        raise ValueError(f"{request.data} holds rows; an audit maps images and series.")
    if request.methods:
        explainer = find_explainer(request.methods[0])()
        check_support(explainer, inputs.layout.modality, None)
    else:
        explainer = default_explainer(inputs.classifier)
    name = type(explainer).__name__
    notes.add(f"Auditing {len(inputs.classifier.classes)} classes with {name}.")
    explainer.fit(inputs.classifier, inputs.X_reference, modality=inputs.layout.modality)
    return audit_classes(
        inputs.classifier,
        inputs.X_reference,
        n_starts=starts,
        window=window,
        explainer=explainer,
        random_state=request.seed,
    )


def _summarize(found: ModelAudit, report: Path | None, notes: list[str]) -> dict[str, Any]:
    """Return the ranking, for `print_json`."""
    return {
        "classes": [
            {
                "class": entry.target,
                "suspicion": entry.suspicion,
                "stands_out": any(entry is alarm for alarm in found.alarms),
                "window": vars(entry.suspect),
                "reached": entry.valid,
                "starts": entry.n,
            }
            for entry in found
        ],
        "unreached": found.unreached,
        "files": {"report": report},
        "notes": notes,
    }
