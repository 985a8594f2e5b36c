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

from ..engine.result import Counterfactuals
from ..metrics.metric import as_array
from ..metrics.regions import runs
from ..models.classifier import Array
from . import panels
from .plots import WIDTH, checked_width, chosen_rows, legend, pair, save, title_lines, titled

#: what explainers tell of each point, best first, and what to call it
KINDS = {
    "saliency": "saliency",
    "importance": "importance\n(all channels together)",
    "weights": "weight\n(cost of a change)",
}
#: seen on dark and on light
EDGED = [Stroke(linewidth=2.8, foreground="black"), Normal()]
MOST_NAMES = 60
MOST_TRACES = 12


def plot_saliency(
    result: Counterfactuals, i: int = 0, path: str | Path | None = None, *, width: float = WIDTH
) -> Figure:
    """Channels × time of counterfactual i in colors, with a line around what changed; series only.

    The colors are what the method tells: saliency (CELS), importance (NativeGuide) or weights (Glacier,
    LatentCF). Where it tells nothing, or the same of every point, they are the size of the change, as a share
    of the range that the channel has in all instances of the result.

    Parameters
    ----------
    i : row of the result; negative counts from the end.
    path : where to write it; .png, .svg or .pdf.
    width : inches, at least 3.

    Examples
    --------
    >>> import contrafact as cf
    >>> result = cf.CELS(max_iter=50).fit(model, X_train, y_train).explain(X_test[:4])
    >>> figure = plot_saliency(result, 0)
    """
    if result.modality != "series":
        raise ValueError(f"plot_saliency draws series; this result holds {result.modality} data.")
    (i,) = chosen_rows(result, [i])
    x, x_cf = pair(result, i)
    values, meaning = _values(result, i)
    channels, length = x.shape
    figure = titled(
        title_lines(result, i), 1.0 + float(np.clip(0.32 * channels, 1.5, 8)), checked_width(width)
    )
    ax = figure.subplots()
    low = 0.0 if values.min() >= 0 else None
    shown = ax.imshow(values, aspect="auto", cmap="cividis", interpolation="nearest", vmin=low)
    if channels <= MOST_TRACES:
        _traces(ax, x)
    around = LineCollection(
        _outline(x != x_cf),
        colors="white",
        linewidths=1.3,
        path_effects=EDGED,
        gid="changed",
    )
    ax.add_collection(around)
    # Room for the half of the outline that lies outside.
    ax.set_xlim(-0.5 - 0.004 * length, length - 0.5 + 0.004 * length)
    ax.set_ylim(channels - 0.42, -0.58)
    every = -(-channels // MOST_NAMES)
    named = range(0, channels, every)
    size = panels.SMALL if channels <= 30 else 6
    ax.set_yticks(named, [panels.value_name(result, c, 20) for c in named], fontsize=size)
    ax.tick_params(axis="x", labelsize=panels.SMALL)
    ax.tick_params(axis="y", length=0)
    ax.spines[:].set_visible(False)
    ax.set_xlabel("time step", fontsize=panels.SMALL)
    bar = figure.colorbar(shown, ax=ax, pad=0.015, aspect=15, fraction=0.05)
    bar.ax.tick_params(labelsize=panels.SMALL)
    bar.set_label(meaning, fontsize=panels.SMALL)
    key: list[Line2D | Patch] = [
        Line2D(
            [], [], color="white", linewidth=1.3, path_effects=EDGED, label="around what changed"
        )
    ]
    if channels <= MOST_TRACES:
        key.append(
            Line2D(
                [], [], color=panels.GRAY, linewidth=1, label="original, in the height of its band"
            )
        )
    legend(figure, key)
    if path is not None:
        save(figure, path)
    return figure


def _values(result: Counterfactuals, i: int) -> tuple[Array, str]:
    """(channels, length) to be shown, and what it is."""
    x, x_cf = pair(result, i)
    for kind, meaning in KINDS.items():
        if kind in result.info:
            told = np.asarray(result.info[kind][i], dtype=np.float64)
            told = np.broadcast_to(told, x.shape)
            if np.isfinite(told).all() and np.ptp(told) > 0:
                return told, meaning
    everything = as_array(result.X).reshape(len(result), *x.shape)
    span = np.ptp(everything, axis=(0, 2))[:, None]
    return 100 * np.abs(x_cf - x) / np.where(
        span > 0, span, 1
    ), "size of the change\n(% of the channel's range)"


def _traces(ax: Axes, x: Array) -> None:
    """The original over its band of colors, thin: what the series was doing there."""
    low, high = x.min(1, keepdims=True), x.max(1, keepdims=True)
    height = (x - low) / np.where(high > low, high - low, 1)
    for channel, line in enumerate(height):
        ax.plot(
            channel + 0.38 - 0.76 * line, color="white", linewidth=1, alpha=0.75, gid="original"
        )


def _outline(changed: Array) -> list[list[tuple[float, float]]]:
    """The border of the changed cells, in lines as long as can be."""
    padded = np.pad(changed, 1)
    level, upright = padded[1:] != padded[:-1], padded[:, 1:] != padded[:, :-1]
    lines = [
        [(start - 1.5, at - 0.5), (stop - 1.5, at - 0.5)]
        for at, edge in enumerate(level)
        for start, stop in runs(edge)
    ]
    return lines + [
        [(at - 0.5, start - 1.5), (at - 0.5, stop - 1.5)]
        for at, edge in enumerate(upright.T)
        for start, stop in runs(edge)
    ]
