"""Pictures of several methods side by side, for one instance."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..engine.result import Counterfactuals
from ..metrics.table_rows import part_changes
from ..models.classifier import Array
from ..validation import Integer, check_parameters
from .canvas import WIDTH, TitleLine, check_path, save_figure, titled_figure, write_legend
from .comparison import (
    MethodAnswer,
    answer_lines,
    answers_for,
    check_same_instances,
    question_text,
)
from .grammar import one_line
from .pairs import relative_change
from .panels import draw_difference, draw_image, draw_series, write_no_change
from .style import ALARM, FONT_SIZE, GRAY, INK, drawn_name, legend_entries, plain, tidy_lines
from .table_words import value_text
from .words import number_text

MOST_CHANNELS = 3
MOST_FEATURES = 20
#: larger changes are drawn as large as one of this size
MOST_SIZE = 2.0
#: distance of the lines beside a picture, in points
LINE_STEP = 13


def plot_methods(
    results: Mapping[str, Counterfactuals], i: int = 0, path: str | Path | None = None
) -> Figure:
    """Draw what several methods make of one instance, and what it cost them.

    Series have a panel per method, of several channels the three that change most. Images have a
    line per method. Rows have a table of features and methods.

    Parameters
    ----------
    results : mapping of str to Counterfactuals
        By method, all of the same instances.
    i : int, default=0
        Row of the input (`source`). Where a method has several counterfactuals of it, the first
        valid one is drawn.
    path : str or Path, optional
        Where to write it; .png, .svg or .pdf.

    Returns
    -------
    Figure
        The figure.

    Raises
    ------
    ValueError
        If the results are not of the same instances.

    Examples
    --------
    >>> import contrafact as cf
    >>> result = cf.CELS(max_iter=50).fit(model, X_train, y_train).explain(X_test[:4])
    >>> figure = plot_methods({"CELS": result, "CELS, refined": cf.refine(result, model)}, 3)
    """
    check_path(path)
    check_same_instances(results)
    check_parameters("plot_methods", {"i": Integer()}, {"i": i})
    answers = answers_for(results, i)
    modality = answers[0].result.modality
    draw = {"series": _plot_series, "image": _plot_images, "row": _plot_rows}[modality]
    figure = draw(answers)
    save_figure(figure, path)
    return figure


def _question_line(answers: list[MethodAnswer]) -> TitleLine:
    """Make the title of the figure."""
    return TitleLine(
        question_text(answers),
        size=13,
        weight="bold",
    )


def _write_lines(ax: Axes, answer: MethodAnswer, x: float = 0.0) -> None:
    """Write the name of a method and its figures, downward from the top of empty axes."""
    ax.axis("off")
    verdict, *others = answer_lines(answer)
    _write_below_top(
        ax,
        x,
        0,
        one_line(answer.name, 24),
        answer.look.color,
        is_name=True,
    )
    _write_below_top(ax, x, 1, verdict, INK if answer.valid else ALARM)
    for line, text in enumerate(others, start=2):
        _write_below_top(ax, x, line, text, INK)


def _write_below_top(
    ax: Axes, x: float, line: int, text: str, color: str, *, is_name: bool = False
) -> None:
    """Write one line of text, so many lines below the top of the axes."""
    ax.annotate(
        plain(text),
        (x, 1),
        (0, -1 - LINE_STEP * line),
        xycoords=ax.get_xaxis_transform(),
        textcoords="offset points",
        va="top",
        fontsize=11 if is_name else FONT_SIZE,
        fontweight="bold" if is_name else "normal",
        color=color,
    )


def _plot_series(answers: list[MethodAnswer]) -> Figure:
    """Draw a line of panels per method, a column per channel, on shared axes."""
    moved = _channel_changes(answers)
    order = np.argsort(-moved, kind="stable")
    shown = np.sort(order[:MOST_CHANNELS]).tolist()
    hidden = order[MOST_CHANNELS:]
    lines = [_question_line(answers)]
    if len(hidden):
        also = int(np.count_nonzero(moved[hidden]))
        text = f"the channels that change most; of {len(hidden)} more, {also} changed too"
        lines.append(TitleLine(text))
    figure = titled_figure(lines, 0.75 + 1.25 * len(answers), WIDTH)
    widths = [6.6 / len(shown)] * len(shown)
    grid = figure.add_gridspec(
        len(answers),
        len(shown) + 1,
        width_ratios=[*widths, 1.7],
    )
    top: dict[int, Axes] = {}
    for line, answer in enumerate(answers):
        x = answer.x
        x_cf = answer.x_cf
        changed = answer.changed
        named = len(x) > 1 or answer.result.names is not None
        for column, channel in enumerate(shown):
            first = top.get(column)
            ax = figure.add_subplot(
                grid[line, column],
                sharex=first,
                sharey=first,
            )
            top.setdefault(column, ax)
            draw_series(ax, x[channel], x_cf[channel], changed[channel], answer.look)
            if line == 0 and named:
                ax.set_title(
                    drawn_name(answer.result, channel),
                    fontsize=10,
                    color=INK,
                )
            if line == len(answers) - 1:
                ax.set_xlabel("time step", fontsize=FONT_SIZE)
            else:
                ax.tick_params(labelbottom=False)
        _write_lines(figure.add_subplot(grid[line, -1]), answer)
    looks = list(dict.fromkeys(answer.look for answer in answers))
    write_legend(figure, legend_entries(looks, "line"))
    return figure


def _channel_changes(answers: list[MethodAnswer]) -> Array:
    """Return how much each channel changed in all answers, as multiples of its range."""
    span = np.ptp(answers[0].x, 1)
    total = np.zeros(len(span))
    for answer in answers:
        total += np.abs(np.where(answer.changed, answer.x_cf - answer.x, 0)).sum(1)
    return np.asarray(total / np.where(span > 0, span, 1))


def _plot_images(answers: list[MethodAnswer]) -> Figure:
    """Draw the original once, and beside it after and difference of each method."""
    x = answers[0].x
    low = min(min(answer.x.min(), answer.x_cf.min()) for answer in answers)
    high = max(max(answer.x.max(), answer.x_cf.max()) for answer in answers)
    limit = max(float(np.abs(answer.x_cf - answer.x).max()) for answer in answers) or 1.0
    size = float(np.clip(1.5 * x.shape[1] / x.shape[2], 1.2, 3.0))
    figure = titled_figure([_question_line(answers)], 0.3 + size * len(answers), 7.2)
    grid = figure.add_gridspec(
        len(answers),
        4,
        width_ratios=[1, 1, 1, 1.2],
    )
    draw_image(figure.add_subplot(grid[:, 0]), x, low, high, "original")
    differences = []
    for line, answer in enumerate(answers):
        after = figure.add_subplot(grid[line, 1])
        difference = figure.add_subplot(grid[line, 2])
        look = answer.look
        title = look.name if line == 0 or not answer.valid else ""
        draw_image(after, answer.x_cf, low, high, title)
        after.spines[:].set(
            color=look.color,
            linewidth=2.5,
            linestyle=look.line,
        )
        drawn = draw_difference(difference, answer.x_cf - answer.x, limit)
        if line > 0:
            difference.set_title("")
        differences.append(difference)
        _write_lines(figure.add_subplot(grid[line, 3]), answer)
    bar = figure.colorbar(
        drawn,
        ax=differences,
        location="bottom",
        shrink=0.9,
        pad=0.03,
        aspect=12,
    )
    bar.ax.tick_params(labelsize=FONT_SIZE)
    bar.set_label("after − before", fontsize=FONT_SIZE)
    return figure


def _plot_rows(answers: list[MethodAnswer]) -> Figure:
    """Draw a line per feature that any method changed, a column per method."""
    order = _feature_order(answers)
    shown = order[:MOST_FEATURES]
    height = 0.27 * max(len(shown), 1) + 0.2
    width = max(4.0 + 2.1 * len(answers), 6.0)
    figure = titled_figure([_question_line(answers)], height + 1.1, width)
    head, ax = figure.subplots(
        2,
        1,
        sharex=True,
        height_ratios=[0.95, height],
    )
    _draw_originals(head, ax, [_text_of(answers[0], j, answers[0].x) for j in shown])
    for column, answer in enumerate(answers):
        _write_lines(head, answer, column - 0.06)
        _draw_column(ax, answer, column, shown)
    ax.set_yticks(range(len(shown)), [_name_of(answers[0], j) for j in shown])
    ax.set_ylim(max(len(shown), 1) - 0.5, -0.5)
    ax.set_xlim(-0.62, len(answers) - 0.25)
    ax.set_xticks([])
    if not shown:
        write_no_change(ax)
    hidden = len(order) - len(shown)
    more = f"   ({hidden} more changed, not shown)" if hidden else ""
    other = ", ■ another value" if answers[0].result.table is not None else ""
    key = f"▲ up, ▼ down: the larger, the more{other}{more}"
    ax.set_xlabel(key, fontsize=FONT_SIZE, loc="left")
    tidy_lines(ax)
    ax.spines[["bottom", "left"]].set_visible(False)
    return figure


def _draw_originals(head: Axes, ax: Axes, values: list[str]) -> None:
    """Draw the first column of the table: the values before."""
    head.annotate(
        "original",
        (-0.56, 0),
        xycoords=head.get_xaxis_transform(),
        fontsize=11,
        color=GRAY,
    )
    for line, value in enumerate(values):
        ax.plot(
            -0.5,
            line,
            "o",
            color=GRAY,
            markersize=6,
            gid="original",
        )
        _write_value(ax, -0.44, line, value)


def _feature_order(answers: list[MethodAnswer]) -> list[int]:
    """Sort the changed features: those that most methods changed first, then by size."""
    often = np.sum([_changed_of(answer) for answer in answers], axis=0)
    size = np.max([_size_of(answer) for answer in answers], axis=0)
    order = np.lexsort((-size, -often)).tolist()
    return [j for j in order if often[j]]


def _draw_column(ax: Axes, answer: MethodAnswer, column: int, shown: list[int]) -> None:
    """Draw a method's column of the table: which way, how much, to what value."""
    changed = _changed_of(answer)
    size = np.minimum(_size_of(answer), MOST_SIZE)
    color = answer.look.color
    for line, j in enumerate(shown):
        if not changed[j]:
            ax.plot(
                column,
                line,
                ".",
                color=GRAY,
                markersize=3,
                gid="same",
            )
            continue
        ax.plot(
            column,
            line,
            color=color,
            marker=_marker_of(answer, j),
            markersize=4 + 7 * size[j] ** 0.5,
            markerfacecolor=color if answer.valid else "white",
            gid="changed",
        )
        _write_value(ax, column + 0.09, line, _text_of(answer, j, answer.x_cf))


def _changed_of(answer: MethodAnswer) -> Array:
    """Return which features changed; of a table, which columns."""
    if answer.result.table is not None:
        return np.asarray(answer.result[answer.i].changed_parts[0])
    return answer.changed


def _size_of(answer: MethodAnswer) -> Array:
    """Return how much each feature changed."""
    if answer.result.table is not None:
        return np.asarray(part_changes(answer.result[answer.i])[0])
    return relative_change(answer.x, answer.x_cf)


def _name_of(answer: MethodAnswer, j: int) -> str:
    """Return the name of a feature or column, ready to be drawn."""
    table = answer.result.table
    if table is not None:
        return plain(one_line(list(table.schema.parts)[j], 28))
    return drawn_name(answer.result, j, 28)


def _text_of(answer: MethodAnswer, j: int, values: Array) -> str:
    """Write the value of a feature or column."""
    table = answer.result.table
    if table is not None:
        return plain(value_text(table, list(table.schema.parts)[j], values, 16))
    return number_text(values[j])


def _marker_of(answer: MethodAnswer, j: int) -> str:
    """Return the marker of a change: up, down, or another value of a category."""
    table = answer.result.table
    if table is not None:
        (j, *others) = list(table.schema.parts.values())[j]
        if others or not table.schema.columns[j].is_numeric or np.isnan(answer.x[j]):
            return "s"
    return "^" if answer.x_cf[j] > answer.x[j] else "v"


def _write_value(ax: Axes, x: float, y: float, text: str) -> None:
    """Write a value on white ground."""
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    ax.text(
        x,
        y,
        text,
        va="center",
        fontsize=FONT_SIZE,
        color=INK,
        bbox=ground,
    )
