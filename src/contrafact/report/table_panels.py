"""What is drawn of one row of a table: the columns that changed."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from ..engine.result import Counterfactuals
from ..metrics.table_rows import part_changes
from .grammar import one_line
from .panels import draw_dots, write_beside, write_no_change
from .style import FONT_SIZE, look_of, plain, tidy_lines
from .table_words import rows_of, values_apart


def draw_columns(ax: Axes, result: Counterfactuals, i: int, most: int = 12) -> None:
    """Draw the changed columns of a row, most changed first.

    Numbers are two dots: before at 0, after as many units of the schema away as it moved.
    Categories have no distance that could be drawn and stand there in words.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    result : Counterfactuals
        The result of a table.
    i : int
        Row of the result.
    most : int, default=12
        The largest number of columns.
    """
    table, before, after = rows_of(result, i)
    row = result[i]
    changed = np.flatnonzero(row.changed_parts[0])
    by_size = np.argsort(-part_changes(row)[0, changed], kind="stable")
    parts = [list(table.schema.parts)[j] for j in changed[by_size][:most].tolist()]
    look = look_of(result, i)
    moves = [0.0]
    for line, part in enumerate(parts):
        first = table.schema.parts[part][0]
        column = table.schema.columns[first]
        words = plain(" → ".join(values_apart(table, part, before, after)))
        move = float((after[first] - before[first]) / column.scale)
        if column.is_numeric and column.group is None and not np.isnan(move):
            draw_dots(ax, 0.0, move, line, look)
            write_beside(ax, words, line)
            moves.append(move)
        else:
            _write_inside(ax, words, line, look.color)
    ax.set_yticks(range(len(parts)), [plain(one_line(part, 24)) for part in parts])
    ax.set_ylim(max(len(parts), 3) - 0.5, -0.5)
    margin = 0.12 * max(1.0, max(moves) - min(moves))
    ax.set_xlim(min(moves) - margin, max(moves) + margin)
    hidden = len(changed) - len(parts)
    more = f"({hidden} more changed, not shown)" if hidden else ""
    unit = "change, in typical deviations of the column" if len(moves) > 1 else ""
    ax.set_xlabel("\n".join(filter(None, [unit, more])), fontsize=FONT_SIZE)
    if not unit:
        ax.set_xticks([])
    tidy_lines(ax)
    if not parts:
        write_no_change(ax)


def _write_inside(ax: Axes, words: str, line: int, color: str) -> None:
    """Write a change that has no distance in the middle of its line."""
    ax.text(
        0.5,
        line,
        words,
        transform=ax.get_yaxis_transform(),
        ha="center",
        va="center",
        fontsize=FONT_SIZE + 1,
        color=color,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
    )
