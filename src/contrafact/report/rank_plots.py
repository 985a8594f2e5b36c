"""Critical-difference diagram: mean ranks, and which methods cannot be told apart."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..benchmark.pairwise import Comparison
from ..numerics import ceil_div
from ..validation import brief
from .canvas import WIDTH, blank_figure, check_path, save_figure
from .grammar import counted
from .style import BLUE, GRAY, INK, plain

#: inches: room for names at both sides, height of a name, distance of two bars
SIDE = 2.9
NAME_HEIGHT = 0.3
BAR_STEP = 0.14
#: ranks at which two bars on one level would touch
BAR_GAP = 0.1


@dataclass(frozen=True)
class _RankAxis:
    """The axis of ranks, in inches: `low` to `high` at height `y`."""

    low: int
    high: int
    y: float

    @property
    def scale(self) -> float:
        """Inches for each rank."""
        return (WIDTH - 2 * SIDE) / (self.high - self.low)

    def position(self, rank: float) -> float:
        """Horizontal position of a rank, in inches."""
        return SIDE + (rank - self.low) * self.scale


def plot_critical_difference(comparison: Comparison, path: str | Path | None = None) -> Figure:
    """Draw mean ranks on a line, the best at the left; a bar joins methods not told apart.

    Where a bar passes a method that is not of its group, dots mark the members.

    Parameters
    ----------
    comparison : Comparison
        From `nemenyi` or `wilcoxon_holm`.
    path : str or Path, optional
        Where to write it; .png, .svg or .pdf.

    Returns
    -------
    Figure
        The figure.

    References
    ----------
    Demšar: Statistical comparisons of classifiers over multiple data sets. JMLR 7, 2006.
    """
    if not hasattr(comparison, "mean_ranks"):
        raise TypeError(
            f"comparison must be what nemenyi or wilcoxon_holm returns, got {brief(comparison)}."
        )
    check_path(path)
    mean = comparison.mean_ranks
    methods = list(mean.index)
    axis = _rank_axis(comparison)
    levels = _bar_levels(comparison.cliques, mean)
    below_bars = axis.y + 0.34 + BAR_STEP * (max(levels, default=-1) + 1)
    n_left = ceil_div(len(methods), 2)
    height = below_bars + NAME_HEIGHT * n_left + 0.1
    figure = blank_figure(height)
    figure.set_layout_engine("none")  # one axes, measured in inches
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    ax.set_xlim(0, WIDTH)
    ax.set_ylim(height, 0)
    _write_heading(ax, comparison)
    if comparison.critical_difference is not None:
        _draw_critical_difference(ax, axis, comparison.critical_difference)
    _draw_axis(ax, axis)
    left = methods[:n_left]
    right = methods[n_left:][::-1]
    for names, side in ((left, "left"), (right, "right")):
        for row, method in enumerate(names):
            y = below_bars + NAME_HEIGHT * (row + 0.5)
            _draw_method(
                ax,
                axis,
                method,
                mean[method],
                y,
                is_left=side == "left",
            )
    for clique, level in zip(
        comparison.cliques,
        levels,
        strict=True,
    ):
        _draw_clique(ax, axis, mean, clique, axis.y + 0.22 + BAR_STEP * level)
    save_figure(figure, path)
    return figure


def _rank_axis(comparison: Comparison) -> _RankAxis:
    """Choose an axis of whole ranks that holds all means, at least one rank long."""
    mean = comparison.mean_ranks
    low = int(np.floor(mean.min()))
    high = int(np.ceil(mean.max()))
    return _RankAxis(
        low=max(1, min(low, high - 1)),
        high=min(len(mean), max(high, low + 1)),
        y=1.3 if comparison.critical_difference is None else 1.65,
    )


def _write_heading(ax: Axes, comparison: Comparison) -> None:
    """Write what was compared, and how."""
    blocks = counted(comparison.n_blocks, "data set" if comparison.blocks == "datasets" else "run")
    title = f"{plain(comparison.metric)}: mean rank over {blocks}"
    ax.text(
        0.15,
        0.28,
        title,
        fontsize=14,
        fontweight="bold",
        color=INK,
        va="center",
    )
    test = f"{comparison.test}, α = {comparison.alpha:g}"
    rule = f"1 is best; joined by a bar: not told apart ({test})"
    ax.text(
        0.15,
        0.58,
        rule,
        fontsize=11,
        color=INK,
        va="center",
    )


def _draw_critical_difference(ax: Axes, axis: _RankAxis, difference: float) -> None:
    """Draw the critical difference as a length above the axis, or say that it is longer."""
    x = axis.position(axis.low)
    width = difference * axis.scale
    text = f"critical difference {difference:.2f}"
    if width > WIDTH - 2 * SIDE:
        text += ", longer than the axis: nothing is told apart"
        ax.text(
            x,
            0.98,
            text,
            va="center",
            fontsize=11,
            color=INK,
        )
        return
    end = x + width
    ax.plot(
        [x, x, x, end, end, end],
        [0.9, 1.06, 0.98, 0.98, 0.9, 1.06],
        color=INK,
    )
    ax.text(
        end + 0.1,
        0.98,
        text,
        va="center",
        fontsize=11,
        color=INK,
    )


def _draw_axis(ax: Axes, axis: _RankAxis) -> None:
    """Draw the axis and its ticks; of many, every fifth has a number."""
    ends = [axis.position(axis.low), axis.position(axis.high)]
    ax.plot(
        ends,
        [axis.y, axis.y],
        color=INK,
        linewidth=1.6,
    )
    every = 1 if axis.high - axis.low <= 20 else 5
    for rank in range(axis.low, axis.high + 1):
        x = axis.position(rank)
        ax.plot(
            [x, x],
            [axis.y - 0.09, axis.y],
            color=INK,
            linewidth=1.2,
        )
        if (rank - axis.low) % every == 0:
            above = axis.y - 0.14
            ax.text(
                x,
                above,
                str(rank),
                ha="center",
                va="bottom",
                fontsize=11,
                color=INK,
            )


def _draw_method(
    ax: Axes, axis: _RankAxis, method: str, rank: float, y: float, *, is_left: bool
) -> None:
    """Draw an elbow from the axis to the method's name at one side."""
    x = axis.position(rank)
    end = SIDE - 0.12 if is_left else WIDTH - SIDE + 0.12
    ax.plot(
        [x, x, end],
        [axis.y, y, y],
        color=GRAY,
        linewidth=1.1,
        zorder=0,
    )
    ax.plot(
        x,
        axis.y,
        "o",
        color=INK,
        markersize=4.5,
        gid="method",
    )
    align: Literal["left", "right"] = "right" if is_left else "left"
    outward = -0.07 if is_left else 0.07
    ax.text(
        end + outward,
        y,
        f"{rank:.2f}",
        ha=align,
        va="center",
        fontsize=12,
    )
    lines = textwrap.wrap(
        method,
        28,
        max_lines=2,
        placeholder="…",
    )
    longest = max(map(len, lines))
    size = 12 * min(1.0, 20 / longest)
    if len(lines) > 1:
        size = min(size, 9.5)
    ax.text(
        end + 10 * outward,
        y,
        plain("\n".join(lines)),
        ha=align,
        va="center",
        fontsize=size,
        linespacing=0.95,
    )


def _draw_clique(
    ax: Axes, axis: _RankAxis, mean: pd.Series[float], clique: tuple[str, ...], y: float
) -> None:
    """Draw a bar below methods that are not told apart."""
    first, *_, last = mean[list(clique)]
    ends = [axis.position(first) - 0.05, axis.position(last) + 0.05]
    ax.plot(
        ends,
        [y, y],
        color=BLUE,
        linewidth=5,
        solid_capstyle="round",
        gid="clique",
    )
    passed = int(mean.between(first, last).sum())
    if passed > len(clique):
        members = [axis.position(mean[method]) for method in clique]
        ax.plot(
            members,
            [y] * len(clique),
            "o",
            color="white",
            markersize=3,
        )


def _bar_levels(cliques: Sequence[tuple[str, ...]], mean: pd.Series[float]) -> list[int]:
    """Return for each bar the first level where it touches no other."""
    levels: list[int] = []
    taken: list[list[tuple[float, float]]] = []
    for clique in cliques:
        first, *_, last = mean[list(clique)]
        level = 0
        while level < len(taken) and _touches_any(first, last, taken[level]):
            level += 1
        if level == len(taken):
            taken.append([])
        taken[level].append((first, last))
        levels.append(level)
    return levels


def _touches_any(first: float, last: float, others: Sequence[tuple[float, float]]) -> bool:
    """Say whether a bar touches one of the others."""
    return any(
        other_first <= last + BAR_GAP and first <= other_last + BAR_GAP
        for other_first, other_last in others
    )
