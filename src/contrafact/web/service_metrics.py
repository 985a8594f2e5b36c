"""Metrics of the service as Prometheus reads them, and the middleware that counts requests."""

from __future__ import annotations

import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from .guard import App, Message, Receive, Scope, Send

LATENCY = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
#: label of requests that no route answered
NO_ROUTE = "none"


class ServiceMetrics:
    """Count requests, batches and model rows, in a registry of its own.

    Parameters
    ----------
    waiting : dict of str to function
        By kind of question, how many wait now.
    model_rows : function
        How many rows the model has been asked about.
    """

    def __init__(
        self, waiting: dict[str, Callable[[], int]], model_rows: Callable[[], int]
    ) -> None:
        registry = CollectorRegistry()
        self._registry = registry
        self._requests = Counter(
            "contrafact_requests", "Requests.", ["route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "contrafact_request_seconds",
            "Time until the answer was sent.",
            ["route"],
            buckets=LATENCY,
            registry=registry,
        )
        self._merged = Histogram(
            "contrafact_merged_requests",
            "Requests that were answered by one call of the model or of a method.",
            ["kind"],
            buckets=SIZES,
            registry=registry,
        )
        queue = Gauge("contrafact_waiting", "Requests that wait.", ["kind"], registry=registry)
        for kind, count in waiting.items():
            queue.labels(kind).set_function(count)
        registry.register(_ModelRows(model_rows))

    def count_batch(self, kind: str, requests: int) -> None:
        """Count a batch of merged requests."""
        self._merged.labels(kind).observe(requests)

    def text(self) -> bytes:
        """Return the metrics in the text format of Prometheus."""
        return generate_latest(self._registry)

    def counting(self, app: App) -> App:
        """Wrap an application such that its requests are counted, refused ones too."""

        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            start = time.perf_counter()
            status = 500

            async def noting(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                await send(message)

            try:
                await app(scope, receive, noting)
            finally:
                # Paths are the client's words, of which there may be any number; routes are ours.
                route = getattr(scope.get("route"), "path", NO_ROUTE)
                self._requests.labels(route, str(status)).inc()
                self._seconds.labels(route).observe(time.perf_counter() - start)

        return counted


class _ModelRows(Collector):
    """Read the model's own counter when the metrics are asked for."""

    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count

    def collect(self) -> list[CounterMetricFamily]:
        """Return the metric."""
        help_text = "Rows that the model was asked about."
        return [CounterMetricFamily("contrafact_model_rows", help_text, value=self._count())]
