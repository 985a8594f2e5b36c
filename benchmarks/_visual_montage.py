"""The figure of visual.py: counterfactuals of six images on both models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

import contrafact as cf
from _common import Array
from contrafact.models import Classifier

#: results by model ("standard", "robust") and norm
Results = dict[tuple[str, float], cf.Counterfactuals]

NORMS = (1, 1.5, 2)
#: first column of each model
START = {"standard": 2, "robust": 9}
#: largest change of a pixel that colors can tell apart
LIMIT = 0.5
CLOTHES = (
    "t-shirt",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "boot",
)


def draw_montage(
    name: str,
    results: Results,
    matched: Array,
    oracle: Classifier,
    confidence: float,
    path: Path,
) -> None:
    """Draw six images: the original, then counterfactual and difference per model and norm.

    Parameters
    ----------
    name : str
        Name of the data set.
    results : dict
        Results by model and norm, all of the same images and targets.
    matched : array of int
        Images on which all models and norms reached the confidence; six of them are shown.
    oracle : Classifier
        Independent network, whose label is written above each difference.
    confidence : float
        P(target) that was asked for.
    path : Path
        The file to write.
    """
    classes = CLOTHES if name.startswith("fashion") else tuple(map(str, range(10)))
    first = next(iter(results.values()))
    rows = choose_images(first.labels, matched)
    montage = Montage(len(rows))
    for row, i in enumerate(rows):
        montage.draw_original(row, first.X[i, 0], classes[first.labels[i]])
        for model, start in START.items():
            for k, p in enumerate(NORMS):
                montage.draw_pair(row, start + 2 * k, results[model, p], i, oracle, classes)
    montage.draw_titles(confidence)
    montage.figure.savefig(path, dpi=120)


def choose_images(labels: Array, matched: Array) -> list[int]:
    """Return the first matched image of each of six classes: no image is hand-picked."""
    first_of_class: dict[Any, int] = {}
    for i in matched:
        first_of_class.setdefault(labels[i], i)
    chosen = list(first_of_class.values())[:6]
    return sorted(chosen, key=lambda i: labels[i])


class Montage:
    """A grid of images: the original, then pairs for the standard and for the robust model."""

    def __init__(self, n_rows: int) -> None:
        gap = 0.22
        pairs = [1] * (2 * len(NORMS))
        widths = [1, gap, *pairs, gap, *pairs]
        self.figure = Figure(figsize=(16, 1.2 * n_rows + 1.75), facecolor="white")
        FigureCanvasAgg(self.figure)
        self.top = 1 - 1.45 / self.figure.get_figheight()
        self.grid = self.figure.add_gridspec(
            n_rows,
            len(widths),
            width_ratios=widths,
            left=0.01,
            right=0.945,
            top=self.top,
            bottom=0.015,
            wspace=0.06,
            hspace=0.26,
        )
        #: uppermost axes of each column
        self.heads: dict[int, Axes] = {}
        self.difference: AxesImage | None = None

    def draw_image(self, row: int, column: int, image: Array, **style: Any) -> tuple[Axes, Any]:
        """Show an image in a cell of the grid."""
        ax = self.figure.add_subplot(self.grid[row, column])
        shown = ax.imshow(image, interpolation="nearest", **style)
        ax.set_xticks([])
        ax.set_yticks([])
        for side in ax.spines.values():
            side.set_color("#BBBBBB")
        self.heads.setdefault(column, ax)
        return ax, shown

    def draw_gray(self, row: int, column: int, image: Array) -> Axes:
        """Show an image with pixels in [0, 1]."""
        ax, _ = self.draw_image(row, column, image, cmap="gray", vmin=0, vmax=1)
        return ax

    def draw_original(self, row: int, image: Array, label: str) -> None:
        """Show an image as it was, with its label."""
        ax = self.draw_gray(row, 0, image)
        ax.set_title(label, fontsize=11, pad=3, fontweight="bold")

    def draw_pair(
        self,
        row: int,
        column: int,
        result: cf.Counterfactuals,
        i: int,
        oracle: Classifier,
        classes: tuple[str, ...],
    ) -> None:
        """Show a counterfactual with the model's class, and the difference with the oracle's."""
        ax = self.draw_gray(row, column, result.X_cf[i, 0])
        label = classes[result.cf_labels[i]]
        p_target = result.target_proba[i, 1]
        ax.set_title(f"{label} {p_target:.2f}", fontsize=10, pad=3, fontweight="bold")

        predicted = oracle.predict(result.X_cf[i : i + 1])[0]
        agrees = bool(predicted == result.target[i])
        ax, self.difference = self.draw_image(
            row,
            column + 1,
            result.delta[i, 0],
            cmap="RdBu_r",
            vmin=-LIMIT,
            vmax=LIMIT,
        )
        ax.set_title(
            f"{'✓' if agrees else '✗'} {classes[predicted]}",
            fontsize=10.5,
            pad=3,
            color="#0072B2" if agrees else "#B34700",
        )

    def draw_titles(self, confidence: float) -> None:
        """Write the titles of the columns, the color bar and the caption."""
        self.write_above(0, 0, 0.3, "original", fontsize=12)
        for model, start in START.items():
            last = start + 2 * len(NORMS) - 1
            self.write_above(start, last, 0.62, f"{model} model", fontsize=17, fontweight="bold")
            for k, p in enumerate(NORMS):
                column = start + 2 * k
                title = f"smallest $\\ell_{{{p}}}$ change"
                self.write_above(column, column + 1, 0.3, title, fontsize=12)
        self.draw_color_bar()
        self.figure.text(
            0.01,
            1 - 0.12 / self.figure.get_figheight(),
            "The smallest change after which the model predicts another class with "
            f"P = {confidence}. Left: the changed image, its class and P. "
            "Right: what changed, and the class by an independent network.",
            fontsize=11.5,
            va="top",
            color="#333333",
        )

    def write_above(self, left: int, right: int, height: float, words: str, **style: Any) -> None:
        """Write words above the columns left to right; `height` is in inches."""
        x0 = self.heads[left].get_position().x0
        x1 = self.heads[right].get_position().x1
        y = self.top + height / self.figure.get_figheight()
        self.figure.text((x0 + x1) / 2, y, words, ha="center", va="bottom", **style)

    def draw_color_bar(self) -> None:
        """Draw the scale of the differences."""
        assert self.difference is not None
        axes = self.figure.add_axes((0.957, 0.22, 0.009, 0.4))
        bar = self.figure.colorbar(
            self.difference, cax=axes, extend="both", ticks=[-LIMIT, 0, LIMIT]
        )
        bar.ax.tick_params(labelsize=10)
        self.figure.text(0.951, 0.66, "brighter", fontsize=11, color="#8B0A1E", va="bottom")
        self.figure.text(0.951, 0.19, "darker", fontsize=11, color="#0B3C6F", va="top")
