"""The figure of visual_cifar.py: counterfactuals of color images on two models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure

import contrafact as cf
from _common import Array
from contrafact.models import Classifier

CLASSES = (
    "airplane",
    "car",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)


def draw_cifar(
    results: Mapping[tuple[str, float], cf.Counterfactuals],
    radii: Mapping[float, float],
    rows: Sequence[int],
    oracle: Classifier,
    path: Path,
) -> None:
    """Draw original, counterfactual and difference for every model and norm.

    Parameters
    ----------
    results : dict
        Results by model and norm, all of the same images and targets.
    radii : dict
        Radius of each norm.
    rows : sequence of int
        The images to show.
    oracle : Classifier
        Independent network, whose label is written above each difference.
    path : Path
        The file to write.
    """
    models = list(dict.fromkeys(model for model, _ in results))
    first = next(iter(results.values()))
    figure = Figure(figsize=(16, 1.28 * len(rows) + 1.3), facecolor="white")
    FigureCanvasAgg(figure)
    per_model = 2 * len(radii)
    widths = [1.05] + len(models) * [per_model]
    parts = figure.subfigures(1, len(widths), width_ratios=widths, wspace=0.0)
    _draw_column(parts[0], "original", [""], rows, 1)
    for row, i in enumerate(rows):
        ax = parts[0].axes[row]
        ax.imshow(_shown(first.X[i]))
        ax.set_title(CLASSES[first.labels[i]], fontsize=10, pad=3, fontweight="bold")
    for part, model in zip(parts[1:], models, strict=True):
        heads = [f"$\\ell_{{{p:g}}}$, radius {radius:g}" for p, radius in radii.items()]
        _draw_column(part, model, heads, rows, per_model)
        for k, p in enumerate(radii):
            _draw_pairs(part, results[model, p], rows, 2 * k, per_model, oracle)
    figure.text(
        0.008,
        0.012,
        "Left of each pair: the image the model finds most like the target class within the "
        "radius, with its class and P. Right: what changed (gray: nothing), and the class by an "
        "independent network.",
        fontsize=10.5,
        color="#333333",
    )
    figure.savefig(path, dpi=110)


def _draw_column(
    part: SubFigure, title: str, heads: Sequence[str], rows: Sequence[int], columns: int
) -> None:
    """Make the axes of one model, with its titles."""
    height = 1.28 * len(rows) + 1.3
    top = 1 - 0.95 / height
    grid = part.subplots(
        len(rows),
        columns,
        squeeze=False,
        gridspec_kw={
            "left": 0.02 if columns > 1 else 0.1,
            "right": 0.98 if columns > 1 else 0.9,
            "top": top,
            "bottom": 0.42 / height,
            "wspace": 0.06,
            "hspace": 0.24,
        },
    )
    for ax in grid.flat:
        ax.set_xticks([])
        ax.set_yticks([])
        for side in ax.spines.values():
            side.set_color("#BBBBBB")
    bold = "bold" if columns > 1 else "normal"
    part.text(0.5, 1 - 0.1 / height, title, ha="center", va="top", fontsize=15, fontweight=bold)
    for k, head in enumerate(heads):
        where = 0.02 + 0.96 * (k + 0.5) / len(heads)
        part.text(where, 1 - 0.47 / height, head, ha="center", va="top", fontsize=11.5)


def _draw_pairs(
    part: SubFigure,
    result: cf.Counterfactuals,
    rows: Sequence[int],
    column: int,
    columns: int,
    oracle: Classifier,
) -> None:
    """Show counterfactuals with the model's class, and differences with the oracle's."""
    for row, i in enumerate(rows):
        ax, ax_difference = part.axes[row * columns + column : row * columns + column + 2]
        ax.imshow(_shown(result.X_cf[i]))
        label = CLASSES[result.cf_labels[i]]
        p_target = result.target_proba[i, 1]
        ax.set_title(f"{label} {p_target:.2f}", fontsize=9.5, pad=3, fontweight="bold")
        ax_difference.imshow(_shown(0.5 + result.delta[i]))
        predicted = oracle.predict(result.X_cf[i : i + 1])[0]
        agrees = bool(predicted == result.target[i])
        ax_difference.set_title(
            f"{'✓' if agrees else '✗'} {CLASSES[predicted]}",
            fontsize=9.5,
            pad=3,
            color="#0072B2" if agrees else "#B34700",
        )


def _shown(image: Array) -> Array:
    """Put the channels last, and values within [0, 1]."""
    return np.clip(image.transpose(1, 2, 0), 0, 1)
