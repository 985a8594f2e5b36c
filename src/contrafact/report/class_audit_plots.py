"""The map of a class audit: where many counterfactuals of one class change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..explainers.class_audit import ClassAudit, Region
from ..models.classifier import Array
from ..validation import Instance, Integer, check_parameters
from .canvas import blank_figure, check_path, save_figure, write_title
from .grammar import counted
from .style import BLUE, INK, VERMILLION, tidy
from .words import label_text, percent_text


def plot_audit(audit: ClassAudit, path: str | Path | None = None, *, marked: int = 3) -> Figure:
    """Draw the mean change, and how often each place is among the most changed.

    Parameters
    ----------
    audit : ClassAudit
        From `class_audit`.
    path : str or Path, optional
        Where to write it; .png, .svg or .pdf.
    marked : int, default=3
        How many regions to mark.

    Returns
    -------
    Figure
        The figure.
    """
    rules = {"audit": Instance(ClassAudit), "marked": Integer(at_least=0)}
    check_parameters("plot_audit", rules, {"audit": audit, "marked": marked})
    check_path(path)
    is_series = len(audit.frequency) == 1
    if is_series:
        figure = blank_figure(3.0, header=0.4, width=9.5)
        mean, often = figure.subplots(2, 1, sharex=True)
        mean.plot(audit.mean_change[0], color=BLUE)
        often.plot(audit.frequency[0], color=INK)
        tidy(mean)
        tidy(often)
    else:
        figure = blank_figure(3.9, header=0.4, width=9.5)
        mean, often = figure.subplots(1, 2)
        limit = float(np.abs(audit.mean_change).max()) or 1.0
        _draw_map(figure, mean, audit.mean_change, "RdBu_r", -limit, limit)
        _draw_map(figure, often, audit.frequency, "Grays", 0, 1)
    # The audit asks only instances that are not yet in the target class.
    write_title(
        figure,
        f"What makes the model say {label_text(audit.target, 24)}: means over "
        f"{counted(audit.n, 'instance')}, none of them already in it "
        f"({percent_text(audit.valid)} reached)",
        y=0.94,
    )
    mean.set_title("mean change (after − before)", fontsize=10)
    often.set_title("how often among the most changed 5 %", fontsize=10)
    for rank, region in enumerate(audit.regions[:marked], start=1):
        _mark_region(
            often,
            region,
            rank,
            is_series=is_series,
        )
    save_figure(figure, path)
    return figure


def _draw_map(
    figure: Figure, ax: Axes, values: Array, colors: str, low: float, high: float
) -> None:
    """Draw a map with its color bar."""
    drawn = ax.imshow(
        values,
        cmap=colors,
        vmin=low,
        vmax=high,
        interpolation="nearest",
    )
    ax.set_xticks([])
    ax.set_yticks([])
    figure.colorbar(drawn, ax=ax, shrink=0.85)


def _mark_region(ax: Axes, region: Region, rank: int, *, is_series: bool) -> None:
    """Draw a box around a region, with its rank."""
    left = region.left - 0.5
    top = 0 if is_series else region.top - 0.5
    height = 1 if is_series else region.height
    box = Rectangle(
        (left, top),
        region.width,
        height,
        fill=False,
    )
    box.set(edgecolor=VERMILLION, linewidth=2)
    ax.add_patch(box)
    ax.text(
        left + 0.1,
        top + 0.1,
        str(rank),
        color=VERMILLION,
        va="top",
        fontweight="bold",
    )
