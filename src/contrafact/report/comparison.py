"""Methods side by side: what each of them makes of the same instance."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..engine.result import Counterfactuals
from ..metrics.metric import as_array
from ..models.classifier import Array
from . import panels
from .plots import WIDTH, Line, legend, pair, save, titled
from .words import counted, label_text, one_line, percent, probability_text, shorten

MOST_CHANNELS = 3
MOST_FEATURES = 20

#: one method's counterfactual of the instance: its name, the result and the row
Answer = tuple[str, Counterfactuals, int]


def plot_methods(
    results: Mapping[str, Counterfactuals], i: int = 0, path: str | Path | None = None
) -> Figure:
    """What several methods make of one instance, and what it cost them.

    Series: a panel per method, of several channels the three that change most. Images: a line per method.
    Rows: a table of features and methods.

    Parameters
    ----------
    results : name → counterfactuals; all of the same instances.
    i : row of the input (`source`). Where a method has several counterfactuals of it, the first valid one is
        drawn.
    path : where to write it; .png, .svg or .pdf.

    Examples
    --------
    >>> import contrafact as cf
    >>> result = cf.CELS(max_iter=50).fit(model, X_train, y_train).explain(X_test[:4])
    >>> figure = plot_methods({"CELS": result, "CELS, refined": cf.refine(result, model)}, 3)
    """
    same_instances(results)
    answers = [(name, result, _row_of(result, i)) for name, result in results.items()]
    draw = {"series": _series, "image": _images, "row": _features}[answers[0][1].modality]
    figure = draw(answers)
    if path is not None:
        save(figure, path)
    return figure


def same_instances(results: Mapping[str, Counterfactuals]) -> None:
    """Raise unless all results answer for the same instances, of models with the same classes."""
    if not isinstance(results, Mapping) or not results:
        raise ValueError(
            f"results has to map names to Counterfactuals, at least one; got {results!r:.80}."
        )
    (first, one), *others = ((label_text(name), result) for name, result in results.items())
    for name, other in others:
        if other.modality != one.modality:
            raise ValueError(f"{first} holds {one.modality} data, {name} {other.modality} data.")
        if not np.array_equal(np.unique(one.source), np.unique(other.source)):
            raise ValueError(
                f"{first} and {name} answer for different rows of the input: "
                f"{_listed(one.source)} and {_listed(other.source)}."
            )
        mine, theirs = _instances(one), _instances(other)
        if mine.shape != theirs.shape or not np.array_equal(mine, theirs, equal_nan=True):
            raise ValueError(f"{first} and {name} answer for different instances: their X differ.")
        if not np.array_equal(one.classes, other.classes):
            raise ValueError(
                f"{first} and {name} answer for models of different classes: "
                f"{one.classes.tolist()!r:.80} and {other.classes.tolist()!r:.80}."
            )


def _instances(result: Counterfactuals) -> Array:
    """Each input once, in the precision that all kinds of input keep."""
    _, first = np.unique(result.source, return_index=True)
    X = as_array(result.X)[first].astype(np.float32)
    return X[:, None] if result.modality == "series" and X.ndim == 2 else X


def _listed(source: Array) -> str:
    return shorten(", ".join(map(str, np.unique(source).tolist())), 60)


def _row_of(result: Counterfactuals, i: int) -> int:
    rows = np.flatnonzero(result.source == i)
    if not len(rows):
        raise IndexError(
            f"No counterfactual of input {i}; there are those of {_listed(result.source)}."
        )
    return int(rows[np.argmax(result.valid[rows])])


def _question(answers: list[Answer]) -> list[Line]:
    """What was asked, where all methods were asked the same."""
    _, result, i = answers[0]
    told = f"row {result.source[i]}"
    before, wanted = (
        {r.labels[j].item() for _, r, j in answers},
        {r.target[j].item() for _, r, j in answers},
    )
    if len(before) == 1:
        column = result.classes.tolist().index(result.labels[i].item())
        told += f": {label_text(result.labels[i])} ({probability_text(result.proba[i, column])})"
    if len(wanted) == 1:
        told += f", what would make it {label_text(result.target[i])}?"
    return [(told, 13, "bold", panels.INK)]


def figures(result: Counterfactuals, i: int) -> list[str]:
    """What the model says now, how much changed, how far that is, and what it cost."""
    label = label_text(result.cf_labels[i], 14)
    p = probability_text(
        result.cf_proba[i, result.classes.tolist().index(result.cf_labels[i].item())]
    )
    if result.status[i] == "already_target":
        verdict = f"already {label}"
    elif np.isnan(result.cf_proba[i]).any():
        verdict = "not reached: no answer"
    else:
        verdict = f"now {label} ({p})" if result.valid[i] else f"not reached: {label} ({p})"
    x, x_cf = pair(result, i)
    changed = int((x != x_cf).sum())
    much = counted(changed, "feature") if result.modality == "row" else percent(changed / x.size)
    distance = float(np.linalg.norm((x_cf - x).ravel()))
    return [
        verdict,
        f"{much} changed",
        f"l2 distance {distance:.3g}",
        f"{result.calls[i]:,} model rows",
    ]


def _write_figures(ax: Axes, name: str, result: Counterfactuals, i: int, x: float = 0.0) -> None:
    """The name of a method and its figures, downward from the top of empty axes."""
    ax.axis("off")
    style = panels.look(result, i)
    alarm = panels.INK if result.valid[i] else panels.ALARM
    lines = [(one_line(name, 24), "bold", style.color)]
    lines += [
        (line, "normal", alarm if at == 0 else panels.INK)
        for at, line in enumerate(figures(result, i))
    ]
    for at, (line, weight, color) in enumerate(lines):
        size, downward = 11 if at == 0 else panels.SMALL, (0, -1 - 13 * at)
        ax.annotate(
            panels.plain(line), (x, 1), downward, xycoords=ax.get_xaxis_transform(),
            textcoords="offset points", va="top", fontsize=size, fontweight=weight, color=color,
        )  # fmt: skip


def _looks(answers: list[Answer]) -> list[panels.Look]:
    return list(dict.fromkeys(panels.look(result, i) for _, result, i in answers))


def _series(answers: list[Answer]) -> Figure:
    pairs = [pair(result, i) for _, result, i in answers]
    x = pairs[0][0]
    moved = sum(np.abs(x_cf - x).sum(1) for x, x_cf in pairs) / np.where(
        np.ptp(x, 1) > 0, np.ptp(x, 1), 1
    )
    shown = np.sort(np.argsort(-moved, kind="stable")[:MOST_CHANNELS])
    hidden = [c for c in range(len(x)) if c not in shown]
    lines = _question(answers)
    if hidden:
        also = sum(bool(moved[c]) for c in hidden)
        told = f"the channels that change most; of {len(hidden)} more, {also} changed too"
        lines.append((told, 10, "normal", panels.INK))
    figure = titled(lines, 0.75 + 1.25 * len(answers), WIDTH)
    grid = figure.add_gridspec(
        len(answers), len(shown) + 1, width_ratios=[*[6.6 / len(shown)] * len(shown), 1.7]
    )
    axes: dict[tuple[int, int], Axes] = {}
    for line, ((name, result, i), (x, x_cf)) in enumerate(zip(answers, pairs, strict=True)):
        for column, channel in enumerate(shown):
            top = axes.get((0, column))
            ax = axes[line, column] = figure.add_subplot(grid[line, column], sharex=top, sharey=top)
            panels.draw_series(ax, x[channel], x_cf[channel], panels.look(result, i))
            if line == 0 and (len(x) > 1 or result.names is not None):
                ax.set_title(panels.name_text(result, channel), fontsize=10, color=panels.INK)
            if line == len(answers) - 1:
                ax.set_xlabel("time step", fontsize=panels.SMALL)
            else:
                ax.tick_params(labelbottom=False)
        _write_figures(figure.add_subplot(grid[line, -1]), name, result, i)
    legend(figure, panels.key(_looks(answers), "line"))
    return figure


def _images(answers: list[Answer]) -> Figure:
    pairs = [pair(result, i) for _, result, i in answers]
    low, high = min(np.min(both) for both in pairs), max(np.max(both) for both in pairs)
    limit = max(float(np.abs(x_cf - x).max()) for x, x_cf in pairs) or 1.0
    x = pairs[0][0]
    size = float(np.clip(1.5 * x.shape[1] / x.shape[2], 1.2, 3.0))
    figure = titled(_question(answers), 0.3 + size * len(answers), 7.2)
    grid = figure.add_gridspec(len(answers), 4, width_ratios=[1, 1, 1, 1.2])
    panels.draw_image(figure.add_subplot(grid[:, 0]), x, low, high, "original")
    maps = []
    for line, ((name, result, i), (x, x_cf)) in enumerate(zip(answers, pairs, strict=True)):
        after, difference, side = (figure.add_subplot(grid[line, at]) for at in (1, 2, 3))
        style = panels.look(result, i)
        panels.draw_image(
            after, x_cf, low, high, style.name if line == 0 or not result.valid[i] else ""
        )
        after.spines[:].set(color=style.color, linewidth=2.5, linestyle=style.line)
        shown = panels.draw_difference(difference, x_cf - x, limit)
        if line:
            difference.set_title("")
        maps.append(difference)
        _write_figures(side, name, result, i)
    bar = figure.colorbar(shown, ax=maps, location="bottom", shrink=0.9, pad=0.03, aspect=12)
    bar.ax.tick_params(labelsize=panels.SMALL)
    bar.set_label("after − before", fontsize=panels.SMALL)
    return figure


def _features(answers: list[Answer]) -> Figure:
    """A line per feature that any method changed, a column per method: which way, how much, to what value."""
    pairs = [pair(result, i) for _, result, i in answers]
    x = pairs[0][0]
    after = np.stack([x_cf for _, x_cf in pairs])
    size = np.fmax(np.abs(x), np.abs(after).max(0))
    moved = np.abs(after - x) / np.where(size > 0, size, 1)
    often = (after != x).sum(0)
    order = [j for j in np.lexsort((-moved.max(0), -often)).tolist() if often[j]]
    shown, hidden = order[:MOST_FEATURES], order[MOST_FEATURES:]
    height = 0.27 * max(len(shown), 1) + 0.2
    figure = titled(_question(answers), height + 1.1, max(4.0 + 2.1 * len(answers), 6.0))
    head, ax = figure.subplots(2, 1, sharex=True, height_ratios=[0.95, height])
    first = answers[0][1]
    head.annotate(
        "original", (-0.56, 0), xycoords=head.get_xaxis_transform(), fontsize=11, color=panels.GRAY
    )
    for line, j in enumerate(shown):
        ax.plot(-0.5, line, "o", color=panels.GRAY, markersize=6, gid="original")
        _write_value(ax, -0.44, line, x[j])
    for column, ((name, result, i), (x, x_cf)) in enumerate(zip(answers, pairs, strict=True)):
        _write_figures(head, name, result, i, column - 0.06)
        style = panels.look(result, i)
        fill = style.color if result.valid[i] else "white"
        for line, j in enumerate(shown):
            if x_cf[j] == x[j]:
                ax.plot(column, line, ".", color=panels.GRAY, markersize=3, gid="same")
                continue
            mark = {
                "marker": "^" if x_cf[j] > x[j] else "v",
                "markersize": 4 + 7 * moved[column, j] ** 0.5,
            }
            ax.plot(column, line, color=style.color, markerfacecolor=fill, gid="changed", **mark)
            _write_value(ax, column + 0.09, line, x_cf[j])
    ax.set_yticks(range(len(shown)), [panels.name_text(first, j, 28) for j in shown])
    ax.set_ylim(max(len(shown), 1) - 0.5, -0.5)
    ax.set_xlim(-0.62, len(answers) - 0.25)
    ax.grid(axis="y", color=panels.GRAY, alpha=0.25, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.set_xticks([])
    if not shown:
        ax.text(
            0.5, 0.5, "no feature changed", transform=ax.transAxes, ha="center", color=panels.INK
        )
    told = f"   ({len(hidden)} more changed, not shown)" if hidden else ""
    ax.set_xlabel(f"▲ up, ▼ down: the larger, the more{told}", fontsize=panels.SMALL, loc="left")
    panels.tidy(ax)
    ax.tick_params(axis="y", length=0)
    ax.spines[["bottom", "left"]].set_visible(False)
    return figure


def _write_value(ax: Axes, x: float, y: float, value: float) -> None:
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    ax.text(x, y, f"{value:.4g}", va="center", fontsize=panels.SMALL, color=panels.INK, bbox=ground)
