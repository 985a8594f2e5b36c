"""KnownVerdicts: what the model says of all instances, asked once in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from ..models.classifier import Array, Classifier

#: rows asked about at once, so that questions of the page get in between
ROWS_AT_ONCE = 256
#: rows without an answer after which the rest is left
MOST_FAILURES = 20


class KnownVerdicts:
    """Ask about all instances and the reference in a thread, and keep the answers.

    Parameters
    ----------
    classifier : Classifier
        The model behind its gate.
    rows, reference_rows : array of shape (n, *shape)
        Instances as `Classifier.final_verdict` takes them; the same array is asked about once.

    Attributes
    ----------
    labels, reference_labels : array of int
        The model's class; -1 where it is not known (yet).
    proba : array of float, shape (n, classes)
        The model's probabilities of the instances; NaN where they are not known.
    complete : threading.Event
        Set when everything was asked.
    """

    def __init__(self, classifier: Classifier, rows: Array, reference_rows: Array) -> None:
        self._classifier = classifier
        self._closed = False
        self.complete = threading.Event()
        self.proba, self.labels = _unknown(len(rows), len(classifier.classes))
        self._parts = [(rows, self.proba, self.labels)]
        self.reference_labels = self.labels
        if reference_rows is not rows:
            proba, self.reference_labels = _unknown(len(reference_rows), len(classifier.classes))
            self._parts.append((reference_rows, proba, self.reference_labels))
        self._thread: threading.Thread | None = None

    def start(self, then: Callable[[], None] = lambda: None) -> None:
        """Begin to ask; `then` is called in the same thread when all is known."""

        def work() -> None:
            for part in self._parts:
                self._ask(*part)
            self.complete.set()
            if not self._closed:
                then()

        self._thread = threading.Thread(target=work, name="contrafact-verdicts", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until all is known and what was to be done then is done."""
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """Stop asking after the batch that is asked now; a model that hangs is not waited for."""
        self._closed = True
        if self._thread is not None:
            self._thread.join(timeout=1.0)

    def _ask(self, rows: Array, proba: Array, labels: Array) -> None:
        """Ask about rows in batches; halves of a batch where it fails."""
        waiting = [
            (start, min(start + ROWS_AT_ONCE, len(rows)))
            for start in range(0, len(rows), ROWS_AT_ONCE)
        ]
        waiting.reverse()
        failures = 0
        while waiting and not self._closed and failures < MOST_FAILURES:
            start, stop = waiting.pop()
            try:
                verdict = self._classifier.final_verdict(rows[start:stop])
            # What a user's model raises, nothing narrower tells; the row stays unknown, and the
            # page tells the reason when it is asked for.
            except Exception:
                failures += stop - start == 1
                middle = (start + stop) // 2
                if middle > start:
                    waiting += [(middle, stop), (start, middle)]
                continue
            is_number = verdict.proba.isfinite().all(1).cpu().numpy()
            proba[start:stop] = verdict.proba.cpu().numpy()
            labels[start:stop] = np.where(is_number, verdict.label.cpu().numpy(), -1)


def _unknown(n: int, n_classes: int) -> tuple[Array, Array]:
    """Return probabilities and labels of rows that were not asked about."""
    return np.full((n, n_classes), np.nan), np.full(n, -1)
