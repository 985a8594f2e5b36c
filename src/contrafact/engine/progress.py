"""A progress bar that costs nothing when it is off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def row_progress(show: bool, total: int, name: str) -> Iterator[Callable[[int], None]]:
    """Yields a function to call with the number of rows just finished."""
    if not show:
        yield lambda finished: None
        return
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
