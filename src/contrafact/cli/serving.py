"""The command `contrafact serve`."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import parameters
from .console import Notes, output_to_stderr, print_message, print_text
from .exploring import SERVER_PANEL, Host, Port

if TYPE_CHECKING:
    from ..web.service import ServiceLimits
    from .explain_inputs import ExplainInputs
    from .explain_request import ExplainRequest

LIMITS_PANEL = "Limits"

Reference = Annotated[
    str,
    typer.Option(
        "--reference",
        help="Data that methods may learn from: .csv, .parquet, .npz, .ts, .tsv, a folder with a "
        "UCR pair, or the name of a bundled set; the training part where there is one.",
        rich_help_panel=parameters.MODEL_PANEL,
    ),
]
Name = Annotated[
    str,
    typer.Option(
        help="What the model is called in the addresses of the V2 protocol.",
        rich_help_panel=SERVER_PANEL,
    ),
]
AllowedHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="NAME",
        help="A further name under which the service is reached; may be repeated.",
        rich_help_panel=SERVER_PANEL,
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        envvar="CONTRAFACT_TOKEN",
        help="Token that requests have to carry: Authorization: Bearer TOKEN. Others see the "
        "command line; the variable is safer.",
        rich_help_panel=SERVER_PANEL,
    ),
]
MaxInstances = Annotated[
    int,
    typer.Option(min=1, help="Instances of one request.", rich_help_panel=LIMITS_PANEL),
]
MaxWaiting = Annotated[
    int,
    typer.Option(
        min=1,
        help="Requests that may wait; one more is answered by 429.",
        rich_help_panel=LIMITS_PANEL,
    ),
]
MaxCalls = Annotated[
    int,
    typer.Option(
        min=1, help="Model rows that one request may ask for.", rich_help_panel=LIMITS_PANEL
    ),
]
MaxSeconds = Annotated[
    float,
    typer.Option(min=0.01, help="Time of one search.", rich_help_panel=LIMITS_PANEL),
]
Patience = Annotated[
    float,
    typer.Option(
        min=0.01,
        help="Seconds after which a model that does not answer is given up, with 503.",
        rich_help_panel=LIMITS_PANEL,
    ),
]


def serve(
    model: parameters.Model,
    reference: Reference,
    label: parameters.Label = None,
    modality: parameters.ModalityName = None,
    pad: parameters.Pad = False,
    fill: parameters.Fill = False,
    network: parameters.NetworkName = None,
    classes: parameters.Classes = None,
    schema: parameters.SchemaFile = None,
    trust: parameters.Trust = False,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    allow_host: AllowedHosts = None,
    token: Token = None,
    name: Name = "model",
    max_instances: MaxInstances = 256,
    max_waiting: MaxWaiting = 256,
    max_calls: MaxCalls = 200_000,
    max_seconds: MaxSeconds = 30.0,
    patience: Patience = 30.0,
) -> None:
    """Answer other programs over HTTP: predictions and explanations, merged across requests.

    It runs until Ctrl-C or SIGTERM, with exit code 0.
    """
    with output_to_stderr():
        from ..extras import require_extra

        require_extra("web", "contrafact serve")
        from ..web.service import ServiceLimits
        from ..web.serving import ThreadedServer, listen
        from .explain_request import ExplainRequest

        request = ExplainRequest(
            model=model,
            data=reference,
            rows="0:1",
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
        limits = ServiceLimits(
            max_instances=max_instances,
            max_waiting=max_waiting,
            max_calls=max_calls,
            max_seconds=max_seconds,
            patience=patience,
        )
        _warn(host, token)
        # Before the model is read, which may take long: the port may be taken.
        socket = listen(host, port)
        app = _make_app(request, host, allow_host or [], token, name, limits)
    with _stopping_on_sigterm():
        server = ThreadedServer(app, socket, app.service.close)
        address = f"[{host}]" if ":" in host else host
        try:
            print_text(f"Service: http://{address}:{socket.getsockname()[1]}")
            server.wait()
        except KeyboardInterrupt:
            print_message("Stopped.")
        finally:
            server.stop()


def _make_app(
    request: ExplainRequest,
    host: str,
    allowed: list[str],
    token: str | None,
    name: str,
    limits: ServiceLimits,
) -> Any:
    """Load the model, read the reference and make the application."""
    from ..nn import load_model
    from ..web.service import make_service
    from .explain_inputs import read_inputs

    notes = Notes()
    loaded = load_model(request.model, trust=request.trust, network=request.network)
    inputs: ExplainInputs = read_inputs(request, loaded, notes)
    return make_service(
        inputs.classifier,
        (inputs.X_reference, inputs.y_reference),
        modality=inputs.layout.modality,
        schema=inputs.schema,
        name=name,
        host=host,
        hosts=allowed,
        token=token,
        limits=limits,
    )


def _warn(host: str, token: str | None) -> None:
    """Say what another host than this machine means."""
    from ..web.guard import is_loopback

    if is_loopback(host):
        return
    who = "Whoever has the token" if token else "There is no --token: everyone who reaches it"
    print_message(
        f"Warning: --host {host} lets other machines reach the service. {who} can ask the model; "
        "the connection is not encrypted."
    )


@contextmanager
def _stopping_on_sigterm() -> Iterator[None]:
    """Let SIGTERM stop as Ctrl-C does: containers are stopped by it."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
