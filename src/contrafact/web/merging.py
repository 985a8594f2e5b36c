"""MergingThread: a thread that answers questions which wait at the same time together."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, Generic, TypeVar

Content = TypeVar("Content")
Answer = TypeVar("Answer")


class Busy(RuntimeError):
    """Too many questions wait already."""


class NoAnswer(RuntimeError):
    """There was no answer in time."""


class ModelFailure(RuntimeError):
    """The model raised an exception, or gave something that is no number."""


class MergingThread(Generic[Content, Answer]):
    """Answer questions in a thread of its own, those that wait with the same key together.

    Parameters
    ----------
    subject : str
        What answers, as the beginning of a sentence: "The model".
    answer : function of a list of contents
        Returns one answer for each, or the exception to raise where it was asked for. Where it
        raises for several, they are asked one by one: one of them may be to blame.
    max_size : int
        Size of the questions that are merged; a larger question is answered alone.
    max_waiting : int
        Questions that may wait; one more is refused with `Busy`.
    patience : float
        Seconds after which a question without an answer ends with `NoAnswer`.
    enter : function, optional
        Makes a context that is entered before what waits is collected.
    """

    def __init__(
        self,
        subject: str,
        answer: Callable[[list[Content]], Sequence[Answer | Exception]],
        *,
        max_size: int,
        max_waiting: int,
        patience: float,
        enter: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.max_size = max_size
        self.max_waiting = max_waiting
        self.patience = patience
        self._subject = subject
        self._answer = answer
        self._enter = enter
        self._waiting: deque[_Question[Content, Answer]] = deque()
        self._news = threading.Condition()
        self._closed = False
        self._busy_since: float | None = None
        self._thread = threading.Thread(target=self._serve, name="contrafact-merging", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many questions wait for the next batch."""
        return len(self._waiting)

    @property
    def busy_seconds(self) -> float:
        """For how long the thread has been at work on one batch; 0 where it is idle."""
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since

    async def ask(self, content: Content, key: Hashable, size: int) -> Answer:
        """Wait for the answer to a question.

        Parameters
        ----------
        content : object
            What `answer` is given.
        key : hashable
            Questions with equal keys may be merged.
        size : int
            What counts toward `max_size`.

        Returns
        -------
        object
            What `answer` returned for it.
        """
        if self.busy_seconds > self.patience:
            raise self._no_answer()
        question: _Question[Content, Answer] = _Question(content, key, size)
        with self._news:
            if self._closed:
                raise NoAnswer("The server is closing.")
            if len(self._waiting) >= self.max_waiting:
                raise Busy(f"{len(self._waiting)} questions wait already; ask again later.")
            self._waiting.append(question)
            self._news.notify()
        try:
            return await asyncio.wait_for(question.future, self.patience)
        except asyncio.TimeoutError:
            raise self._no_answer() from None

    def close(self) -> None:
        """Refuse what waits and end the thread; a batch that runs is not waited for long."""
        with self._news:
            self._closed = True
            self._news.notify()
        self._thread.join(timeout=1.0)

    def _no_answer(self) -> NoAnswer:
        return NoAnswer(f"{self._subject} has not answered within {self.patience:g} seconds.")

    def _serve(self) -> None:
        """Answer questions until the thread is to end."""
        while True:
            with self._news:
                self._news.wait_for(lambda: self._closed or self._waiting)
                if self._closed:
                    break
            self._busy_since = time.monotonic()
            with self._enter():
                self._settle(self._collect())
            self._busy_since = None
        while self._waiting:
            self._waiting.popleft().fail(NoAnswer("The server is closing."))

    def _collect(self) -> list[_Question[Content, Answer]]:
        """Take the first question and those that may be merged with it."""
        batch: list[_Question[Content, Answer]] = []
        left: deque[_Question[Content, Answer]] = deque()
        size = 0
        with self._news:
            for question in self._waiting:
                if question.future.cancelled():
                    continue
                same = not batch or question.key == batch[0].key
                if same and (not batch or size + question.size <= self.max_size):
                    batch.append(question)
                    size += question.size
                else:
                    left.append(question)
            self._waiting = left
        return batch

    def _settle(self, batch: list[_Question[Content, Answer]]) -> None:
        """Answer the questions of a batch."""
        if not batch:
            return
        try:
            answers = self._answer([question.content for question in batch])
        # Whatever a model or method raises is told to who asked; the thread has to live on.
        except Exception as error:
            if len(batch) == 1:
                batch[0].fail(error)
                return
            for question in batch:
                self._settle([question])
            return
        for question, answer in zip(batch, answers, strict=True):
            if isinstance(answer, Exception):
                question.fail(answer)
            else:
                question.succeed(answer)


class _Question(Generic[Content, Answer]):
    """Something asked for, and the future of who waits for it."""

    def __init__(self, content: Content, key: Hashable, size: int) -> None:
        self.content = content
        self.key = key
        self.size = size
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Answer] = self._loop.create_future()

    def succeed(self, answer: Answer) -> None:
        """Give the answer to who asks."""
        self._settle(self.future.set_result, answer)

    def fail(self, error: Exception) -> None:
        """Raise an exception where the answer is awaited."""
        self._settle(self.future.set_exception, error)

    def _settle(self, settle: Callable[[Any], None], value: Any) -> None:
        """Settle the future in its own thread, unless nobody waits for it any more."""

        def settle_once() -> None:
            if not self.future.done():
                settle(value)

        with suppress(RuntimeError):  # the loop was closed
            self._loop.call_soon_threadsafe(settle_once)


def describe(error: Exception) -> str:
    """Return kind and first line of an exception, shortened."""
    line, _, _ = str(error).strip().partition("\n")
    return f"{type(error).__name__}: {line[:300]}"
