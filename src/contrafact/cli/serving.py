"""The command `contrafact serve`."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import parameters
from .console import Notes, output_to_stderr, print_text
from .local_server import SERVER_PANEL, Host, Port, until_interrupted, warn_of_others

if TYPE_CHECKING:
    from ..web.service import ServiceLimits
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
        who = "Whoever has the token" if token else "There is no --token: everyone who reaches it"
        warn_of_others(host, "service", f"{who} can ask the model")
        # Before the model is read, which may take long: the port may be taken.
        socket = listen(host, port)
        app = _make_app(request, host, allow_host or [], token, name, limits)
    with _stopping_on_sigterm():
        server = ThreadedServer(app, socket, app.service.close)
        address = f"[{host}]" if ":" in host else host
        with until_interrupted(server.stop):
            print_text(f"Service: http://{address}:{socket.getsockname()[1]}")
            server.wait()


def _make_app(
    request: ExplainRequest,
    host: str,
    allowed: list[str],
    token: str | None,
    name: str,
    limits: ServiceLimits,
) -> Any:
    """Load the model, read the reference and make the application."""
    from ..web.service import make_service
    from .explain_inputs import load_inputs

    inputs = load_inputs(request, Notes())
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


@contextmanager
def _stopping_on_sigterm() -> Iterator[None]:
    """Let SIGTERM stop as Ctrl-C does: containers are stopped by it."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
