"""The command `contrafact explore`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import parameters
from .console import Notes, output_to_stderr, print_text
from .local_server import SERVER_PANEL, Host, Port, until_interrupted, warn_of_others

if TYPE_CHECKING:
    from ..web import Explorer
    from ..web.recipes import Source
    from .explain_inputs import ExplainInputs
    from .explain_request import ExplainRequest

NoOpen = Annotated[
    bool,
    typer.Option(
        "--no-open",
        help="Print the address only, and open no browser.",
        rich_help_panel=SERVER_PANEL,
    ),
]


def explore(
    model: parameters.Model,
    data: parameters.Data,
    reference: parameters.ReferenceFile = None,
    label: parameters.Label = None,
    modality: parameters.ModalityName = None,
    pad: parameters.Pad = False,
    fill: parameters.Fill = False,
    network: parameters.NetworkName = None,
    classes: parameters.Classes = None,
    schema: parameters.SchemaFile = None,
    trust: parameters.Trust = False,
    host: Host = "127.0.0.1",
    port: Port = 0,
    no_open: NoOpen = False,
) -> None:
    """Open a local page that asks the model live: edit instances, explain them, export the answers.

    It runs until Ctrl-C, with exit code 0. The address holds a random token; CONTRAFACT_TOKEN fixes
    it, so that a page finds the server again after a restart on the same port.
    """
    with output_to_stderr():
        from ..extras import require_extra

        require_extra("web", "contrafact explore")
        from .explain_request import ExplainRequest

        request = ExplainRequest(
            model=model,
            data=data,
            rows=":",
            reference=reference,
            label=label,
            modality=modality,
            pad=pad,
            fill=fill,
            network=network,
            classes=classes,
            schema=schema,
            trust=trust,
        )
        explorer = _start(request, host, port)
    print_text(f"Explorer: {explorer.url}")
    with until_interrupted(explorer.stop):
        if not no_open:
            explorer.open()
        explorer.wait()


def _start(request: ExplainRequest, host: str, port: int) -> Explorer:
    """Load the model, read the data and start the server."""
    from ..web.explorer import Explorer
    from ..web.workspace import Workspace
    from .explain_inputs import load_inputs

    inputs = load_inputs(request, Notes())
    workspace = Workspace(
        inputs.classifier,
        inputs.X,
        inputs.y,
        X_reference=inputs.X_reference,
        y_reference=inputs.y_reference,
        modality=inputs.layout.modality,
        schema=inputs.schema,
        names=inputs.layout.names,
    )
    risk = "Whoever has the address can ask the model and see the data"
    warn_of_others(host, "explorer", risk)
    return Explorer(workspace, _source(request, inputs), host, port)


def _source(request: ExplainRequest, inputs: ExplainInputs) -> Source:
    """Describe where model and data come from, for the page and for recipes."""
    from ..engine.instances import PLURALS
    from ..web.recipes import Source

    words = [request.model, request.data]
    for option in ("reference", "label", "modality", "network", "classes", "schema"):
        value = getattr(request, option)
        if value is not None:
            words.append(f"--{option}={value}")
    words += [f"--{flag}" for flag in ("pad", "fill", "trust") if getattr(request, flag)]
    count = f"{len(inputs.rows)} {PLURALS[inputs.layout.modality]}"
    return Source(
        model=Path(request.model).name,
        data=f"{Path(request.data).name}, {count}",
        command=tuple(words),
        lines=_python_lines(request, inputs),
    )


def _python_lines(request: ExplainRequest, inputs: ExplainInputs) -> tuple[str, ...]:
    """Return Python lines that read the same model and data.

    None where they are read by rules of the command line that no public function has: tables, data
    without a split, labels and series in another form than the model's.
    """
    y, matched = inputs.y, inputs.y_reference
    if not inputs.is_split or request.classes is not None or y is None or matched is None:
        return ()
    same_labels = (y.dtype.kind in "US") == (matched.dtype.kind in "US")
    if not same_labels or inputs.X.ndim <= len(inputs.layout.shape):
        return ()
    reading = {
        "pad": request.pad,
        "fill": request.fill,
        "label": request.label,
        "modality": request.modality,
    }
    loading = {"network": request.network, "trust": request.trust}
    return (
        f"model = cf.load_model({request.model!r}{_arguments(loading)})",
        f"reference = cf.load_dataset({request.data!r}{_arguments(reading)})",
        "X = reference.X_test",
    )


def _arguments(values: Mapping[str, Any]) -> str:
    """Write the options that are set as arguments of a Python function."""
    return "".join(f", {name}={value!r}" for name, value in values.items() if value)
