"""A progress bar over the instances of a request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def row_progress(total: int, name: str, *, show: bool) -> Iterator[Callable[[int], None]]:
    """Show a progress bar, where it is asked for.

    Parameters
    ----------
    total : int
        Number of instances.
    name : str
        Name of the method.
    show : bool
        Whether there is a bar.

    Yields
    ------
    function of int
        To be called with the number of instances just finished.
    """
    if not show:
        yield lambda finished: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    from ..progress import progress_bar

    columns = (
        TextColumn("Explaining with {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with progress_bar(*columns) as bar:
        task = bar.add_task(name, total=total)
        yield lambda finished: bar.advance(task, finished)
        bar.update(task, completed=total)
