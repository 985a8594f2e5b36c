"""ServiceGuard: the guard of the service, which takes its token from a header."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from .guard import App, Guard, Refused, Scope

#: what needs no token, so that probes can ask whether the service lives
OPEN_PATHS = ("/healthz", "/v2/health/live", "/v2/health/ready")


class ServiceGuard(Guard):
    """Refuse requests for other hosts, from pages of other servers, and without the token.

    Parameters
    ----------
    app : ASGI application
        What answers.
    host : str
        The address that is listened on.
    names : sequence of str
        Further names under which the service is reached.
    bearer : str or None
        The token; None: none is asked for.
    max_bytes : int
        Largest body of a request.
    """

    def __init__(
        self, app: App, *, host: str, names: Sequence[str], bearer: str | None, max_bytes: int
    ) -> None:
        super().__init__(app, host=host, max_bytes=max_bytes)
        self._names = [name.lower() for name in names]
        self._bearer = bearer

    def _is_own(self, host: str) -> bool:
        name, _, _ = host.lower().partition(":")
        return name in self._names or super()._is_own(host)

    def _without_token(self, scope: Scope) -> Scope:
        if self._bearer is None or scope["path"] in OPEN_PATHS:
            return scope
        given = b"".join(value for name, value in scope["headers"] if name == b"authorization")
        kind, _, token = given.partition(b" ")
        if kind.lower() != b"bearer" or not secrets.compare_digest(token, self._bearer.encode()):
            raise Refused(401, "This service asks for a token: Authorization: Bearer TOKEN.")
        return scope
