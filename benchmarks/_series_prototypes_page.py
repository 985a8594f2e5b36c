"""Page and figure of series_prototypes.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from _common import panels, table_head, table_row

PEER = "1-NN DTW, aeon"
#: models in the order of the tables, and their colors
COLORS = {
    "1-NN DTW, aeon": "#404040",
    "1-NN DTW, pruned": "#8C8C8C",
    "GLVQ, Euclidean": "#56B4E9",
    "GLVQ, soft-DTW": "#0072B2",
    "GRLVQ, soft-DTW": "#009E73",
    "MedianLVQ, Euclidean": "#E69F00",
    "MedianLVQ, DTW": "#D55E00",
    "MedianLVQ, MSM": "#CC79A7",
}


def summary(frame: pd.DataFrame, value: str) -> pd.DataFrame:
    """Return means over seeds: a line per model and number of prototypes, a column per set."""
    means = frame.groupby(["model", "per_class", "data"], sort=False)[value].mean().unstack("data")
    order = sorted(means.index, key=lambda key: (list(COLORS).index(key[0]), key[1]))
    return means.loc[order, list(dict.fromkeys(frame["data"]))]


def relative(frame: pd.DataFrame) -> pd.DataFrame:
    """Return prediction times as shares of the peer's on the same data set."""
    times = summary(frame, "predict")
    return times / times.loc[(PEER, 0)]


def table(values: pd.DataFrame, digits: int) -> list[str]:
    """Return a table with the mean over the data sets in the last column."""
    lines = table_head("model", "per class", *values.columns, "mean")
    for (model, per_class), row in values.iterrows():
        mean = np.exp(np.log(row).mean()) if digits == 4 else row.mean()
        cells = [f"{value:.{digits}f}" for value in (*row, mean)]
        lines.append(table_row(model, per_class or "all", *cells))
    return lines


def losses(frame: pd.DataFrame) -> list[str]:
    """Say on which data sets each model is behind 1-NN, and where ahead."""
    accuracy = summary(frame, "accuracy")
    behind = accuracy - accuracy.loc[(PEER, 0)]
    lines = []
    for (model, per_class), row in behind.iterrows():
        if per_class == 0:
            continue
        worse, better = row[row < -0.01], row[row > 0.01]
        lost = ", ".join(f"{name} {value:+.3f}" for name, value in worse.items()) or "none"
        won = ", ".join(f"{name} {value:+.3f}" for name, value in better.items()) or "none"
        lines.append(f"- {model}, {per_class} per class: loses on {lost}; wins on {won}.")
    return lines


def in_short(frame: pd.DataFrame) -> str:
    """Say the means of the models with most prototypes in one paragraph."""
    accuracy = summary(frame, "accuracy").mean(axis=1)
    times = np.exp(np.log(relative(frame)).mean(axis=1))
    most = int(frame["per_class"].max())
    pruned = times[("1-NN DTW, pruned", 0)]
    parts = [
        f"{model} {accuracy[model, most]:.3f} in {times[model, most] / pruned:.2f} of the time"
        for model in COLORS
        if (model, most) in accuracy.index
    ]
    return (
        f"In short, {most} prototypes per class, mean over the data sets: 1-NN under DTW has an "
        f"accuracy of {accuracy[PEER, 0]:.3f}; the same search pruned by lower bounds takes "
        f"{pruned:.3f} of aeon's time. Beside that pruned search over all training series: "
        f"{'; '.join(parts)}. Models that cost more than 1 of that time are slower than the search "
        f"that they replace; the training sets are small ({frame['train'].min()} to "
        f"{frame['train'].max()} series), and the time of 1-NN grows with them."
    )


def page(frame: pd.DataFrame, head: str, window: float, rows: int) -> list[str]:
    """Return the lines of the page."""
    data = frame.drop_duplicates("data")
    seeds = int(frame["seed"].max()) + 1
    sizes = "; ".join(
        f"{row.data} {row.train}/{row.test}, {row.shape}, {row.classes} classes"
        for row in data.itertuples()
    )
    return [
        "# Prototype models of series",
        "",
        head,
        "",
        f"Archive's split, at most {rows} test series drawn once; training/test series, channels × "
        f"length: {sizes}. Sakoe-Chiba band of {window:g} of the length wherever there is warping. "
        f"Gradient models: defaults, mean of {seeds} seeds; the others have no seed. `SoftDTW` "
        "with its default γ, a tenth of the mean variance. Other work ran on the machine; times "
        "are processor times of one process.",
        "",
        in_short(frame),
        "",
        "## Test accuracy",
        "",
        *table(summary(frame, "accuracy"), 3),
        "",
        "## Processor time of `predict`, as a share of aeon's 1-NN in the same run",
        "",
        "The last column is the geometric mean. `1-NN DTW, pruned` is the search of "
        "`MedianLVQ.predict` over all training series.",
        "",
        *table(relative(frame), 4),
        "",
        "## Processor seconds of `fit`",
        "",
        *table(summary(frame, "fit"), 2),
        "",
        f"## Where prototypes lose and win against {PEER}, by more than 0.01",
        "",
        *losses(frame),
        "",
    ]


def draw_figure(frame: pd.DataFrame, path: Path) -> None:
    """Draw the accuracy on each data set, and mean accuracy over prediction time."""
    accuracy = summary(frame, "accuracy")
    times = np.exp(np.log(relative(frame)).mean(axis=1))
    figure, (left, right) = panels(("accuracy", "time"), 6.2, 4.6)
    shown = [key for key in accuracy.index if key[1] in (0, 3) and key[0] != "1-NN DTW, pruned"]
    for at, key in enumerate(shown):
        shift = (at - len(shown) / 2) * 0.09
        left.plot(
            accuracy.loc[key],
            np.arange(accuracy.shape[1]) + shift,
            "D" if key[1] == 0 else "o",
            color=COLORS[key[0]],
            markersize=6,
        )
    left.set_yticks(np.arange(accuracy.shape[1]), accuracy.columns)
    left.set_ylim(accuracy.shape[1] - 0.5, -0.5)
    for line in np.arange(accuracy.shape[1] - 1) + 0.5:
        left.axhline(line, color="#DDDDDD", linewidth=0.8)
    left.set_xlabel("test accuracy, 3 prototypes per class")
    for key in accuracy.index:
        mark = {0: "D", 1: "^", 3: "o"}[key[1]]
        right.plot(
            times[key],
            accuracy.loc[key].mean(),
            mark,
            color=COLORS[key[0]],
            markersize=9,
            label=key[0] if key[1] in (0, 3) else None,
        )
    right.set_xscale("log")
    right.set_xlabel("time of predict, share of aeon's 1-NN (geometric mean)")
    right.set_ylabel("mean accuracy")
    right.set_title("▲ 1 and ● 3 prototypes per class, ◆ all training series", fontsize=9)
    right.legend(fontsize=8, frameon=False, loc="lower right")
    figure.savefig(path, dpi=150)
