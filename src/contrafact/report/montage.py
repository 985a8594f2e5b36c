"""Pictures of many: a montage of image counterfactuals, and the map of a class audit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..engine.result import Counterfactuals
from ..explainers.class_audit import ClassAudit
from ..models.classifier import Array
from . import panels
from .plots import blank, chosen_rows, pair, save
from .words import label_text, probability_text


def montage(
    result: Counterfactuals,
    rows: Sequence[int] | None = None,
    path: str | Path | None = None,
    *,
    across: int = 2,
) -> Figure:
    """Images before, after and what changed, several counterfactuals at a glance.

    Difference maps share one symmetric color range: red is brighter, blue darker. What did not reach its
    class has an orange frame and says what it is instead.

    Parameters
    ----------
    rows : rows of the result; None: the first twelve.
    path : where to write it; .png, .svg or .pdf.
    across : counterfactuals side by side.
    """
    if result.modality != "image":
        raise ValueError(f"montage draws images; this result holds {result.modality} data.")
    chosen = chosen_rows(result, range(min(12, len(result))) if rows is None else rows)
    pairs = [pair(result, i) for i in chosen]
    low, high = (
        min(min(x.min(), c.min()) for x, c in pairs),
        max(max(x.max(), c.max()) for x, c in pairs),
    )
    limit = max(float(np.abs(c - x).max()) for x, c in pairs) or 1.0
    across = min(across, len(chosen))
    lines = -(-len(chosen) // across)
    figure = blank(0.3 + 1.75 * lines, width=4.9 * across)
    columns = [0 if at % 4 == 3 else 1 for at in range(4 * across - 1)]
    grid = figure.add_gridspec(lines, 4 * across - 1, width_ratios=[c or 0.12 for c in columns])
    shown = None
    for at, (i, (x, x_cf)) in enumerate(zip(chosen, pairs, strict=True)):
        line, first = at // across, 4 * (at % across)
        axes = [figure.add_subplot(grid[line, first + j]) for j in range(3)]
        classes = result.classes.tolist()
        target = classes.index(result.target[i].item())
        panels.draw_image(axes[0], x, low, high, label_text(result.labels[i].item(), 12))
        said = label_text(result.cf_labels[i].item(), 12)
        p, wanted = (
            probability_text(result.cf_proba[i, target]),
            label_text(result.target[i].item(), 12),
        )
        words = f"{said}, {p}" if result.valid[i] else f"{said}, wanted {wanted}"
        panels.draw_image(axes[1], x_cf, low, high, words)
        if not result.valid[i]:
            axes[1].title.set_color(panels.ALARM)
            axes[1].spines[:].set(color=panels.MISSED.color, linewidth=2.5)
        shown = panels.draw_difference(axes[2], x_cf - x, limit)
    assert shown is not None
    figure.colorbar(
        shown, ax=figure.axes, shrink=min(1.0, 1.2 / lines), pad=0.01, label="after − before"
    )
    if path is not None:
        save(figure, path)
    return figure


def plot_audit(audit: ClassAudit, path: str | Path | None = None, *, marked: int = 3) -> Figure:
    """The map of a class audit: the mean change, and how often each place is among the most changed."""
    series = len(audit.frequency) == 1
    figure = blank(3.0 if series else 3.9, header=0.4, width=9.5)
    mean, often = figure.subplots(2, 1, sharex=True) if series else figure.subplots(1, 2)
    limit = float(np.abs(audit.mean_change).max()) or 1.0
    named = f"turning {audit.n} instances into {label_text(audit.target, 24)} ({audit.valid:.0%} turned)"
    figure.text(
        0.012, 0.94, panels.plain(f"What the model wants: {named}"), fontweight="bold", fontsize=12
    )
    if series:
        mean.plot(audit.mean_change[0], color=panels.REACHED.color)
        often.plot(audit.frequency[0], color=panels.INK)
        for ax in (mean, often):
            panels.tidy(ax)
    else:
        _map(figure, mean, audit.mean_change, "RdBu_r", -limit, limit)
        _map(figure, often, audit.frequency, "Grays", 0, 1)
    mean.set_title("mean change (after − before)", fontsize=10)
    often.set_title("how often among the most changed 5 %", fontsize=10)
    for rank, region in enumerate(audit.regions[:marked], start=1):
        corner = (region.left - 0.5, 0 if series else region.top - 0.5)
        box = Rectangle(
            corner,
            region.width,
            1 if series else region.height,
            fill=False,
            edgecolor="#D55E00",
            linewidth=2,
        )
        often.add_patch(box)
        often.text(
            corner[0] + 0.1,
            corner[1] + 0.1,
            str(rank),
            color="#D55E00",
            va="top",
            fontweight="bold",
        )
    if path is not None:
        save(figure, path)
    return figure


def _map(figure: Figure, ax: Axes, values: Array, colors: str, low: float, high: float) -> None:
    shown = ax.imshow(values, cmap=colors, vmin=low, vmax=high, interpolation="nearest")
    ax.set_xticks([])
    ax.set_yticks([])
    figure.colorbar(shown, ax=ax, shrink=0.85)
