"""The addresses of the service: its own, those of the V2 inference protocol, health and metrics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from .. import __version__
from ..engine import Counterfactuals
from .guard import App, Receive, Scope, Send
from .merging import Busy, ModelFailure, NoAnswer
from .service import Service, TooLarge, Unusable
from .service_data import finite_lists, plain
from .service_guard import ServiceGuard
from .service_messages import (
    ErrorMessage,
    ExplainAnswer,
    ExplainBody,
    Metadata,
    PredictAnswer,
    PredictBody,
)
from .service_schema import complete_schema
from .service_tensors import add_tensor_routes

#: status by exception, and the seconds after which asking again may help
STATUSES: dict[type[Exception], tuple[int, int | None]] = {
    Unusable: (422, None),
    TooLarge: (413, None),
    Busy: (429, 1),
    ModelFailure: (502, None),
    NoAnswer: (503, 5),
}
#: what an endpoint may answer besides 200
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorMessage, "description": text}
    for status, text in {
        400: "The body is not JSON.",
        401: "The token is missing or wrong.",
        413: "Too many instances or bytes.",
        422: "Something in the request cannot be used; the error says what.",
        429: "Too many requests wait; ask again later.",
        502: "The model raised or gave NaN.",
        503: "The model has not answered in time.",
    }.items()
}


class ServiceApp:
    """The guarded application, with its service."""

    def __init__(self, app: App, service: Service) -> None:
        self._app = app
        self.service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._app(scope, receive, send)


def make_app(service: Service, *, host: str, hosts: Sequence[str], token: str | None) -> ServiceApp:
    """Make the application of a service.

    Parameters
    ----------
    service : Service
        What answers.
    host : str
        The address that is listened on.
    hosts : sequence of str
        Further names under which the service is reached.
    token : str or None
        Asked for in the header Authorization.

    Returns
    -------
    ServiceApp
        An ASGI application.
    """
    # The pages with the schema load scripts from elsewhere; /openapi.json is there.
    api = FastAPI(
        title=f"contrafact: {service.name}", version=__version__, docs_url=None, redoc_url=None
    )
    _add_routes(api, service)
    add_tensor_routes(api, service)
    _add_errors(api)
    complete_schema(api, service)
    guarded = ServiceGuard(
        api, host=host, names=hosts, bearer=token, max_bytes=service.limits.max_bytes
    )
    return ServiceApp(service.metrics.counting(guarded), service)


def _add_routes(api: FastAPI, service: Service) -> None:
    """Add the addresses of the service's own protocol, of health and of metrics."""

    @api.post("/v1/predict", response_model=PredictAnswer, responses=ERRORS)
    async def predict(body: PredictBody) -> Response:
        """Say what the model decides for instances."""
        verdict = await service.predict(service.read(body.instances))
        labels = service.classes[verdict.label.cpu().numpy()]
        return respond(
            {
                "classes": labels_of(service.classes),
                "labels": labels_of(labels),
                "probabilities": verdict.proba.cpu().tolist(),
            }
        )

    @api.post("/v1/explain", response_model=ExplainAnswer, responses=ERRORS)
    async def explain(body: ExplainBody) -> Response:
        """Find the smallest believable change of every instance that changes the decision."""
        result = await service.explain(service.read(body.instances), body)
        return respond(explanation(result, service))

    @api.get("/v1/metadata", response_model=Metadata)
    async def metadata() -> Response:
        """Say what the service answers for."""
        return respond(
            {
                "name": service.name,
                "version": __version__,
                "classes": labels_of(service.classes),
                **service.data.describe(),
                "methods": service.methods,
                "default_method": service.default_method,
                "limits": vars(service.limits),
            }
        )

    @api.get("/healthz", responses={503: {"model": ErrorMessage}})
    async def health() -> Response:
        """Say whether the model answers."""
        busy = service.gate.busy_seconds
        if not service.ready:
            return respond({"error": f"The model has been busy for {busy:.0f} s."}, 503)
        return respond({"status": "ok", "model": f"busy for {busy:.0f} s" if busy > 1 else "ready"})

    @api.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Return counters in the text format of Prometheus."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")


def _add_errors(api: FastAPI) -> None:
    """Answer every failure with one sentence."""

    async def known(request: Request, error: Exception) -> Response:
        status, seconds = STATUSES[type(error)]
        headers = None if seconds is None else {"retry-after": str(seconds)}
        return respond({"error": str(error)}, status, headers)

    for kind in STATUSES:
        api.add_exception_handler(kind, known)

    @api.exception_handler(RequestValidationError)
    async def unusable(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part != "body")
        status = 400 if first["type"] == "json_invalid" else 422
        return respond({"error": f"{place}: {first['msg']}."}, status)

    @api.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        headers = dict(error.headers) if error.headers else None
        return respond({"error": str(error.detail)}, error.status_code, headers)

    @api.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        return respond({"error": "The service failed; its log says why."}, 500)


def respond(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return JSON, which never holds NaN."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return Response(text.encode(), status, headers, media_type="application/json")


def labels_of(labels: Any) -> list[Any]:
    """Return labels as JSON holds them."""
    return [plain(label) for label in np.asarray(labels).tolist()]


def explanation(result: Counterfactuals, service: Service) -> dict[str, Any]:
    """Return a result as it travels."""
    columns = {
        "source": result.source.tolist(),
        "valid": result.valid.tolist(),
        "status": result.status.tolist(),
        "message": result.message.tolist(),
        "label": labels_of(result.labels),
        "target": labels_of(result.target),
        "cf_label": labels_of(result.cf_labels),
        "probabilities": finite_lists(result.proba),
        "cf_probabilities": finite_lists(result.cf_proba),
        "values": service.data.write_result(result),
        "changed_fraction": finite_lists(result.changed_fraction),
        "calls": result.calls.tolist(),
        "seconds": finite_lists(result.seconds),
    }
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {
        "method": result.provenance["method"],
        "version": __version__,
        "classes": labels_of(result.classes),
        "counterfactuals": rows,
    }
