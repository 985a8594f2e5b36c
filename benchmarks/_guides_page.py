"""Tables, figure and text of the page that guides.py writes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from _common import panels, table_head, table_row
from contrafact.explainers.support.guided import GuideKind

KINDS: tuple[GuideKind, ...] = ("neighbor", "cluster", "prototype", "median")
METHODS = ("guide itself", "guide, refined", "CELS", "CELS, refined")
#: of the FCN: a quarter of the published widths, to keep the study short
WIDTHS = (32, 64, 32)


class Column(NamedTuple):
    """A column of the tables."""

    title: str
    digits: int
    less_is_better: bool


COLUMNS = {
    "valid": Column("valid", 3, False),
    "sparsity": Column("changed", 3, True),
    "segments": Column("stretches", 1, True),
    "rmse": Column("rmse", 3, True),
    "inlier": Column("LOF inliers", 3, False),
    "lof": Column("LOF", 2, True),
    "knn": Column("kNN distance", 2, True),
}
#: color and marker of each kind of guide
STYLES = {
    "neighbor": ("#0072B2", "o"),
    "cluster": ("#E69F00", "s"),
    "prototype": ("#009E73", "^"),
    "median": ("#CC79A7", "D"),
}


# --- tables --------------------------------------------------------------------------------------


def means(frame: pd.DataFrame) -> pd.DataFrame:
    """Return means over the series of each case and then over its seeds.

    The column "time" is the ratio of the seconds to those of CELS with the neighbor.
    """
    kept = [*COLUMNS, "seconds", "fit", "real", "accuracy"]
    keys = ["data", "model", "guide", "method"]
    case = ["data", "model", "seed"]
    by_seed = frame.groupby([*keys, "seed"], sort=False)[kept].mean().reset_index()
    is_baseline = (by_seed["guide"] == "neighbor") & (by_seed["method"] == "CELS")
    baseline = by_seed[is_baseline].set_index(case)["seconds"]
    own_case = pd.MultiIndex.from_frame(by_seed[case])
    by_seed["time"] = by_seed["seconds"].to_numpy() / baseline.loc[own_case].to_numpy()
    return by_seed.groupby(keys, sort=False)[[*kept, "time"]].mean().reset_index()


def formatted(values: pd.Series, column: Column) -> dict[str, str]:
    """Format one column, with the best kind of guide in bold unless all are equal."""
    shown = {str(kind): f"{value:.{column.digits}f}" for kind, value in values.items()}
    choose = min if column.less_is_better else max
    best = choose(shown.values(), key=float)
    if len(set(shown.values())) == 1:
        return shown
    return {kind: f"**{text}**" if text == best else text for kind, text in shown.items()}


def main_table(part: pd.DataFrame) -> list[str]:
    """Return one line per method and kind of guide."""
    titles = [column.title for column in COLUMNS.values()]
    lines = table_head("method", "guide", *titles, "time")
    for method in METHODS:
        rows = part[part["method"] == method].set_index("guide").loc[list(KINDS)]
        cells = {name: formatted(rows[name], column) for name, column in COLUMNS.items()}
        for kind in KINDS:
            shown = [cells[name][kind] for name in COLUMNS]
            lines.append(table_row(method, kind, *shown, f"{rows.loc[kind, 'time']:.2f}"))
    return lines


def paired_comparisons(frame: pd.DataFrame) -> list[str]:
    """Count the cases in which a guide is clearly better, and clearly worse, than the neighbor.

    A case is one data set, model and seed. Clearly: the mean of the paired differences is more than
    two standard errors from 0.
    """
    names = ("sparsity", "rmse", "lof", "knn")
    lines = table_head("method", "guide", *[COLUMNS[name].title for name in names])
    case = ["data", "model", "seed"]
    for method in ("CELS", "CELS, refined"):
        scores = frame[frame["method"] == method].set_index([*case, "row"])
        neighbor = scores[scores["guide"] == "neighbor"]
        for kind in KINDS[1:]:
            other = scores[scores["guide"] == kind]
            cells = []
            for name in names:
                differences = (other[name] - neighbor[name]).groupby(level=case)
                z = differences.mean() / differences.sem().clip(lower=1e-12)
                cells.append(f"{(z < -2).sum()} : {(z > 2).sum()}")
            lines.append(table_row(method, kind, *cells))
    return lines


def fit_costs(mean: pd.DataFrame) -> list[str]:
    """Return what fitting each guide costs, and how many of its points are real series."""
    lines = table_head("guide", "data", "model", "fit, ms", "real series among its points")
    for kind in KINDS:
        rows = mean[(mean["method"] == "CELS") & (mean["guide"] == kind)]
        for _, row in rows.iterrows():
            milliseconds = f"{1e3 * row['fit']:.0f}"
            lines.append(
                table_row(kind, row["data"], row["model"], milliseconds, f"{row['real']:.0%}")
            )
    return lines


# --- figure --------------------------------------------------------------------------------------


def draw_figure(mean: pd.DataFrame, path: Path) -> None:
    """Draw changed share against plausibility, one panel per data set.

    Large markers are plain CELS, small ones refined.
    """
    names = list(mean["data"].unique())
    figure, axes = panels(names, width=4.2, height=4.6)
    for ax, name in zip(axes, names, strict=True):
        draw_panel(ax, mean[mean["data"] == name])
        ax.set_title(name, fontsize=14)
        ax.set_xlabel("share of the series that changed", fontsize=12)
        ax.set_xlim(left=0)
        ax.tick_params(labelsize=11)
    axes[0].set_ylabel("local outlier factor\n(1 = as real series)", fontsize=12)
    handles = legend_handles()
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=len(handles),
        fontsize=12,
        frameon=False,
    )
    figure.savefig(path, dpi=130)


def draw_panel(ax: Axes, part: pd.DataFrame) -> None:
    """Draw all guides and models of one data set."""
    for kind, (color, marker) in STYLES.items():
        for model in ("FCN", "forest"):
            points = part[(part["guide"] == kind) & (part["model"] == model)]
            points = points.set_index("method").loc[["CELS", "CELS, refined"]]
            x = points["sparsity"]
            y = points["lof"]
            ax.plot(x, y, color=color, linewidth=1, alpha=0.5, zorder=1)
            ax.scatter(
                x,
                y,
                s=[130, 45],
                marker=marker,
                color=color if model == "FCN" else "white",
                edgecolor=color,
                linewidth=1.8,
                zorder=2,
            )


def legend_handles() -> list[Line2D]:
    """Return one marker per kind of guide, then those of the models and of refinement."""
    gray = "#404040"

    def handle(label: str, marker: str, edge: str, face: str, size: int = 10) -> Line2D:
        return Line2D(
            [],
            [],
            linestyle="",
            color=edge,
            marker=marker,
            markerfacecolor=face,
            markersize=size,
            label=label,
        )

    kinds = [handle(kind, marker, color, color) for kind, (color, marker) in STYLES.items()]
    return [
        *kinds,
        handle("FCN", "o", gray, gray),
        handle("forest", "o", gray, "white"),
        handle("refined", "o", gray, gray, size=6),
    ]


# --- page ----------------------------------------------------------------------------------------


def page(frame: pd.DataFrame, n: int) -> list[str]:
    """Return the lines of the page."""
    mean = means(frame)
    n_cases = frame.groupby(["data", "model", "seed"]).ngroups
    overall = mean.groupby(["guide", "method"], sort=False).mean(numeric_only=True).reset_index()
    lines = [
        *INTRODUCTION,
        "## Reading",
        "",
        *READING,
        "",
        "## Mean of all data sets and models",
        "",
        *main_table(overall),
        "",
        f"## Against the neighbor: clearly better : clearly worse, of {n_cases} cases",
        "",
        "Clearly: the mean of the paired differences is more than two standard errors from 0.",
        "",
        *paired_comparisons(frame),
        "",
    ]
    for (name, model), part in mean.groupby(["data", "model"], sort=False):
        seeds = frame.loc[frame["data"] == name, "seed"].nunique()
        test_accuracy = part["accuracy"].iloc[0]
        lines += [
            f"## {name}, {model}",
            "",
            f"Test accuracy {test_accuracy:.3f}; {n} random test series; seeds: {seeds}.",
            "",
            *main_table(part),
            "",
        ]
    return [*lines, "## The cost of fitting a guide", "", *fit_costs(mean), ""]


INTRODUCTION = [
    "# What should CELS move toward?",
    "",
    "CELS with its four kinds of guide: the nearest unlike *neighbor*, the mean of the class "
    "(*cluster*), the nearest of 5 GLVQ *prototypes* per class, and the nearest of 5 series chosen "
    "by Median LVQ (*median*); all Euclidean, fitted to the training series and the model's labels "
    "of them. *Guide itself* is the baseline: the guide returned unchanged. *Refined*: after "
    "`refine`. Targets are the runner-up classes of the model, the same for all.",
    "",
    "Means over all series and seeds, failures included. *changed*: share of the values; "
    "*stretches*: runs of changed values. *LOF inliers*, *LOF* (local outlier factor; 1: as dense "
    "as its neighbors) and *kNN distance* (to the 5 nearest, as a multiple of what the class's own "
    "series have) are computed on the **test** series that the model puts in the target class: no "
    "guide has seen them, so a guide that is itself a training series gains nothing from that. "
    "*time*: processor seconds per series as a ratio to CELS with the neighbor, same model and "
    "seed, without fitting the guide, which has a table of its own. Bold: best kind of guide for a "
    "method. "
    f"FCN of widths {', '.join(map(str, WIDTHS))}, 150 epochs, learning rate 0.01; forest of 100 "
    "trees on flattened rows, which has no gradients: there CELS grows its mask segment by "
    "segment.",
    "",
    "![share changed against local outlier factor](guides.png)",
    "",
]
READING = [
    "From the run of 16 November 2026. Every guide makes every series valid, so validity does not "
    "distinguish them.",
    "",
    "- **The neighbor** gives the smallest rmse (with plain CELS no other kind is clearly smaller "
    "in any of the 12 cases), and on ItalyPowerDemand the most plausible series. It is the right "
    "default where the change should be small and realistic.",
    "- **Prototype and median** change clearly fewer values than the neighbor in 8 of the 12 cases "
    "with plain CELS (clearly more in 1; on GunPoint with the FCN the mean is 0.21 against 0.17), "
    "and in 7 and 6 after `refine` (never clearly more). They lie farther away (rmse of the guide "
    "itself 0.405 and 0.382 against 0.325): fewer values, changed by more. On GunPoint they are a "
    "little more plausible (LOF 1.15 against 1.19 with the FCN), on ItalyPowerDemand clearly less "
    "(1.82 and 1.86 against 1.65), on ArrowHead hardly different. Fitting the median costs a tenth "
    "to a third of fitting prototypes, its guides are real series, and its figures are nearly the "
    "same.",
    "- **The cluster mean** is the worst guide for rmse (clearly larger in all 12 cases) and for "
    "plausibility (clearly worse in LOF in 9, in kNN distance in 11, never clearly better). Its "
    "advantage is few changed values on ItalyPowerDemand, and on ArrowHead with the forest. On "
    "GunPoint the FCN does not even put half of the means in their class; the nearest member "
    "replaces those.",
    "- Plausible guides do not make plausible counterfactuals: the median by itself is nearly as "
    "real as test series (LOF 1.07), what CELS copies from it into an instance is not (1.47; "
    "refined 1.57). Few changes and plausibility are opposed: `refine` leaves a third of the "
    "changed values, and the mean LOF rises with every kind of guide.",
    "- CELS adds little to a guide that is merely refined: 0.076 against 0.086 changed for the "
    "neighbor, 0.066 against 0.079 for prototypes, at about the same plausibility. Without "
    "`refine` it changes more than twice as much and stays nearer to real series (LOF 1.42 against "
    "1.53, neighbor).",
    "- In time per series the kinds do not differ beyond the scatter of this run (0.7 to 1.7).",
    "",
    "With two seeds and three small data sets, differences of a few hundredths should not be "
    "trusted. The cases of one data set share their test series, and with 288 comparisons some are "
    "clear by chance.",
]
