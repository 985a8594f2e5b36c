"""Methods by two metrics: which ones no other method beats."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

from ..benchmark import pareto_front
from ..benchmark.blocks import direction_of, name_of
from ..metrics import Metric
from ..models.classifier import Array
from ..validation import Boolean, Instance, brief, check_parameters
from .canvas import blank_figure, check_path, save_figure
from .grammar import shorten
from .style import BLUE, GRAY, INK, plain, tidy
from .words import over_instances

#: columns of a benchmark's table that tell one instance from another
INSTANCE = ("dataset", "classifier", "seed", "instance")
#: names at one point before the rest is counted
MOST_NAMES = 3
#: where a name may stand about its point, the best first
DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
#: how far from it, in points
DISTANCES = (9, 20, 34, 50, 70)
HORIZONTAL = {1: "left", 0: "center", -1: "right"}
VERTICAL = {1: "bottom", 0: "center", -1: "top"}
#: pixels that names keep free around points and lines
CLEARANCE = 8


def plot_pareto(
    frame: pd.DataFrame,
    x: str | Metric,
    y: str | Metric,
    path: str | Path | None = None,
    *,
    failed_worst: bool = True,
) -> Figure:
    """Draw every method by its means of two metrics; those that no other beats are joined.

    Parameters
    ----------
    frame : DataFrame
        A benchmark's table, one row per counterfactual.
    x, y : str or Metric
        The metrics.
    path : str or Path, optional
        Where to write it; .png, .svg or .pdf.
    failed_worst : bool, default=True
        As in `contrafact.benchmark.blocks.block_means`.

    Returns
    -------
    Figure
        The figure.
    """
    rules = {"frame": Instance(pd.DataFrame), "failed_worst": Boolean()}
    check_parameters("plot_pareto", rules, {"frame": frame, "failed_worst": failed_worst})
    check_path(path)
    for axis, metric in (("x", x), ("y", y)):
        if not isinstance(metric, str | Metric):
            raise TypeError(f"{axis} must be the name of a metric, got {brief(metric)}.")
    front = pareto_front(
        frame,
        [x, y],
        failed_worst=failed_worst,
    )
    points = front[[name_of(x), name_of(y)]].to_numpy()
    figure = blank_figure(5.6, width=9.0)
    ax = figure.subplots()
    _scale_axis(ax, points[:, 0], "x")
    _scale_axis(ax, points[:, 1], "y")
    ax.set_xlabel(
        _axis_label(x, "←", "→"),
        fontsize=12,
        color=INK,
    )
    ax.set_ylabel(
        _axis_label(y, "↓", "↑"),
        fontsize=12,
        color=INK,
    )
    on_front = front["on_front"].to_numpy()
    best = points[on_front]
    from_left = np.lexsort((best[:, 1], best[:, 0]))
    best = best[from_left]
    beaten = points[~on_front]
    staircase = _staircase(best, later=direction_of(x) == "min")
    ax.plot(*staircase.T, color=BLUE, linewidth=1.4, linestyle=(0, (4, 2)))
    ax.plot(*beaten.T, "o", markersize=8, color=GRAY, label="beaten by another method")
    ax.plot(*best.T, "D", markersize=9, color=BLUE, label="not beaten (Pareto front)")
    ax.grid(
        color=GRAY,
        alpha=0.25,
        linewidth=0.8,
    )
    ax.set_axisbelow(True)
    tidy(ax)
    ax.tick_params(labelsize=11)
    over = over_requests(frame, INSTANCE)
    ax.set_title(
        f"means {over}",
        fontsize=10,
        color=INK,
        loc="left",
    )
    figure.legend(
        loc="outside upper left",
        ncols=2,
        frameon=False,
        fontsize=11,
    )
    _write_names(figure, ax, front["on_front"], points, staircase)
    save_figure(figure, path)
    return figure


def over_requests(frame: pd.DataFrame, request: Sequence[str]) -> str:
    """Say over how many instances a benchmark's means are, and how many had their target class.

    Parameters
    ----------
    frame : DataFrame
        A benchmark's table, one row per counterfactual.
    request : sequence of str
        Columns that tell one instance of a method from another.

    Returns
    -------
    str
        As `over_instances` says it; "over all requests" where the table has no status.
    """
    if "status" not in frame:
        return "over all requests"
    requests = frame.drop_duplicates([*request])
    already = int((requests["status"] == "already_target").sum())
    return over_instances(len(requests), already)


def _axis_label(metric: str | Metric, less: str, more: str) -> str:
    """Name a metric and say which way is better."""
    is_less = direction_of(metric) == "min"
    better = f"{less} less is better" if is_less else f"{more} more is better"
    return plain(f"{name_of(metric)}   ({better})")


def _scale_axis(ax: Axes, values: Array, axis: str) -> None:
    """Make an axis logarithmic where the values span more than two orders of magnitude."""
    # Names at the edges need room.
    getattr(ax, f"set_{axis}margin")(0.12)
    if values.min() > 0 and values.max() > 100 * values.min():
        getattr(ax, f"set_{axis}scale")("log")


def _staircase(points: Array, *, later: bool) -> Array:
    """Join points, from left to right, by steps; the height changes at the later or earlier one."""
    if later:
        corners = np.stack([points[1:, 0], points[:-1, 1]], axis=1)
    else:
        corners = np.stack([points[:-1, 0], points[1:, 1]], axis=1)
    path = np.empty((2 * len(points) - 1, 2))
    path[::2] = points
    path[1::2] = corners
    return path


def _write_names(
    figure: Figure, ax: Axes, on_front: pd.Series[bool], points: Array, staircase: Array
) -> None:
    """Write a name beside every point, where it covers least; methods at one point share theirs."""
    figure.canvas.draw()
    figure.set_layout_engine("none")
    places, member = np.unique(points, axis=0, return_inverse=True)
    spots = ax.transData.transform(places)
    corners = ax.transData.transform(staircase)
    taken = [_box_around(spot, spot) for spot in spots]
    taken += [_box_around(a, b) for a, b in pairwise(corners)]
    groups = [on_front[member.ravel() == place] for place in range(len(places))]
    lengths = [max(len(str(name)) for name in group.index) for group in groups]
    # Long names first, while there is room.
    for place in sorted(range(len(places)), key=lambda place: -lengths[place]):
        group = groups[place]
        written = ax.annotate(
            _names_text([str(name) for name in group.index]),
            (float(places[place, 0]), float(places[place, 1])),
            (0, 0),
            textcoords="offset points",
            fontsize=11,
            fontweight="bold" if group.any() else "normal",
            color=INK,
            arrowprops={"arrowstyle": "-", "color": GRAY, "linewidth": 0.8, "shrinkB": 4},
        )
        taken.append(_move_to_free_place(written, spots[place], taken, ax.get_window_extent()))


def _names_text(names: Sequence[str]) -> str:
    """Write the names of methods at one point, of many the first ones."""
    lines = [plain(shorten(name, 28)) for name in names[:MOST_NAMES]]
    if len(names) > MOST_NAMES:
        lines.append(f"+ {len(names) - MOST_NAMES} more")
    return ",\n".join(lines)


def _box_around(a: Array, b: Array) -> Bbox:
    """Return the box of two points, with clearance."""
    lower = np.minimum(a, b) - CLEARANCE
    upper = np.maximum(a, b) + CLEARANCE
    return Bbox.from_extents(*lower, *upper)


def _move_to_free_place(written: Annotation, spot: Array, taken: list[Bbox], whole: Bbox) -> Bbox:
    """Move a name to where it covers least, stays inside and is near its point; return its box."""
    size = np.array(Text.get_window_extent(written).size)
    pixels_per_point = written.figure.dpi / 72 if written.figure else 1.0
    best_cost = np.inf
    for distance, (dx, dy) in product(DISTANCES, DIRECTIONS):
        direction = np.array([dx, dy])
        anchor = spot + distance * pixels_per_point * direction
        corner = anchor + size * (direction - 1) / 2
        box = Bbox.from_extents(*corner, *(corner + size))
        covered = sum(_overlap(box, other) for other in taken)
        outside = box.width * box.height - _overlap(box, whole)
        cost = covered + 3 * outside + 5 * distance
        if cost < best_cost:
            best_cost = cost
            best_box = box
            position = (distance * dx, distance * dy)
            alignment = {"ha": HORIZONTAL[dx], "va": VERTICAL[dy]}
    written.set(position=position, **alignment)
    return best_box


def _overlap(a: Bbox, b: Bbox) -> float:
    """Return the area that two boxes share."""
    width = min(a.x1, b.x1) - max(a.x0, b.x0)
    height = min(a.y1, b.y1) - max(a.y0, b.y0)
    return float(max(width, 0) * max(height, 0))
