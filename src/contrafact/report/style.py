"""Colors, line styles and legend entries that all pictures share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ..engine.result import Counterfactuals
from .words import name_of

#: the palette of Okabe and Ito, which color-blind readers tell apart
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999")
BLUE = COLORS[0]
VERMILLION = COLORS[5]
GRAY = "#8C8C8C"
INK = "#404040"
ALARM = "#B34700"
#: size of small print, in points
FONT_SIZE = 9.0
#: opacity of what is shaded
SHADE = 0.15


@dataclass(frozen=True)
class Look:
    """How a counterfactual is drawn; a failed one differs in line, color and name.

    Parameters
    ----------
    color : str
        As matplotlib takes it.
    dashes : tuple of two float, or None
        Lengths of dash and gap; None for a solid line.
    name : str
        What it is called in a title.
    legend : str
        What it is called in a legend.
    """

    color: str
    dashes: tuple[float, float] | None
    name: str
    legend: str

    @property
    def line(self) -> tuple[float, tuple[float, ...]]:
        """Matplotlib's line style."""
        return 0, self.dashes or ()


REACHED = Look(BLUE, None, "changed version", "changed version (counterfactual)")
MISSED = Look(VERMILLION, (4, 1.5), "best attempt", "best attempt, not reached")


def look_of(result: Counterfactuals, i: int) -> Look:
    """Return how counterfactual i is drawn.

    Parameters
    ----------
    result : Counterfactuals
        The result.
    i : int
        Row of the result.

    Returns
    -------
    Look
        `REACHED` or `MISSED`.
    """
    return REACHED if result.valid[i] else MISSED


def class_color(column: int) -> str:
    """Return the color of a class."""
    return COLORS[column % len(COLORS)]


def plain(text: str) -> str:
    """Escape text so that matplotlib shows it as it is: a dollar does not begin a formula."""
    return text.replace("$", r"\$")


def drawn_name(result: Counterfactuals, j: int, limit: int = 24) -> str:
    """Return the name of feature or channel j, ready to be drawn.

    Parameters
    ----------
    result : Counterfactuals
        The result.
    j : int
        Position of the feature or channel.
    limit : int, default=24
        The largest number of characters.

    Returns
    -------
    str
        Escaped for matplotlib.
    """
    return plain(name_of(result, j, limit))


def axis_name(result: Counterfactuals, channel: int, limit: int = 24) -> str:
    """Return the label of a channel's axis: its name, or "value" for a single one without a name.

    Parameters
    ----------
    result : Counterfactuals
        The result.
    channel : int
        Position of the channel.
    limit : int, default=24
        The largest number of characters.

    Returns
    -------
    str
        Escaped for matplotlib.
    """
    single = result.X.ndim == 2 or result.X.shape[1] == 1
    if single and result.names is None:
        return "value"
    return drawn_name(result, channel, limit)


def tidy(ax: Axes) -> None:
    """Remove the upper and right border, and make tick labels small."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=FONT_SIZE)


def tidy_lines(ax: Axes) -> None:
    """Remove borders as `tidy` does, and draw a faint line behind each of the named lines."""
    tidy(ax)
    ax.tick_params(axis="y", length=0)
    ax.grid(
        axis="y",
        color=GRAY,
        alpha=0.3,
        linewidth=0.8,
    )
    ax.set_axisbelow(True)


def legend_entries(
    looks: Sequence[Look], kind: Literal["line", "dot", "bar"]
) -> list[Line2D | Patch]:
    """Make legend entries for the original and each look in use.

    Parameters
    ----------
    looks : sequence of Look
        Those in use, at least one.
    kind : {"line", "dot", "bar"}
        How the picture draws values.

    Returns
    -------
    list of Line2D or Patch
        The original first.
    """
    original = Look(GRAY, None, "original", "original")
    drawn = [original, *looks]
    if kind == "bar":
        return [Patch(color=look.color, label=look.legend) for look in drawn]
    if kind == "dot":
        return [
            Line2D(
                [],
                [],
                color=look.color,
                linestyle="",
                marker="o",
                markersize=8,
                label=look.legend,
            )
            for look in drawn
        ]
    lines = [
        Line2D(
            [],
            [],
            color=look.color,
            linestyle=look.line,
            linewidth=1.8,
            label=look.legend,
        )
        for look in drawn
    ]
    lines[0].set_linewidth(3)
    shaded = Patch(
        color=looks[0].color,
        alpha=SHADE,
        linewidth=0,
        label="where they differ",
    )
    return [*lines, shaded]
