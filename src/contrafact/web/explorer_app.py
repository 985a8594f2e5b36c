"""The application behind the explorer's page: what is at which address."""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from ..engine import Budget, Counterfactuals
from ..models.classifier import Array
from . import exports, giving_back, views
from .column_views import clear_group, profile_points
from .explorer_messages import ExplainMessage, PredictMessage, ProfileMessage, WhyMessage
from .jobs import Job, Jobs, NotFound, Question, without_folders
from .limits import make_constraints
from .methods import MethodChoice, Methods
from .model_gate import Busy, ModelFailure, NoAnswer
from .page_files import page_file
from .prototype_views import Prototypes
from .recipes import Source, recipe
from .workspace import Workspace

#: seconds that the overview waits for the verdicts of all instances
OVERVIEW_SECONDS = 4.0
#: the model counts as busy after so many seconds with one batch
BUSY_SECONDS = 2.0


class ExplorerApp:
    """Answer the requests of the page.

    Parameters
    ----------
    workspace : Workspace
        What is explored.
    source : Source
        Where model and data come from.

    Attributes
    ----------
    app : FastAPI
        The ASGI application.
    """

    def __init__(self, workspace: Workspace, source: Source) -> None:
        self.workspace = workspace
        self.source = source
        self.methods = Methods(workspace)
        self.jobs = Jobs(workspace, self.methods)
        self.prototypes = Prototypes.of(workspace)
        self.started = secrets.token_urlsafe(6)
        # No pages of documentation: they would load scripts from elsewhere.
        self.app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
        self._add_routes()
        self._add_errors()
        workspace.known.start(then=self._warm_up)

    def close(self) -> None:
        """End all that works in the background."""
        self.jobs.close()
        self.workspace.close()

    def _warm_up(self) -> None:
        """Fit the method that is recommended, so that the first explanation begins at once."""
        try:
            self.methods.fitted(MethodChoice())
        # The reason is told when an explanation is asked for.
        except Exception:
            return

    def _add_routes(self) -> None:
        get: list[tuple[str, Callable[..., Any]]] = [
            ("/", self.page),
            ("/assets/{name}", self.asset),
            ("/api/overview", self.overview),
            ("/api/health", self.health),
            ("/api/instances/{i}", self.instance),
            ("/api/jobs/{job}", self.job),
            ("/api/jobs/{job}/report", self.report),
            ("/api/jobs/{job}/arrays", self.arrays),
            ("/api/jobs/{job}/picture", self.picture),
            ("/api/jobs/{job}/recipe", self.recipe),
        ]
        post: list[tuple[str, Callable[..., Any]]] = [
            ("/api/predict", self.predict),
            ("/api/profile", self.profile),
            ("/api/explain", self.explain),
            ("/api/jobs/{job}/why", self.why),
        ]
        for path, answer in get:
            self.app.add_api_route(path, answer, methods=["GET"], response_class=Response)
        for path, answer in post:
            self.app.add_api_route(path, answer, methods=["POST"], response_class=Response)
        self.app.add_api_route(
            "/api/jobs/{job}", self.cancel, methods=["DELETE"], response_class=Response
        )

    def _add_errors(self) -> None:
        """Answer errors as JSON with one sentence."""

        def handler(status: int) -> Callable[[Request, Exception], Awaitable[Response]]:
            async def answer(request: Request, error: Exception) -> Response:
                return as_json({"error": without_folders(str(error))}, status)

            return answer

        for kind, status in (
            (Busy, 429),
            (NoAnswer, 503),
            (ModelFailure, 502),
            (NotFound, 404),
            (ValueError, 400),
            (TypeError, 400),
        ):
            self.app.add_exception_handler(kind, handler(status))

        async def http_error(request: Request, error: Exception) -> Response:
            assert isinstance(error, HTTPException)
            return as_json({"error": str(error.detail)}, error.status_code)

        async def invalid(request: Request, error: Exception) -> Response:
            assert isinstance(error, RequestValidationError)
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"][1:])
            return as_json({"error": f"{place or 'body'}: {first['msg']}"}, 422)

        async def unexpected(request: Request, error: Exception) -> Response:
            return as_json({"error": f"The server failed: {type(error).__name__}."}, 500)

        self.app.add_exception_handler(HTTPException, http_error)
        self.app.add_exception_handler(RequestValidationError, invalid)
        self.app.add_exception_handler(Exception, unexpected)

    # --- the page

    def page(self) -> Response:
        """Send the page."""
        return self.asset("index.html")

    def asset(self, name: str) -> Response:
        """Send a file of the page."""
        found = page_file(name)
        if found is None:
            raise NotFound("The page has no such file.")
        return Response(found.content, media_type=found.media_type)

    # --- instances

    def overview(self) -> Response:
        """Tell about model, data, methods and all instances."""
        self.workspace.known.complete.wait(OVERVIEW_SECONDS)
        from .. import __version__

        words = {
            "model": self.source.model,
            "data": self.source.data,
            "version": __version__,
            "started": self.started,
        }
        return as_json(views.overview(self.workspace, self.methods, words))

    async def health(self) -> Response:
        """Tell whether the model answers."""
        busy = self.workspace.gate.busy_seconds
        model = "ready" if busy < BUSY_SECONDS else f"busy for {busy:.0f} s"
        return as_json({"started": self.started, "model": model})

    async def instance(self, i: int) -> Response:
        """Tell about one instance, its neighbors and prototypes."""
        if not 0 <= i < len(self.workspace):
            raise NotFound(f"There is no instance {i}; there are {len(self.workspace)}.")
        row = self.workspace.row(i)
        known = self.workspace.known
        proba, label = known.proba[i], int(known.labels[i])
        if label < 0:
            proba, label = await self._ask_one(row)
        nearest = None if self.prototypes is None else self.prototypes.nearest(row)
        view = await run_in_threadpool(
            views.instance_view, self.workspace, i, proba, label, nearest
        )
        return as_json(view)

    async def predict(self, message: PredictMessage) -> Response:
        """Tell the probabilities of values that were edited."""
        row = self.workspace.read_values(message.values)
        proba, label = await self._ask_one(row)
        return as_json({"tag": message.tag, "probabilities": proba.tolist(), "label": label})

    async def profile(self, message: ProfileMessage) -> Response:
        """Tell the probabilities along one column."""
        row = self.workspace.read_values(message.values)
        if self.workspace.modality != "row" or message.column >= self.workspace.shape[0]:
            raise ValueError("column must be the number of a column of rows.")
        at = profile_points(self.workspace, message.column, row)
        rows = np.repeat(row, len(at), axis=0)
        rows[:, message.column] = at
        clear_group(self.workspace, rows, message.column)
        proba, _ = await self._ask(rows)
        return as_json({"at": at.tolist(), "probabilities": proba.tolist()})

    async def _ask(self, rows: Array) -> tuple[Array, Array]:
        """Ask the model about rows as they travel."""
        verdict = await self.workspace.gate.predict(rows)
        return verdict.proba.cpu().numpy(), verdict.label.cpu().numpy()

    async def _ask_one(self, row: Array) -> tuple[Array, int]:
        proba, labels = await self._ask(row)
        return proba[0], int(labels[0])

    # --- explanations

    async def explain(self, message: ExplainMessage) -> Response:
        """Start an explanation."""
        question, runner_up = await self._read_question(message)
        target = runner_up if question.target is None else question.target
        preview = await run_in_threadpool(views.preview_view, self.workspace, question.row, target)
        return as_json({"job": self.jobs.start(question, preview).id})

    async def _read_question(self, message: ExplainMessage) -> tuple[Question, int]:
        """Read what is asked, and find the runner-up of the instance."""
        workspace = self.workspace
        i = message.instance
        if i is None and message.values is None:
            raise ValueError("instance or values is needed.")
        if i is not None and i >= len(workspace):
            raise NotFound(f"There is no instance {i}; there are {len(workspace)}.")
        if message.target is not None and message.target >= len(workspace.classes):
            raise ValueError(f"target must be below {len(workspace.classes)}.")
        row = workspace.row(i or 0)
        edited = False
        if message.values is not None:
            values = workspace.read_values(message.values)
            edited = i is None or not np.array_equal(values, row, equal_nan=True)
            row = values
        choice = MethodChoice(message.method, message.level, message.front)
        self.methods.make(choice)
        budget = None
        if message.calls is not None or message.seconds is not None:
            budget = Budget(message.calls, message.seconds)
        question = Question(
            row=row,
            instance=i,
            edited=edited,
            target=message.target,
            choice=choice,
            constraints=make_constraints(workspace, message.limits),
            k=message.k,
            confidence=message.confidence,
            budget=budget,
        )
        known = workspace.known
        if edited or i is None or known.labels[i] < 0:
            proba, label = await self._ask_one(row)
        else:
            proba, label = known.proba[i], int(known.labels[i])
        others = np.where(np.arange(len(proba)) == label, -1, proba)
        return question, int(others.argmax())

    async def job(self, job: str, after: int = 0) -> Response:
        """Tell about an explanation when there is news."""
        found = self.jobs.find(job)
        await found.news(after, lambda: self.jobs.closing)
        return as_json(await run_in_threadpool(views.job_view, self.workspace, found))

    async def cancel(self, job: str) -> Response:
        """Cancel an explanation."""
        found = self.jobs.find(job)
        found.cancel()
        return as_json({"state": found.state})

    async def why(self, job: str, message: WhyMessage) -> Response:
        """Tell what the model says when each part of a change is given back."""
        result, i = self._alternative(self.jobs.find(job), message.alternative)
        parts = giving_back.parts_of(result, i)
        if not parts:
            return as_json({"parts": []})
        rows = giving_back.trials(result, i, parts)
        if self.workspace.schema is not None:
            fixed = [column.kind == "fixed" for column in self.workspace.schema]
            rows[:, fixed] = self.jobs.find(job).question.row[:, fixed]
        proba, labels = await self._ask(rows)
        return as_json({"parts": giving_back.tell(result, i, parts, proba, labels)})

    def _alternative(self, job: Job, number: int) -> tuple[Counterfactuals, int]:
        if job.result is None:
            raise NotFound("This explanation has no result.")
        if not 0 <= number < len(job.result):
            raise NotFound(f"There are {len(job.result)} alternatives.")
        return job.result, number

    # --- files

    def report(self, job: str) -> Response:
        """Send the report."""
        found = self.jobs.find(job)
        result, _ = self._alternative(found, 0)
        command = self._recipe(found)["command"]
        content = exports.report_file(self.workspace, found, result, command)
        return as_file(content, "text/html; charset=utf-8", "report.html")

    def arrays(self, job: str) -> Response:
        """Send the arrays."""
        result, _ = self._alternative(self.jobs.find(job), 0)
        return as_file(exports.arrays_file(result), "application/octet-stream", "arrays.npz")

    def picture(self, job: str, alternative: int = 0) -> Response:
        """Send the picture of an alternative."""
        result, i = self._alternative(self.jobs.find(job), alternative)
        return as_file(exports.picture_file(result, i), "image/png", "picture.png")

    def recipe(self, job: str) -> Response:
        """Tell how to get the same again."""
        return as_json(self._recipe(self.jobs.find(job)))

    def _recipe(self, job: Job) -> dict[str, str]:
        return recipe(self.workspace, self.methods, self.source, job.question)


def as_json(content: Any, status: int = 200) -> Response:
    """Answer with JSON; NaN is no JSON and would be an error."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return Response(text.encode(), status_code=status, media_type="application/json")


def as_file(content: bytes, media_type: str, name: str) -> Response:
    """Answer with a file to be saved."""
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=media_type, headers=headers)
