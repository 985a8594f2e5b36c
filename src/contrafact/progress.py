"""Progress bars in terminals and in notebooks."""

from __future__ import annotations

from html import escape
from typing import Any

from rich import get_console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID
from typing_extensions import override

#: seconds between two updates of the output of a cell
UPDATE_EVERY = 0.1


def progress_bar(
    *columns: ProgressColumn, visible: bool = True, pace_over: float = 30.0
) -> Progress:
    """Make a progress bar for the place where the program runs.

    Parameters
    ----------
    *columns : rich.progress.ProgressColumn
        What a line shows, from left to right.
    visible : bool, default=True
        Whether it is shown at all.
    pace_over : float, default=30
        Seconds over which the pace is averaged, from which the time left is estimated.

    Returns
    -------
    rich.progress.Progress
        A context manager; in a notebook, one that is shown in the output of the cell.
    """
    if visible and get_console().is_jupyter:
        return NotebookProgress(*columns, pace_over=pace_over)
    return Progress(*columns, disable=not visible, speed_estimate_period=pace_over)


class NotebookProgress(Progress):
    """Show progress in the output of a notebook cell, and leave the last state there.

    In notebooks rich itself needs ipywidgets, whose output is lost when the notebook is saved, and
    writes in colors that are hard to read on one background or another. Here the output of the cell
    is replaced as tasks advance, in the thread that reports it.

    Parameters
    ----------
    *columns : rich.progress.ProgressColumn
        What a line shows, from left to right.
    pace_over : float, default=30
        Seconds over which the pace is averaged.
    """

    def __init__(self, *columns: ProgressColumn, pace_over: float = 30.0) -> None:
        super().__init__(*columns, auto_refresh=False, speed_estimate_period=pace_over)
        self._shown = columns
        self._output: Any = None
        self._updated = 0.0

    @override
    def start(self) -> None:
        from IPython import display

        show: Any = display.display  # has no types
        self._output = show(self, display_id=True)

    @override
    def stop(self) -> None:
        self.refresh()

    @override
    def refresh(self) -> None:
        self._updated = self.get_time()
        self._output.update(self)

    @override
    def advance(self, task_id: TaskID, advance: float = 1) -> None:
        super().advance(task_id, advance)
        self._refresh_if_due()

    @override
    def update(self, task_id: TaskID, **changes: Any) -> None:
        super().update(task_id, **changes)
        self._refresh_if_due()

    @override
    def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> dict[str, str]:
        visible = [task for task in self.tasks if task.visible]
        return {
            "text/plain": "\n".join(self._line(task, as_html=False) for task in visible),
            "text/html": "".join(
                f"<div>{self._line(task, as_html=True)}</div>" for task in visible
            ),
        }

    def _line(self, task: Task, *, as_html: bool) -> str:
        """Write the columns of a task; a bar only in HTML, since the counts say the same."""
        parts = []
        for column in self._shown:
            if not isinstance(column, BarColumn):
                text = str(column(task))
                parts.append(escape(text) if as_html else text)
            elif as_html:
                parts.append(
                    f'<progress max="{task.total or 1}" value="{task.completed}"></progress>'
                )
        return " ".join(parts)

    def _refresh_if_due(self) -> None:
        if self.get_time() - self._updated >= UPDATE_EVERY:
            self.refresh()
