"""Pictures of a comparison: which methods can be told apart, which are dominated, which metrics agree."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

from ..benchmark import pareto_front
from ..benchmark.blocks import direction_of, name_of
from ..benchmark.significance import Comparison
from ..metrics import Metric
from ..models.classifier import Array
from . import panels
from .plots import WIDTH, blank, save
from .words import counted, shorten

BLUE = panels.COLORS[0]
#: inches: room for names at both sides, height of a name, of a bar
SIDE, ROW, BAR = 2.9, 0.3, 0.14
#: where a name may stand about its point, the best first
AROUND = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))


def plot_critical_difference(comparison: Comparison, path: str | Path | None = None) -> Figure:
    """Mean ranks on a line, the best at the left; a bar joins methods that the test does not tell apart.

    Where a bar passes under a method that is not of its group, dots mark the members.

    Parameters
    ----------
    comparison : from `nemenyi` or `wilcoxon_holm`.
    path : where to write it; .png, .svg or .pdf.
    """
    mean = comparison.mean_ranks
    k, methods = len(mean), list(mean.index)
    low, high = int(np.floor(mean.min())), int(np.ceil(mean.max()))
    low, high = max(1, min(low, high - 1)), min(k, max(high, low + 1))
    scale = (WIDTH - 2 * SIDE) / (high - low)
    levels = _levels(comparison.cliques, mean)
    limit = comparison.critical_difference
    line = 1.65 if limit is not None else 1.3
    top = line + 0.22 + BAR * (max(levels, default=-1) + 1) + 0.12
    left = methods[: -(-k // 2)]
    height = top + ROW * len(left) + 0.1

    figure = blank(height)
    figure.set_layout_engine("none")  # one axes, measured in inches
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    ax.set_xlim(0, WIDTH)
    ax.set_ylim(height, 0)

    def at(rank: float) -> float:
        return SIDE + (rank - low) * scale

    title = (
        f"{panels.plain(comparison.metric)}: mean rank over {counted(comparison.n_blocks, 'block')}"
    )
    ax.text(0.15, 0.28, title, fontsize=14, fontweight="bold", color=panels.INK, va="center")
    told = (
        f"1 is best; joined by a bar: not told apart ({comparison.test}, α = {comparison.alpha:g})"
    )
    ax.text(0.15, 0.58, told, fontsize=11, color=panels.INK, va="center")
    if limit is not None:
        _critical(ax, at(low), limit * scale, limit)

    ax.plot([at(low), at(high)], [line, line], color=panels.INK, linewidth=1.6)
    for tick in range(low, high + 1):
        ax.plot([at(tick)] * 2, [line - 0.09, line], color=panels.INK, linewidth=1.2)
        if (high - low) <= 20 or (tick - low) % 5 == 0:
            ax.text(
                at(tick),
                line - 0.14,
                str(tick),
                ha="center",
                va="bottom",
                fontsize=11,
                color=panels.INK,
            )
    for row, method in enumerate(left):
        _name(
            ax,
            method,
            at(mean[method]),
            line,
            top + ROW * (row + 0.5),
            left=True,
            rank=mean[method],
        )
    for row, method in enumerate(reversed(methods[len(left) :])):
        _name(
            ax,
            method,
            at(mean[method]),
            line,
            top + ROW * (row + 0.5),
            left=False,
            rank=mean[method],
        )
    for clique, level in zip(comparison.cliques, levels, strict=True):
        y = line + 0.22 + BAR * level
        ends = [at(mean[clique[0]]) - 0.05, at(mean[clique[-1]]) + 0.05]
        ax.plot(ends, [y, y], color=BLUE, linewidth=5, solid_capstyle="round", gid="clique")
        inside = mean.between(mean[clique[0]], mean[clique[-1]])
        if inside.sum() > len(clique):
            ax.plot(
                [at(mean[m]) for m in clique], [y] * len(clique), "o", color="white", markersize=3
            )
    if path is not None:
        save(figure, path)
    return figure


def _critical(ax: Axes, x: float, width: float, limit: float) -> None:
    """The critical difference as a length, over the axis; in words alone where it is longer than that."""
    if width > WIDTH - 2 * SIDE:
        told = f"critical difference {limit:.2f}, longer than the axis: nothing is told apart"
        ax.text(x, 0.98, told, va="center", fontsize=11, color=panels.INK)
        return
    ax.plot(
        [x, x, x, x + width, x + width, x + width],
        [0.9, 1.06, 0.98, 0.98, 0.9, 1.06],
        color=panels.INK,
    )
    ax.text(
        x + width + 0.1,
        0.98,
        f"critical difference {limit:.2f}",
        va="center",
        fontsize=11,
        color=panels.INK,
    )


def _name(
    ax: Axes, method: str, x: float, line: float, y: float, *, left: bool, rank: float
) -> None:
    """An elbow from the axis to the method's name at one side."""
    end = SIDE - 0.12 if left else WIDTH - SIDE + 0.12
    ax.plot([x, x, end], [line, y, y], color=panels.GRAY, linewidth=1.1, zorder=0)
    ax.plot(x, line, "o", color=panels.INK, markersize=4.5, gid="method")
    side: Literal["left", "right"] = "right" if left else "left"
    inward = -0.07 if left else 0.07
    ax.text(end + inward, y, f"{rank:.2f}", ha=side, va="center", fontsize=12)
    lines = textwrap.wrap(method, 28, max_lines=2, placeholder="…")
    size = 12 * min(1.0, 20 / max(map(len, lines)))
    ax.text(
        end + 10 * inward,
        y,
        panels.plain("\n".join(lines)),
        ha=side,
        va="center",
        fontsize=size if len(lines) == 1 else min(size, 9.5),
        linespacing=0.95,
    )


def _levels(cliques: Sequence[tuple[str, ...]], mean: pd.Series[float]) -> list[int]:
    """For each bar, the first level where it meets no other."""
    taken: list[list[tuple[float, float]]] = []
    levels = []
    for clique in cliques:
        start, stop = mean[clique[0]], mean[clique[-1]]
        level = 0
        while level < len(taken) and any(
            a <= stop + 0.1 and start <= b + 0.1 for a, b in taken[level]
        ):
            level += 1
        taken += [[]] * (level == len(taken))
        taken[level] = [*taken[level], (start, stop)]
        levels.append(level)
    return levels


def plot_pareto(
    frame: pd.DataFrame,
    x: str | Metric,
    y: str | Metric,
    path: str | Path | None = None,
    *,
    failed_worst: bool = True,
) -> Figure:
    """Every method by its means of two metrics; those that no other beats are joined by a line.

    Parameters
    ----------
    frame : one row per counterfactual.
    x, y : metrics.
    path : where to write it; .png, .svg or .pdf.
    failed_worst : as in `contrafact.benchmark.blocks.block_means`.
    """
    front = pareto_front(frame, [x, y], failed_worst=failed_worst)
    figure = blank(5.6, width=9.0)
    ax = figure.subplots()
    for metric, axis in ((x, "x"), (y, "y")):
        _scale(ax, front[name_of(metric)].to_numpy(), axis)
        less = direction_of(metric) == "min"
        arrow = {"x": "←" if less else "→", "y": "↓" if less else "↑"}[axis]
        told = f"{name_of(metric)}   ({arrow} {'less' if less else 'more'} is better)"
        getattr(ax, f"set_{axis}label")(panels.plain(told), fontsize=12, color=panels.INK)
    points = front[[name_of(x), name_of(y)]].to_numpy()
    beaten = ~front["on_front"].to_numpy()
    best = points[~beaten][np.lexsort(points[~beaten].T[::-1])]
    line = _staircase(best, later=direction_of(x) == "min")
    ax.plot(*line.T, color=BLUE, linewidth=1.4, linestyle=(0, (4, 2)))
    ax.plot(
        *points[beaten].T, "o", markersize=8, color=panels.GRAY, label="beaten by another method"
    )
    ax.plot(*best.T, "D", markersize=9, color=BLUE, label="not beaten (Pareto front)")
    ax.grid(color=panels.GRAY, alpha=0.25, linewidth=0.8)
    ax.set_axisbelow(True)
    panels.tidy(ax)
    ax.tick_params(labelsize=11)
    figure.legend(loc="outside upper left", ncols=2, frameon=False, fontsize=11)
    _place_names(figure, ax, front["on_front"], points, line)
    if path is not None:
        save(figure, path)
    return figure


def _scale(ax: Axes, values: Array, axis: str) -> None:
    """Logarithmic where the values span more than two orders of magnitude; room for names at the edges."""
    getattr(ax, f"set_{axis}margin")(0.12)
    if values.min() > 0 and values.max() > 100 * values.min():
        getattr(ax, f"set_{axis}scale")("log")


def _staircase(points: Array, *, later: bool) -> Array:
    """The points, from left to right, joined by steps; the height changes at the later or earlier one."""
    corners = np.stack(
        [points[1:, 0], points[:-1, 1]] if later else [points[:-1, 0], points[1:, 1]], 1
    )
    path = np.empty((2 * len(points) - 1, 2))
    path[::2], path[1::2] = points, corners
    return path


def _place_names(
    figure: Figure, ax: Axes, on_front: pd.Series[bool], points: Array, line: Array
) -> None:
    """A name beside every point, where it covers least; methods at one point share theirs."""
    figure.canvas.draw()
    figure.set_layout_engine("none")
    places, member = np.unique(points, axis=0, return_inverse=True)
    spots = ax.transData.transform(places)
    turns = ax.transData.transform(line)
    ends = zip([*spots, *turns[:-1]], [*spots, *turns[1:]], strict=True)
    taken = [Bbox.from_extents(*(np.minimum(a, b) - 8), *(np.maximum(a, b) + 8)) for a, b in ends]
    groups = [on_front[member.ravel() == i] for i in range(len(places))]
    # Long names first, while there is room.
    for i in sorted(
        range(len(places)), key=lambda i: -max(len(str(name)) for name in groups[i].index)
    ):
        here, spot = groups[i], spots[i]
        names = [panels.plain(shorten(str(name), 28)) for name in here.index]
        more = [f"+ {len(names) - 3} more"] if len(names) > 3 else []
        shown = ax.annotate(
            ",\n".join(names[:3] + more),
            (float(places[i, 0]), float(places[i, 1])),
            (0, 0),
            textcoords="offset points",
            fontsize=11,
            fontweight="bold" if here.any() else "normal",
            color=panels.INK,
            arrowprops={"arrowstyle": "-", "color": panels.GRAY, "linewidth": 0.8, "shrinkB": 4},
        )
        taken.append(_nudge(shown, spot, taken, ax.get_window_extent()))


def _nudge(shown: Annotation, spot: Array, taken: list[Bbox], whole: Bbox) -> Bbox:
    """Put a name where it covers least and stays inside, the nearer to its point the better; its box."""
    size = np.array(Text.get_window_extent(shown).size)
    pixels = shown.figure.dpi / 72 if shown.figure else 1.0
    tried = []
    for far, (dx, dy) in product((9, 20, 34, 50, 70), AROUND):
        corner = spot + far * pixels * np.array([dx, dy]) + size * (np.array([dx, dy]) - 1) / 2
        box = Bbox.from_extents(*corner, *(corner + size))
        outside = box.width * box.height - _overlap(box, whole)
        cost = sum(_overlap(box, other) for other in taken) + 3 * outside + 5 * far
        tried.append((cost, (far * dx, far * dy), dx, dy, box))
    _, position, dx, dy, box = min(tried, key=lambda one: one[0])
    sides = {1: ("left", "bottom"), 0: ("center", "center"), -1: ("right", "top")}
    shown.set(position=position, ha=sides[dx][0], va=sides[dy][1])
    return box


def _overlap(a: Bbox, b: Bbox) -> float:
    width = min(a.x1, b.x1) - max(a.x0, b.x0)
    height = min(a.y1, b.y1) - max(a.y0, b.y0)
    return float(max(width, 0) * max(height, 0))


def plot_correlations(table: pd.DataFrame, path: str | Path | None = None) -> Figure:
    """Which metrics put the methods in the same order (violet) or in the opposite one (brown).

    Parameters
    ----------
    table : from `correlations`.
    path : where to write it; .png, .svg or .pdf.
    """
    n = len(table)
    names = [panels.plain(shorten(str(name), 24)) for name in table.columns]
    side = max(0.52 * n, 2.2)
    figure = blank(side + 2.4, width=side + 3.6)
    ax = figure.subplots()
    values = table.to_numpy(dtype=float)
    drawn = ax.imshow(values, cmap="PuOr", vmin=-1, vmax=1)
    for i, j in product(range(n), range(n)):
        known = not np.isnan(values[i, j])
        text = f"{values[i, j]:.2f}".replace("0.", ".").replace("-", "−") if known else "–"
        dark = known and np.dot(drawn.to_rgba(values[i, j])[:3], (0.3, 0.59, 0.11)) < 0.5
        ax.text(
            j, i, text, ha="center", va="center", fontsize=10, color="white" if dark else "black"
        )
    ax.set_xticks(range(n), names, rotation=45, ha="right", rotation_mode="anchor", fontsize=11)
    ax.set_yticks(range(n), names, fontsize=11)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    bar = figure.colorbar(drawn, ax=ax, shrink=0.8, ticks=[-1, 0, 1])
    bar.ax.set_yticklabels(["opposite\norder", "unrelated", "same\norder"], fontsize=11)
    ax.set_title(
        "Do two metrics agree on which method is better?", fontsize=13, color=panels.INK, loc="left"
    )
    if path is not None:
        save(figure, path)
    return figure
