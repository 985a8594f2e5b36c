"""Plots: one counterfactual as a picture, or several series side by side."""

from __future__ import annotations

import operator
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ..engine.result import Counterfactuals
from ..metrics.metric import as_array
from ..models.classifier import Array
from . import panels
from .words import BETWEEN, detail, headline, note

WIDTH = 10.0
#: below this many inches, what stands side by side comes one under the other
NARROW = 6.0
SUFFIXES = (".png", ".svg", ".pdf")
#: a line of the title: text, size, weight, color
Line = tuple[str, float, str, str]


def plot(
    result: Counterfactuals, i: int = 0, path: str | Path | None = None, *, width: float = WIDTH
) -> Figure:
    """Picture of counterfactual i: before, after, what changed, and what the model says of both.

    Parameters
    ----------
    i : row of the result; negative counts from the end.
    path : where to write it; .png, .svg or .pdf. Text in vector files stays text.
    width : inches, at least 3; a column of a paper has about 3.5, a page 7.

    Examples
    --------
    >>> import contrafact as cf
    >>> result = cf.CELS(max_iter=50).fit(model, X_train, y_train).explain(X_test[:4])
    >>> figure = plot(result, 0, "why.pdf", width=3.5)
    """
    i = _row(result, i)
    draw = {"series": _series, "image": _image, "row": _features}[result.modality]
    figure = draw(result, i, checked_width(width))
    if path is not None:
        save(figure, path)
    return figure


def plot_many(
    result: Counterfactuals,
    rows: Sequence[int],
    path: str | Path | None = None,
    *,
    width: float = WIDTH,
) -> Figure:
    """A grid of small pictures, one for each of the chosen rows; series only.

    Of a multivariate series the channel that changed most is shown. Two stand side by side, unless `width`
    (inches) is that of one column.

    Examples
    --------
    >>> import contrafact as cf
    >>> result = cf.CELS(max_iter=50).fit(model, X_train, y_train).explain(X_test[:4])
    >>> figure = plot_many(result, [0, 1, 2, 3])
    """
    if result.modality != "series":
        raise ValueError(
            f"plot_many draws series; this result holds {result.modality} data. Use plot(result, i)."
        )
    chosen = chosen_rows(result, rows)
    across = 1 if len(chosen) == 1 or checked_width(width) < NARROW else 2
    lines = -(-len(chosen) // across)
    figure = blank(
        0.6 + 1.9 * lines, header=0.06, width=min(width, WIDTH / 2) if across == 1 else width
    )
    grid = figure.subplots(lines, across, squeeze=False)
    for ax in grid.flat[len(chosen) :]:
        ax.set_visible(False)
    for ax, i in zip(grid.flat, chosen, strict=False):
        x, x_cf = pair(result, i)
        channel = int(np.abs(x_cf - x).sum(1).argmax())
        panels.draw_series(ax, x[channel], x_cf[channel], panels.look(result, i))
        title = textwrap.fill(
            headline(result, i, 12), int(15 * (figure.get_figwidth() / across - 0.6))
        )
        ax.set_title(panels.plain(title), fontsize=9.5, loc="left", color=panels.INK)
        ax.set_ylabel(panels.value_name(result, channel), fontsize=panels.SMALL)
        ax.set_xlabel("time step", fontsize=panels.SMALL)
    looks = list(dict.fromkeys(panels.look(result, i) for i in chosen))
    legend(figure, panels.key(looks, "line"))
    if path is not None:
        save(figure, path)
    return figure


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure in the format of the path's suffix; in vector files text can be searched and edited."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ValueError(
            f"Cannot write a picture to {str(path)!r}; accepted: {', '.join(SUFFIXES)}."
        )
    with matplotlib.rc_context({"svg.fonttype": "none", "pdf.fonttype": 42}), any_character():
        figure.savefig(path, dpi=150)


@contextmanager
def any_character() -> Iterator[None]:
    """Let matplotlib measure and draw text that its font has no signs for: they come out as boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph|Matplotlib currently does not support")
        yield


def _series(result: Counterfactuals, i: int, width: float, most: int = 6) -> Figure:
    x, x_cf = pair(result, i)
    changed = (x != x_cf).any(1)
    order = np.argsort(~changed, kind="stable")
    shown, hidden = order[:most], order[most:]
    high = 1.2 * len(shown) + 0.6 if len(shown) > 1 else 3.0 if width >= NARROW else 2.2
    figure, left = _framed(result, i, width, high)
    column = left.subgridspec(len(shown), 1).subplots(sharex=True, squeeze=False)[:, 0]
    for ax, channel in zip(column, shown, strict=True):
        panels.draw_series(ax, x[channel], x_cf[channel], panels.look(result, i))
        ax.set_ylabel(panels.value_name(result, channel, 16), fontsize=panels.SMALL)
    also = (
        f"\n({len(hidden)} more channels, {int(changed[hidden].sum())} of them changed, not shown)"
    )
    column[-1].set_xlabel("time step" + (also if len(hidden) else ""), fontsize=panels.SMALL)
    legend(figure, panels.key([panels.look(result, i)], "line"))
    return figure


def _image(result: Counterfactuals, i: int, width: float) -> Figure:
    x, x_cf = pair(result, i)
    low, high = min(x.min(), x_cf.min()), max(x.max(), x_cf.max())
    style = panels.look(result, i)
    share = 0.215 * width if width >= NARROW else 0.27 * width
    height = float(np.clip(share * x.shape[1] / x.shape[2], 1.0, 4.0)) + 0.7
    figure, left = _framed(result, i, width, height)
    before, after, difference = left.subgridspec(1, 3).subplots(squeeze=False)[0]
    panels.draw_image(before, x, low, high, "original")
    panels.draw_image(after, x_cf, low, high, style.name)
    bar = figure.colorbar(
        panels.draw_difference(difference, x_cf - x), cax=difference.inset_axes((1.04, 0, 0.06, 1))
    )
    if width < NARROW:
        for ax in (before, after, difference):
            ax.title.set_fontsize(7.5)
    bar.ax.tick_params(labelsize=panels.SMALL)
    bar.set_label("after − before", fontsize=panels.SMALL)
    legend(figure, panels.key([style], "bar"), "outside lower right")
    return figure


def _features(result: Counterfactuals, i: int, width: float) -> Figure:
    x, x_cf = pair(result, i)
    figure, left = _framed(result, i, width, 1.1 + 0.3 * min(max(int((x != x_cf).sum()), 4), 12))
    names = [panels.name_text(result, j) for j in range(len(x))]
    panels.draw_features(figure.add_subplot(left), x, x_cf, panels.look(result, i), names)
    legend(figure, panels.key([panels.look(result, i)], "dot"))
    return figure


def _framed(
    result: Counterfactuals, i: int, width: float, height: float
) -> tuple[Figure, SubplotSpec]:
    """A figure with its title lines, and the bars of probabilities beside or below what is left free."""
    bars = 0.5 * len(panels.relevant_classes(result, i)) + 0.35
    lines = title_lines(result, i)
    if width < NARROW:
        figure = titled(lines, height + bars + 0.3, width)
        stack = figure.add_gridspec(2, 1, height_ratios=[height, bars])
        panels.draw_probabilities(figure.add_subplot(stack[1]), result, i)
        return figure, stack[0]
    height = max(height, bars + 0.6)
    figure = titled(lines, height, width)
    grid = figure.add_gridspec(1, 2, width_ratios=[4, 1.1 if width >= 8 else 1.7])
    right = grid[1].subgridspec(2, 1, height_ratios=[bars, max(height - bars - 0.4, 0.01)])
    panels.draw_probabilities(figure.add_subplot(right[0]), result, i)
    return figure, grid[0]


def title_lines(result: Counterfactuals, i: int) -> list[Line]:
    """What happened, how much it took, and what went wrong."""
    alarm = ("normal", panels.INK) if result.valid[i] else ("bold", panels.ALARM)
    lines: list[Line] = [(headline(result, i), 13, "bold", panels.INK)]
    lines += [(detail(result, i), 10, "normal", panels.INK), (note(result, i), 10, *alarm)]
    return [line for line in lines if line[0]]


def titled(lines: list[Line], height: float, width: float) -> Figure:
    """A figure with lines of words above `height` inches that are free."""
    most = 2 if width >= NARROW else 4
    fitting = [
        (part, size, weight, color)
        for text, size, weight, color in lines
        for piece in ([text] if width >= NARROW else text.split(BETWEEN))
        for part in textwrap.wrap(piece, int(135 * width / size), max_lines=most, placeholder=" …")
    ]
    header = 0.15 + 0.25 * len(fitting)
    figure = blank(header + height, header, width)
    for at, (line, size, weight, color) in enumerate(fitting):
        y = 1 - (0.22 + 0.25 * at) / (header + height)
        words = figure.text(
            0.12 / width,
            y,
            panels.plain(line),
            fontweight=weight,
            color=color,
            va="center",
            size=size,
        )
        with any_character():
            taken = words.get_window_extent().width
        words.set_fontsize(min(size, size * 0.95 * figure.bbox.width / taken))
    return figure


def checked_width(width: float) -> float:
    """The width of a figure in inches, if its words have room in it."""
    if not width >= 3:
        raise ValueError(f"width is {width!r} inches; accepted: 3 or more.")
    return float(width)


def blank(height: float, header: float = 0.0, width: float = WIDTH) -> Figure:
    """A figure that keeps `header` inches at the top free for words."""
    engine = ConstrainedLayoutEngine(
        rect=(0.005, 0, 0.99, 1 - header / height), w_pad=0.06, h_pad=0.05
    )
    figure = Figure(figsize=(width, height), layout=engine)
    FigureCanvasAgg(figure)
    return figure


def legend(
    figure: Figure,
    entries: list[Line2D | Patch],
    place: Literal["outside lower left", "outside lower right"] = "outside lower left",
) -> None:
    """What the colors mean, below the panels."""
    width = figure.get_figwidth()
    columns = 4 if width >= 8 else 2 if width >= 5 else 1
    figure.legend(handles=entries, loc=place, ncols=columns, frameon=False, fontsize=panels.SMALL)


def pair(result: Counterfactuals, i: int) -> tuple[Array, Array]:
    """Instance and counterfactual as float64, a lifted series with its channel."""
    x, x_cf = (as_array(values[i]).astype(np.float64) for values in (result.X, result.X_cf))
    lifted = result.modality == "series" and x.ndim == 1
    return (x[None], x_cf[None]) if lifted else (x, x_cf)


def chosen_rows(result: Counterfactuals, rows: Iterable[int]) -> list[int]:
    """The rows to draw, at least one, counted from the start."""
    chosen = [_row(result, i) for i in rows]
    if not chosen:
        raise ValueError("rows is empty; choose at least one row to draw.")
    return chosen


def _row(result: Counterfactuals, i: int) -> int:
    i = operator.index(i)
    if not -len(result) <= i < len(result):
        raise IndexError(f"Row {i} does not exist: this result has {len(result)} rows.")
    return i % len(result)
