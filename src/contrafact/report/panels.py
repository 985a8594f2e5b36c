"""What is drawn inside one pair of axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from ..engine.result import Counterfactuals
from ..metrics.regions import runs
from ..models.classifier import Array
from .grammar import counted
from .pairs import changed_mask, pair
from .style import FONT_SIZE, GRAY, INK, SHADE, Look, drawn_name, look_of, plain, tidy, tidy_lines
from .words import class_probability, column_of, different_texts, label_text

#: features are drawn in percent where one is this many times larger than the typical one
UNLIKE_SCALES = 20


def draw_series(ax: Axes, x: Array, x_cf: Array, changed: Array, look: Look) -> None:
    """Draw one channel: the original gray and broad, the counterfactual on it, changes shaded.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    x, x_cf : ndarray of shape (length,)
        Values before and after.
    changed : bool ndarray of shape (length,)
        Which values changed.
    look : Look
        How the counterfactual is drawn.
    """
    for start, stop in runs(changed):
        # Half a step to each side, so that a single point has a width; the edge keeps it visible.
        ax.axvspan(
            start - 0.5,
            stop - 0.5,
            color=look.color,
            alpha=SHADE,
            linewidth=0.8,
            zorder=0,
        )
    marker = "o" if len(x) == 1 else ""
    ax.plot(
        x,
        color=GRAY,
        linewidth=3,
        alpha=0.75,
        marker=marker,
        solid_capstyle="round",
        gid="original",
    )
    ax.plot(
        x_cf,
        color=look.color,
        linewidth=1.6,
        linestyle=look.line,
        marker=marker,
        gid="counterfactual",
    )
    ax.set_xlim(-0.5, max(len(x) - 0.5, 0.5))
    tidy(ax)


def draw_probabilities(ax: Axes, result: Counterfactuals, i: int) -> None:
    """Draw the model's probabilities before and after, for the classes that matter.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    result : Counterfactuals
        The result.
    i : int
        Row of the result.
    """
    shown = relevant_classes(result, i)
    _draw_bars(
        ax,
        result.proba[i],
        shown,
        shift=-0.09,
        color=GRAY,
    )
    _draw_bars(
        ax,
        result.cf_proba[i],
        shown,
        shift=0.19,
        color=look_of(result, i).color,
    )
    for at, column in enumerate(shown):
        name = plain(label_text(result.classes[column], 24))
        ax.text(
            0.015,
            at - 0.36,
            name,
            va="center",
            fontsize=FONT_SIZE,
        )
    ax.set_ylim(len(shown) - 0.5, -0.55)
    ax.set_yticks([])
    ax.set_xlim(0, 1.25)
    ax.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    hidden = len(result.classes) - len(shown)
    more = f"\n({counted(hidden, 'class')} not shown)" if hidden else ""
    ax.set_xlabel(f"the model's probability{more}", fontsize=FONT_SIZE)
    tidy(ax)


def _draw_bars(ax: Axes, proba: Array, shown: list[int], shift: float, color: str) -> None:
    """Draw one bar for each class shown, with its probability beside it."""
    width = np.nan_to_num(proba[shown])
    ax.barh(
        np.arange(len(shown)) + shift,
        width,
        height=0.26,
        color=color,
    )
    for at, column in enumerate(shown):
        text = class_probability(proba, column)
        ax.text(
            width[at] + 0.02,
            at + shift,
            text,
            va="center",
            fontsize=8,
            color=INK,
        )


def relevant_classes(result: Counterfactuals, i: int, most: int = 6) -> list[int]:
    """Choose the classes to show: the one before, the target, the one after, then the likeliest.

    Parameters
    ----------
    result : Counterfactuals
        The result.
    i : int
        Row of the result.
    most : int, default=6
        The largest number of classes.

    Returns
    -------
    list of int
        Positions of the classes.
    """
    labels = (result.labels[i], result.target[i], result.cf_labels[i])
    named = [column_of(result, label) for label in labels]
    highest = np.fmax(result.proba[i], result.cf_proba[i])
    likeliest = np.argsort(-highest, kind="stable").tolist()
    return list(dict.fromkeys([*named, *likeliest]))[:most]


def draw_image(ax: Axes, image: Array, low: float, high: float, title: str) -> None:
    """Draw an image: in color if it has three channels, else their mean in gray.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    image : ndarray of shape (channels, height, width)
        The image.
    low, high : float
        The values shown as black and as white.
    title : str
        What stands above it.
    """
    picture = np.moveaxis(image, 0, -1) if len(image) == 3 else image.mean(0)
    span = (high - low) or 1.0
    shade = np.clip((picture - low) / span, 0, 1)
    ax.imshow(
        shade,
        cmap="gray",
        vmin=0,
        vmax=1,
        interpolation="nearest",
    )
    _write_title(ax, title)


def draw_difference(ax: Axes, delta: Array, limit: float | None = None) -> Any:
    """Draw a signed difference, zero in the middle of the colors.

    Of several channels, the one that changed most at a pixel is shown there.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    delta : ndarray of shape (channels, height, width)
        The difference.
    limit : float, optional
        The colors reach from -limit to limit; by default the largest change.

    Returns
    -------
    AxesImage
        What a color bar is made for.
    """
    strongest = np.abs(delta).argmax(0)[None]
    signed = np.take_along_axis(delta, strongest, 0)[0]
    limit = limit or float(np.abs(signed).max()) or 1.0
    drawn = ax.imshow(
        signed,
        cmap="RdBu_r",
        vmin=-limit,
        vmax=limit,
        interpolation="nearest",
    )
    _write_title(ax, "what changed")
    return drawn


def _write_title(ax: Axes, title: str) -> None:
    """Write the title of a picture and remove its ticks."""
    ax.set_title(
        plain(title),
        fontsize=10,
        color=INK,
    )
    ax.set_xticks([])
    ax.set_yticks([])


def draw_features(ax: Axes, result: Counterfactuals, i: int, most: int = 12) -> None:
    """Draw the changed features of a row, most changed first: a dot before, a dot after.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    result : Counterfactuals
        The result.
    i : int
        Row of the result.
    most : int, default=12
        The largest number of features.
    """
    x, x_cf = pair(result, i)
    changed = np.flatnonzero(changed_mask(result, i))
    unit, axis_label = _axis_unit(x, x_cf, changed)
    size = np.abs(x_cf / unit - x / unit)[changed]
    by_size = np.argsort(-size, kind="stable")
    shown = changed[by_size][:most].tolist()
    look = look_of(result, i)
    for line, j in enumerate(shown):
        draw_dots(ax, x[j] / unit[j], x_cf[j] / unit[j], line, look)
        write_beside(ax, " → ".join(different_texts(x[j], x_cf[j])), line)
    ax.set_yticks(range(len(shown)), [drawn_name(result, j) for j in shown])
    ax.set_ylim(max(len(shown), 3) - 0.5, -0.5)
    ax.margins(x=0.06)
    hidden = len(changed) - len(shown)
    more = f"\n({hidden} more changed, not shown)" if hidden else ""
    ax.set_xlabel(f"{axis_label}{more}", fontsize=FONT_SIZE)
    tidy_lines(ax)
    if not shown:
        write_no_change(ax)


def write_no_change(ax: Axes) -> None:
    """Say in the middle of empty axes that no feature changed."""
    ax.set_xticks([])
    ax.text(
        0.5,
        0.5,
        "no feature changed",
        transform=ax.transAxes,
        ha="center",
        color=INK,
    )


def draw_dots(ax: Axes, before: float, after: float, line: int, look: Look) -> None:
    """Draw one feature: a dot before, a dot after, and a line between them.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    before, after : float
        Places of the dots.
    line : int
        Which line of the axes.
    look : Look
        How the counterfactual is drawn.
    """
    ax.plot(
        [before, after],
        [line, line],
        color=look.color,
        linewidth=2,
    )
    ax.plot(
        before,
        line,
        "o",
        color=GRAY,
        markersize=10,
    )
    ax.plot(
        after,
        line,
        "o",
        color=look.color,
        markersize=7,
    )


def write_beside(ax: Axes, words: str, line: int) -> None:
    """Write words beside a line of the axes.

    Parameters
    ----------
    ax : Axes
        Where to write.
    words : str
        The words, such as both values of a feature.
    line : int
        Which line of the axes.
    """
    ax.text(
        1.02,
        line,
        words,
        transform=ax.get_yaxis_transform(),
        va="center",
        fontsize=FONT_SIZE,
    )


def _axis_unit(x: Array, x_cf: Array, changed: Array) -> tuple[Array, str]:
    """Return the unit of each feature and the label of the axis.

    Features keep their own numbers, unless those are too different for one axis.
    """
    size = np.fmax(np.abs(x), np.abs(x_cf))
    sizes = size[changed]
    if len(sizes) and sizes.max() > UNLIKE_SCALES * np.median(sizes):
        return np.where(size > 0, size, 1) / 100, "% of the larger of the two values"
    return np.ones_like(x), "value"
