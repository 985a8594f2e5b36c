"""A progress bar over the instances of a request or of a large source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: seconds over which the pace is averaged: chunks of a large source may take minutes each
PACE_OVER = 3600.0


@contextmanager
def row_progress(
    total: int, name: str, *, show: bool, done: int = 0
) -> Iterator[Callable[[int], None]]:
    """Show a progress bar, where it is asked for: the time left, and in the end the time taken.

    Parameters
    ----------
    total : int
        Number of instances.
    name : str
        Name of the method.
    show : bool
        Whether there is a bar.
    done : int, default=0
        Instances that were finished by an earlier run.

    Yields
    ------
    function of int
        To be called with the number of instances just finished.
    """
    if not show:
        yield lambda finished: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    from ..progress import progress_bar

    columns = (
        TextColumn("Explaining with {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with progress_bar(*columns, pace_over=PACE_OVER) as bar:
        task = bar.add_task(name, total=total, completed=done)
        yield lambda finished: bar.advance(task, finished)
        bar.update(task, completed=total)
