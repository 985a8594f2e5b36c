"""Jobs: explanations in threads, with progress and cancellation."""

from __future__ import annotations

import asyncio
import copy
import re
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from ..engine import Budget, Constraints, Counterfactuals
from ..engine.interruption import Interruption, heeding
from ..models.classifier import Array, Classifier
from .methods import MethodChoice, Methods
from .model_gate import Busy
from .workspace import Workspace

State = Literal["running", "done", "cancelled", "failed"]

#: jobs that may run at the same time, and finished ones that are kept
MOST_RUNNING = 2
MOST_KEPT = 40
#: seconds a client waits for news at most, between looks, and between reports of progress
PATIENCE = 10.0
LOOK_SECONDS = 0.02
REPORT_SECONDS = 0.15
PATH = re.compile(r"(?:[A-Za-z]:)?[/\\](?:[^\s'\"/\\:]+[/\\])+")


class NotFound(Exception):
    """Something that a client asked for does not exist."""


@dataclass(frozen=True)
class Question:
    """What is to be explained, and how.

    Parameters
    ----------
    row : array of shape (1, *shape)
        The instance as it travels.
    instance : int or None
        The instance of the workspace that it is or was made of.
    edited : bool
        Whether its values were edited.
    target : int or None
        The class wanted; None: the method chooses.
    choice : MethodChoice
        The method.
    constraints : Constraints or None
        Limits.
    k : int
        Alternatives wanted.
    confidence : float or None
        Least P(target) to aim for.
    budget : Budget or None
        Limits of the cost.
    """

    row: Array
    instance: int | None
    edited: bool
    target: int | None = None
    choice: MethodChoice = field(default_factory=MethodChoice)
    constraints: Constraints | None = None
    k: int = 1
    confidence: float | None = None
    budget: Budget | None = None

    @property
    def allowed(self) -> int | None:
        """Model rows that it may cost."""
        return (self.budget or Budget()).share(1, self.k)


class Job:
    """One explanation.

    Attributes
    ----------
    version : int
        Rises with every change.
    state : {"running", "done", "cancelled", "failed"}
        What became of it.
    message : str
        What is going on, or the reason of a failure.
    result : Counterfactuals or None
        What was found; also of a job that was cancelled, where something was.
    preview : dict or None
        What the page shows at once; see `views`.
    """

    def __init__(self, question: Question, preview: dict[str, Any] | None) -> None:
        self.id = secrets.token_urlsafe(9)
        self.question = question
        self.preview = preview
        self.version = 1
        self.state: State = "running"
        self.message = ""
        self.result: Counterfactuals | None = None
        self.interruption = Interruption()
        self._started = time.monotonic()
        self._ended: float | None = None
        self._asked: Callable[[], int] = lambda: 0
        self._reported = (0, self._started)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @property
    def seconds(self) -> float:
        """For how long it ran."""
        return (self._ended or time.monotonic()) - self._started

    @property
    def asked(self) -> int:
        """Model rows asked about so far."""
        return self._asked()

    @property
    def working(self) -> bool:
        """Whether its thread still works."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, workspace: Workspace, methods: Methods) -> None:
        """Begin to work."""
        self._thread = threading.Thread(
            target=self._run, args=(workspace, methods), name=f"explain-{self.id}", daemon=True
        )
        self._thread.start()

    def cancel(self) -> None:
        """End the search after the batch that is asked now."""
        self.interruption.requested = True
        self._finish("cancelled", "Cancelled.")

    async def news(self, after: int, is_closing: Callable[[], bool]) -> None:
        """Wait until the version is above `after`, at most ten seconds."""
        deadline = time.monotonic() + PATIENCE
        while self.version <= after and time.monotonic() < deadline and not is_closing():
            await asyncio.sleep(LOOK_SECONDS)
            self._report_progress()

    def wait(self, seconds: float) -> None:
        """Wait until its thread ended."""
        if self._thread is not None:
            self._thread.join(timeout=seconds)

    def _report_progress(self) -> None:
        asked, at = self._reported
        if self.asked == asked or time.monotonic() - at < REPORT_SECONDS:
            return
        self._reported = (self.asked, time.monotonic())
        self.version += 1

    def _tell(self, message: str) -> None:
        self.message = message
        self.version += 1

    def _finish(self, state: State, message: str, result: Counterfactuals | None = None) -> None:
        """End the job, once; what a job that was cancelled found is kept."""
        with self._lock:
            if self.state == "running":
                self.state = state
                self.message = message
                self._ended = time.monotonic()
            elif self.state != "cancelled" or result is None or not result.valid.any():
                return
            self.result = result
            self.version += 1

    def _run(self, workspace: Workspace, methods: Methods) -> None:
        """Fit the method, where it is not fitted yet, and explain."""
        try:
            with heeding(self.interruption):
                result = self._explain(workspace, methods)
        # The model and its data are the user's: whatever they raise, the page tells it and the
        # server lives on.
        except Exception as error:
            self._finish("failed", describe_failure(error))
            return
        if (result.status == "error").all():
            self._finish("failed", without_folders(str(result.message[0])))
            return
        self._finish("done", "", result)

    def _explain(self, workspace: Workspace, methods: Methods) -> Counterfactuals:
        question = self.question
        if not methods.is_fitted(question.choice):
            self._tell("Preparing the method: it looks at the reference once.")
        fitted = methods.fitted(question.choice)
        self._tell("")
        # The copy counts the rows of this job alone.
        explainer = copy.copy(fitted)
        explainer.classifier_ = self._counted(fitted.classifier_)
        _, options = methods.make(question.choice)
        i = question.instance
        if i is None or question.edited:
            X = workspace.as_given(question.row, i)
        else:
            X = workspace.given(i)
        target = None if question.target is None else workspace.classes[question.target]
        result: Counterfactuals = explainer.explain(
            X,
            target,
            constraints=question.constraints,
            k=question.k,
            budget=question.budget,
            confidence=question.confidence,
            random_state=0,
            **options,
        )
        names = None if workspace.names is None else np.array(workspace.names)
        result = replace(result, source=np.full(len(result), i or 0), names=names)
        return result[_order(result)]

    def _counted(self, classifier: Classifier) -> Classifier:
        own = copy.copy(classifier)
        before = own.rows_evaluated
        self._asked = lambda: own.rows_evaluated - before
        return own


class Jobs:
    """Keep the jobs of one explorer.

    Parameters
    ----------
    workspace : Workspace
        What is explored.
    methods : Methods
        The methods.
    """

    def __init__(self, workspace: Workspace, methods: Methods) -> None:
        self._workspace = workspace
        self._methods = methods
        self._jobs: dict[str, Job] = {}
        self.closing = False

    def start(self, question: Question, preview: dict[str, Any] | None) -> Job:
        """Start a job.

        Raises
        ------
        Busy
            If as many as allowed are working already.
        """
        working = [job for job in self._jobs.values() if job.working]
        if len(working) >= MOST_RUNNING:
            running = sum(job.state == "running" for job in working)
            reason = "are running; cancel one or wait" if running else "still wait for the model"
            raise Busy(f"{len(working)} explanations {reason}.")
        finished = [job for job in self._jobs.values() if not job.working]
        for job in finished[: len(self._jobs) - MOST_KEPT + 1]:
            del self._jobs[job.id]
        job = Job(question, preview)
        self._jobs[job.id] = job
        job.start(self._workspace, self._methods)
        return job

    def find(self, identifier: str) -> Job:
        """Return a job by its identifier.

        Raises
        ------
        NotFound
            If there is none.
        """
        if identifier not in self._jobs:
            raise NotFound("There is no such explanation any more.")
        return self._jobs[identifier]

    def close(self) -> None:
        """Cancel all jobs; a model that hangs is not waited for."""
        self.closing = True
        for job in self._jobs.values():
            job.cancel()
        for job in self._jobs.values():
            job.wait(1.0)


def describe_failure(error: Exception) -> str:
    """Say in one line why something failed, without the folders of files."""
    text = without_folders(str(error)) or "no reason was given"
    if isinstance(error, ValueError | TypeError | ImportError):
        return text
    return f"{type(error).__name__}: {text}"


def without_folders(text: str) -> str:
    """Put a text on one line, and leave the folders of files out."""
    return PATH.sub("…/", " ".join(text.split()))[:300]


def _order(result: Counterfactuals) -> Array:
    """Return the alternatives from smaller to more believable ones."""
    level = result.info.get("level", np.zeros(len(result)))
    order = np.lexsort((result.changed_fraction, np.nan_to_num(level), ~result.valid))
    return np.asarray(order)
