"""The command line: thin, the work is done in the rooms below."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .bench import bench
from .console import Commands, print_records, say, show
from .evaluating import evaluate
from .explaining import Remembering, explain

app = typer.Typer(
    cls=Commands,
    help="What is the smallest believable change that makes a classifier decide otherwise?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
Json = Annotated[bool, typer.Option("--json", help="JSON on stdout, for scripts.")]


def _version(asked: bool) -> None:
    if asked:
        from contrafact import __version__

        say(f"contrafact {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", envvar="CONTRAFACT_DEBUG", help="Show where an error comes from."),
    ] = False,
) -> None:
    pass  # the options do their work by being there


app.command(cls=Remembering)(explain)
app.command()(evaluate)


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where to write the picture and the arrays.")] = Path(
        "demo"
    ),
    seed: Annotated[
        int, typer.Option(help="Seed of training, choice of instances and search.")
    ] = 0,
) -> None:
    """Train a small network on bundled data and explain its decisions."""
    from contrafact.demo import run

    run(folder, seed=seed)


@app.command()
def methods(as_json: Json = False) -> None:
    """List the explainers."""
    from contrafact import list_explainers

    frame = list_explainers().reset_index(names="method")
    # Who wants to know all about all of them reads the JSON; a terminal has room for what matters first.
    print_records(frame) if as_json else show(frame[["method", "does", "modalities"]], "Methods")


@app.command()
def datasets(as_json: Json = False) -> None:
    """List the bundled data sets."""
    from contrafact import list_datasets

    print_records(list_datasets()) if as_json else show(list_datasets(), "Data sets")


app.add_typer(bench, name="bench")
