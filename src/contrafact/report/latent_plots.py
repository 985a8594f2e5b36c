"""Where a latent method went: the codes of the data, the centroids and the path of one counterfactual."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from ..engine.result import Counterfactuals
from ..explainers.latentcf import LatentCF
from ..explainers.tsnuc import TSNUC
from . import panels
from .plots import blank, chosen_rows, save
from .words import headline, label_text


def plot_latent(
    explainer: TSNUC | LatentCF, result: Counterfactuals, i: int = 0, path: str | Path | None = None
) -> Figure:
    """Left the codes of the reference data on their two main directions, with the way of counterfactual i;
    right its loss from step to step, those of the other rows behind it.

    Parameters
    ----------
    explainer : fitted; the one that made `result`.
    path : where to write it; .png, .svg or .pdf.
    """
    if "path" not in result.info:
        raise ValueError("This result has no path; plot_latent draws those of TSNUC and LatentCF.")
    (i,) = chosen_rows(result, [i])
    latent, classes = explainer.latent_, explainer.classifier_.classes.tolist()
    codes = (latent.codes @ latent.plane).numpy(force=True)
    label = explainer.guide_.candidate_class_.numpy(force=True)
    figure = blank(4.2, header=0.4)
    figure.text(0.012, 0.95, panels.plain(headline(result, i)), fontweight="bold", fontsize=12)
    where, how = figure.subplots(1, 2, width_ratios=[1.4, 1])
    for c, name in enumerate(classes):
        color = panels.color(c)
        own = codes[label == c]
        where.scatter(*own.T, s=16, color=color, alpha=0.5, linewidth=0, label=label_text(name, 16))
        if isinstance(explainer, TSNUC):
            owner = explainer.centroids_.owner.numpy(force=True) == c
            middle = (explainer.centroids_.place @ latent.plane).numpy(force=True)[owner]
            told = {"label": "centroids"} if c == 0 else {}
            where.scatter(
                *middle.T, s=130, marker="*", color=color, edgecolor="black", linewidth=0.8, **told
            )
    steps = np.asarray(result.info["path"])[i]
    where.plot(*steps.T, color="black", linewidth=1.8, label="path of this one")
    where.plot(*steps[0], "o", color="black", markersize=7, markerfacecolor="white")
    where.plot(*steps[-1], ">", color="black", markersize=8)
    where.set_xlabel("first main direction of the codes", fontsize=panels.SMALL)
    where.set_ylabel("second", fontsize=panels.SMALL)
    where.legend(fontsize=8, frameon=False)
    curves = np.asarray(result.info["loss_curve"])
    taken = np.asarray(result.info["iterations"])
    for j in [*(j for j in range(min(len(curves), 60)) if j != i), i]:
        at = np.linspace(
            0, max(taken[j] - 1, 0), curves.shape[1]
        ).round()  # as the steps were picked
        mine = j == i
        how.plot(at, curves[j], color="black" if mine else panels.GRAY, linewidth=1.8 if mine else 0.6,
                 alpha=1 if mine else 0.5)  # fmt: skip
    how.set_xlabel("step", fontsize=panels.SMALL)
    how.set_ylabel("loss (black: this one)", fontsize=panels.SMALL)
    for ax in (where, how):
        panels.tidy(ax)
    if path is not None:
        save(figure, path)
    return figure
