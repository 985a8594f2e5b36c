"""ModelGate: one door to the model for many threads, behind which waiting questions are merged."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import MethodType
from typing import Any

import numpy as np

from ..models.classifier import Array, Classifier
from ..models.verdict import Verdict
from ..models.wrapper import Wrapper
from .merging import Busy, MergingThread, ModelFailure, NoAnswer, describe

__all__ = ["Busy", "ModelFailure", "ModelGate", "NoAnswer"]

#: what of a classifier runs the model
_ASKING = ("_evaluate", "_decide", "logits")


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
        self._on_batch = on_batch or (lambda questions, rows: None)
        self._door = _Door()
        self.classifier = _behind(self._door, classifier)
        self._thread: MergingThread[Array, Verdict] = MergingThread(
            "The model",
            self._answer,
            max_size=max_rows,
            max_waiting=max_waiting,
            patience=patience,
            # What arrives while a search holds the door joins the batch.
            enter=self._door.first,
        )

    @property
    def waiting(self) -> int:
        """How many questions wait for the next batch."""
        return self._thread.waiting

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
        x = np.asarray(x)
        return await self._thread.ask(x, x.shape[1:], len(x))

    def close(self) -> None:
        """Refuse what waits and end the gate's thread; a batch that runs is not waited for long."""
        self._thread.close()

    def _answer(self, questions: list[Array]) -> list[Verdict | Exception]:
        """Ask about the instances of several questions at once."""
        try:
            verdict = self.classifier.final_verdict(np.concatenate(questions))
        # Whatever the user's model raises.
        except Exception as error:
            raise ModelFailure(f"The model failed: {describe(error)}") from error
        sizes = [len(x) for x in questions]
        self._on_batch(len(questions), sum(sizes))
        return [_refuse_nan(part) for part in _split(verdict, sizes)]


def _refuse_nan(verdict: Verdict) -> Verdict | ModelFailure:
    """Return a verdict, or a failure where a probability is no number."""
    is_number = verdict.proba.isfinite().all(1)
    if bool(is_number.all()):
        return verdict
    row = int((~is_number).int().argmax())
    return ModelFailure(f"The model gave NaN as a probability of instance {row}.")


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
