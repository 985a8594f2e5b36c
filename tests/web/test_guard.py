"""Requests that are refused before anything is answered, sent to a real server."""

import socket
from urllib.parse import urlsplit

import httpx
import pytest
from explorer_client import Client, italy

import contrafact as cf
from contrafact.web.guard import MAX_BYTES, Guard


@pytest.fixture(scope="module")
def url():
    model, data = italy()
    with cf.explore(model, data) as explorer:
        yield explorer.url


@pytest.fixture
def client(url):
    with Client(url) as client:
        yield client


def refused(answer, status):
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error"}
    assert "Traceback" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


def raw(url, request):
    """Send bytes as they are, and return the first line of the answer."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        connection.sendall(request)
        return connection.makefile("rb").readline().decode()


@pytest.mark.parametrize(
    "path", ["", "api/health", "x/api/health", "%2e%2e/api/health", "//api/health"]
)
def test_nothing_is_there_without_the_token(url, path):
    root = url.rsplit("/", 2)[0]
    refused(httpx.get(f"{root}/{path}", trust_env=False), 404)


@pytest.mark.parametrize("change", [lambda t: t[:-1], lambda t: t + "a", lambda t: t.swapcase()])
def test_a_token_has_to_be_the_whole_one(url, change):
    root, token, _ = url.rsplit("/", 2)
    refused(httpx.get(f"{root}/{change(token)}/api/health", trust_env=False), 404)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "8.8.8.8",
    ],
)
def test_other_hosts_are_refused(client, host):
    refused(client.get("api/health", headers={"host": host}), 421)


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "[::1]:99", "127.0.0.1"])
def test_names_of_this_machine_are_accepted(client, host):
    assert client.get("api/health", headers={"host": host}).status_code == 200


def test_two_hosts_are_refused(url):
    path = urlsplit(url).path
    request = f"GET {path}api/health HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n"
    assert raw(url, request.encode()).split()[1] in ("400", "421")


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost", ""]
)
def test_pages_of_others_are_refused(client, origin):
    refused(client.get("api/health", headers={"origin": origin}), 403)
    answer = client.post("api/predict", json={"values": []}, headers={"origin": origin})
    refused(answer, 403)


def test_the_own_page_is_accepted(client, url):
    own = "http://" + urlsplit(url).netloc
    assert client.get("api/health", headers={"origin": own}).status_code == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_bodies_have_to_be_json(client, kind):
    body = '{"values": [], "tag": 1}'
    refused(client.post("api/predict", content=body, headers={"content-type": kind}), 415)


def test_large_bodies_are_refused_whether_announced_or_not(client):
    headers = {"content-type": "application/json"}
    body = b"[" * (MAX_BYTES + 1)
    refused(client.post("api/predict", content=body, headers=headers), 413)
    pieces = (b" " * 2**20 for _ in range(20))
    refused(client.post("api/predict", content=pieces, headers=headers), 413)


@pytest.mark.parametrize("body", ["", "{", "[1]", "1", "[" * 5000, '{"values": NaN}', "\x00"])
def test_damaged_json_is_refused(client, body):
    answer = client.post("api/predict", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert set(answer.json()) == {"error"}


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(client, method):
    refused(client.request(method, "api/health"), 405)


@pytest.mark.parametrize(
    "name", ["../explorer.py", "..%2fexplorer.py", "%2e%2e/guard.py", "/etc/passwd", "nothing.js"]
)
def test_no_file_but_those_of_the_page_is_sent(client, name):
    refused(client.get(f"assets/{name}"), 404)


def test_every_answer_has_the_policy(client):
    for path in ("", "api/health", "assets/index.html", "api/jobs/none"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers


def test_an_address_for_others_answers_to_numbers_and_its_own_name():
    guard = Guard(None, host="0.0.0.0")
    assert guard._is_own("192.168.7.4:8000")
    assert guard._is_own(socket.gethostname())
    assert not guard._is_own("evil.example:8000")
