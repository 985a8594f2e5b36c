"""Figures: their size, title lines and legend, and how they are written to a file."""

from __future__ import annotations

import os
import textwrap
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Literal

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ..data.writing import complete_file
from ..engine.result import Counterfactuals
from ..numerics.tensors import read_integers
from ..validation import Instance, Integer, Real, brief, check_parameters
from .captions import SEPARATOR, detail, headline
from .style import ALARM, FONT_SIZE, INK, plain
from .words import note

#: inches
WIDTH = 10.0
#: below this many inches, what stands side by side comes one under the other
NARROW = 6.0
#: height of a title line, in inches
LINE_HEIGHT = 0.25
SUFFIXES = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class TitleLine:
    """A line of text above a figure.

    Parameters
    ----------
    text : str
        The text.
    size : float, default=10.0
        In points.
    weight : {"normal", "bold"}, default="normal"
        Of the font.
    color : str, optional
        As matplotlib takes it.
    """

    text: str
    size: float = 10.0
    weight: str = "normal"
    color: str = INK


class NotebookFigure(Figure):
    """A figure that notebooks show although pyplot, and so a backend of theirs, does not know it.

    Where a cell ran `%matplotlib inline`, its settings apply instead.
    """

    def _repr_png_(self) -> bytes:
        picture = BytesIO()
        with any_character():
            self.savefig(picture, format="png")
        return picture.getvalue()


def save_figure(figure: Figure, path: str | Path | None) -> None:
    """Write a figure in the format of the path's suffix; in vector files text stays text.

    Parameters
    ----------
    figure : Figure
        The figure.
    path : str, Path or None
        A .png, .svg or .pdf file; None writes nothing.

    Raises
    ------
    ValueError
        If the suffix is another.
    """
    check_path(path)
    if path is None:
        return
    text_stays = matplotlib.rc_context({"svg.fonttype": "none", "pdf.fonttype": 42})
    with text_stays, any_character(), complete_file(path) as draft:
        figure.savefig(draft, dpi=150)


@contextmanager
def any_character() -> Iterator[None]:
    """Let matplotlib draw characters that its font lacks, as boxes and without a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph|Matplotlib currently does not support")
        yield


def blank_figure(height: float, header: float = 0.0, width: float = WIDTH) -> Figure:
    """Make an empty figure.

    Parameters
    ----------
    height : float
        Inches.
    header : float, default=0.0
        Inches at the top that axes leave free.
    width : float, default=10.0
        Inches.

    Returns
    -------
    Figure
        With a canvas that needs no window.
    """
    below_header = (0.005, 0, 0.99, 1 - header / height)
    engine = ConstrainedLayoutEngine(
        rect=below_header,
        w_pad=0.06,
        h_pad=0.05,
    )
    figure = NotebookFigure(figsize=(width, height), layout=engine)
    FigureCanvasAgg(figure)
    return figure


def titled_figure(lines: Iterable[TitleLine], height: float, width: float) -> Figure:
    """Make a figure with title lines, wrapped to its width.

    Parameters
    ----------
    lines : iterable of TitleLine
        The lines, from the top.
    height : float
        Inches below the lines.
    width : float
        Inches.

    Returns
    -------
    Figure
        Whose axes leave the lines free.
    """
    wrapped = _wrap(lines, width)
    header = 0.15 + LINE_HEIGHT * len(wrapped)
    figure = blank_figure(header + height, header, width)
    for at, line in enumerate(wrapped):
        from_top = 0.22 + LINE_HEIGHT * at
        words = figure.text(
            0.12 / width,
            1 - from_top / (header + height),
            plain(line.text),
            fontweight=line.weight,
            color=line.color,
            va="center",
            size=line.size,
        )
        with any_character():
            taken = words.get_window_extent().width
        fitting = line.size * 0.95 * figure.bbox.width / taken
        words.set_fontsize(min(line.size, fitting))
    return figure


def _wrap(lines: Iterable[TitleLine], width: float) -> list[TitleLine]:
    """Break lines that are too long; in a narrow figure their parts come one under the other."""
    narrow = width < NARROW
    most = 4 if narrow else 2
    wrapped = []
    for line in lines:
        characters = int(135 * width / line.size)
        for piece in line.text.split(SEPARATOR) if narrow else [line.text]:
            for part in textwrap.wrap(
                piece,
                characters,
                max_lines=most,
                placeholder=" …",
            ):
                wrapped.append(TitleLine(part, line.size, line.weight, line.color))
    return wrapped


def title_lines(result: Counterfactuals, i: int) -> list[TitleLine]:
    """Make the title of counterfactual i: what happened, how much it took, what went wrong.

    Parameters
    ----------
    result : Counterfactuals
        The result.
    i : int
        Row of the result.

    Returns
    -------
    list of TitleLine
        Two or three lines.
    """
    lines = [
        TitleLine(
            headline(result, i),
            size=13,
            weight="bold",
        ),
        TitleLine(detail(result, i)),
    ]
    remark = note(result, i)
    if remark and result.valid[i]:
        lines.append(TitleLine(remark))
    elif remark:
        lines.append(TitleLine(remark, weight="bold", color=ALARM))
    return lines


def write_title(figure: Figure, text: str, y: float) -> None:
    """Write one bold line at the top of a figure.

    Parameters
    ----------
    figure : Figure
        The figure.
    text : str
        The line.
    y : float
        Its height, as a fraction of the figure.
    """
    figure.text(
        0.012,
        y,
        plain(text),
        fontweight="bold",
        fontsize=12,
    )


def write_legend(
    figure: Figure,
    entries: list[Line2D | Patch],
    place: Literal["outside lower left", "outside lower right"] = "outside lower left",
) -> None:
    """Explain the colors below the panels.

    Parameters
    ----------
    figure : Figure
        The figure.
    entries : list of Line2D or Patch
        What the legend shows.
    place : {"outside lower left", "outside lower right"}, default="outside lower left"
        Where it stands.
    """
    width = figure.get_figwidth()
    columns = 1
    if width >= 5:
        columns = 2
    if width >= 8:
        columns = 4
    figure.legend(
        handles=entries,
        loc=place,
        ncols=columns,
        frameon=False,
        fontsize=FONT_SIZE,
    )


def checked_width(width: float) -> float:
    """Return the width of a figure in inches, if its words fit into it."""
    if not Real(at_least=3, at_most=100).accepts(width):
        raise ValueError(f"width is {brief(width)} inches; accepted: 3 or more, up to 100.")
    return float(width)


def check_result(result: Counterfactuals, drawn: str = "") -> None:
    """Raise unless this is a result, of the kind of data that is drawn where one is named."""
    check_parameters("plot", {"result": Instance(Counterfactuals)}, {"result": result})
    if drawn and result.modality != drawn:
        raise ValueError(f"result holds {result.modality} data; accepted here: {drawn} data.")


def check_path(path: str | Path | None) -> None:
    """Raise, before anything is drawn, where a picture cannot be written to the path."""
    if path is None:
        return
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a file or None, got {brief(path)}.")
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ValueError(
            f"path: cannot write a picture to {str(path)!r}; accepted: {', '.join(SUFFIXES)}."
        )


def checked_row(result: Counterfactuals, i: int) -> int:
    """Return a row of the result, counted from the start.

    Parameters
    ----------
    result : Counterfactuals
        The result.
    i : int
        The row; negative counts from the end.

    Returns
    -------
    int
        From 0 to the number of rows, exclusive.
    """
    check_parameters("plot", {"i": Integer()}, {"i": i})
    if not -len(result) <= i < len(result):
        raise IndexError(f"row {i} does not exist: this result has {len(result)} rows.")
    return i % len(result)


def checked_rows(result: Counterfactuals, rows: Iterable[int]) -> list[int]:
    """Return the rows to draw, at least one, counted from the start.

    Parameters
    ----------
    result : Counterfactuals
        The result.
    rows : iterable of int
        The rows; negative ones count from the end.

    Returns
    -------
    list of int
        Each from 0 to the number of rows, exclusive.
    """
    if isinstance(rows, list | tuple | range) and len(rows) == 0:
        raise ValueError("rows is empty; choose at least one row to draw.")
    chosen = read_integers(rows, "rows", ("rows",))
    return [checked_row(result, i) for i in chosen.tolist()]
