"""Measure the service: overhead of a prediction, load by many clients, merged batches.

    make bench-service
    python benchmarks/service.py --seconds 60      a shorter load; default: 5 minutes

The service is a process of its own, `contrafact serve` on loopback; clients keep their connections.
Writes benchmarks/results/service.md.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import contrafact as cf
from _common import conditions, fit_fcn, make_parser, table_head, table_row, write_page, yes_no
from contrafact.web.model_gate import ModelGate

CLIENTS = 50
OVERHEAD_REQUESTS = 1000
#: rows whose explanations are computed in Python before the load, to compare all answers with
EXPLAINED_ROWS = 24
#: of so many requests of a client one is an explanation
EXPLAIN_EVERY = 5
#: the load before memory counts
WARM_UP_SECONDS = 15.0
THROUGHPUT_SECONDS = 10.0
BILSTM_EPOCHS = 40


class Connection:
    """A connection that is kept open, with as little work for the client as possible."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Return status and content of an answer."""
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        self._socket.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self._receive()
        head_bytes, _, content = answer.partition(b"\r\n\r\n")
        (size,) = re.findall(rb"(?i)content-length: *(\d+)", head_bytes)
        while len(content) < int(size):
            content += self._receive()
        return int(head_bytes[9:12]), content

    def _receive(self) -> bytes:
        received = self._socket.recv(2**16)
        if not received:
            raise ConnectionError("the service closed the connection")
        return received


@dataclass
class Served:
    """A service that runs."""

    process: subprocess.Popen[str]
    port: int

    def memory(self) -> float:
        """Return the resident memory of the service in MB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextmanager
def serving(model: cf.Classifier, network: str, data: cf.Dataset) -> Iterator[Served]:
    """Run `contrafact serve` on a model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pt"
        torch.save(model.module.state_dict(), path)
        options = ["--network", network, "--reference", data.name, "--port", "0"]
        process = subprocess.Popen(
            [sys.executable, "-m", "contrafact", "serve", str(path), *options],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline().rpartition(":")[2])
            yield Served(process, port)
        finally:
            process.terminate()
            process.wait()


def body_of(X: Any, **options: Any) -> bytes:
    """Return the body of a request."""
    return json.dumps({"instances": X.tolist(), **options}).encode()


# --- overhead ------------------------------------------------------------------------------------


def measure_overhead(model: cf.Classifier, data: cf.Dataset) -> list[str]:
    """Time single predictions through the service and by the bare model, in turn."""
    through, bare = [], []
    with serving(model, "fcn", data) as served:
        connection = Connection(served.port)
        for number in range(OVERHEAD_REQUESTS):
            x = data.X_test[number % len(data.X_test)][None]
            body = body_of(x)
            start = time.perf_counter()
            connection.ask("/v1/predict", body)
            answered = time.perf_counter()
            model.predict_proba(x)
            through.append(1e3 * (answered - start))
            bare.append(1e3 * (time.perf_counter() - answered))
    measured = np.array([np.percentile(times, (50, 95)) for times in (through, bare)])
    lines = table_head("one row, ms", "median", "95th percentile")
    for name, times in (
        ("through the service", measured[0]),
        ("bare model", measured[1]),
        ("difference (bar: 3 at the median)", measured[0] - measured[1]),
    ):
        lines.append(table_row(name, *(f"{time:.2f}" for time in times)))
    return [
        f"A single `predict`, FCN on GunPoint, {OVERHEAD_REQUESTS} requests one after the other, "
        "each beside the same question to the bare model in the process of the client.",
        "",
        *lines,
    ]


# --- load ----------------------------------------------------------------------------------------


@dataclass
class Load:
    """What the clients saw, and the memory of the service."""

    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    different: Counter[str] = field(default_factory=Counter)
    memory: list[tuple[float, float]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, kind: str, status: int, same: bool) -> None:
        """Count an answer."""
        with self.lock:
            self.statuses[kind, status] += 1
            if not same:
                self.different[kind] += 1


def measure_load(model: cf.Classifier, data: cf.Dataset, seconds: float) -> list[str]:
    """Let many clients ask for predictions and explanations at once."""
    rows = data.X_test[:EXPLAINED_ROWS]
    load = Load()
    with serving(model, "fcn", data) as served:
        proba = model.predict_proba(data.X_test)
        expected = cf.explain(model, rows, reference=data).X_cf
        start = time.perf_counter()

        def client(number: int) -> None:
            rng = np.random.default_rng(number)
            connection = Connection(served.port)
            while time.perf_counter() - start < seconds:
                if rng.integers(EXPLAIN_EVERY) == 0:
                    row = int(rng.integers(len(rows)))
                    status, content = connection.ask("/v1/explain", body_of(rows[row : row + 1]))
                    load.note("explain", status, status != 200 or _same(content, expected[row]))
                else:
                    row = int(rng.integers(len(proba)))
                    body = body_of(data.X_test[row : row + 1])
                    status, content = connection.ask("/v1/predict", body)
                    near = status != 200 or np.allclose(
                        json.loads(content)["probabilities"][0], proba[row], atol=1e-6
                    )
                    load.note("predict", status, near)

        threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            load.memory.append((time.perf_counter() - start, served.memory()))
            time.sleep(1.0)
    return _describe_load(load, seconds)


def _same(content: bytes, expected: Any) -> bool:
    """Return whether an explanation is that of Python, to the last bit."""
    (found,) = json.loads(content)["counterfactuals"]
    return np.array_equal(np.asarray(found["values"], expected.dtype), expected)


def _describe_load(load: Load, seconds: float) -> list[str]:
    lines = table_head("request", "status", "count", "per second", "unlike Python")
    for (kind, status), count in sorted(load.statuses.items()):
        different = load.different[kind] if status == 200 else "–"
        lines.append(table_row(kind, status, count, f"{count / seconds:.1f}", different))
    settled = [(at, size) for at, size in load.memory if at >= WARM_UP_SECONDS]
    marks = np.linspace(0, len(settled) - 1, 9).astype(int)
    curve = table_head("seconds", *(f"{settled[mark][0]:.0f}" for mark in marks))
    curve.append(table_row("MB", *(f"{settled[mark][1]:.0f}" for mark in marks)))
    failed = sum(n for (_, status), n in load.statuses.items() if status not in (200, 429))
    half = len(settled) // 2
    first = np.median([size for _, size in settled[:half]])
    second = np.median([size for _, size in settled[half:]])
    return [
        f"{CLIENTS} clients for {seconds:.0f} seconds, FCN on GunPoint, one row per request; one "
        f"request in {EXPLAIN_EVERY} is an explanation (default method and budget) of one of "
        f"{EXPLAINED_ROWS} rows. Clients and service share the machine.",
        "",
        *lines,
        "",
        f"No status but 200 and 429 (bar): {yes_no(failed == 0)}. Explanations are compared with "
        "`explain` in Python to the last bit, probabilities to 1e-6.",
        "",
        f"Resident memory of the service after {WARM_UP_SECONDS:.0f} seconds of warm-up; median of "
        f"the first half {first:.0f} MB, of the second {second:.0f} MB:",
        "",
        *curve,
    ]


# --- merged batches ------------------------------------------------------------------------------


def measure_throughput(data: cf.Dataset) -> list[str]:
    """Compare requests that wait together with one request at a time."""
    lines = table_head("request", "one at a time, per second", "50 clients, per second", "ratio")
    model = cf.fit_classifier("bilstm", data.X_train, data.y_train, max_epochs=BILSTM_EPOCHS)
    with serving(model, "bilstm", data) as served:
        rows = [data.X_test[row : row + 1] for row in range(len(data.X_test))]
        for path, options in (("/v1/predict", {}), ("/v1/explain", {"calls": 300})):
            bodies = [body_of(x, **options) for x in rows]
            alone = _rate(served.port, path, bodies, 1)
            together = _rate(served.port, path, bodies, CLIENTS)
            ratio = f"{together / alone:.1f}"
            lines.append(table_row(path, f"{alone:.1f}", f"{together:.1f}", ratio))
    alone, together = (asyncio.run(_gate_rate(model, rows, asking)) for asking in (1, CLIENTS))
    cells = (f"{alone:.1f}", f"{together:.1f}", f"{together / alone:.1f}")
    lines.append(table_row("`ModelGate.predict`, in one process without HTTP", *cells))
    return [
        f"BiLSTM on GunPoint, one row per request, {THROUGHPUT_SECONDS:.0f} seconds each; one "
        f"client beside {CLIENTS} (bar: 5 times the throughput). Explanations: default method, "
        "300 model rows.",
        "",
        *lines,
    ]


def _rate(port: int, path: str, bodies: list[bytes], clients: int) -> float:
    """Return the answers per second."""
    done = Counter[int]()
    end = time.perf_counter() + THROUGHPUT_SECONDS

    def client(number: int) -> None:
        connection = Connection(port)
        turn = number
        while time.perf_counter() < end:
            status, content = connection.ask(path, bodies[turn % len(bodies)])
            assert status == 200, content
            done[number] += 1
            turn += clients

    start = time.perf_counter()
    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done.total() / (time.perf_counter() - start)


async def _gate_rate(model: cf.Classifier, rows: list[Any], asking: int) -> float:
    """Return the answers per second of the gate alone, to so many that ask at once."""
    gate = ModelGate(model)
    start = time.perf_counter()

    async def ask(number: int) -> int:
        count = 0
        while time.perf_counter() < start + THROUGHPUT_SECONDS:
            await gate.predict(rows[(number + count * asking) % len(rows)])
            count += 1
        return count

    counts = await asyncio.gather(*(ask(number) for number in range(asking)))
    seconds = time.perf_counter() - start
    gate.close()
    return sum(counts) / seconds


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="time of the load")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    data = cf.load_dataset("GunPoint")
    model = fit_fcn(data)
    sections = {
        "Overhead of a prediction": measure_overhead(model, data),
        "Load": measure_load(model, data, arguments.seconds),
        "Merged batches": measure_throughput(data),
    }
    lines = ["# The service", "", conditions("make bench-service", ["fastapi", "uvicorn"]), ""]
    for title, section in sections.items():
        lines += [f"## {title}", "", *section, ""]
    write_page("service.md", *lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
