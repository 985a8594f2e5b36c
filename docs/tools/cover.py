"""Draw the picture of the first page: `python docs/tools/cover.py` writes docs/counterfactuals.png.

Two data sets that come with aeon, a small network each. Every answer is shown to three more
networks, trained with other seeds, which no search has seen. The examples are chosen by eye among
answers of typical size; the table of `contrafact demo` says how often retrained networks agree.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

import contrafact as cf
from contrafact.data import Dataset
from contrafact.data.cleaning import Array
from contrafact.engine import Counterfactuals
from contrafact.models.adapters import TorchClassifier
from contrafact.nn.networks import FCN, seeded
from contrafact.report.canvas import blank_figure, save_figure, write_legend
from contrafact.report.pairs import changed_mask, pair
from contrafact.report.panels import draw_series
from contrafact.report.style import FONT_SIZE, INK, legend_entries, look_of
from contrafact.report.words import class_probability, percent_text

PAGE = Path(__file__).parents[1]
JUDGE_SEEDS = (1, 2, 3)


class Panel(NamedTuple):
    """One picture: its data, the classes before and after and in words, the axes, the size."""

    dataset: str
    label: str
    target: str
    before: str
    after: str
    time: str
    value: str
    quantile: float


DAY = ("hour of the day", "demand")
HAND = ("time step", "position of the hand")
PANELS = (
    Panel("ItalyPowerDemand", "1", "2", "winter", "summer", *DAY, 0.35),
    Panel("ItalyPowerDemand", "2", "1", "summer", "winter", *DAY, 0.35),
    Panel("GunPoint", "2", "1", "points", "draws a gun", *HAND, 0.4),
    Panel("GunPoint", "1", "2", "draws a gun", "points", *HAND, 0.4),
)


def train(data: Dataset, seed: int) -> TorchClassifier:
    """Train a small network."""
    with seeded(seed):
        network = FCN(1, 2, widths=(32, 64, 32))
    return cf.fit_classifier(network, data.X_train, data.y_train, max_epochs=100, random_state=seed)


def explain(data: Dataset, model: TorchClassifier, n: int = 80) -> Counterfactuals:
    """Explain test series that the model classifies correctly, as `cf.explain` does."""
    correct = np.flatnonzero(model.predict(data.X_test) == data.y_test)
    return cf.explain(model, data.X_test[correct[:n]], reference=data)


def typical(result: Counterfactuals, panel: Panel) -> int:
    """Return the answer of the panel's size among those of its classes that pass all tests.

    The size is given as a quantile of the l2 distances.
    """
    asked = (result.labels == panel.label) & (result.target == panel.target)
    (rows,) = np.nonzero(asked & (result.info["level"] >= 0))
    size = result.evaluate("l2")["l2"].to_numpy()[rows]
    return int(rows[np.argsort(size, kind="stable")[int(panel.quantile * len(rows))]])


def certainty(proba: Array) -> str:
    """Return the largest probability, as it is printed."""
    return class_probability(proba, int(proba.argmax()))


def main() -> None:
    """Draw the picture."""
    results = {}
    judges = {}
    for name in {panel.dataset for panel in PANELS}:
        data = cf.load_dataset(name)
        results[name] = explain(data, train(data, seed=0))
        judges[name] = [train(data, seed) for seed in JUDGE_SEEDS]
    figure = blank_figure(5.0, header=0.02)
    for ax, panel in zip(figure.subplots(2, 2).ravel(), PANELS, strict=True):
        result = results[panel.dataset]
        i = typical(result, panel)
        x, x_cf = pair(result, i)
        draw_series(ax, x[0], x_cf[0], changed_mask(result, i)[0], look_of(result, i))
        says = [model.predict(x_cf[None])[0] for model in judges[panel.dataset]]
        agree = says.count(panel.target)
        share = percent_text(float(result.changed_fraction[i]))
        before = f"{panel.before} ({certainty(result.proba[i])})"
        after = f"{panel.after} ({certainty(result.cf_proba[i])})"
        classes = f"{before} → {after}"
        detail = f"{share} changed; {agree} of {len(says)} retrained networks agree"
        ax.set_title(f"{classes}\n", fontsize=10.5, loc="left", color=INK)
        ax.text(0, 1.04, detail, transform=ax.transAxes, fontsize=FONT_SIZE, color=INK)
        ax.set_xlabel(panel.time, fontsize=FONT_SIZE)
        ax.set_ylabel(panel.value, fontsize=FONT_SIZE)
    write_legend(figure, legend_entries([look_of(result, i)], "line"))
    save_figure(figure, PAGE / "counterfactuals.png")


if __name__ == "__main__":
    main()
