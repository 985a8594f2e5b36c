"""Run a grid: cells not yet in the store, here or on a cluster, each written when it is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from .cell import Explain, Train, failed_table
from .child import ChildPool
from .grid import Benchmark, Cell
from .store import Store

if TYPE_CHECKING:
    import pandas as pd

#: status and answer of a task, as `Child.run` returns them
Outcome = tuple[str, Any]

#: children of this process where it is a worker of a cluster
_worker_children = ChildPool()


def run(
    grid: Benchmark,
    folder: str | Path,
    *,
    n_jobs: int = 1,
    scheduler: str | None = None,
    retry_failed: bool = False,
    progress: bool = True,
) -> None:
    """Run the cells of a grid that are not in a folder yet.

    A cell is written when it is done; a run that is killed loses the cells in flight and no others,
    and running again goes on from there. A cell that raises, dies or exceeds the grid's time limit
    is recorded as failed, with the reason, and the rest go on.

    Parameters
    ----------
    grid : Benchmark
        The grid.
    folder : str or Path
        Where finished cells are kept; see `Store`.
    n_jobs : int, default=1
        Cells at a time on this machine, each in a process of its own; −1 for as many as cores.
    scheduler : str, optional
        Address of a dask.distributed scheduler ("tcp://…"): the cells run on its workers instead.
    retry_failed : bool, default=False
        Run failed cells again.
    progress : bool, default=True
        Show a progress bar.

    Examples
    --------
    >>> grid = Benchmark(["ItalyPowerDemand"], {"LR": "sklearn.linear_model:LogisticRegression"},
    ...                  {"nearest": "NearestUnlike"}, instances=2, metrics=["valid"])
    >>> run(grid, "benchmark", progress=False)
    >>> grid.results("benchmark")["valid"].tolist()
    [True, True]
    """
    store = Store(folder)
    store.write_settings(grid)
    cells = [cell for cell in grid.cells() if _is_due(cell, store, retry_failed)]
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with (
        Progress(*columns, disable=not progress) as bar,
        _workers(n_jobs, scheduler) as workers,
    ):
        failures = _train(grid, cells, store, workers, bar)
        _explain(grid, cells, failures, store, workers, bar)


def progress_of(grid: Benchmark, store: Store) -> pd.DataFrame:
    """Count the cells that are done, failed and missing.

    Parameters
    ----------
    grid : Benchmark
        The grid.
    store : Store
        Where its cells are kept.

    Returns
    -------
    DataFrame
        One row per explainer: `explainer`, `done`, `failed`, `missing`.

    Examples
    --------
    >>> grid = Benchmark(["ItalyPowerDemand"], {"LR": "sklearn.linear_model:LogisticRegression"},
    ...                  {"nearest": "NearestUnlike"}, seeds=[0, 1])
    >>> progress_of(grid, Store("new"))["missing"].tolist()
    [2]
    """
    import pandas as pd

    states = [(cell.explainer, _state(cell, store)) for cell in grid.cells()]
    frame = pd.DataFrame(states, columns=["explainer", "state"])
    counts = pd.crosstab(frame["explainer"], frame["state"])
    counts = counts.reindex(list(grid.explainers))
    counts = counts.reindex(columns=["done", "failed", "missing"], fill_value=0)
    return counts.reset_index()


def run_in_worker(task: Any, time_limit: float | None) -> Outcome:
    """Run a task in a child of this process, which is a worker of a cluster.

    Parameters
    ----------
    task : object
        Its method `run` is called.
    time_limit : float or None
        Seconds after which the child is ended.

    Returns
    -------
    tuple of str and object
        Status and answer, as `Child.run` returns them.
    """
    return _worker_children.run(task, time_limit)


class _Local:
    """Threads of this process, each with a child process."""

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = n_jobs
        self.children = ChildPool()

    def __enter__(self) -> _Local:
        return self

    def __exit__(self, *_: Any) -> None:
        self.children.close()

    def run(
        self, tasks: Mapping[str, Any], time_limit: float | None
    ) -> Iterator[tuple[str, Outcome]]:
        """Yield the outcome of every task by its key, as they come."""
        from joblib import Parallel, delayed

        def run_one(key: str, task: Any) -> tuple[str, Outcome]:
            return key, self.children.run(task, time_limit)

        parallel = Parallel(
            n_jobs=self.n_jobs,
            backend="threading",
            return_as="generator_unordered",
        )
        yield from parallel(delayed(run_one)(key, task) for key, task in tasks.items())


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

    def run(
        self, tasks: Mapping[str, Any], time_limit: float | None
    ) -> Iterator[tuple[str, Outcome]]:
        """Yield the outcome of every task by its key, as they come."""
        from distributed import as_completed

        key_of = {}
        for key, task in tasks.items():
            future = self.client.submit(run_in_worker, task, time_limit, pure=False)
            key_of[future] = key
        for future in as_completed(list(key_of), loop=self.client.loop):
            if future.status == "error":
                outcome = ("error", repr(future.exception()))
            else:
                outcome = future.result()
            yield key_of[future], outcome
            future.release()


_Workers = _Local | _Cluster


def _workers(n_jobs: int, scheduler: str | None) -> _Workers:
    """Return the workers asked for."""
    if scheduler is None:
        return _Local(n_jobs)
    return _Cluster(scheduler)


def _state(cell: Cell, store: Store) -> str:
    """Return "missing", "failed" or "done"."""
    if not store.has(cell):
        return "missing"
    if store.failed(cell):
        return "failed"
    return "done"


def _is_due(
    cell: Cell,
    store: Store,
    retry_failed: bool,
) -> bool:
    """Return whether a cell has to be run."""
    if not store.has(cell):
        return True
    return retry_failed and store.failed(cell)


def _train(
    grid: Benchmark,
    cells: list[Cell],
    store: Store,
    workers: _Workers,
    bar: Progress,
) -> dict[str, Outcome]:
    """Train the classifiers that are missing; return the failures by model key."""
    data = grid.named_datasets()
    tasks = {}
    for cell in cells:
        classifier = grid.classifiers[cell.classifier]
        for seed, key in [(cell.seed, cell.model_key), *cell.retrained]:
            if not store.has_model(key):
                tasks[key] = Train(data[cell.dataset], classifier, seed)
    failures: dict[str, Outcome] = {}
    line = bar.add_task("classifiers", total=len(tasks), visible=bool(tasks))
    for key, (status, answer) in workers.run(tasks, grid.time_limit):
        if status == "done":
            store.write_model(key, answer)
        else:
            failures[key] = (status, f"the classifier could not be trained: {answer}")
        bar.advance(line)
    return failures


def _explain(
    grid: Benchmark,
    cells: list[Cell],
    failures: Mapping[str, Outcome],
    store: Store,
    workers: _Workers,
    bar: Progress,
) -> None:
    """Run the cells, and write each; those without a classifier have failed already."""
    data = grid.named_datasets()
    line = bar.add_task("cells", total=len(cells))
    tasks = {}
    for cell in cells:
        judges = [key for _, key in cell.retrained]
        untrained = [failures[key] for key in (cell.model_key, *judges) if key in failures]
        if untrained:
            _write(store, grid, cell, untrained[0])
            bar.advance(line)
            continue
        tasks[cell.key] = Explain(
            data[cell.dataset],
            store.model(cell.model_key),
            grid.explainers[cell.explainer],
            cell.seed,
            grid.instances,
            grid.selection,
            grid.metrics,
            tuple(store.model(key) for key in judges),
        )
    cell_of = {cell.key: cell for cell in cells}
    for key, outcome in workers.run(tasks, grid.time_limit):
        _write(store, grid, cell_of[key], outcome)
        bar.advance(line)


def _write(
    store: Store,
    grid: Benchmark,
    cell: Cell,
    outcome: Outcome,
) -> None:
    """Write a cell that ended, with columns that say which it is."""
    status, answer = outcome
    if status == "done":
        frame, arrays = answer
    else:
        data = grid.named_datasets()[cell.dataset]
        frame = failed_table(data, str(answer), status, grid.instances)
        arrays = {}
    for position, name in enumerate(("dataset", "classifier", "explainer", "seed")):
        frame.insert(position, name, getattr(cell, name))
    store.write(cell, frame, arrays)
