"""Progress bars: which one is made where, and what the one of notebooks shows."""

import pytest
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn

from contrafact import progress
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
