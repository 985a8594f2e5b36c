"""Services on loopback for tests, and plain requests to them."""

import http.client
import json
from contextlib import contextmanager

from contrafact.web.client import Client
from contrafact.web.service import make_service
from contrafact.web.serving import ThreadedServer, listen


class Running:
    """A service that runs, and how to ask it."""

    def __init__(self, app, port):
        self.app = app
        self.service = app.service
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def client(self, token=None):
        return Client(self.url, token)

    def ask(self, method, path, body=None, headers=()):
        """Return status, headers and content; a body that is no bytes is sent as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"content-type": "application/json", **dict(headers)}
        try:
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            content = answer.read()
            if answer.getheader("content-type") == "application/json":
                content = json.loads(content, parse_constant=_refuse)
            return answer.status, answer.headers, content
        finally:
            connection.close()


def _refuse(constant):
    raise AssertionError(f"{constant} is no JSON")


@contextmanager
def running(model, reference, **options):
    """Run a service until the end of the block."""
    app = make_service(model, reference, **options)
    socket = listen("127.0.0.1", 0)
    server = ThreadedServer(app, socket, app.service.close)
    try:
        yield Running(app, socket.getsockname()[1])
    finally:
        server.stop()
