"""Panels: what is drawn inside one pair of axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ..engine.result import Counterfactuals
from ..metrics.regions import runs
from ..models.classifier import Array
from .words import counted, digits_apart, label_text, name_of, probability_text

# Blue and vermillion of Okabe and Ito's palette, which color-blind readers tell apart.
GRAY, INK, ALARM = "#8C8C8C", "#404040", "#B34700"
SMALL = 9.0
SHADE = 0.15
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999")


@dataclass(frozen=True)
class Look:
    """How a counterfactual is drawn; a failed one is told apart by line, color and name."""

    color: str
    dashes: tuple[float, float] | None
    name: str
    legend: str

    @property
    def line(self) -> tuple[float, tuple[float, ...]]:
        """Matplotlib's line style."""
        return 0, self.dashes or ()


REACHED = Look("#0072B2", None, "changed version", "changed version (counterfactual)")
MISSED = Look("#D55E00", (4, 1.5), "best attempt", "best attempt, not reached")


def look(result: Counterfactuals, i: int) -> Look:
    return REACHED if result.valid[i] else MISSED


def color(c: int) -> str:
    """The color of class c, from Okabe and Ito's palette, which color-blind readers tell apart."""
    return COLORS[c % len(COLORS)]


def plain(text: str) -> str:
    """Text that matplotlib shows as it is: a dollar is a dollar, not mathematics."""
    return text.replace("$", r"\$")


def name_text(result: Counterfactuals, j: int, limit: int = 24) -> str:
    """What feature or channel j is called, ready to be drawn."""
    return plain(name_of(result, j, limit))


def value_name(result: Counterfactuals, channel: int, limit: int = 24) -> str:
    """What stands at the axis of a channel: its name, or "value" where there is just one without a name."""
    alone = result.X.ndim == 2 or result.X.shape[1] == 1
    return "value" if alone and result.names is None else name_text(result, channel, limit)


def tidy(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=SMALL)


def key(looks: list[Look], kind: Literal["line", "dot", "bar"]) -> list[Line2D | Patch]:
    """Legend entries: the original and each look in use, drawn the way the picture draws them."""
    swatches = [
        (GRAY, (0, ()), "original"),
        *((each.color, each.line, each.legend) for each in looks),
    ]
    if kind == "bar":
        return [Patch(color=color, label=name) for color, _, name in swatches]
    if kind == "dot":
        return [
            Line2D([], [], color=color, linestyle="", marker="o", markersize=8, label=name)
            for color, _, name in swatches
        ]
    lines = [
        Line2D([], [], color=c, linestyle=style, linewidth=1.8, label=name)
        for c, style, name in swatches
    ]
    lines[0].set_linewidth(3)
    return [
        *lines,
        Patch(color=looks[0].color, alpha=SHADE, linewidth=0, label="where they differ"),
    ]


def draw_series(ax: Axes, x: Array, x_cf: Array, style: Look) -> None:
    """One channel: the original broad and gray below, the counterfactual on it, changed stretches shaded."""
    marker = "o" if len(x) == 1 else ""
    for start, stop in runs(x != x_cf):
        # Half a step to each side, so that a single point has a width; the edge keeps it visible when small.
        ax.axvspan(start - 0.5, stop - 0.5, color=style.color, alpha=SHADE, linewidth=0.8, zorder=0)
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
        color=style.color,
        linewidth=1.6,
        linestyle=style.line,
        marker=marker,
        gid="counterfactual",
    )
    ax.set_xlim(-0.5, max(len(x) - 0.5, 0.5))
    tidy(ax)


def draw_probabilities(ax: Axes, result: Counterfactuals, i: int) -> None:
    """What the model says before and after, of the classes that matter here: a name, two bars below it."""
    classes, shown = result.classes.tolist(), relevant_classes(result, i)
    for shift, proba, color in (
        (-0.09, result.proba, GRAY),
        (0.19, result.cf_proba, look(result, i).color),
    ):
        width = np.nan_to_num(proba[i, shown])
        ax.barh(np.arange(len(shown)) + shift, width, height=0.26, color=color)
        for at, column in enumerate(shown):
            text = probability_text(proba[i, column], digits_apart(proba[i]))
            ax.text(width[at] + 0.02, at + shift, text, va="center", fontsize=8, color=INK)
    for at, column in enumerate(shown):
        ax.text(
            0.015, at - 0.36, plain(label_text(classes[column], 24)), va="center", fontsize=SMALL
        )
    ax.set_ylim(len(shown) - 0.5, -0.55)
    ax.set_yticks([])
    ax.set_xlim(0, 1.25)
    ax.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    hidden = len(classes) - len(shown)
    more = f"\n({counted(hidden, 'class')} not shown)" if hidden else ""
    ax.set_xlabel(f"the model's probability{more}", fontsize=SMALL)
    tidy(ax)


def relevant_classes(result: Counterfactuals, i: int, most: int = 6) -> list[int]:
    """Columns of the classes to show: the one before, the one wanted, the one after, then the likeliest."""
    columns = result.classes.tolist()
    named = [
        columns.index(values[i].item())
        for values in (result.labels, result.target, result.cf_labels)
    ]
    likely = np.argsort(-np.fmax(result.proba[i], result.cf_proba[i]), kind="stable").tolist()
    return list(dict.fromkeys([*named, *likely]))[:most]


def draw_image(ax: Axes, image: Array, low: float, high: float, title: str) -> None:
    """(channels, height, width): color when there are three, else the mean over channels in gray."""
    picture = np.moveaxis(image, 0, -1) if len(image) == 3 else image.mean(0)
    picture = (picture - low) / ((high - low) or 1.0)
    ax.imshow(np.clip(picture, 0, 1), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    _frame(ax, title)


def draw_difference(ax: Axes, delta: Array, limit: float | None = None) -> Any:
    """Signed difference, zero in the middle of the colors; of several channels the one that moved most.

    The colors reach to ± `limit`; default: the largest change here.
    """
    strongest = np.abs(delta).argmax(0)[None]
    signed = np.take_along_axis(delta, strongest, 0)[0]
    limit = limit or float(np.abs(signed).max()) or 1.0
    shown = ax.imshow(signed, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
    _frame(ax, "what changed")
    return shown


def _frame(ax: Axes, title: str) -> None:
    ax.set_title(plain(title), fontsize=10, color=INK)
    ax.set_xticks([])
    ax.set_yticks([])


def draw_features(
    ax: Axes, x: Array, x_cf: Array, style: Look, names: list[str], most: int = 12
) -> None:
    """Changed features, most changed first: a dot before, a dot after, and both values in words."""
    changed = np.flatnonzero(x != x_cf)
    unit, axis = _unit(x, x_cf, changed)
    before, after = x / unit, x_cf / unit
    order = changed[np.argsort(-np.abs(after - before)[changed], kind="stable")][:most]
    for at, j in enumerate(order):
        ax.plot([before[j], after[j]], [at, at], color=style.color, linewidth=2)
        ax.plot(before[j], at, "o", color=GRAY, markersize=10)
        ax.plot(after[j], at, "o", color=style.color, markersize=7)
        words = f"{x[j]:.4g} → {x_cf[j]:.4g}"
        ax.text(1.02, at, words, transform=ax.get_yaxis_transform(), va="center", fontsize=SMALL)
    ax.set_yticks(range(len(order)), [names[j] for j in order])
    ax.set_ylim(max(len(order), 3) - 0.5, -0.5)
    ax.margins(x=0.06)
    ax.grid(axis="y", color=GRAY, alpha=0.3, linewidth=0.8)
    ax.set_axisbelow(True)
    hidden = len(changed) - len(order)
    ax.set_xlabel(f"{axis}\n({hidden} more changed, not shown)" if hidden else axis, fontsize=SMALL)
    tidy(ax)
    ax.tick_params(axis="y", length=0)
    if not len(order):
        ax.text(0.5, 0.5, "no feature changed", transform=ax.transAxes, ha="center", color=INK)
        ax.set_xticks([])


def _unit(x: Array, x_cf: Array, changed: Array) -> tuple[Array, str]:
    """What the features are measured in: their own numbers, unless those are too unlike for one axis."""
    size = np.fmax(np.abs(x), np.abs(x_cf))
    if len(changed) and size[changed].max() > 20 * np.median(size[changed]):
        return np.where(size > 0, size, 1) / 100, "% of the larger of the two values"
    return np.ones_like(x), "value"
