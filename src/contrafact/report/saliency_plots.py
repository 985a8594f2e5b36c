"""The saliency map of a series: which channels matter, and when."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import Normal, Stroke

from ..engine.result import Counterfactuals, as_numpy
from ..metrics.regions import runs
from ..models.classifier import Array
from ..numerics import ceil_div
from .canvas import (
    WIDTH,
    check_path,
    check_result,
    checked_row,
    checked_width,
    save_figure,
    title_lines,
    titled_figure,
    write_legend,
)
from .pairs import changed_mask, pair
from .style import FONT_SIZE, GRAY, axis_name

#: what explainers say of each point, best first, and the label of its colors
KINDS = {
    "saliency": "saliency",
    "importance": "importance\n(all channels together)",
    "weights": "weight\n(cost of a change)",
}
#: a line that is seen on dark and on light
EDGED = [Stroke(linewidth=2.8, foreground="black"), Normal()]
MOST_NAMES = 60
MOST_TRACES = 12

#: a straight line from one point to another
Segment = list[tuple[float, float]]


def plot_saliency(
    result: Counterfactuals, i: int = 0, path: str | Path | None = None, *, width: float = WIDTH
) -> Figure:
    """Draw channels and time of counterfactual i in colors, with a line around what changed.

    The colors are what the method says of each point: saliency (CELS), importance (NativeGuide) or
    weights (Glacier, LatentCF). Where it says nothing, or the same of every point, they are the
    size of the change, in percent of the range that the channel has in all instances of the result.

    Parameters
    ----------
    result : Counterfactuals
        The result, of series.
    i : int, default=0
        Row of the result; negative counts from the end.
    path : str or Path, optional
        Where to write it; .png, .svg or .pdf.
    width : float, default=10.0
        Inches, at least 3.

    Returns
    -------
    Figure
        The figure.

    Examples
    --------
    >>> import contrafact as cf
    >>> result = cf.CELS(max_iter=50).fit(model, X_train, y_train).explain(X_test[:4])
    >>> figure = plot_saliency(result, 0)
    """
    check_result(result)
    check_path(path)
    if result.modality != "series":
        raise ValueError(f"plot_saliency draws series; this result holds {result.modality} data.")
    i = checked_row(result, i)
    x, _ = pair(result, i)
    channels = len(x)
    height = 1.0 + float(np.clip(0.32 * channels, 1.5, 8))
    figure = titled_figure(title_lines(result, i), height, checked_width(width))
    ax = figure.subplots()
    values, meaning = _map_values(result, i)
    lowest = 0.0 if values.min() >= 0 else None
    drawn = ax.imshow(
        values,
        aspect="auto",
        cmap="cividis",
        interpolation="nearest",
        vmin=lowest,
    )
    entries = [_outline_style([], "around what changed")]
    if channels <= MOST_TRACES:
        _draw_traces(ax, x)
        trace = Line2D(
            [],
            [],
            color=GRAY,
            linewidth=1,
            label="original, scaled to its band",
        )
        entries.append(trace)
    _draw_outline(ax, changed_mask(result, i))
    _label_axes(ax, result, x.shape)
    bar = figure.colorbar(
        drawn,
        ax=ax,
        pad=0.015,
        aspect=15,
        fraction=0.05,
    )
    bar.ax.tick_params(labelsize=FONT_SIZE)
    bar.set_label(meaning, fontsize=FONT_SIZE)
    write_legend(figure, entries)
    save_figure(figure, path)
    return figure


def _map_values(result: Counterfactuals, i: int) -> tuple[Array, str]:
    """Return the values of the map, (channels, length), and the label of its colors."""
    x, x_cf = pair(result, i)
    for kind, meaning in KINDS.items():
        if kind not in result.info:
            continue
        told = np.asarray(result.info[kind][i], dtype=np.float64)
        if np.isfinite(told).all() and np.ptp(told) > 0:
            return np.broadcast_to(told, x.shape), meaning
    everything = as_numpy(result.X).reshape(len(result), *x.shape)
    span = np.ptp(everything, axis=(0, 2))[:, None]
    percent = 100 * np.abs(x_cf - x) / np.where(span > 0, span, 1)
    return percent, "size of the change\n(% of the channel's range)"


def _label_axes(ax: Axes, result: Counterfactuals, shape: tuple[int, ...]) -> None:
    """Name the channels, every one or every so many, and leave room for the outline."""
    channels, length = shape
    margin = 0.5 + 0.004 * length
    ax.set_xlim(-margin, length - 1 + margin)
    ax.set_ylim(channels - 0.42, -0.58)
    named = range(0, channels, ceil_div(channels, MOST_NAMES))
    size = FONT_SIZE if channels <= 30 else 6
    ax.set_yticks(
        named,
        [axis_name(result, channel, 20) for channel in named],
        fontsize=size,
    )
    ax.tick_params(axis="x", labelsize=FONT_SIZE)
    ax.tick_params(axis="y", length=0)
    ax.spines[:].set_visible(False)
    ax.set_xlabel("time step", fontsize=FONT_SIZE)


def _draw_traces(ax: Axes, x: Array) -> None:
    """Draw the original over its band of colors, thin."""
    low = x.min(1, keepdims=True)
    span = np.ptp(x, axis=1, keepdims=True)
    height = (x - low) / np.where(span > 0, span, 1)
    for channel, line in enumerate(height):
        y = channel + 0.38 - 0.76 * line
        ax.plot(
            y,
            color="white",
            linewidth=1,
            alpha=0.75,
            gid="original",
        )


def _draw_outline(ax: Axes, changed: Array) -> None:
    """Draw a line around what changed."""
    border = LineCollection(
        _border_lines(changed),
        colors="white",
        linewidths=1.3,
        path_effects=EDGED,
        gid="changed",
    )
    ax.add_collection(border)


def _outline_style(points: list[float], label: str) -> Line2D | Patch:
    """Make the legend entry of the outline."""
    return Line2D(
        points,
        points,
        color="white",
        linewidth=1.3,
        path_effects=EDGED,
        label=label,
    )


def _border_lines(changed: Array) -> list[Segment]:
    """Return the border of the changed cells, in lines as long as can be."""
    padded = np.pad(changed, 1)
    horizontal = padded[1:] != padded[:-1]
    vertical = padded[:, 1:] != padded[:, :-1]
    lines: list[Segment] = []
    for row, edges in enumerate(horizontal):
        y = row - 0.5
        lines += [[(start - 1.5, y), (stop - 1.5, y)] for start, stop in runs(edges)]
    for column, edges in enumerate(vertical.T):
        x = column - 0.5
        lines += [[(x, start - 1.5), (x, stop - 1.5)] for start, stop in runs(edges)]
    return lines
