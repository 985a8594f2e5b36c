"""A picture of a decision between prototypes of series: which moments are compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from ..data.arrays import read_array
from ..prototypes.alignment import alignment_path
from ..prototypes.estimator import Array, PrototypeClassifier
from .canvas import TitleLine, check_path, save_figure, titled_figure
from .prototype_plots import check_model
from .style import FONT_SIZE, INK, class_color, plain, tidy
from .words import label_text, number_text

#: lines of the alignment that are drawn at most
MOST_LINES = 60
WIDTH = 10.0


def plot_warping(
    model: PrototypeClassifier,
    x: Any,
    classes: tuple[Any, Any] | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Draw a series, its nearest prototype of two classes, and which moments are compared.

    Lines join the time steps that the model's distance compares: upright where there is no
    warping. Of soft DTW, which weighs all alignments, the most probable one is drawn.

    Parameters
    ----------
    model : PrototypeClassifier
        Fitted to series, e.g. GLVQ with `SoftDTW`, or MedianLVQ with an elastic metric.
    x : array of shape (channels, length) or (length,)
        The series.
    classes : tuple of two labels, optional
        Whose prototypes to draw; default: the class that the model decides for, and the class of
        the nearest prototype of any other.
    path : str or Path, optional
        Where to write it; .png, .svg or .pdf.

    Returns
    -------
    Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> from contrafact.prototypes import MedianLVQ
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(10, 1, 20)).cumsum(-1), np.arange(10) % 2
    >>> model = MedianLVQ(metric="dtw").fit(X, y)
    >>> figure = plot_warping(model, X[3])
    >>> len(figure.axes)
    2
    """
    check_model("plot_warping", model)
    check_path(path)
    if model.prototypes_ is None or len(model.shape_) > 2 or hasattr(model, "exemplars_"):
        raise ValueError(
            f"plot_warping: the prototypes of this {type(model).__name__} are no series."
        )
    row = model._check_instances(read_array(x, "x")[None])
    series = row.reshape(-1, model.shape_[-1])
    d = model.distances(row)[0]
    nearest = [_nearest_of(model, d, label) for label in _two_classes(model, d, classes)]
    labels = model.prototype_labels_[nearest]
    figure = titled_figure(_title(labels, d[nearest]), height=2.4 * len(series) + 0.4, width=WIDTH)
    axes = figure.subplots(len(series), 2, squeeze=False, sharex=True, sharey="row")
    for k, label, column in zip(nearest, labels, axes.T, strict=True):
        prototype = model.prototypes_[k].reshape(series.shape)
        pairs = alignment_path(model, series, prototype)
        color = class_color(int(np.searchsorted(model.classes_, label)))
        for channel, ax in enumerate(column):
            _draw(ax, series[channel], prototype[channel], pairs, color)
        name = plain(label_text(label, 24))
        column[0].set_title(f"prototype of {name}", fontsize=12, color=color, fontweight="bold")
        column[-1].set_xlabel("time", fontsize=FONT_SIZE)
    if len(series) > 1:
        for channel, ax in enumerate(axes[:, 0]):
            ax.set_ylabel(f"channel {channel}", fontsize=FONT_SIZE)
    save_figure(figure, path)
    return figure


def _two_classes(
    model: PrototypeClassifier, d: Array, classes: tuple[Any, Any] | None
) -> tuple[Any, Any]:
    """Return the two classes to draw."""
    if classes is None:
        first = model.prototype_labels_[d.argmin()]
        others = np.where(model.prototype_labels_ == first, np.inf, d)
        return first, model.prototype_labels_[others.argmin()]
    known = model.classes_.tolist()
    if not isinstance(classes, tuple | list) or len(classes) != 2:
        raise ValueError(f"classes must be two of {known}, got {classes!r}.")
    for label in classes:
        if label not in known:
            raise ValueError(f"classes: {label!r} is not a class of this model. Classes: {known}.")
    return classes[0], classes[1]


def _nearest_of(model: PrototypeClassifier, d: Array, label: Any) -> int:
    """Return the number of the nearest prototype of a class."""
    return int(np.where(model.prototype_labels_ == label, d, np.inf).argmin())


def _title(labels: Array, d: Array) -> list[TitleLine]:
    """Say which prototype is nearer, and by how much."""
    near, far = (0, 1) if d[0] <= d[1] else (1, 0)
    texts = [number_text(value, 3) for value in d]
    return [
        TitleLine(
            f"Nearer to the prototype of {label_text(labels[near], 24)}: distance {texts[near]}, "
            f"against {texts[far]} to that of {label_text(labels[far], 24)}",
            size=13,
            weight="bold",
        ),
        TitleLine("below: the series; thin lines join the moments that are compared"),
    ]


def _draw(ax: Axes, x: Array, w: Array, pairs: Array, color: str) -> None:
    """Draw the prototype above the series, and the alignment between them."""
    lift = 0.35 * float(np.ptp(np.concatenate([x, w]))) + float(max(0.0, (x - w).max()))
    shown = pairs[np.unique(np.linspace(0, len(pairs) - 1, MOST_LINES).astype(int))]
    i, j = shown.T
    ends = np.stack([np.stack([i, x[i]], 1), np.stack([j, w[j] + lift], 1)], 1)
    ax.add_collection(LineCollection(list(ends), colors="#BBBBBB", linewidths=0.8, zorder=1))
    ax.plot(x, color=INK, linewidth=2.2, zorder=2)
    ax.plot(w + lift, color=color, linewidth=2.6, zorder=2)
    ax.set_yticks([])
    tidy(ax)
    ax.spines["left"].set_visible(False)
