"""Correlations of metrics: which ones put the methods in the same order."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ..validation import Instance, check_parameters
from .canvas import blank_figure, check_path, save_figure
from .grammar import shorten
from .style import INK, plain
from .words import MISSING

#: brightness of red, green and blue to the eye
LUMINANCE = (0.3, 0.59, 0.11)


def plot_correlations(table: pd.DataFrame, path: str | Path | None = None) -> Figure:
    """Draw which metrics put the methods in the same order (violet) or in the opposite (brown).

    Parameters
    ----------
    table : DataFrame
        From `correlations`.
    path : str or Path, optional
        Where to write it; .png, .svg or .pdf.

    Returns
    -------
    Figure
        The figure.
    """
    check_parameters("plot_correlations", {"table": Instance(pd.DataFrame)}, {"table": table})
    check_path(path)
    n = len(table)
    if n == 0 or table.shape != (n, n):
        raise ValueError(
            f"table has shape {table.shape}. Accepted: (metrics, metrics), as `correlations` gives."
        )
    side = max(0.52 * n, 2.2)
    figure = blank_figure(side + 2.4, width=side + 3.6)
    ax = figure.subplots()
    values = table.to_numpy(dtype=float)
    drawn = ax.imshow(
        values,
        cmap="PuOr",
        vmin=-1,
        vmax=1,
    )
    for i, j in product(range(n), range(n)):
        value = values[i, j]
        color = drawn.to_rgba(value)[:3]
        is_dark = not np.isnan(value) and np.dot(color, LUMINANCE) < 0.5
        ink = "white" if is_dark else "black"
        ax.text(
            j,
            i,
            _cell_text(value),
            ha="center",
            va="center",
            fontsize=10,
            color=ink,
        )
    names = [plain(shorten(str(name), 24)) for name in table.columns]
    ax.set_xticks(
        range(n),
        names,
        rotation=45,
        ha="right",
        rotation_mode="anchor",
        fontsize=11,
    )
    ax.set_yticks(range(n), names, fontsize=11)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    bar = figure.colorbar(
        drawn,
        ax=ax,
        shrink=0.8,
        ticks=[-1, 0, 1],
    )
    bar.ax.set_yticklabels(["opposite\norder", "unrelated", "same\norder"], fontsize=11)
    title = "Do two metrics agree on which method is better?"
    ax.set_title(
        title,
        fontsize=13,
        color=INK,
        loc="left",
    )
    save_figure(figure, path)
    return figure


def _cell_text(value: float) -> str:
    """Write a correlation in few characters: −.25, 1.00."""
    if np.isnan(value):
        return MISSING
    return f"{value:.2f}".replace("0.", ".").replace("-", "−")
