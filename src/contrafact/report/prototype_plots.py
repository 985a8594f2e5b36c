"""Pictures of prototype models: the prototypes, the relevances, and the data around them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..data.cleaning import as_float, describe_nonfinite
from ..data.dataset import as_labels
from ..prototypes.estimator import Array, PrototypeClassifier
from ..validation import Instance, Integer, ListOf, Nothing, check_parameters
from .canvas import blank_figure, check_path, save_figure
from .grammar import one_line
from .panels import draw_image
from .style import BLUE, COLORS, FONT_SIZE, GRAY, class_color, plain, tidy
from .words import label_text, percent_text

MOST_ROWS = 60
#: where there are more classes than colors, the next round of colors has another mark
MARKS = ("o", "^", "s", "D")


def plot_prototypes(
    model: PrototypeClassifier, X: Any = None, y: Any = None, path: str | Path | None = None
) -> Figure:
    """Draw the prototypes of every class.

    Series are drawn over some of their class's data, images side by side, rows as profiles over
    the features.

    Parameters
    ----------
    model : PrototypeClassifier
        Fitted; of a DeepLVQ, the training instances nearest to its prototypes are drawn.
    X : array of shape (n, ...), optional
        Data to draw behind series and rows.
    y : array of shape (n,), optional
        Their classes.
    path : str or Path, optional
        Where to write it; .png, .svg or .pdf.

    Returns
    -------
    Figure
        The figure.
    """
    check_model("plot_prototypes", model)
    check_path(path)
    shown = getattr(model, "exemplars_", model.prototypes_)
    if shown is None:
        raise ValueError(
            "This model knows dissimilarities only (metric='precomputed'): nothing to draw."
        )
    if shown.ndim == 4:
        figure = _plot_images(model, shown)
    else:
        data = None if X is None else _read_data(model, X, y)
        figure = _plot_profiles(model, shown, data)
    save_figure(figure, path)
    return figure


def check_model(owner: str, model: Any) -> None:
    """Raise unless this is a fitted prototype model; `owner` is who asks."""
    check_parameters(owner, {"model": Instance(PrototypeClassifier)}, {"model": model})
    if not hasattr(model, "prototypes_"):
        raise ValueError(f"{owner}: model {type(model).__name__} is not fitted; call fit first.")


def _read_data(model: PrototypeClassifier, X: Any, y: Any) -> tuple[Array, Array]:
    """Check instances of the model and their labels."""
    instances = as_float(X, "X")
    if instances.ndim < 2 or math.prod(instances.shape[1:]) != model.n_features_in_:
        raise ValueError(
            f"X has shape {instances.shape}. Accepted: (n, {', '.join(map(str, model.shape_))})."
        )
    problem = describe_nonfinite(instances, "X")
    if problem:
        raise ValueError(problem)
    return instances, as_labels(y, "y", len(instances))


def _plot_images(model: PrototypeClassifier, shown: Array) -> Figure:
    """Draw a column of images for each class."""
    classes = model.classes_.tolist()
    by_class = [shown[model.prototype_labels_ == label] for label in classes]
    most = max(len(own) for own in by_class)
    figure = blank_figure(1.25 * most + 0.4, width=max(4.0, 1.25 * len(classes)))
    axes = figure.subplots(most, len(classes), squeeze=False)
    low = float(shown.min())
    high = float(shown.max())
    for label, own, column in zip(
        classes,
        by_class,
        axes.T,
        strict=True,
    ):
        for ax, image in zip(column, own, strict=False):
            draw_image(ax, image, low, high, "")
        column[0].set_title(plain(label_text(label, 12)), fontsize=10)
        for ax in column[len(own) :]:
            ax.axis("off")
    return figure


def _plot_profiles(
    model: PrototypeClassifier, shown: Array, data: tuple[Array, Array] | None
) -> Figure:
    """Draw a panel for each class (column) and channel (row)."""
    is_series = shown.ndim == 3
    series = shown if is_series else shown[:, None]
    classes = model.classes_.tolist()
    channels = series.shape[1]
    figure = blank_figure(1.9 * channels + 0.6)
    axes = figure.subplots(
        channels,
        len(classes),
        squeeze=False,
        sharex=True,
        sharey="row",
    )
    for c, label in enumerate(classes):
        own = series[model.prototype_labels_ == label]
        for channel, ax in enumerate(axes[:, c]):
            if data is not None:
                X, y = data
                members = X[y == label][:MOST_ROWS].reshape(-1, *series.shape[1:])
                ax.plot(
                    members[:, channel].T,
                    color=GRAY,
                    linewidth=0.6,
                    alpha=0.35,
                )
            for prototype in own:
                ax.plot(
                    prototype[channel],
                    color=class_color(c),
                    linewidth=2,
                )
            tidy(ax)
        axes[0, c].set_title(
            plain(label_text(label, 16)),
            fontsize=11,
            fontweight="bold",
        )
        axes[-1, c].set_xlabel("time" if is_series else "feature", fontsize=FONT_SIZE)
    return figure


def plot_relevances(
    model: Any,
    names: Sequence[str] | None = None,
    path: str | Path | None = None,
    *,
    most: int = 20,
) -> Figure:
    """Draw how much every feature counts in the learned distance; relevances sum to 1.

    Series have a profile over time for each channel, or one for all where time steps have
    relevances (`SoftDTW`), images a map, rows bars. Of local metrics, the mean over the prototypes
    is drawn.

    Parameters
    ----------
    model : GRLVQ, GMLVQ or LGMLVQ
        Fitted.
    names : sequence of str, optional
        Names of the features of rows; by default those of the data frame it was fitted to.
    path : str or Path, optional
        Where to write it; .png, .svg or .pdf.
    most : int, default=20
        How many features of rows to draw, the most relevant first.

    Returns
    -------
    Figure
        The figure.
    """
    check_path(path)
    rules = {"names": ListOf(Instance(str), "texts") | Nothing(), "most": Integer(at_least=1)}
    check_parameters("plot_relevances", rules, {"names": names, "most": most})
    if not hasattr(model, "relevances_"):
        raise ValueError(
            f"model {type(model).__name__} has no relevances; GRLVQ, GMLVQ and LGMLVQ learn them."
        )
    relevances = model.relevances_
    if relevances.ndim > 1:
        relevances = relevances.mean(0)
    shape = model.shape_
    if len(shape) == 3:
        figure = _plot_relevance_map(relevances.reshape(shape))
    elif len(shape) == 2:
        figure = _plot_relevance_profiles(relevances.reshape(-1, shape[-1]))
    else:
        known_names = names or getattr(model, "feature_names_in_", None)
        figure = _plot_relevance_bars(relevances, known_names, most)
    save_figure(figure, path)
    return figure


def _plot_relevance_map(relevances: Array) -> Figure:
    """Draw the relevances of an image, summed over channels."""
    figure = blank_figure(3.4, width=4.4)
    ax = figure.subplots()
    drawn = ax.imshow(
        relevances.sum(0),
        cmap="viridis",
        vmin=0,
    )
    figure.colorbar(drawn, ax=ax, label="relevance")
    ax.axis("off")
    return figure


def _plot_relevance_profiles(relevances: Array) -> Figure:
    """Draw the relevances of a series over time, a panel for each channel."""
    channels, length = relevances.shape
    figure = blank_figure(1.8 * channels + 0.6)
    axes = figure.subplots(
        channels,
        1,
        squeeze=False,
        sharex=True,
    )[:, 0]
    for channel, ax in enumerate(axes):
        profile = relevances[channel]
        ax.fill_between(
            range(length),
            profile,
            color=BLUE,
            alpha=0.6,
            linewidth=0,
        )
        ax.set_ylim(bottom=0)
        name = "relevance" if channels == 1 else f"channel {channel}"
        ax.set_ylabel(name, fontsize=FONT_SIZE)
        tidy(ax)
    axes[-1].set_xlabel("time", fontsize=FONT_SIZE)
    return figure


def _plot_relevance_bars(relevances: Array, names: Sequence[str] | None, most: int) -> Figure:
    """Draw the largest relevances as bars."""
    largest = np.argsort(-relevances, kind="stable")[:most]
    from_bottom = largest[::-1]
    if names is None:
        labels = [f"feature {j}" for j in from_bottom]
    else:
        labels = [plain(one_line(names[j], 28)) for j in from_bottom]
    figure = blank_figure(0.26 * len(from_bottom) + 0.7, width=7.0)
    ax = figure.subplots()
    ax.barh(
        range(len(from_bottom)),
        relevances[from_bottom],
        color=BLUE,
    )
    ax.set_yticks(range(len(from_bottom)), labels)
    zero = int((relevances == 0).sum())
    ax.set_xlabel(
        f"relevance (Σ = 1; {zero} of {len(relevances)} are exactly 0)", fontsize=FONT_SIZE
    )
    tidy(ax)
    return figure


def plot_projection(
    model: PrototypeClassifier, X: Any, y: Any, path: str | Path | None = None
) -> Figure:
    """Draw data and prototypes on the two directions in which the data differ most.

    Distances are those of the model. Rows that the model misclassifies are ringed.

    Parameters
    ----------
    model : PrototypeClassifier
        Fitted, with one metric for all prototypes.
    X : array of shape (n, ...)
        Data to place.
    y : array of shape (n,)
        Their classes.
    path : str or Path, optional
        Where to write it; .png, .svg or .pdf.

    Returns
    -------
    Figure
        The figure.
    """
    check_model("plot_projection", model)
    check_path(path)
    X, y = _read_data(model, X, y)
    rows = X.reshape(len(X), -1)
    omega = _common_metric(model, rows.shape[1])
    center = rows.mean(0)
    _, spread, axes = np.linalg.svd((rows - center) @ omega.T, full_matrices=False)
    plane = omega.T @ axes[:2].T
    prototypes = model.prototypes_.reshape(len(model.prototypes_), -1)
    figure = blank_figure(4.6, width=7.6)
    ax = figure.subplots()
    _draw_data(
        ax,
        model,
        (rows - center) @ plane,
        y,
        wrong=model.predict(X) != y,
    )
    _draw_prototypes(ax, model, (prototypes - center) @ plane)
    explained = (spread[:2] ** 2).sum() / (spread**2).sum()
    ax.set_xlabel(
        f"the two directions hold {percent_text(explained)} of the variance in its distance",
        fontsize=FONT_SIZE,
    )
    figure.legend(
        loc="outside right upper",
        fontsize=8,
        frameon=False,
        title="stars: prototypes",
        title_fontsize=8,
    )
    tidy(ax)
    save_figure(figure, path)
    return figure


def _common_metric(model: PrototypeClassifier, size: int) -> Array:
    """Return the matrix of the model's distance; raise where there is none for all prototypes."""
    metric = getattr(model, "metric_", lambda: None)()
    if metric is not None and metric.ndim == 3:
        raise ValueError(
            "Every prototype of this model has its own metric: no plane shows them all."
        )
    if model.prototypes_ is None or math.prod(model.prototypes_.shape[1:]) != size:
        raise ValueError(
            f"The prototypes of this {type(model).__name__} are no instances: nothing to place."
        )
    return np.eye(size) if metric is None else np.asarray(metric)


def _draw_data(
    ax: Axes, model: PrototypeClassifier, placed: Array, y: Array, *, wrong: Array
) -> None:
    """Draw the data of every class, and rings around what is misclassified."""
    for c, label in enumerate(model.classes_.tolist()):
        u, v = placed[y == label].T
        mark = MARKS[c // len(COLORS) % len(MARKS)]
        name = plain(label_text(label, 16))
        ax.scatter(
            u,
            v,
            s=16,
            color=class_color(c),
            marker=mark,
            alpha=0.55,
            linewidth=0,
            label=name,
        )
    if wrong.any():
        u, v = placed[wrong].T
        name = f"misclassified ({int(wrong.sum())})"
        ax.scatter(
            u,
            v,
            s=44,
            facecolor="none",
            edgecolor="black",
            linewidth=0.9,
            label=name,
        )


def _draw_prototypes(ax: Axes, model: PrototypeClassifier, placed: Array) -> None:
    """Draw the prototypes of every class as stars."""
    for c, label in enumerate(model.classes_.tolist()):
        u, v = placed[model.prototype_labels_ == label].T
        ax.scatter(
            u,
            v,
            s=190,
            marker="*",
            color=class_color(c),
            edgecolor="black",
            linewidth=1,
            zorder=3,
        )
