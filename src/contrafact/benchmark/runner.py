"""Run a grid: cells not yet in the store, here or on a cluster, each written when it is done."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..parallel.workers import ClusterWorkers, LocalWorkers, Outcome, Workers
from ..process_state import keeping_random_numbers
from ..progress import progress_bar
from ..validation import (
    Boolean,
    FilePath,
    Instance,
    Integer,
    Nothing,
    OneOf,
    Rule,
    check_parameters,
)
from .cell import Explain, Train, failed_table
from .cell_states import damaged_text
from .grid import Benchmark, Cell
from .grid_checks import check_grid
from .store import Store

RULES: dict[str, Rule] = {
    "grid": Instance(Benchmark),
    "folder": FilePath(),
    "n_jobs": Integer(at_least=1) | OneOf(-1),
    "scheduler": Instance(str, "the address of a scheduler") | Nothing(),
    "retry_failed": Boolean(),
    "progress": Boolean(),
    "trust": Boolean(),
}


@keeping_random_numbers()  # clusters draw from Python's
def run(
    grid: Benchmark,
    folder: str | Path,
    *,
    n_jobs: int = 1,
    scheduler: str | None = None,
    retry_failed: bool = False,
    progress: bool = True,
    trust: bool = False,
) -> None:
    """Run the cells of a grid that are not in a folder yet.

    A cell is written when it is done; a run that is killed loses the cells in flight and no others,
    and running again goes on from there. A cell that raises, exceeds the grid's time limit, or
    whose process dies again and again, is recorded as failed, with the reason, and the rest go on.
    Names and parameters are checked before anything runs.

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
    trust : bool, default=False
        Use trained classifiers in the folder that you did not train. Reading them can run code;
        otherwise they are trained again.

    Raises
    ------
    ValueError, TypeError
        Where the grid names a metric, method, classifier or parameter that does not exist.
    BlockingIOError
        Where another process runs a benchmark in the folder.

    Examples
    --------
    >>> grid = Benchmark(["ItalyPowerDemand"], {"LR": "sklearn.linear_model:LogisticRegression"},
    ...                  {"nearest": "NearestUnlike"}, instances=2, metrics=["valid"])
    >>> run(grid, "benchmark", progress=False)
    >>> grid.results("benchmark")["valid"].tolist()
    [True, True]
    """
    check_parameters("run", RULES, locals())
    check_grid(grid)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    store = Store(folder, trust=trust)
    with (
        store.alone(),
        progress_bar(*columns, visible=progress) as bar,
        _workers(n_jobs, scheduler) as workers,
    ):
        store.write_grid(grid)
        cells = _due(grid, store, retry_failed)
        failures = _train(grid, cells, store, workers, bar)
        _explain(grid, cells, failures, store, workers, bar)


def _workers(n_jobs: int, scheduler: str | None) -> Workers:
    """Return the workers asked for."""
    if scheduler is None:
        return LocalWorkers(n_jobs)
    return ClusterWorkers(scheduler)


def _due(
    grid: Benchmark,
    store: Store,
    retry_failed: bool,
) -> list[Cell]:
    """Return the cells that have to be run."""
    states = [store.state(cell) for cell in grid.cells()]
    damaged = damaged_text(states)
    if damaged:
        warnings.warn(f"Run again: {damaged}", stacklevel=3)
    finished = ("done",) if retry_failed else ("done", "failed")
    due = [each.cell for each in states if each.state not in finished]
    by_key = {cell.key: cell for cell in due}  # equal parts under two names are run once
    return list(by_key.values())


def _train(
    grid: Benchmark,
    cells: list[Cell],
    store: Store,
    workers: Workers,
    bar: Progress,
) -> dict[str, Outcome]:
    """Train the classifiers that are missing; return the failures by model key."""
    data = grid.named_datasets()
    tasks: dict[str, Train] = {}
    for cell in cells:
        classifier = grid.classifiers[cell.classifier]
        for seed, key in [(cell.seed, cell.model_key), *cell.retrained]:
            if key not in tasks and not store.has_model(key):
                tasks[key] = Train(data[cell.dataset], classifier, seed)
    foreign = [key for key in tasks if store.has_foreign_model(key)]
    if foreign:
        warnings.warn(
            f"{len(foreign)} classifiers in {store.folder} were not trained by you, or were "
            "altered: they are trained again. To use them as they are, which can run code: "
            "--trust, trust=True.",
            stacklevel=3,
        )
    failures: dict[str, Outcome] = {}
    line = bar.add_task("classifiers", total=len(tasks), visible=bool(tasks))
    for key, (status, answer) in workers.run(tasks.items(), grid.time_limit):
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
    workers: Workers,
    bar: Progress,
) -> None:
    """Run the cells, and write each; those without a classifier have failed already."""
    line = bar.add_task("cells", total=len(cells))

    def tasks() -> Iterator[tuple[str, Explain]]:
        for cell in cells:
            if not _untrained(cell, failures):
                yield cell.key, _task(grid, cell, store)

    for cell in cells:
        untrained = _untrained(cell, failures)
        if untrained:
            _write(store, grid, cell, untrained[0])
            bar.advance(line)
    cell_of = {cell.key: cell for cell in cells}
    for key, outcome in workers.run(tasks(), grid.time_limit):
        _write(store, grid, cell_of[key], outcome)
        bar.advance(line)


def _untrained(cell: Cell, failures: Mapping[str, Outcome]) -> list[Outcome]:
    """Return why classifiers of a cell could not be trained."""
    keys = [cell.model_key, *[key for _, key in cell.retrained]]
    return [failures[key] for key in keys if key in failures]


def _task(
    grid: Benchmark,
    cell: Cell,
    store: Store,
) -> Explain:
    """Make the task of a cell, with its data and classifiers."""
    return Explain(
        grid.named_datasets()[cell.dataset],
        store.model(cell.model_key),
        grid.explainers[cell.explainer],
        cell.seed,
        grid.instances,
        grid.selection,
        grid.metrics,
        tuple(store.model(key) for _, key in cell.retrained),
    )


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
