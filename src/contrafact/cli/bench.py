"""The commands `contrafact bench run`, `resume`, `status` and `report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .console import print_table, print_text

bench = typer.Typer(
    help="Run a grid of data sets, classifiers and explainers.", no_args_is_help=True
)

Folder = Annotated[Path, typer.Argument(help="Folder that keeps the finished cells.")]
Jobs = Annotated[int, typer.Option(help="Cells at a time on this machine; -1: as many as cores.")]
Scheduler = Annotated[
    str | None, typer.Option(help="Address of a dask.distributed scheduler to run on, tcp://….")
]


@bench.command("run")
def bench_run(
    grid: Annotated[Path, typer.Argument(help="The grid, a TOML file.")],
    folder: Folder,
    jobs: Jobs = 1,
    scheduler: Scheduler = None,
) -> None:
    """Run a grid; cells that are already in the folder are not run again."""
    from contrafact.benchmark import Benchmark, run

    run(Benchmark.from_toml(grid), folder, n_jobs=jobs, scheduler=scheduler)
    bench_status(folder)


@bench.command("resume")
def bench_resume(
    folder: Folder,
    jobs: Jobs = 1,
    scheduler: Scheduler = None,
    retry_failed: Annotated[bool, typer.Option(help="Run cells that failed again.")] = False,
) -> None:
    """Continue a run that was stopped or killed."""
    from contrafact.benchmark import Store, run

    run(
        Store(folder).settings(),
        folder,
        n_jobs=jobs,
        scheduler=scheduler,
        retry_failed=retry_failed,
    )
    bench_status(folder)


@bench.command("status")
def bench_status(folder: Folder) -> None:
    """Show the progress of a run: cells done, failed and missing, by explainer."""
    from contrafact.benchmark import Store, progress_of

    store = Store(folder)
    print_table(progress_of(store.settings(), store), f"Cells in {folder}")


@bench.command("report")
def bench_report(
    folder: Folder,
    out: Annotated[Path, typer.Option(help="A Markdown file; its figures go beside it.")],
) -> None:
    """Write tables, tests and figures of the finished cells."""
    from contrafact.benchmark import Store
    from contrafact.report import write_benchmark

    store = Store(folder)
    write_benchmark(store.settings().results(folder), out)
    print_text(f"Report: {out}")
