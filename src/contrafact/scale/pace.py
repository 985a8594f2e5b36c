"""Progress of a run: how many rows are done, and how long the rest will take."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: chunks whose pace is taken for that of the rest
LAST = 20


class Pace:
    """Estimate the time left from the pace of the last chunks.

    Parameters
    ----------
    rows : int
        Rows that are still to be done.
    now : function, default=time.monotonic
        The clock.
    """

    def __init__(self, rows: int, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._left = rows
        self._done: deque[tuple[float, int]] = deque([(now(), 0)], maxlen=LAST + 1)

    def add(self, rows: int) -> None:
        """Count rows that were just finished."""
        self._left -= rows
        self._done.append((self._now(), rows))

    def seconds_left(self) -> float | None:
        """Return how long the rest will take; None while nothing is known."""
        (first, _), *later = self._done
        rows = sum(count for _, count in later)
        if not rows:
            return None
        seconds = later[-1][0] - first
        # Time since the last chunk counts against what was expected of it.
        waited = self._now() - later[-1][0]
        return max(0.0, self._left * seconds / rows - waited)

    def text(self) -> str:
        """Return the time left in words, as "3:20 left"."""
        seconds = self.seconds_left()
        if seconds is None:
            return ""
        minutes, rest = divmod(round(seconds), 60)
        hours, minutes = divmod(minutes, 60)
        if hours:
            return f"{hours}:{minutes:02d}:{rest:02d} left"
        return f"{minutes}:{rest:02d} left"


@contextmanager
def chunk_progress(
    total: int, done: int, name: str, *, show: bool
) -> Iterator[Callable[[int], None]]:
    """Show a progress bar over rows, where it is asked for.

    Parameters
    ----------
    total, done : int
        Rows of the source, and how many of them were finished before.
    name : str
        Name of the method.
    show : bool
        Whether there is a bar.

    Yields
    ------
    function of int
        To be called with the number of rows just finished.
    """
    if not show:
        yield lambda rows: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    from ..progress import progress_bar

    columns = (
        TextColumn("Explaining with {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    pace = Pace(total - done)
    with progress_bar(*columns) as bar:
        line = bar.add_task(name, total=total, completed=done, left="")

        def advance(rows: int) -> None:
            pace.add(rows)
            bar.update(line, advance=rows, left=pace.text())

        yield advance
