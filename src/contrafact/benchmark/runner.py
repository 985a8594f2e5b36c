"""Runs a grid: cells not yet in the store, here or on a cluster, each written as soon as it is done."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from .cell import Explain, Train, failed_table
from .child import Child
from .grid import Benchmark, Cell
from .store import Store

if TYPE_CHECKING:
    import pandas as pd

_here = threading.local()
_children: list[Child] = []


def run(
    grid: Benchmark,
    folder: str | Path,
    *,
    n_jobs: int = 1,
    scheduler: str | None = None,
    retry_failed: bool = False,
    progress: bool = True,
) -> None:
    """Run the cells of a grid that are not in `folder` yet.

    A cell is written when it is done; a run that is killed loses the cells in flight and no others, and
    running again goes on from there. A cell that raises, dies or exceeds the grid's time limit is recorded as
    failed, with the reason, and the rest go on.

    Parameters
    ----------
    n_jobs : cells at a time on this machine, in processes of their own (joblib's −1: as many as cores).
    scheduler : address of a dask.distributed scheduler ("tcp://…"): the cells run on its workers instead.
    retry_failed : run failed cells again.
    """
    store = Store(folder)
    store.write_settings(grid)
    cells = [
        cell
        for cell in grid.cells()
        if not store.has(cell) or (retry_failed and store.failed(cell))
    ]
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, disable=not progress) as bar, _workers(n_jobs, scheduler) as workers:
        data = grid.named_datasets()
        wanted = {cell.model_key: cell for cell in cells if not store.has_model(cell.model_key)}
        broken: dict[str, tuple[str, str]] = {}
        training = {
            key: Train(data[cell.dataset], grid.classifiers[cell.classifier], cell.seed)
            for key, cell in wanted.items()
        }
        task = bar.add_task("classifiers", total=len(training), visible=bool(training))
        for key, (status, answer) in workers.do(training, grid.time_limit):
            if status == "done":
                store.write_model(key, answer)
            else:
                broken[key] = (status, f"the classifier could not be trained: {answer}")
            bar.advance(task)

        by_key = {cell.key: cell for cell in cells}
        ready = {
            cell.key: Explain(
                data[cell.dataset],
                store.model(cell.model_key),
                grid.explainers[cell.explainer],
                cell.seed,
                grid.instances,
                grid.selection,
                grid.metrics,
            )
            for cell in cells
            if cell.model_key not in broken
        }
        task = bar.add_task("cells", total=len(cells))
        for cell in cells:
            if cell.model_key in broken:
                _record(store, grid, cell, *broken[cell.model_key])
                bar.advance(task)
        for key, (status, answer) in workers.do(ready, grid.time_limit):
            _record(store, grid, by_key[key], status, answer)
            bar.advance(task)


def progress_of(grid: Benchmark, store: Store) -> pd.DataFrame:
    """Cells done, failed and missing, one line per explainer."""
    import pandas as pd

    states = [
        (
            cell.explainer,
            "missing" if not store.has(cell) else "failed" if store.failed(cell) else "done",
        )
        for cell in grid.cells()
    ]
    frame = pd.DataFrame(states, columns=["explainer", "state"])
    counts = pd.crosstab(frame["explainer"], frame["state"])
    return (
        counts.reindex(list(grid.explainers))
        .reindex(columns=["done", "failed", "missing"], fill_value=0)
        .reset_index()
    )


def _record(store: Store, grid: Benchmark, cell: Cell, status: str, answer: Any) -> None:
    if status == "done":
        frame, arrays = answer
    else:
        data = grid.named_datasets()[cell.dataset]
        frame, arrays = failed_table(data, str(answer), status, grid.instances), {}
    place = {
        "dataset": cell.dataset,
        "classifier": cell.classifier,
        "explainer": cell.explainer,
        "seed": cell.seed,
    }
    for i, (name, value) in enumerate(place.items()):
        frame.insert(i, name, value)
    store.write(cell, frame, arrays)


def in_child(task: Any, time_limit: float | None) -> tuple[str, Any]:
    """Do a task in the child process of this thread."""
    if not hasattr(_here, "child"):
        _here.child = Child()
        _children.append(_here.child)
    status, value = _here.child.do(task, time_limit)
    return status, value


class _Local:
    """Threads of this process, each with a child process."""

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = n_jobs

    def __enter__(self) -> _Local:
        return self

    def __exit__(self, *_: Any) -> None:
        while _children:
            _children.pop().close()
        _here.__dict__.clear()

    def do(
        self, tasks: dict[str, Any], time_limit: float | None
    ) -> Iterator[tuple[str, tuple[str, Any]]]:
        """Answers as they come."""
        from joblib import Parallel, delayed

        def one(key: str, task: Any) -> tuple[str, tuple[str, Any]]:
            return key, in_child(task, time_limit)

        parallel = Parallel(
            n_jobs=self.n_jobs, backend="threading", return_as="generator_unordered"
        )
        yield from parallel(delayed(one)(key, task) for key, task in tasks.items())


class _Cluster:
    """Workers of a dask.distributed cluster; a task whose worker dies is given to another."""

    def __init__(self, scheduler: str) -> None:
        self.scheduler = scheduler

    def __enter__(self) -> _Cluster:
        from distributed import Client

        self.client = Client(self.scheduler, set_as_default=False)
        return self

    def __exit__(self, *_: Any) -> None:
        self.client.close()

    def do(
        self, tasks: dict[str, Any], time_limit: float | None
    ) -> Iterator[tuple[str, tuple[str, Any]]]:
        from distributed import as_completed

        futures = {
            self.client.submit(in_child, task, time_limit, pure=False): key
            for key, task in tasks.items()
        }
        for future in as_completed(list(futures), loop=self.client.loop):
            if future.status == "error":
                yield futures[future], ("error", repr(future.exception()))
            else:
                yield futures[future], future.result()
            future.release()


def _workers(n_jobs: int, scheduler: str | None) -> _Local | _Cluster:
    return _Local(n_jobs) if scheduler is None else _Cluster(scheduler)
