"""The commands `contrafact bench run`, `resume`, `status`, `report` and `sensitivity`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .bench_sensitivity import bench_sensitivity
from .console import print_message, print_table, print_text

if TYPE_CHECKING:
    from ..benchmark.cell_states import CellState
    from ..benchmark.grid_files import StoredGrid

#: exit code of `run` and `resume` where cells failed
CELLS_FAILED = 1

bench = typer.Typer(
    help="Run a grid of data sets, classifiers and explainers.", no_args_is_help=True
)

bench.command("sensitivity")(bench_sensitivity)

Folder = Annotated[Path, typer.Argument(help="Folder that keeps the finished cells.")]
Jobs = Annotated[int, typer.Option(help="Cells at a time on this machine; -1: as many as cores.")]
Scheduler = Annotated[
    str | None, typer.Option(help="Address of a dask.distributed scheduler to run on, tcp://….")
]
TrustGrid = Annotated[
    bool,
    typer.Option(
        "--trust", help="Import what the grid names, and read classifiers that others trained."
    ),
]
TrustOld = Annotated[
    bool, typer.Option("--trust", help="Read the pickled grid of a folder of version 0.1.0.")
]


@bench.command("run")
def bench_run(
    grid: Annotated[Path, typer.Argument(help="The grid, a TOML file.")],
    folder: Folder,
    jobs: Jobs = 1,
    scheduler: Scheduler = None,
    trust: TrustGrid = False,
) -> None:
    """Run a grid; cells that are already in the folder are not run again.

    Exit code 0: done. 1: cells failed. 2: the grid or an argument cannot be used.
    """
    from contrafact.benchmark import Benchmark, run

    benchmark = Benchmark.from_toml(grid, trust=trust)
    run(benchmark, folder, n_jobs=jobs, scheduler=scheduler, trust=trust)
    _end_run(folder)


@bench.command("resume")
def bench_resume(
    folder: Folder,
    jobs: Jobs = 1,
    scheduler: Scheduler = None,
    retry_failed: Annotated[bool, typer.Option(help="Run cells that failed again.")] = False,
    trust: TrustGrid = False,
) -> None:
    """Continue a run that was stopped or killed.

    Exit code 0: done. 1: cells failed. 2: the folder or an argument cannot be used.
    """
    from contrafact.benchmark import Store, run

    benchmark = Store(folder, trust=trust).grid().benchmark()
    run(
        benchmark,
        folder,
        n_jobs=jobs,
        scheduler=scheduler,
        retry_failed=retry_failed,
        trust=trust,
    )
    _end_run(folder)


@bench.command("status")
def bench_status(folder: Folder, trust: TrustOld = False) -> None:
    """Show the progress of a run: cells done, failed and missing, by explainer."""
    _print_status(folder, *_states(folder, trust))


@bench.command("report")
def bench_report(
    folder: Folder,
    out: Annotated[
        Path, typer.Option(help="A Markdown file; figures, .csv and .tex tables go beside it.")
    ],
    trust: TrustOld = False,
) -> None:
    """Write tables, tests and figures of the finished cells."""
    from contrafact.benchmark import Store
    from contrafact.report import write_benchmark

    stored, states = _states(folder, trust)
    _print_problems(folder, stored, states)
    readable = [each.cell for each in states if each.state in ("done", "failed")]
    frame = Store(folder).frame(readable)
    write_benchmark(frame, out, stored.metrics, cells=stored.cells)
    print_text(f"Report: {out}")


def _end_run(folder: Path) -> None:
    """Show the state of a run that ended; exit with code 1 where cells failed."""
    stored, states = _states(folder, trust=False)
    _print_status(folder, stored, states)
    if any(each.state == "failed" for each in states):
        raise typer.Exit(CELLS_FAILED)


def _states(folder: Path, trust: bool) -> tuple[StoredGrid, list[CellState]]:
    """Return the grid of a folder, and the state of each of its cells."""
    from contrafact.benchmark import Store

    store = Store(folder, trust=trust)
    stored = store.grid()
    return stored, [store.state(cell) for cell in stored.cells]


def _print_status(folder: Path, stored: StoredGrid, states: list[CellState]) -> None:
    """Print the progress of a run, then what is wrong with it."""
    from contrafact.benchmark.cell_states import count_states

    print_table(count_states(states), f"Cells in {folder}")
    _print_problems(folder, stored, states)


def _print_problems(folder: Path, stored: StoredGrid, states: list[CellState]) -> None:
    """Print why cells failed, which are damaged, and that another version ran them."""
    from contrafact import __version__
    from contrafact.benchmark.cell_states import damaged_text, failure_lines

    failures = failure_lines(states)
    if failures:
        print_message("Failed cells:")
    for line in failures:
        print_message(f"  {line}")
    damaged = damaged_text(states)
    if damaged:
        print_message(f"Counted as missing: {damaged} contrafact bench resume {folder}")
    if stored.version != __version__:
        print_message(
            f"Run by contrafact {stored.version}; version {__version__} would run all cells again."
        )
