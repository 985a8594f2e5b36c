"""What commands that start a server share: where it listens, a warning, the end by Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from .console import print_message

SERVER_PANEL = "Server"

Host = Annotated[
    str,
    typer.Option(
        help="Address to listen on. Any other than the default lets others ask the model.",
        rich_help_panel=SERVER_PANEL,
    ),
]
Port = Annotated[
    int,
    typer.Option(
        min=0,
        max=65535,
        help="Port to listen on; 0: any that is free.",
        rich_help_panel=SERVER_PANEL,
    ),
]


def warn_of_others(host: str, server: str, risk: str) -> None:
    """Say what another host than this machine means.

    Parameters
    ----------
    host : str
        The address to listen on.
    server : str
        What others can reach there.
    risk : str
        Who of them can do what.
    """
    from ..web.guard import is_loopback

    if is_loopback(host):
        return
    print_message(
        f"Warning: --host {host} lets other machines reach the {server}. {risk}; the connection "
        "is not encrypted."
    )


@contextmanager
def until_interrupted(stop: Callable[[], None]) -> Iterator[None]:
    """Run the block until Ctrl-C, which is no error here, and stop the server at its end."""
    try:
        yield
    except KeyboardInterrupt:
        print_message("Stopped.")
    finally:
        stop()
