"""A progress bar over the instances of a request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def row_progress(total: int, name: str) -> Iterator[Callable[[int], None]]:
    """Show a progress bar.

    Parameters
    ----------
    total : int
        Number of instances.
    name : str
        Name of the method.

    Yields
    ------
    function of int
        To be called with the number of instances just finished.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("Explaining with {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns) as bar:
        task = bar.add_task(name, total=total)
        yield lambda finished: bar.advance(task, finished)
        bar.update(task, completed=total)
