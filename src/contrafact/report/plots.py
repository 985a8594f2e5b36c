"""Pictures of counterfactuals: one in detail, or several series side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec

from ..engine.result import Counterfactuals
from ..numerics import ceil_div
from .canvas import (
    NARROW,
    WIDTH,
    blank_figure,
    check_path,
    check_result,
    checked_row,
    checked_rows,
    checked_width,
    save_figure,
    title_lines,
    titled_figure,
    write_legend,
)
from .captions import headline
from .pairs import changed_mask, pair
from .panels import (
    draw_difference,
    draw_features,
    draw_image,
    draw_probabilities,
    draw_series,
    relevant_classes,
)
from .style import FONT_SIZE, INK, axis_name, legend_entries, look_of, plain
from .table_panels import draw_columns

MOST_CHANNELS = 6


def plot(
    result: Counterfactuals, i: int = 0, path: str | Path | None = None, *, width: float = WIDTH
) -> Figure:
    """Draw counterfactual i: before, after, what changed, and the model's probabilities.

    Parameters
    ----------
    result : Counterfactuals
        The result.
    i : int, default=0
        Row of the result; negative counts from the end.
    path : str or Path, optional
        Where to write it; .png, .svg or .pdf. Text in vector files stays text.
    width : float, default=10.0
        Inches, at least 3; a column of a paper has about 3.5, a page 7.

    Returns
    -------
    Figure
        The figure.

    Examples
    --------
    >>> import contrafact as cf
    >>> result = cf.CELS(max_iter=50).fit(model, X_train, y_train).explain(X_test[:4])
    >>> figure = plot(result, 0, "why.pdf", width=3.5)
    """
    check_result(result)
    check_path(path)
    i = checked_row(result, i)
    draw = {"series": _plot_series, "image": _plot_image, "row": _plot_row}[result.modality]
    figure = draw(result, i, checked_width(width))
    save_figure(figure, path)
    return figure


def plot_many(
    result: Counterfactuals,
    rows: Sequence[int],
    path: str | Path | None = None,
    *,
    width: float = WIDTH,
) -> Figure:
    """Draw a grid of small pictures of series, one for each of the chosen rows.

    Of a multivariate series the channel that changed most is shown.

    Parameters
    ----------
    result : Counterfactuals
        The result, of series.
    rows : sequence of int
        Rows of the result; negative ones count from the end.
    path : str or Path, optional
        Where to write it; .png, .svg or .pdf.
    width : float, default=10.0
        Inches, at least 3; from 6 on, two pictures stand side by side.

    Returns
    -------
    Figure
        The figure.

    Examples
    --------
    >>> import contrafact as cf
    >>> result = cf.CELS(max_iter=50).fit(model, X_train, y_train).explain(X_test[:4])
    >>> figure = plot_many(result, [0, 1, 2, 3])
    """
    check_result(result)
    check_path(path)
    if result.modality != "series":
        raise ValueError(
            f"plot_many draws series; this result holds {result.modality} data. "
            "Use plot(result, i)."
        )
    chosen = checked_rows(result, rows)
    width = checked_width(width)
    across = 1 if len(chosen) == 1 or width < NARROW else 2
    if across == 1:
        width = min(width, WIDTH / 2)
    lines = ceil_div(len(chosen), across)
    figure = blank_figure(
        0.6 + 1.9 * lines,
        header=0.06,
        width=width,
    )
    axes = figure.subplots(lines, across, squeeze=False).ravel()
    for ax in axes[len(chosen) :]:
        ax.set_visible(False)
    characters = int(15 * (width / across - 0.6))
    for ax, i in zip(axes, chosen, strict=False):
        _draw_small(ax, result, i, characters)
    looks = list(dict.fromkeys(look_of(result, i) for i in chosen))
    write_legend(figure, legend_entries(looks, "line"))
    save_figure(figure, path)
    return figure


def _draw_small(ax: Axes, result: Counterfactuals, i: int, characters: int) -> None:
    """Draw the channel of a series that changed most, with a title of so many characters a line."""
    x, x_cf = pair(result, i)
    channel = int(np.abs(x_cf - x).sum(1).argmax())
    changed = changed_mask(result, i)[channel]
    draw_series(ax, x[channel], x_cf[channel], changed, look_of(result, i))
    title = textwrap.fill(headline(result, i, 12), characters)
    ax.set_title(
        plain(title),
        fontsize=9.5,
        loc="left",
        color=INK,
    )
    ax.set_ylabel(axis_name(result, channel), fontsize=FONT_SIZE)
    ax.set_xlabel("time step", fontsize=FONT_SIZE)


def _plot_series(result: Counterfactuals, i: int, width: float) -> Figure:
    """Draw a panel per channel, changed ones first."""
    x, x_cf = pair(result, i)
    mask = changed_mask(result, i)
    changed = np.asarray(mask.any(1))
    order = np.argsort(~changed, kind="stable")
    shown = order[:MOST_CHANNELS]
    hidden = order[MOST_CHANNELS:]
    if len(shown) > 1:
        height = 1.2 * len(shown) + 0.6
    else:
        height = 2.2 if width < NARROW else 3.0
    figure, left = _with_probabilities(result, i, width, height)
    column = left.subgridspec(len(shown), 1).subplots(sharex=True, squeeze=False)[:, 0]
    look = look_of(result, i)
    for ax, channel in zip(column, shown, strict=True):
        draw_series(ax, x[channel], x_cf[channel], mask[channel], look)
        ax.set_ylabel(axis_name(result, channel, 16), fontsize=FONT_SIZE)
    more = ""
    if len(hidden):
        also = int(changed[hidden].sum())
        more = f"\n({len(hidden)} more channels, {also} of them changed, not shown)"
    column[-1].set_xlabel(f"time step{more}", fontsize=FONT_SIZE)
    write_legend(figure, legend_entries([look], "line"))
    return figure


def _plot_image(result: Counterfactuals, i: int, width: float) -> Figure:
    """Draw the image before, after, and the difference."""
    x, x_cf = pair(result, i)
    low = min(x.min(), x_cf.min())
    high = max(x.max(), x_cf.max())
    look = look_of(result, i)
    picture_width = 0.27 * width if width < NARROW else 0.215 * width
    picture_height = picture_width * x.shape[1] / x.shape[2]
    height = float(np.clip(picture_height, 1.0, 4.0)) + 0.7
    figure, left = _with_probabilities(result, i, width, height)
    before, after, difference = left.subgridspec(1, 3).subplots(squeeze=False)[0]
    draw_image(before, x, low, high, "original")
    draw_image(after, x_cf, low, high, look.name)
    drawn = draw_difference(difference, x_cf - x)
    bar = figure.colorbar(drawn, cax=difference.inset_axes((1.04, 0, 0.06, 1)))
    bar.ax.tick_params(labelsize=FONT_SIZE)
    bar.set_label("after − before", fontsize=FONT_SIZE)
    if width < NARROW:
        for ax in (before, after, difference):
            ax.title.set_fontsize(7.5)
    write_legend(figure, legend_entries([look], "bar"), "outside lower right")
    return figure


def _plot_row(result: Counterfactuals, i: int, width: float) -> Figure:
    """Draw the changed features."""
    is_table = result.table is not None
    changed = result[i].changed_parts if is_table else changed_mask(result, i)
    lines = min(max(int(changed.sum()), 4), 12)
    figure, left = _with_probabilities(result, i, width, 1.1 + 0.3 * lines)
    draw = draw_columns if is_table else draw_features
    draw(figure.add_subplot(left), result, i)
    write_legend(figure, legend_entries([look_of(result, i)], "dot"))
    return figure


def _with_probabilities(
    result: Counterfactuals, i: int, width: float, height: float
) -> tuple[Figure, SubplotSpec]:
    """Make a figure with its title and the bars of probabilities, beside or below what is free."""
    bars = 0.5 * len(relevant_classes(result, i)) + 0.35
    lines = title_lines(result, i)
    if width < NARROW:
        figure = titled_figure(lines, height + bars + 0.3, width)
        stack = figure.add_gridspec(2, 1, height_ratios=[height, bars])
        draw_probabilities(figure.add_subplot(stack[1]), result, i)
        return figure, stack[0]
    height = max(height, bars + 0.6)
    figure = titled_figure(lines, height, width)
    bars_width = 1.1 if width >= 8 else 1.7
    grid = figure.add_gridspec(1, 2, width_ratios=[4, bars_width])
    below = max(height - bars - 0.4, 0.01)
    right = grid[1].subgridspec(2, 1, height_ratios=[bars, below])
    draw_probabilities(figure.add_subplot(right[0]), result, i)
    return figure, grid[0]
