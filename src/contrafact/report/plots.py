"""Plots: one counterfactual as a picture, or several series side by side."""

from __future__ import annotations

import operator
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ..engine.result import Counterfactuals
from ..metrics.base import as_array
from ..models.classifier import Array
from . import panels
from .words import detail, headline, note

WIDTH = 10.0
SUFFIXES = (".png", ".svg", ".pdf")


def plot(result: Counterfactuals, i: int = 0, path: str | Path | None = None) -> Figure:
    """Picture of counterfactual i: before, after, what changed, and what the model says of both.

    Parameters
    ----------
    i : row of the result; negative counts from the end.
    path : where to write it; .png, .svg or .pdf.
    """
    i = _row(result, i)
    draw = {"series": _series, "image": _image, "row": _features}[result.modality]
    figure = draw(result, i)
    if path is not None:
        save(figure, path)
    return figure


def plot_many(result: Counterfactuals, rows: Sequence[int], path: str | Path | None = None) -> Figure:
    """A grid of small pictures, one for each of the chosen rows; series only.

    Of a multivariate series the channel that changed most is shown.
    """
    if result.modality != "series":
        raise ValueError(
            f"plot_many draws series; this result holds {result.modality} data. Use plot(result, i)."
        )
    chosen = chosen_rows(result, rows)
    lines = -(-len(chosen) // 2)
    figure = blank(0.6 + 1.9 * lines, header=0.06, width=WIDTH if len(chosen) > 1 else WIDTH / 2)
    grid = figure.subplots(lines, min(len(chosen), 2), squeeze=False)
    for ax in grid.flat[len(chosen) :]:
        ax.set_visible(False)
    for ax, i in zip(grid.flat, chosen, strict=False):
        x, x_cf = pair(result, i)
        channel = int(np.abs(x_cf - x).sum(1).argmax())
        panels.draw_series(ax, x[channel], x_cf[channel], panels.look(result, i))
        ax.set_title(panels.plain(headline(result, i, 12)), fontsize=9.5, loc="left", color=panels.INK)
        ax.set_ylabel("value" if len(x) == 1 else f"channel {channel}", fontsize=panels.SMALL)
        ax.set_xlabel("time step", fontsize=panels.SMALL)
    looks = list(dict.fromkeys(panels.look(result, i) for i in chosen))
    _legend(figure, panels.key(looks, "line"))
    if path is not None:
        save(figure, path)
    return figure


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure in the format of the path's suffix."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ValueError(f"Cannot write a picture to {str(path)!r}; accepted: {', '.join(SUFFIXES)}.")
    figure.savefig(path, dpi=150)


def _series(result: Counterfactuals, i: int, most: int = 6) -> Figure:
    x, x_cf = pair(result, i)
    changed = (x != x_cf).any(1)
    order = np.argsort(~changed, kind="stable")
    shown, hidden = order[:most], order[most:]
    figure, left = _framed(result, i, height=3.0 if len(shown) == 1 else 1.2 * len(shown) + 0.6)
    column = left.subgridspec(len(shown), 1).subplots(sharex=True, squeeze=False)[:, 0]
    for ax, channel in zip(column, shown, strict=True):
        panels.draw_series(ax, x[channel], x_cf[channel], panels.look(result, i))
        ax.set_ylabel("value" if len(x) == 1 else f"channel {channel}", fontsize=panels.SMALL)
    also = f"   ({len(hidden)} more channels, {int(changed[hidden].sum())} of them changed, not shown)"
    column[-1].set_xlabel("time step" + (also if len(hidden) else ""), fontsize=panels.SMALL)
    _legend(figure, panels.key([panels.look(result, i)], "line"))
    return figure


def _image(result: Counterfactuals, i: int) -> Figure:
    x, x_cf = pair(result, i)
    low, high = min(x.min(), x_cf.min()), max(x.max(), x_cf.max())
    style = panels.look(result, i)
    figure, left = _framed(result, i, height=float(np.clip(2.15 * x.shape[1] / x.shape[2], 1.0, 4.0)) + 0.7)
    before, after, difference = left.subgridspec(1, 3).subplots(squeeze=False)[0]
    panels.draw_image(before, x, low, high, "original")
    panels.draw_image(after, x_cf, low, high, style.name)
    bar = figure.colorbar(
        panels.draw_difference(difference, x_cf - x), cax=difference.inset_axes((1.04, 0, 0.06, 1))
    )
    bar.ax.tick_params(labelsize=panels.SMALL)
    bar.set_label("after − before", fontsize=panels.SMALL)
    _legend(figure, panels.key([style], "bar"), "outside lower right")
    return figure


def _features(result: Counterfactuals, i: int) -> Figure:
    x, x_cf = pair(result, i)
    figure, left = _framed(result, i, height=1.1 + 0.3 * min(max(int((x != x_cf).sum()), 4), 12))
    panels.draw_features(figure.add_subplot(left), x, x_cf, panels.look(result, i))
    _legend(figure, panels.key([panels.look(result, i)], "dot"))
    return figure


def _framed(result: Counterfactuals, i: int, height: float) -> tuple[Figure, SubplotSpec]:
    """A figure with its title lines, and the bars of probabilities at the right; the left is free."""
    bars = 0.5 * len(panels.relevant_classes(result, i)) + 0.35
    height = max(height, bars + 0.6)
    remarks = textwrap.wrap(note(result, i), 105, max_lines=2, placeholder=" …")
    alarm = ("normal", panels.INK) if result.valid[i] else ("bold", panels.ALARM)
    lines = [(headline(result, i), 13, "bold", panels.INK), (detail(result, i), 10, "normal", panels.INK)]
    lines += [(remark, 10, *alarm) for remark in remarks]
    header = 0.15 + 0.25 * len(lines)
    figure = blank(header + height, header)
    for at, (line, size, weight, colour) in enumerate(lines):
        y = 1 - (0.22 + 0.25 * at) / (header + height)
        text = figure.text(
            0.012, y, panels.plain(line), fontweight=weight, color=colour, va="center", size=size
        )
        text.set_fontsize(min(size, size * 0.94 * figure.bbox.width / text.get_window_extent().width))
    grid = figure.add_gridspec(1, 2, width_ratios=[4, 1.1])
    right = grid[0, 1].subgridspec(2, 1, height_ratios=[bars, max(height - bars - 0.4, 0.01)])
    panels.draw_probabilities(figure.add_subplot(right[0]), result, i)
    return figure, grid[0, 0]


def blank(height: float, header: float = 0.0, width: float = WIDTH) -> Figure:
    """A figure that keeps `header` inches at the top free for words."""
    engine = ConstrainedLayoutEngine(rect=(0.005, 0, 0.99, 1 - header / height), w_pad=0.06, h_pad=0.05)
    figure = Figure(figsize=(width, height), layout=engine)
    FigureCanvasAgg(figure)
    return figure


def _legend(
    figure: Figure,
    entries: list[Line2D | Patch],
    place: Literal["outside lower left", "outside lower right"] = "outside lower left",
) -> None:
    figure.legend(handles=entries, loc=place, ncols=4, frameon=False, fontsize=panels.SMALL)


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
