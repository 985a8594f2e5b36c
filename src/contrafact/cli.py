"""The command line: thin, the work is done in the rooms below."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    import pandas as pd

app = typer.Typer(
    help="What is the smallest believable change that makes a classifier decide otherwise?",
    no_args_is_help=True,
    add_completion=False,
)


def show(frame: pd.DataFrame, title: str) -> None:
    table = Table(title=title)
    for column in frame.columns:
        table.add_column(str(column))
    for line in frame.itertuples(index=False):
        table.add_row(*map(str, line))
    Console().print(table)


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where to write the picture and the arrays.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Seed of training, choice of instances and search.")] = 0,
) -> None:
    """Train a small network on bundled data and explain its decisions."""
    from contrafact.demo import run

    run(folder, seed=seed)


@app.command()
def methods() -> None:
    """List the explainers."""
    from contrafact import list_explainers

    show(list_explainers().reset_index(names="method"), "Methods")


@app.command()
def datasets() -> None:
    """List the bundled data sets."""
    from contrafact import list_datasets

    show(list_datasets(), "Data sets")
