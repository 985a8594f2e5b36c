"""What the command line says: sentences and tables for a person, JSON for a script, errors in one line."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any

import rich
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

if TYPE_CHECKING:
    import pandas as pd

#: What a user can set right; anything else is a fault of the program and shows where it happened.
USER_ERRORS = (ValueError, TypeError, OSError, ImportError)


class Commands(TyperGroup):
    """Commands that tell a user's mistake in one line: exit code 2, and 130 where they were stopped."""

    def invoke(self, ctx: Any) -> Any:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except BrokenPipeError:
                raise
            except USER_ERRORS as error:
                if ctx.params.get("debug"):
                    raise
                say(f"Error: {error}", aside=True)
                raise typer.Exit(2) from error
            except KeyboardInterrupt as stop:
                say("Stopped.", aside=True)
                raise typer.Exit(130) from stop


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    say(f"Note: {str(message).strip().partition(chr(10))[0]}", aside=True)


def say(text: str, *, aside: bool = False) -> None:
    """One line or more for a person; asides go to stderr, so that what is asked for can be piped."""
    # Names and labels are the user's: nothing in them may steer the terminal.
    shown = "".join(c if c.isprintable() or c == "\n" else "�" for c in text)
    Console(stderr=aside, markup=False, highlight=False, emoji=False, soft_wrap=True).print(shown)


@contextmanager
def bars_aside() -> Iterator[None]:
    """Progress bars, and what a model prints, go to stderr."""
    rich.reconfigure(stderr=True)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        rich.reconfigure()


def show(frame: pd.DataFrame, title: str) -> None:
    """A table; names in its first column are never cut, and long cells go on in the next line."""
    table = Table(title=Text(title))
    for at, column in enumerate(frame.columns):
        table.add_column(Text(str(column)), no_wrap=at == 0, overflow="fold")
    for line in frame.itertuples(index=False):
        table.add_row(*(Text(str(cell)) for cell in line))
    Console().print(table)


def print_json(content: Any) -> None:
    """One JSON object, and nothing that other readers do not take: NaN and infinity become null."""
    typer.echo(json.dumps(plain(content), allow_nan=False))


def print_records(frame: pd.DataFrame) -> None:
    print_json(frame.to_dict(orient="records"))


def plain(value: Any) -> Any:
    """NumPy's and Python's values as JSON has them."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)
