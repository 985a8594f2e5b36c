"""The path of a latent method: the codes of the data, the centroids and one counterfactual."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..engine.result import Counterfactuals
from ..explainers.latentcf import LatentCF
from ..explainers.tsnuc import TSNUC
from ..validation import brief
from .canvas import blank_figure, check_path, check_result, checked_row, save_figure, write_title
from .captions import headline
from .style import FONT_SIZE, GRAY, class_color, plain, tidy
from .words import label_text

#: loss curves drawn behind the one of interest
MOST_CURVES = 60


def plot_latent(
    explainer: TSNUC | LatentCF, result: Counterfactuals, i: int = 0, path: str | Path | None = None
) -> Figure:
    """Draw the path of counterfactual i in latent space, and its loss from step to step.

    On the left are the codes of the reference data on their two main directions, with the path; on
    the right is the loss, with those of the other rows behind it.

    Parameters
    ----------
    explainer : TSNUC or LatentCF
        Fitted; the one that made `result`.
    result : Counterfactuals
        The result.
    i : int, default=0
        Row of the result; negative counts from the end.
    path : str or Path, optional
        Where to write it; .png, .svg or .pdf.

    Returns
    -------
    Figure
        The figure.
    """
    check_result(result)
    check_path(path)
    if not hasattr(explainer, "latent_"):
        raise TypeError(f"explainer must be a fitted TSNUC or LatentCF, got {brief(explainer)}.")
    if "path" not in result.info:
        raise ValueError("This result has no path; plot_latent draws those of TSNUC and LatentCF.")
    i = checked_row(result, i)
    figure = blank_figure(4.2, header=0.4)
    write_title(figure, headline(result, i), y=0.95)
    codes, losses = figure.subplots(1, 2, width_ratios=[1.4, 1])
    _draw_codes(codes, explainer)
    _draw_path(codes, np.asarray(result.info["path"])[i])
    codes.legend(fontsize=8, frameon=False)
    _draw_losses(losses, result, i)
    tidy(codes)
    tidy(losses)
    save_figure(figure, path)
    return figure


def _draw_codes(ax: Axes, explainer: TSNUC | LatentCF) -> None:
    """Draw the codes of every class, and the centroids where there are."""
    latent = explainer.latent_
    codes = (latent.codes @ latent.plane).numpy(force=True)
    owner = explainer.guide_.candidate_class_.numpy(force=True)
    for column, label in enumerate(explainer.classifier_.classes.tolist()):
        u, v = codes[owner == column].T
        name = plain(label_text(label, 16))
        ax.scatter(
            u,
            v,
            s=16,
            color=class_color(column),
            alpha=0.5,
            linewidth=0,
            label=name,
        )
        if isinstance(explainer, TSNUC):
            _draw_centroids(ax, explainer, column)
    ax.set_xlabel("first main direction of the codes", fontsize=FONT_SIZE)
    ax.set_ylabel("second", fontsize=FONT_SIZE)


def _draw_centroids(ax: Axes, explainer: TSNUC, column: int) -> None:
    """Draw the centroids of one class as stars."""
    centroids = explainer.centroids_
    own = centroids.owner.numpy(force=True) == column
    u, v = (centroids.place @ explainer.latent_.plane).numpy(force=True)[own].T
    ax.scatter(
        u,
        v,
        s=130,
        marker="*",
        color=class_color(column),
        edgecolor="black",
        linewidth=0.8,
        label="centroids" if column == 0 else None,
    )


def _draw_path(ax: Axes, steps: np.ndarray) -> None:
    """Draw the path of one counterfactual, from a white dot to an arrow head."""
    u, v = steps.T
    ax.plot(
        u,
        v,
        color="black",
        linewidth=1.8,
        label="path of this one",
    )
    ax.plot(
        u[0],
        v[0],
        "o",
        color="black",
        markersize=7,
        markerfacecolor="white",
    )
    ax.plot(
        u[-1],
        v[-1],
        ">",
        color="black",
        markersize=8,
    )


def _draw_losses(ax: Axes, result: Counterfactuals, i: int) -> None:
    """Draw the loss curves, the one of row i last and black."""
    curves = np.asarray(result.info["loss_curve"])
    iterations = np.asarray(result.info["iterations"])
    others = [j for j in range(min(len(curves), MOST_CURVES)) if j != i]
    for j in [*others, i]:
        # As the steps were picked.
        at = np.linspace(0, max(iterations[j] - 1, 0), curves.shape[1]).round()
        if j == i:
            ax.plot(
                at,
                curves[j],
                color="black",
                linewidth=1.8,
            )
        else:
            ax.plot(
                at,
                curves[j],
                color=GRAY,
                linewidth=0.6,
                alpha=0.5,
            )
    ax.set_xlabel("step", fontsize=FONT_SIZE)
    ax.set_ylabel("loss (black: this one)", fontsize=FONT_SIZE)
