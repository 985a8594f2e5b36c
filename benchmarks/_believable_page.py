"""The page and the figure of the study of believable counterfactuals."""

from __future__ import annotations

import numpy as np
import pandas as pd

from _common import RESULTS, conditions, panels, table_head, table_row, write_page
from contrafact.engine.survival import survival_probability

#: columns of the tables: name in the frame, heading
COLUMNS = {
    "valid": "valid",
    "changed": "changed",
    "stretches": "stretches",
    "unreal": "jump or kink",
    "noise_1": "noise 1 %",
    "noise_5": "noise 5 %",
    "retrained": "retrained",
    "bootstrap": "bootstrap",
    "other_kinds": "other kinds",
    "p_target": "P",
    "calls": "model rows",
    "cpu": "CPU s",
}
#: what was published on the same sets: InceptionTime, 100 test rows, changed / stretches
PUBLISHED = {
    "CBF": ("0.30 / 1.6", "0.22 / 2.1"),
    "Coffee": ("0.21 / 1.7", "0.09 / 2.7"),
    "ECG200": ("0.16 / 1.5", "0.09 / 1.5"),
    "GunPoint": ("0.29 / 1.2", "0.17 / 1.4"),
    "ItalyPowerDemand": ("0.23 / 1.1", "0.18 / 1.1"),
}
ORACLE = "Graft, judges known"
RIVALS = ("CELS, minimal", "NativeGuide, minimal")

SETTING = """
A cell is a set, a kind of model and a seed of the model, with 20 test series, the classes in turn,
toward the runner-up class. FordA is a subset of its training set; every set has at most 150
training series. Judges, which no method saw: the two other seeds of the same kind (retrained), two
models trained on bootstraps, one model of each other kind. *Jump or kink*: a first or second
difference at an edge of the change above the 99 % quantile of the training series within two steps
of that place. *Noise*: share of 10 noisy copies that stay in the class; sigma is a share of the
standard deviation of the training series. Means over all requests, failed ones included. Other jobs
shared the machine, so the CPU seconds are somewhat too large. The kinds are FCN and InceptionTime
(one network, 60 epochs), 1,000 MiniRocket features with a ridge classifier, and a forest of 100
trees; InceptionTime was trained on the short sets only.
"""
ABOUT_ORACLE = """
*Graft, judges known*: the smallest smooth change that all judges accept, as far as this search can
tell. It looks at them and is no method, but what lasting costs at least.
"""
ABOUT_VOTES = """
Votes of the committee (two models on bootstraps, one of another kind), and the share of retrained
models that put the same answers in the target class. The prior of the stated probability was fitted
to an earlier run on the first seed, with other answers to the same questions; seeds 1 and 2 were
not used.
"""
ABOUT_PUBLISHED = """
FastPACE and Multi-SpaCE: published means of changed / stretches on InceptionTime, 100 test rows,
over the answers that were returned; other networks and another machine. No published figure on
survival was found.
"""


def write_results(answers: pd.DataFrame) -> None:
    """Write the raw answers, the page and the figure."""
    answers["unreal"] = answers["seam"] | answers["kink"]
    answers["stated"] = survival_probability(answers["votes"], 3)
    RESULTS.mkdir(exist_ok=True)
    answers.to_parquet(RESULTS / "believable.parquet", compression="zstd", index=False)
    asked = answers[~answers["already"]]
    write_page("believable.md", *page(asked))
    draw_front(asked)


def page(answers: pd.DataFrame) -> list[str]:
    """Return the lines of the page."""
    cells = answers.groupby(["set", "kind", "seed"]).ngroups
    lines = [
        "# Believable and lasting counterfactuals",
        "",
        conditions("make bench-believable DATA=...", ["aeon", "scikit-learn"]),
        "",
        f"{cells} cells. {one_line(SETTING)}",
        "",
        "## All cells in which every method was run",
        "",
        *method_table(common_cells(answers)),
        "",
        one_line(ABOUT_ORACLE),
        "",
        "## All cells, methods that were run in all of them",
        "",
        *method_table(answers[answers["method"].isin(methods_of_all_cells(answers))]),
        "",
        "## By kind of model",
        "",
    ]
    for kind, part in answers.groupby("kind"):
        everywhere = part[part["method"].isin(methods_of_all_cells(part))]
        lines += [f"### {kind}", "", *method_table(everywhere), ""]
    lines += ["## Graft by set", "", *set_table(answers), ""]
    lines += ["## Cells in which Graft is behind", "", *behind(answers), ""]
    lines += ["## The stated probability of survival", "", *calibration(answers), ""]
    lines += ["## Beside published figures", "", *published(answers), ""]
    lines += ["![Front](believable.png)"]
    return lines


def methods_of_all_cells(answers: pd.DataFrame) -> list[str]:
    """Return the methods that were run in every cell, in the order of the study."""
    n_cells = answers.groupby(["set", "kind", "seed"]).ngroups
    counts = answers.groupby("method", sort=False).apply(
        lambda part: part.groupby(["set", "kind", "seed"]).ngroups, include_groups=False
    )
    return counts.index[counts == n_cells].tolist()


def common_cells(answers: pd.DataFrame) -> pd.DataFrame:
    """Return the cells in which all methods were run."""
    n_methods = answers["method"].nunique()
    key = ["set", "kind", "seed"]
    complete = answers.groupby(key)["method"].transform("nunique") == n_methods
    return answers[complete]


def method_table(answers: pd.DataFrame) -> list[str]:
    """Return one line per method."""
    n_cells = answers.groupby(["set", "kind", "seed"]).ngroups
    lines = [f"{n_cells} cells.", "", *table_head("method", *COLUMNS.values())]
    for method, part in answers.groupby("method", sort=False):
        values = [part[column].mean() for column in COLUMNS]
        lines.append(table_row(method, *(number(value) for value in values)))
    return lines


def set_table(answers: pd.DataFrame) -> list[str]:
    """Return what the levels of Graft change on every set, and how long it lasts."""
    methods = ["Graft, smallest", "Graft", "Graft, lasting", ORACLE]
    lines = table_head("set", *(f"{method}: changed / retrained" for method in methods))
    for name, part in answers.groupby("set"):
        cells = []
        for method in methods:
            own = part[part["method"] == method]
            cells.append(f"{number(own['changed'].mean())} / {number(own['retrained'].mean())}")
        lines.append(table_row(name, *cells))
    return lines


def behind(answers: pd.DataFrame) -> list[str]:
    """Count cells in which a rival lasts longer at a smaller or equal change."""
    means = answers.groupby(["set", "kind", "seed", "method"])[["changed", "retrained"]].mean()
    lines = table_head("Graft", "cells", "behind the better of CELS and NativeGuide, minimal")
    for method in ("Graft, smallest", "Graft", "Graft, lasting"):
        own = means.xs(method, level="method")
        is_behind = pd.Series(False, index=own.index)
        for rival in RIVALS:
            other = means.xs(rival, level="method").reindex(own.index)
            is_behind |= (other["changed"] <= own["changed"]) & (
                other["retrained"] > own["retrained"]
            )
        names = ", ".join("-".join(map(str, cell)) for cell in own.index[is_behind]) or "none"
        lines.append(table_row(method, len(own), f"{is_behind.mean():.0%} ({names})"))
    return lines


def calibration(answers: pd.DataFrame) -> list[str]:
    """Compare the stated probability with the share of retrained models that agree."""
    seen = answers[answers["method"] != ORACLE]
    seen = seen[seen["valid"]]
    lines = [
        one_line(ABOUT_VOTES),
        "",
        *table_head("answers of", "votes", "answers", "stated", "retrained", "bootstrap"),
    ]
    groups = {
        "Graft, lasting": seen["method"] == "Graft, lasting",
        "Graft": seen["method"] == "Graft",
        "all methods": seen["method"].notna(),
    }
    groups["all methods, seeds 1 and 2"] = seen["seed"] > 0
    for name, chosen in groups.items():
        for votes, part in seen[chosen].groupby("votes"):
            figures = [part[column].mean() for column in ("stated", "retrained", "bootstrap")]
            lines.append(table_row(name, f"{votes} of 3", len(part), *map(number, figures)))
    return lines


def published(answers: pd.DataFrame) -> list[str]:
    """Put the levels of Graft beside figures that others published on the same sets."""
    lines = [
        one_line(ABOUT_PUBLISHED),
        "",
        *table_head("set", "FastPACE", "Multi-SpaCE", "Graft", "Graft, lasting"),
    ]
    networks = answers[answers["kind"] == "inceptiontime"]
    if networks.empty:
        networks = answers[answers["kind"] == "fcn"]
    for name, (fastpace, multispace) in PUBLISHED.items():
        cells = []
        for method in ("Graft", "Graft, lasting"):
            own = networks[(networks["set"] == name) & (networks["method"] == method)]
            if own.empty:
                cells.append("")
                continue
            cells.append(f"{own['changed'].mean():.2f} / {own['stretches'].mean():.1f}")
        lines.append(table_row(name, fastpace, multispace, *cells))
    kinds = ", ".join(sorted(networks["kind"].unique()))
    lines += ["", f"Graft's columns: {kinds}."]
    return lines


def one_line(text: str) -> str:
    """Join the lines of a paragraph."""
    return " ".join(text.split())


def number(value: float) -> str:
    """Format a figure with as many digits as it deserves."""
    if np.isnan(value):
        return ""
    return f"{value:.0f}" if value >= 20 else f"{value:.2f}"


def draw_front(answers: pd.DataFrame) -> None:
    """Draw what lasts against what is changed, one panel per kind of model."""
    kinds = sorted(answers["kind"].unique())
    figure, axes = panels(kinds, 3.6, 3.4)
    for ax, kind in zip(axes, kinds, strict=True):
        part = answers[answers["kind"] == kind]
        means = part.groupby("method", sort=False)[["changed", "retrained"]].mean()
        for method, (changed, retrained) in means.iterrows():
            is_graft = method.startswith("Graft") and method != ORACLE
            color = "#0b6e4f" if is_graft else "#8a8a8a"
            ax.scatter(changed, retrained, color=color, s=26 if is_graft else 14, zorder=3)
            ax.annotate(
                method,
                (changed, retrained),
                textcoords="offset points",
                xytext=(4, 3),
                fontsize=6,
                color=color,
            )
        levels = [name for name in means.index if name.startswith("Graft") and name != ORACLE]
        front = means.loc[levels].sort_values("changed")
        ax.plot(front["changed"], front["retrained"], color="#0b6e4f", linewidth=1)
        ax.set_title(kind, fontsize=9)
        ax.set_xlabel("share of values changed", fontsize=8)
        ax.set_xlim(0, 1.05)
        ax.set_ylim(0, 1.05)
        ax.tick_params(labelsize=7)
    axes[0].set_ylabel("retrained models that agree", fontsize=8)
    figure.savefig(RESULTS / "believable.png", dpi=150)
