"""contrafact bench."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .console import say, show

bench = typer.Typer(
    help="Run a grid of data sets, classifiers and explainers.", no_args_is_help=True
)

Folder = Annotated[Path, typer.Argument(help="Where the finished cells are kept.")]
Jobs = Annotated[int, typer.Option(help="Cells at a time on this machine; -1: as many as cores.")]
Scheduler = Annotated[
    str | None, typer.Option(help="A dask.distributed scheduler, tcp://…, to run on.")
]


@bench.command("run")
def bench_run(
    grid: Annotated[Path, typer.Argument(help="The grid, a TOML file.")],
    folder: Folder,
    jobs: Jobs = 1,
    scheduler: Scheduler = None,
) -> None:
    """Run a grid; cells that are in the folder already are not run again."""
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
    """Go on with a run that was stopped or killed."""
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
    """How far a run is: cells done, failed and missing, by explainer."""
    from contrafact.benchmark import Store, progress_of

    store = Store(folder)
    show(progress_of(store.settings(), store), f"Cells in {folder}")


@bench.command("report")
def bench_report(
    folder: Folder,
    out: Annotated[Path, typer.Option(help="A Markdown file; its figures go beside it.")],
) -> None:
    """Write tables, tests and figures of what is finished."""
    from contrafact.benchmark import Store
    from contrafact.report import write_benchmark

    store = Store(folder)
    write_benchmark(store.settings().results(folder), out)
    say(f"Report: {out}")
