"""Guard: what a request has to look like before the application sees it."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

#: bytes that the body of a request may have
MAX_BYTES = 16 * 2**20
#: seconds in which the body has to arrive
BODY_SECONDS = 30.0
METHODS = ("GET", "HEAD", "POST", "DELETE")
#: notebooks show the page in a frame, and come from another port of this machine
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self' http://localhost:* http://127.0.0.1:*"
)
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
}


class Refused(Exception):
    """A request that the application does not get to see."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Guard:
    """Refuse requests that do not come from the page or program that was given the address.

    An ASGI application around another one. It checks the host that a request is addressed to (so
    that no other name can be made to lead here), the origin of the page that sends it, the token in
    its path, its method, its type and its size, and adds headers to every answer.

    Parameters
    ----------
    app : ASGI application
        What answers; it sees paths without the token.
    host : str
        The address that is listened on.
    token : str, optional
        First part of every path; None: there is none.
    max_bytes : int, default=16 MiB
        Largest body of a request.
    """

    def __init__(
        self, app: App, *, host: str, token: str | None = None, max_bytes: int = MAX_BYTES
    ) -> None:
        self.app = app
        self.host = host
        self.token = token
        self.max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # there are no web sockets: the server closes the connection

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *own]}
            await send(message)

        try:
            inner = self._check(scope)
            receive = await self._read_body(scope, receive)
        except Refused as refused:
            await _answer(send_with_headers, refused)
            return
        await self.app(inner, receive, send_with_headers)

    def _check(self, scope: Scope) -> Scope:
        """Return the scope that the application sees."""
        headers = _headers(scope)
        host = headers.get("host", [])
        if len(host) != 1 or not self._is_own(host[0]):
            raise Refused(421, "This server does not answer for that host.")
        origins = headers.get("origin", [])
        own_origins = (f"http://{host[0]}", f"https://{host[0]}")
        if any(origin not in own_origins for origin in origins):
            raise Refused(403, "Requests from pages of other servers are refused.")
        inner = self._without_token(scope)
        if scope["method"] not in METHODS:
            raise Refused(405, f"Methods: {', '.join(METHODS)}.")
        if scope["method"] == "POST":
            given = headers.get("content-type", [""])[0]
            if given.partition(";")[0].strip().lower() != "application/json":
                raise Refused(415, "The body has to be JSON, of type application/json.")
        if any(not size.isdecimal() for size in headers.get("content-length", [])):
            raise Refused(400, "Content-Length is no number.")
        if any(int(size[:20]) > self.max_bytes for size in headers.get("content-length", [])):
            raise self._too_large()
        return inner

    def _is_own(self, host: str) -> bool:
        """Return whether the header Host names this server.

        Ports may differ where one is forwarded. An address in numbers is no name that somebody else
        could make lead here.
        """
        name = _host_name(host)
        if name in ("localhost", self.host.lower()):
            return True
        address = _address(name)
        listens_to_all = not is_loopback(self.host)
        if address is None:
            return listens_to_all and name == socket.gethostname().lower()
        return address.is_loopback or listens_to_all

    def _without_token(self, scope: Scope) -> Scope:
        """Return the scope with the path behind the token."""
        if self.token is None:
            return scope
        empty, _, rest = scope["path"].partition("/")
        given, slash, path = rest.partition("/")
        right = secrets.compare_digest(given.encode(), self.token.encode())
        if empty or not slash or not right:
            raise Refused(404, "There is nothing here. Use the whole address that was printed.")
        return {**scope, "path": f"/{path}", "raw_path": f"/{path}".encode(), "root_path": ""}

    async def _read_body(self, scope: Scope, receive: Receive) -> Receive:
        """Read the body, so that its size is known before anything is parsed."""
        body = b""
        more = True
        try:
            while more:
                message = await asyncio.wait_for(receive(), BODY_SECONDS)
                if message["type"] == "http.disconnect":
                    raise Refused(400, "The request ended early.")
                body += message.get("body", b"")
                if len(body) > self.max_bytes:
                    raise self._too_large()
                more = message.get("more_body", False)
        except asyncio.TimeoutError:
            raise Refused(408, "The request did not arrive in time.") from None
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_whole() -> Message:
            return whole.pop() if whole else await receive()

        return receive_whole

    def _too_large(self) -> Refused:
        return Refused(413, f"A request may have {self.max_bytes:,} bytes at most.")


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only."""
    address = _address(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def _host_name(host: str) -> str:
    """Return the name in a header Host, without brackets and port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _headers(scope: Scope) -> dict[str, list[str]]:
    """Return the headers by name, each with all its values."""
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


async def _answer(send: Send, refused: Refused) -> None:
    """Send the reason of a refusal."""
    body = json.dumps({"error": refused.reason}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        # What is left of the request is not read.
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
