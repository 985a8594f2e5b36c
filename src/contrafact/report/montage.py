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
from .style import ALARM, INK, MISSED
from .words import class_probability, column_of, label_text, number_text

MOST_ROWS = 12
#: characters of a label above a picture
LABEL_LIMIT = 14
#: characters of a line above a picture at full size; longer ones are smaller
LINE_LIMIT = 18
#: sizes of the labels and of the line above all, in points: legible at the size of a slide
LABEL_SIZE, HEAD_SIZE = 13, 14
#: inches: width of three pictures, height of one with its labels, of the line above all
WIDTH, HEIGHT, HEAD = 6.0, 2.35, 0.5


def montage(
    result: Counterfactuals,
    rows: Sequence[int] | None = None,
    path: str | Path | None = None,
    *,
    across: int = 2,
) -> Figure:
    """Draw images before, after and what changed, several counterfactuals at a glance.

    Above each picture stands its class, and P of the class wanted, before → after. Where the method
    reports the norm of its changes, it stands above the difference; the line above all says which
    norm. Difference maps share one symmetric color range: red is brighter, blue darker. A
    counterfactual that did not reach its class has an orange frame and says what it is instead.

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
    figure = blank_figure(HEAD + HEIGHT * lines, width=WIDTH * across)
    figure.suptitle(_head(result), size=HEAD_SIZE, color=INK)
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
        draw_image(before, x, low, high, f"{label_text(result.labels[i], LABEL_LIMIT)}\nbefore")
        draw_image(after, x_cf, low, high, _after_title(result, i))
        drawn = draw_difference(difference, x_cf - x, limit)
        difference.set_title(_change_title(result, i))
        for ax in (before, after, difference):
            longest = max(map(len, ax.get_title().split("\n")))
            ax.title.set_fontsize(LABEL_SIZE * min(1.0, LINE_LIMIT / max(longest, 1)))
        if not result.valid[i]:
            _mark_missed(after)
    bar = figure.colorbar(
        drawn,
        ax=figure.axes,
        shrink=min(1.0, 1.2 / lines),
        pad=0.01,
    )
    bar.set_label("after − before", size=LABEL_SIZE)
    bar.ax.tick_params(labelsize=LABEL_SIZE - 2)
    save_figure(figure, path)
    return figure


def _head(result: Counterfactuals) -> str:
    """Say which method it is, and the norm that stands above the differences."""
    method = str(result.provenance.get("method", ""))
    norm = result.provenance.get("parameters", {}).get("norm")
    if "norm_used" not in result.info or norm is None:
        return method
    return f"{method}, change in the l{number_text(norm)} norm"


def _after_title(result: Counterfactuals, i: int) -> str:
    """Say the class after, and P of the class wanted before and after."""
    label = label_text(result.cf_labels[i], LABEL_LIMIT)
    if not result.valid[i]:
        label = f"{label}, not {label_text(result.target[i], LABEL_LIMIT)}"
    column = column_of(result, result.target[i])
    before = class_probability(result.proba[i], column)
    after = class_probability(result.cf_proba[i], column)
    return f"{label}\nP {before} → {after}"


def _change_title(result: Counterfactuals, i: int) -> str:
    """Say the norm of a change, where it is known."""
    if "norm_used" not in result.info:
        return ""
    return f"change\n{float(result.info['norm_used'][i]):.2f}"


def _mark_missed(ax: Axes) -> None:
    """Put an orange frame around a counterfactual that did not reach its class."""
    ax.title.set_color(ALARM)
    ax.spines[:].set(color=MISSED.color, linewidth=2.5)
