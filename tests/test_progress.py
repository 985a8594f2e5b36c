"""Progress bars: which one is made where, and what the one of notebooks shows."""

import pytest
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from contrafact import progress
from contrafact.engine.progress import row_progress
from contrafact.progress import NotebookProgress, progress_bar


class Output:
    """What was shown, in place of the output of a cell."""

    def __init__(self):
        self.shown = []

    def update(self, bar):
        self.shown.append(bar._repr_mimebundle_())


@pytest.fixture
def bar():
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    bar = NotebookProgress(*columns)
    bar._output = Output()
    return bar


def test_a_notebook_gets_its_own(monkeypatch):
    assert type(progress_bar()) is not NotebookProgress
    monkeypatch.setattr(progress.get_console(), "is_jupyter", True)
    assert type(progress_bar()) is NotebookProgress
    assert progress_bar(visible=False).disable


def test_it_shows_every_task_that_is_visible(bar):
    first = bar.add_task("cells & <b>", total=4)
    bar.add_task("hidden", total=2, visible=False)
    bar.add_task("rows", total=3)
    bar.advance(first, 2)
    assert bar._repr_mimebundle_() == {
        "text/plain": "cells & <b> 2/4\nrows 0/3",
        "text/html": '<div>cells &amp; &lt;b&gt; <progress max="4" value="2"></progress> 2/4</div>'
        '<div>rows <progress max="3" value="0"></progress> 0/3</div>',
    }


def test_it_is_not_updated_more_often_than_one_can_see(bar):
    now = [100.0]
    bar.get_time = lambda: now[0]
    task = bar.add_task("rows", total=1000)
    for _ in range(1000):
        now[0] += 0.001
        bar.advance(task)
    seen = len(bar._output.shown)
    assert 9 <= seen <= 12
    bar.stop()
    assert bar._output.shown[-1]["text/plain"] == "rows 1000/1000"


@pytest.mark.parametrize("in_notebook", [False, True])
def test_chunks_that_take_minutes_have_a_pace(monkeypatch, in_notebook):
    monkeypatch.setattr(progress.get_console(), "is_jupyter", in_notebook)
    now = [0.0]
    bar = progress_bar(TimeRemainingColumn(), pace_over=3600.0)
    bar._output = Output()
    bar.get_time = lambda: now[0]
    task = bar.add_task("rows", total=100, completed=40)
    for _ in range(3):
        now[0] += 120.0
        bar.advance(task, 10)
    assert bar.tasks[0].time_remaining == 3 * 120


def test_rows_of_an_earlier_run_are_done_already(capsys):
    with row_progress(50, "CELS", show=True, done=20) as advance:
        advance(30)
    assert "50/50" in capsys.readouterr().out
