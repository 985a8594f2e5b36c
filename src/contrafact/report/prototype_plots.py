"""Pictures of prototype models: the prototypes, what counts in the distance, and where everything lies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..prototypes.estimator import Array, PrototypeClassifier
from . import panels
from .plots import blank, save
from .words import label_text, one_line

MOST_ROWS = 60
#: where classes are more than colors, the next round has another mark
MARKS = ("o", "^", "s", "D")


def plot_prototypes(
    model: PrototypeClassifier, X: Any = None, y: Any = None, path: str | Path | None = None
) -> Figure:
    """The prototypes of every class: series over (some of) their class's data, images side by side, rows as
    profiles over the features.

    Parameters
    ----------
    model : fitted; of a DeepLVQ, the training instances nearest to its prototypes are drawn.
    X, y : data to draw behind series and rows, optional.
    path : where to write it; .png, .svg or .pdf.
    """
    shown = getattr(model, "exemplars_", model.prototypes_)
    if shown is None:
        raise ValueError(
            "This model knows dissimilarities only (metric='precomputed'): nothing to draw."
        )
    draw = _images if shown.ndim == 4 else _profiles
    figure = draw(model, shown, None if X is None else (np.asarray(X), np.asarray(y)))
    if path is not None:
        save(figure, path)
    return figure


def _images(model: PrototypeClassifier, shown: Array, data: tuple[Array, Array] | None) -> Figure:
    classes, labels = model.classes_.tolist(), model.prototype_labels_
    most = max(int((labels == label).sum()) for label in classes)
    figure = blank(1.25 * most + 0.4, width=max(4.0, 1.25 * len(classes)))
    axes = figure.subplots(most, len(classes), squeeze=False)
    low, high = float(shown.min()), float(shown.max())
    for c, label in enumerate(classes):
        own = shown[labels == label]
        for i, ax in enumerate(axes[:, c]):
            if i < len(own):
                title = panels.plain(label_text(label, 12)) if i == 0 else ""
                panels.draw_image(ax, own[i], low, high, title)
            else:
                ax.axis("off")
    return figure


def _profiles(model: PrototypeClassifier, shown: Array, data: tuple[Array, Array] | None) -> Figure:
    """A panel for each class (column) and channel (row)."""
    classes, labels = model.classes_.tolist(), model.prototype_labels_
    series = shown if shown.ndim == 3 else shown[:, None]
    channels = series.shape[1]
    figure = blank(1.9 * channels + 0.6)
    axes = figure.subplots(channels, len(classes), squeeze=False, sharex=True, sharey="row")
    for c, label in enumerate(classes):
        for channel, ax in enumerate(axes[:, c]):
            if data is not None:
                members = data[0][data[1] == label][:MOST_ROWS].reshape(-1, *series.shape[1:])
                ax.plot(members[:, channel].T, color=panels.GRAY, linewidth=0.6, alpha=0.35)
            for one in series[labels == label]:
                ax.plot(one[channel], color=panels.color(c), linewidth=2)
            panels.tidy(ax)
        axes[0, c].set_title(panels.plain(label_text(label, 16)), fontsize=11, fontweight="bold")
        axes[-1, c].set_xlabel("time" if shown.ndim == 3 else "feature", fontsize=panels.SMALL)
    return figure


def plot_relevances(
    model: Any,
    names: Sequence[str] | None = None,
    path: str | Path | None = None,
    *,
    most: int = 20,
) -> Figure:
    """How much every feature counts in the learned distance; they sum to 1.

    Series: a profile over time, per channel, over the prototypes. Images: a map. Rows: bars, the `most`
    relevant first. Of local metrics, the mean over the prototypes.
    """
    if not hasattr(model, "relevances_"):
        raise ValueError(
            f"{type(model).__name__} has no relevances; GRLVQ, GMLVQ and LGMLVQ learn them."
        )
    share = model.relevances_ if model.relevances_.ndim == 1 else model.relevances_.mean(0)
    shape = model.shape_
    if len(shape) == 3:
        figure = blank(3.4, width=4.4)
        ax = figure.subplots()
        drawn = ax.imshow(share.reshape(shape).sum(0), cmap="viridis", vmin=0)
        figure.colorbar(drawn, ax=ax, label="relevance")
        ax.axis("off")
    elif len(shape) == 2:
        figure = blank(1.8 * shape[0] + 0.6)
        for channel, ax in enumerate(
            figure.subplots(shape[0], 1, squeeze=False, sharex=True)[:, 0]
        ):
            profile = share.reshape(shape)[channel]
            ax.fill_between(range(len(profile)), profile, color="#0072B2", alpha=0.6, linewidth=0)
            ax.set_ylim(bottom=0)
            ax.set_ylabel(
                "relevance" if shape[0] == 1 else f"channel {channel}", fontsize=panels.SMALL
            )
            panels.tidy(ax)
        ax.set_xlabel("time", fontsize=panels.SMALL)
    else:
        figure = _bars(share, names or getattr(model, "feature_names_in_", None), most)
    if path is not None:
        save(figure, path)
    return figure


def _bars(share: Array, names: Sequence[str] | None, most: int) -> Figure:
    order = np.argsort(-share, kind="stable")[:most][::-1]
    told = [
        f"feature {j}" if names is None else panels.plain(one_line(names[j], 28)) for j in order
    ]
    figure = blank(0.26 * len(order) + 0.7, width=7.0)
    ax = figure.subplots()
    ax.barh(range(len(order)), share[order], color="#0072B2")
    ax.set_yticks(range(len(order)), told)
    zero = int((share == 0).sum())
    ax.set_xlabel(f"relevance (Σ = 1; {zero} of {len(share)} are exactly 0)", fontsize=panels.SMALL)
    panels.tidy(ax)
    return figure


def plot_projection(
    model: PrototypeClassifier, X: Any, y: Any, path: str | Path | None = None
) -> Figure:
    """Data and prototypes on the two directions in which, in the model's own distance, the data differ most.

    Rows that the model gets wrong are ringed.
    """
    rows, y = np.asarray(X).reshape(len(X), -1), np.asarray(y)
    metric = getattr(model, "metric_", lambda: None)()
    if metric is not None and metric.ndim == 3:
        raise ValueError(
            "Every prototype of this model has its own metric: no plane shows them all."
        )
    if model.prototypes_ is None or math.prod(model.prototypes_.shape[1:]) != rows.shape[1]:
        raise ValueError(
            f"The prototypes of this {type(model).__name__} are no instances: nothing to place."
        )
    omega = np.eye(rows.shape[1]) if metric is None else metric
    center = rows.mean(0)
    _, spread, axes = np.linalg.svd((rows - center) @ omega.T, full_matrices=False)
    plane = omega.T @ axes[:2].T
    figure = blank(4.6, width=7.6)
    ax = figure.subplots()
    _scatter(ax, model, (rows - center) @ plane, y, model.predict(X) != y)
    placed = (model.prototypes_.reshape(len(model.prototypes_), -1) - center) @ plane
    for c, label in enumerate(model.classes_.tolist()):
        u, v = placed[model.prototype_labels_ == label].T
        ax.scatter(
            u, v, s=190, marker="*", color=panels.color(c), edgecolor="black", linewidth=1, zorder=3
        )
    explained = (spread[:2] ** 2).sum() / (spread**2).sum()
    ax.set_xlabel(
        f"the two show {explained:.0%} of what differs in the model's distance",
        fontsize=panels.SMALL,
    )
    figure.legend(
        loc="outside right upper",
        fontsize=8,
        frameon=False,
        title="stars: prototypes",
        title_fontsize=8,
    )
    panels.tidy(ax)
    if path is not None:
        save(figure, path)
    return figure


def _scatter(ax: Axes, model: PrototypeClassifier, placed: Array, y: Array, wrong: Array) -> None:
    for c, label in enumerate(model.classes_.tolist()):
        look: dict[str, Any] = {
            "marker": MARKS[c // len(panels.COLORS) % len(MARKS)],
            "alpha": 0.55,
        }
        u, v = placed[y == label].T
        name = panels.plain(label_text(label, 16))
        ax.scatter(u, v, s=16, color=panels.color(c), linewidth=0, label=name, **look)
    if wrong.any():
        told = f"called otherwise ({int(wrong.sum())})"
        u, v = placed[wrong].T
        ax.scatter(u, v, s=44, facecolor="none", edgecolor="black", linewidth=0.9, label=told)
