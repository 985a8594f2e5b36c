"""Run an ASGI application in a thread of this process."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import uvicorn

#: seconds that a server may take to start, and to finish its answers when it is stopped
START_SECONDS = 20.0
STOP_SECONDS = 3


def listen(host: str, port: int) -> socket.socket:
    """Open the socket to listen on.

    Parameters
    ----------
    host : str
        A name or address of this machine; not empty, which would stand for all of them.
    port : int
        The port; 0: any that is free.

    Returns
    -------
    socket
        Bound, and listening.

    Raises
    ------
    ValueError
        If the address cannot be used.
    """
    try:
        if not host:
            raise OSError("it is empty")
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except (OSError, OverflowError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(
            f"Cannot listen on host {host!r:.60}, port {port}: {reason}. Give another; port 0 "
            "takes any that is free."
        ) from error
    bound.listen()
    return bound


class ThreadedServer:
    """Serve an application from a thread until `stop` is called.

    Parameters
    ----------
    app : ASGI application
        What answers.
    bound : socket
        As `listen` opens it.
    before_stop : function, optional
        Called when the server is to stop, so that answers that wait end.
    """

    def __init__(
        self, app: Any, bound: socket.socket, before_stop: Callable[[], None] = lambda: None
    ) -> None:
        self._socket = bound
        self._before_stop = before_stop
        self._server = make_server(app)
        self._thread = threading.Thread(target=self._run, name="contrafact-server", daemon=True)
        self._thread.start()
        self._wait_until_started()

    @property
    def running(self) -> bool:
        """Whether the server answers."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Stop the server and free its port; nothing happens where it is stopped already."""
        if not self.running:
            return
        self._before_stop()
        self._server.should_exit = True
        self._thread.join()

    def wait(self) -> None:
        """Wait until the server is stopped; Ctrl-C raises KeyboardInterrupt here."""
        while self.running:
            # In short turns, since a thread that waits without end does not hear Ctrl-C on Windows.
            self._thread.join(timeout=0.5)

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])
        self._socket.close()

    def _wait_until_started(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._server.started:
            if not self.running or time.monotonic() > deadline:
                raise RuntimeError("The server did not start.")
            time.sleep(0.005)


def make_server(app: Any) -> uvicorn.Server:
    """Make a uvicorn server that prints nothing but errors and says nothing about itself."""
    import uvicorn

    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    return uvicorn.Server(config)
