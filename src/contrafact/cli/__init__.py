"""The command line: parse arguments, call the library, print the result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..catalog import AEON, METHODS, SKLEARN, datasets_text, methods_text
from .auditing import audit
from .bench import bench
from .console import (
    ArgumentRecordingCommand,
    ErrorReportingGroup,
    check_current_folder,
    print_json,
    print_text,
)
from .evaluating import evaluate
from .explaining import explain
from .exploring import explore
from .serving import serve

app = typer.Typer(
    cls=ErrorReportingGroup,
    help="Find the smallest believable change that makes a classifier decide otherwise.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, for scripts.")]


def _print_version(requested: bool) -> None:
    """Print the version and exit, where --version is given."""
    if requested:
        from contrafact import __version__

        print_text(f"contrafact {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", envvar="CONTRAFACT_DEBUG", help="Show the traceback of an error."),
    ] = False,
) -> None:
    """Check where the command runs; `ErrorReportingGroup` reads --debug."""
    check_current_folder()


app.command(cls=ArgumentRecordingCommand)(explain)
app.command(cls=ArgumentRecordingCommand)(audit)
app.command()(explore)
app.command()(serve)
app.command()(evaluate)


@app.command()
def demo(
    folder: Annotated[
        Path, typer.Option(help="Folder for the report, the pictures and the arrays.")
    ] = Path("demo"),
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
    if as_json:
        print_json([entry._asdict() for entry in METHODS])
    else:
        print_text(methods_text())


@app.command()
def datasets(as_json: Json = False) -> None:
    """List the bundled data sets."""
    if as_json:
        print_json([entry._asdict() for entry in (*AEON, *SKLEARN)])
    else:
        print_text(datasets_text())


@app.command()
def schema(
    data: Annotated[Path, typer.Argument(help="A table: .csv or .parquet.")],
    label: Annotated[str | None, typer.Option(help="The label column, to leave out.")] = None,
    save: Annotated[
        Path | None, typer.Option(help="Write it as .json, to correct and pass to --schema.")
    ] = None,
) -> None:
    """Infer what the columns of a table hold: kinds, ranges, levels, one-hot groups, units."""
    from .output_files import check_output

    check_output("--save", save, (".json",), [str(data)])
    from .table_inputs import infer_schema, write_schema

    found = infer_schema(data, label)
    print_text(repr(found))
    if save is not None:
        write_schema(found, save)
        print_text(f"Schema: {save}")


app.add_typer(bench, name="bench")
