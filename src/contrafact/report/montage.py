"""Many counterfactual images at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..engine.result import Counterfactuals
from ..numerics import ceil_div
from ..validation import Integer, check_parameters
from .canvas import blank_figure, check_path, check_result, checked_rows, save_figure
from .pairs import pair
from .panels import draw_difference, draw_image
from .style import ALARM, MISSED
from .words import class_probability, column_of, label_text

MOST_ROWS = 12
#: characters of a label above a picture
LABEL_LIMIT = 12


def montage(
    result: Counterfactuals,
    rows: Sequence[int] | None = None,
    path: str | Path | None = None,
    *,
    across: int = 2,
) -> Figure:
    """Draw images before, after and what changed, several counterfactuals at a glance.

    Difference maps share one symmetric color range: red is brighter, blue darker. A counterfactual
    that did not reach its class has an orange frame and says what it is instead.

    Parameters
    ----------
    result : Counterfactuals
        The result, of images.
    rows : sequence of int, optional
        Rows of the result; by default the first twelve.
    path : str or Path, optional
        Where to write it; .png, .svg or .pdf.
    across : int, default=2
        Counterfactuals side by side.

    Returns
    -------
    Figure
        The figure.
    """
    check_result(result)
    check_path(path)
    check_parameters("montage", {"across": Integer(at_least=1, at_most=20)}, {"across": across})
    if result.modality != "image":
        raise ValueError(f"montage draws images; this result holds {result.modality} data.")
    first_rows = range(min(MOST_ROWS, len(result)))
    chosen = checked_rows(result, first_rows if rows is None else rows)
    pairs = [pair(result, i) for i in chosen]
    low = min(min(x.min(), x_cf.min()) for x, x_cf in pairs)
    high = max(max(x.max(), x_cf.max()) for x, x_cf in pairs)
    limit = max(float(np.abs(x_cf - x).max()) for x, x_cf in pairs) or 1.0
    across = min(across, len(chosen))
    lines = ceil_div(len(chosen), across)
    figure = blank_figure(0.3 + 1.75 * lines, width=4.9 * across)
    # Three pictures and a gap for each; none after the last.
    widths = [1, 1, 1, 0.12] * across
    grid = figure.add_gridspec(
        lines,
        len(widths) - 1,
        width_ratios=widths[:-1],
    )
    for at, (i, (x, x_cf)) in enumerate(zip(chosen, pairs, strict=True)):
        line, place = divmod(at, across)
        first = 4 * place
        before = figure.add_subplot(grid[line, first])
        after = figure.add_subplot(grid[line, first + 1])
        difference = figure.add_subplot(grid[line, first + 2])
        draw_image(before, x, low, high, label_text(result.labels[i], LABEL_LIMIT))
        draw_image(after, x_cf, low, high, _after_title(result, i))
        if not result.valid[i]:
            _mark_missed(after)
        drawn = draw_difference(difference, x_cf - x, limit)
    shrink = min(1.0, 1.2 / lines)
    figure.colorbar(
        drawn,
        ax=figure.axes,
        shrink=shrink,
        pad=0.01,
        label="after − before",
    )
    save_figure(figure, path)
    return figure


def _after_title(result: Counterfactuals, i: int) -> str:
    """Say the class after, with its probability if it is the target."""
    label = label_text(result.cf_labels[i], LABEL_LIMIT)
    if not result.valid[i]:
        return f"{label}, wanted {label_text(result.target[i], LABEL_LIMIT)}"
    probability = class_probability(result.cf_proba[i], column_of(result, result.target[i]))
    return f"{label}, {probability}"


def _mark_missed(ax: Axes) -> None:
    """Put an orange frame around a counterfactual that did not reach its class."""
    ax.title.set_color(ALARM)
    ax.spines[:].set(color=MISSED.color, linewidth=2.5)
