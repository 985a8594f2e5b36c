"""Print text, tables and JSON, and report errors in one line."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typing_extensions import override

if TYPE_CHECKING:
    import pandas as pd

USAGE_ERROR = 2
INTERRUPTED = 130

#: Errors that a user can correct; any other is a fault of the program and keeps its traceback.
USER_ERRORS = (ValueError, TypeError, OSError, ImportError)
#: The parser's error for wrong arguments; newer versions of typer have their own class for it.
PARSER_ERROR: Any = typer.BadParameter.__base__

#: Read by numba from the current folder; a `cache_dir` in it names pickles that numba would open.
NUMBA_SETTINGS = Path(".numba_config.yaml")

#: Where an `ArgumentRecordingCommand` keeps what was typed.
ARGUMENTS_KEY = "contrafact.arguments"


class ErrorReportingGroup(TyperGroup):
    """Report usage errors in one line, with exit code 2; an interrupt ends with 130."""

    @override
    def format_help(self, ctx: Any, formatter: Any) -> None:
        # Plain: the first help a user asks for does not wait for the library that draws panels.
        super(TyperGroup, self).format_help(ctx, formatter)

    @override
    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _parser_errors_in_one_line():
            return super().make_context(*args, **kwargs)

    @override
    def invoke(self, ctx: Any) -> Any:
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning
            try:
                with _parser_errors_in_one_line():
                    return super().invoke(ctx)
            except BrokenPipeError:
                raise
            except USER_ERRORS as error:
                if ctx.params.get("debug"):
                    raise
                print_message(f"Error: {error}")
                raise typer.Exit(USAGE_ERROR) from error
            except KeyboardInterrupt as interrupt:
                print_message("Stopped.")
                raise typer.Exit(INTERRUPTED) from interrupt


class ArgumentRecordingCommand(TyperCommand):
    """Keep the arguments as typed, so that a result can say how to repeat it."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[ARGUMENTS_KEY] = list(args)
        return super().parse_args(ctx, args)


class Notes:
    """Print notes for the user to stderr and keep them.

    Attributes
    ----------
    texts : list of str
        The notes so far.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, text: str) -> None:
        """Print and keep one note."""
        self.texts.append(text)
        print_message(text)


def check_current_folder() -> None:
    """Refuse to work in a folder whose settings could make numba run code."""
    if NUMBA_SETTINGS.exists():
        raise ValueError(
            f"The current folder holds {NUMBA_SETTINGS}: numba takes settings from it, which can "
            "make it load code. Work in another folder; NUMBA_… variables set the same options."
        )


@contextmanager
def _parser_errors_in_one_line() -> Iterator[None]:
    """Print an error of the argument parser in one line and exit with code 2."""
    try:
        yield
    except PARSER_ERROR as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(error.format_message(), err=True)  # the help; "" where it was printed
            raise typer.Exit(USAGE_ERROR) from error
        message = " ".join(error.format_message().split())
        command = error.ctx.command_path if error.ctx is not None else "contrafact"
        print_message(f"Error: {message} Help: {command} --help")
        raise typer.Exit(USAGE_ERROR) from error


def _print_warning(message: Warning | str, *args: Any, **kwargs: Any) -> None:
    """Print the first line of a warning; stands in for `warnings.showwarning`."""
    first_line, _, _ = str(message).strip().partition("\n")
    print_message(f"Note: {first_line}")


def print_text(text: str) -> None:
    """Print text to stdout."""
    _print(text, to_stderr=False)


def print_message(text: str) -> None:
    """Print text to stderr, so that the output itself can be piped."""
    _print(text, to_stderr=True)


def _print(text: str, *, to_stderr: bool) -> None:
    """Print text without markup; control characters in names and labels are replaced."""
    from rich.console import Console

    printable = "".join(c if c.isprintable() or c == "\n" else "�" for c in text)
    console = Console(
        stderr=to_stderr,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=True,
    )
    console.print(printable)


@contextmanager
def output_to_stderr() -> Iterator[None]:
    """Send progress bars, and what a model prints, to stderr."""
    import rich

    rich.reconfigure(stderr=True)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        rich.reconfigure()


def print_table(frame: pd.DataFrame, title: str) -> None:
    """Print a table; its first column is never cut, long cells wrap.

    Parameters
    ----------
    frame : pandas.DataFrame
        The cells; the index is not shown.
    title : str
        Printed above the table.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title))
    for position, column in enumerate(frame.columns):
        table.add_column(Text(str(column)), no_wrap=position == 0, overflow="fold")
    for row in frame.itertuples(index=False):
        cells = [Text(str(cell)) for cell in row]
        table.add_row(*cells)
    Console().print(table)


def print_json(content: Any) -> None:
    """Print one JSON value in strict syntax: NaN and infinity become null."""
    typer.echo(json.dumps(to_json_types(content), allow_nan=False))


def to_json_types(value: Any) -> Any:
    """Convert values of NumPy and Python to those that JSON has."""
    if isinstance(value, Mapping):
        return {str(key): to_json_types(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_types(inner) for inner in value]
    if hasattr(value, "tolist"):
        return to_json_types(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str | int | bool | None):
        return value
    return str(value)
