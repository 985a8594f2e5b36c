"""ModelGate: one door to the model for many threads, behind which waiting questions are merged."""

from __future__ import annotations

import asyncio
import copy
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from types import MethodType
from typing import Any

import numpy as np

from ..models.classifier import Array, Classifier
from ..models.verdict import Verdict
from ..models.wrapper import Wrapper

#: what of a classifier runs the model
_ASKING = ("_evaluate", "_decide", "logits")


class Busy(RuntimeError):
    """Too many questions wait already."""


class NoAnswer(RuntimeError):
    """The model has not answered in time."""


class ModelFailure(RuntimeError):
    """The model raised an exception, or gave something that is no number."""


class ModelGate:
    """Ask a model from many threads: waiting questions are asked together, one batch at a time.

    Parameters
    ----------
    classifier : Classifier
        The model; never changed.
    max_rows : int, default=4096
        Rows of questions that are merged into one batch. A larger question is asked alone.
    max_waiting : int, default=1024
        Questions that may wait; one more is refused with `Busy`.
    patience : float, default=30.0
        Seconds after which a question without an answer ends with `NoAnswer`.
    on_batch : function of two ints, optional
        Called after every merged batch with its number of questions and of rows.

    Attributes
    ----------
    classifier : Classifier
        The same model for searches in other threads. `predict` goes first between their batches.

    Examples
    --------
    >>> import asyncio
    >>> from contrafact import as_classifier
    >>> gate = ModelGate(as_classifier(lambda X: np.hstack([1 - X, X])))
    >>> asyncio.run(gate.predict(np.array([[0.2], [0.9]]))).label.tolist()
    [0, 1]
    >>> gate.close()
    """

    def __init__(
        self,
        classifier: Classifier,
        *,
        max_rows: int = 4096,
        max_waiting: int = 1024,
        patience: float = 30.0,
        on_batch: Callable[[int, int], None] | None = None,
    ) -> None:
        self.max_rows = max_rows
        self.max_waiting = max_waiting
        self.patience = patience
        self._on_batch = on_batch or (lambda questions, rows: None)
        self._door = _Door()
        self.classifier = _behind(self._door, classifier)
        self._waiting: deque[_Question] = deque()
        self._news = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="model-gate", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many questions wait for the next batch."""
        return len(self._waiting)

    @property
    def busy_seconds(self) -> float:
        """For how long the model has been working on one batch; 0 where it is idle."""
        return self._door.held_for

    async def predict(self, x: Array) -> Verdict:
        """Ask about instances, together with whatever else waits.

        Parameters
        ----------
        x : array of shape (n, ...)
            Instances as the classifier takes them; of a `Tabular` one the codes of its table.

        Returns
        -------
        Verdict
            About the n instances; all its probabilities are finite.

        Raises
        ------
        Busy
            If `max_waiting` questions wait already.
        NoAnswer
            If there is no answer after `patience` seconds, or the gate was closed.
        ModelFailure
            If the model raised, or gave a probability that is no number.
        """
        if self.busy_seconds > self.patience:
            raise NoAnswer(self._describe_delay())
        question = _Question(np.asarray(x), asyncio.get_running_loop())
        with self._news:
            if self._closed:
                raise NoAnswer("The server is closing.")
            if len(self._waiting) >= self.max_waiting:
                raise Busy(f"{len(self._waiting)} questions wait already; try again later.")
            self._waiting.append(question)
            self._news.notify()
        try:
            return await asyncio.wait_for(question.answer, self.patience)
        except asyncio.TimeoutError:
            raise NoAnswer(self._describe_delay()) from None

    def close(self) -> None:
        """Refuse what waits and end the gate's thread; a batch that runs is not waited for long."""
        with self._news:
            self._closed = True
            self._news.notify()
        self._thread.join(timeout=1.0)

    def _describe_delay(self) -> str:
        return f"The model has not answered within {self.patience:g} seconds."

    def _serve(self) -> None:
        """Answer questions until the gate is closed."""
        while True:
            with self._news:
                self._news.wait_for(lambda: self._closed or self._waiting)
                if self._closed:
                    break
            with self._door.first():
                # Taken inside: what arrives while a search holds the door joins the batch.
                self._answer(self._next_batch())
        while self._waiting:
            self._waiting.popleft().fail(NoAnswer("The server is closing."))

    def _next_batch(self) -> list[_Question]:
        """Take the first question and those that wait with instances of the same shape."""
        with self._news:
            batch: list[_Question] = []
            rows = 0
            left: deque[_Question] = deque()
            while self._waiting:
                question = self._waiting.popleft()
                if question.answer.cancelled():
                    continue
                fits = not batch or (
                    question.x.shape[1:] == batch[0].x.shape[1:]
                    and rows + len(question.x) <= self.max_rows
                )
                if fits:
                    batch.append(question)
                    rows += len(question.x)
                else:
                    left.append(question)
            self._waiting = left
        return batch

    def _answer(self, batch: list[_Question]) -> None:
        """Ask about a batch, and about each of its questions alone where that fails."""
        if not batch:
            return
        try:
            verdict = self.classifier.final_verdict(np.concatenate([each.x for each in batch]))
        # Whatever the user's model raises is told to those who asked; the thread has to live on.
        except Exception as error:
            if len(batch) == 1:
                batch[0].fail(ModelFailure(f"The model failed: {_describe(error)}"))
                return
            for question in batch:  # the instances of one question may be to blame
                self._answer([question])
            return
        sizes = [len(each.x) for each in batch]
        self._on_batch(len(batch), sum(sizes))
        for question, part in zip(batch, _split(verdict, sizes), strict=True):
            is_number = part.proba.isfinite().all(1)
            if bool(is_number.all()):
                question.succeed(part)
                continue
            row = int((~is_number).int().argmax())
            question.fail(ModelFailure(f"The model gave NaN as a probability of instance {row}."))


class _Question:
    """Instances, and the future of who asks about them."""

    def __init__(self, x: Array, loop: asyncio.AbstractEventLoop) -> None:
        self.x = x
        self.answer: asyncio.Future[Verdict] = loop.create_future()
        self._loop = loop

    def succeed(self, verdict: Verdict) -> None:
        """Give the answer to who asks."""
        self._settle(self.answer.set_result, verdict)

    def fail(self, error: Exception) -> None:
        """Raise an exception where the answer is awaited."""
        self._settle(self.answer.set_exception, error)

    def _settle(self, settle: Callable[[Any], None], value: Any) -> None:
        """Settle the future in its own thread, unless nobody waits for it any more."""

        def settle_once() -> None:
            if not self.answer.done():
                settle(value)

        with suppress(RuntimeError):  # the loop was closed
            self._loop.call_soon_threadsafe(settle_once)


class _Door:
    """Let one thread at a time ask the model, and those of `first` before all others.

    A thread of `first` keeps the place behind the holder (`_next`) while it waits; the others wait
    in `_line` for that place, so that none of them enters twice before it.
    """

    def __init__(self) -> None:
        self._line = threading.Lock()
        self._next = threading.Lock()
        self._inside = threading.Lock()
        self._holder: int | None = None
        self._since = 0.0

    @property
    def held_for(self) -> float:
        """Seconds since a thread entered; 0 where none is inside."""
        return 0.0 if self._holder is None else time.monotonic() - self._since

    @contextmanager
    def first(self) -> Iterator[None]:
        """Enter before all that wait in line."""
        with self._next:
            self._inside.acquire()
        self._holder, self._since = threading.get_ident(), time.monotonic()
        try:
            yield
        finally:
            self._holder = None
            self._inside.release()

    @contextmanager
    def in_line(self) -> Iterator[None]:
        """Enter after all of `first`; a thread that is inside passes."""
        if self._holder == threading.get_ident():
            yield
            return
        with self._line, self.first():
            yield


def _behind(door: _Door, classifier: Classifier) -> Classifier:
    """Copy a classifier such that it asks its model only when it is inside the door.

    It stays of its kind, since methods look at the kind of a classifier and at the model inside.
    """
    copied = copy.copy(classifier)
    if isinstance(copied, Wrapper):
        copied.inner = _behind(door, copied.inner)
        return copied
    for name in _ASKING:
        setattr(copied, name, MethodType(_guarded(door, getattr(type(copied), name)), copied))
    return copied


def _guarded(door: _Door, method: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method of a classifier wait at the door."""

    @wraps(method)
    def ask(self: Classifier, x: Any) -> Any:
        with door.in_line():
            return method(self, x)

    return ask


def _split(verdict: Verdict, sizes: list[int]) -> list[Verdict]:
    """Divide the answers about merged questions."""
    parts = zip(
        verdict.proba.split(sizes),
        verdict.label.split(sizes),
        verdict.score.split(sizes),
        strict=True,
    )
    return [Verdict(*part) for part in parts]


def _describe(error: Exception) -> str:
    """Return kind and first line of an exception, shortened."""
    line, _, _ = str(error).strip().partition("\n")
    return f"{type(error).__name__}: {line[:300]}"
