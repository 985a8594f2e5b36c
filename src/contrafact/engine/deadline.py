"""Deadline: when a request has to stop asking, looked at before every batch of a model."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor

from ..models.classifier import Classifier
from ..models.verdict import Verdict
from .interruption import CURRENT, INTERRUPTED

#: why a search stopped that had no time left
OUT_OF_TIME = "the budget ran out"


class Deadline:
    """Say when to stop asking, and how many rows a model answers until then.

    A deadline made where searches are `interruptible` expires as well when the user interrupts.

    Parameters
    ----------
    at : float, default=inf
        Value of `time.perf_counter` from which on no model batch is started.

    Attributes
    ----------
    reason : str
        Why a search stopped that had no time left.

    Examples
    --------
    >>> deadline = Deadline()
    >>> deadline.expired
    False
    >>> deadline.expire("interrupted")
    >>> deadline.expired, deadline.reason
    (True, 'interrupted')
    """

    def __init__(self, at: float = math.inf) -> None:
        self._at = at
        self._seconds_per_row: dict[Classifier, float] = {}
        self._interruption = CURRENT.get()
        self.reason = OUT_OF_TIME

    @property
    def expired(self) -> bool:
        """Whether no further batch may be started."""
        if self._interruption is not None and self._interruption.requested:
            self.expire(INTERRUPTED)
        return time.perf_counter() >= self._at

    @property
    def in_force(self) -> bool:
        """Whether there is a deadline, or may be one at any time."""
        return self._at < math.inf or self._interruption is not None

    def expire(self, reason: str = OUT_OF_TIME) -> None:
        """End the search of every instance; what was found until now is kept.

        Parameters
        ----------
        reason : str
            What the message of a row that was not reached says.
        """
        self._at = -math.inf
        self.reason = reason

    def batch_size(self, model: Classifier, limit: int) -> int:
        """Return how many rows to hand to a model at once.

        Parameters
        ----------
        model : Classifier
            The model.
        limit : int
            The largest number.

        Returns
        -------
        int
            As many as the model can be expected to answer in time, at least one and at most
            `limit`. A model that was not timed yet counts as slow as the slowest that was.
        """
        if not self.in_force:
            return limit
        slowest = max(self._seconds_per_row.values(), default=0.0)
        pace = self._seconds_per_row.get(model, slowest)
        left = self._at - time.perf_counter()
        if pace * limit <= left or pace == 0:
            return limit
        return max(1, int(left / pace))

    @contextmanager
    def timing(self, model: Classifier, n: int) -> Iterator[None]:
        """Measure how long a model takes for the n rows it is asked about inside the context."""
        start = time.perf_counter()
        yield
        self.note(model, n, start)

    def note(self, model: Classifier, n: int, start: float) -> None:
        """Note that a model was asked about n rows at the time `start`, and has answered now."""
        self._seconds_per_row[model] = (time.perf_counter() - start) / max(n, 1)


def evaluate_in_time(
    model: Classifier,
    x: Tensor,
    deadline: Deadline,
    before_batch: Callable[[slice], None],
) -> Verdict:
    """Ask a model in batches until the deadline.

    Parameters
    ----------
    model : Classifier
        The model.
    x : Tensor of shape (m, *shape)
        Rows to ask about.
    deadline : Deadline
        Looked at before each batch.
    before_batch : function of a slice
        Called with the rows of each batch that is asked about.

    Returns
    -------
    Verdict
        About the first rows, as many as there was time for.
    """
    parts = []
    done = 0
    while done < len(x) and not deadline.expired:
        size = deadline.batch_size(model, model.internal_batch(x))
        batch = x[done : done + size] if done or size < len(x) else x
        before_batch(slice(done, done + len(batch)))
        start = time.perf_counter()
        parts.append(model.evaluate(batch))
        deadline.note(model, len(batch), start)
        done += len(batch)
    return Verdict.concat(parts or [model.evaluate(x[:0])])
