"""A benchmark as one Markdown file with tables, tests and figures beside it."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..benchmark import Cell, correlations, friedman, wilcoxon_holm
from ..benchmark.blocks import RUN, TABLE_RULES, Blocks, finished_runs, name_of
from ..benchmark.significance import Friedman
from ..data.writing import complete_file
from ..metrics import Metric
from ..metrics.evaluation import METRICS
from ..validation import FilePath, Nothing, Rule, Satisfies, check_parameters
from .benchmark_tables import (
    ALL,
    REQUEST,
    compute_means,
    markdown_table,
    method_table,
    write_csv,
    write_latex,
)
from .correlation_plots import plot_correlations
from .grammar import counted
from .pareto_plots import over_requests, plot_pareto
from .rank_plots import plot_critical_difference
from .words import number_text

if TYPE_CHECKING:
    import pandas as pd

#: reported by default, where they are there
SHOWN = (
    "valid",
    "sparsity",
    "rmse",
    "segments",
    "shortest_edit",
    "unreal_join",
    "window_distance",
    "noise_survival",
    "survival",
    "dtw_lof_inlier",
    "knn_distance",
    "calls",
    "seconds",
)
#: measured in every cell, and reported besides the metrics asked for
COST = ("calls", "seconds")
CELL = ["dataset", "classifier", "explainer", "seed"]


def _is_listed(value: Any, kinds: tuple[type, ...]) -> bool:
    """Return whether a value is a list or tuple of objects of some classes."""
    return isinstance(value, list | tuple) and all(isinstance(entry, kinds) for entry in value)


_RULES: dict[str, Rule] = {
    "frame": TABLE_RULES["frame"],
    "path": FilePath(),
    "metrics": Satisfies(
        lambda value: _is_listed(value, (str, Metric)),
        "a list of metrics",
    )
    | Nothing(),
    "cells": Satisfies(lambda value: _is_listed(value, (Cell,)), "a list of Cell objects")
    | Nothing(),
}


def write_benchmark(
    frame: pd.DataFrame,
    path: str | Path,
    metrics: Sequence[str | Metric] | None = None,
    *,
    cells: Sequence[Cell] | None = None,
) -> Path:
    """Write a benchmark's table as a page: means with coverage, failures, tests, figures.

    Beside the page go its figures, and the means over all data sets and for each as .csv and .tex.

    Parameters
    ----------
    frame : DataFrame
        The table of `Benchmark.run` or `Benchmark.results`.
    path : str or Path
        A .md file.
    metrics : sequence of str or Metric, optional
        Metrics to report, for instance those of the grid; calls and seconds are added. By default
        those of a short list that are there, and the page names the others.
    cells : sequence of Cell, optional
        All cells of the grid, to tell how many are missing. By default every combination of what is
        in the table.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ValueError
        If the table is empty.
    """
    check_parameters("write_benchmark", _RULES, locals())
    path = Path(path)
    if path.suffix in (".csv", ".tex"):
        raise ValueError(
            f"{path} must be a Markdown file (.md); .csv and .tex are written beside it."
        )
    if frame.empty:
        raise ValueError("frame is empty: no cell is finished yet.")
    missing = [name for name in (*CELL, "source", "cell_status") if name not in frame]
    if missing:
        raise ValueError(
            f"frame has no column {', '.join(missing)}. Accepted: the table of a benchmark."
        )
    shown, notes = _choose_metrics(frame, metrics)
    lines = ["# Benchmark", "", *_scope(frame), "", *_missing(frame, cells), *notes]
    if shown:
        lines += _means(frame, shown, path)
    lines += ["", *_failures(frame)]
    if shown and frame["explainer"].nunique() > 1:
        lines += _comparison(frame, shown, path)
    with complete_file(path) as draft:
        draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _choose_metrics(
    frame: pd.DataFrame, metrics: Sequence[str | Metric] | None
) -> tuple[list[str | Metric], list[str]]:
    """Return the metrics to report, and lines about those that are not."""
    if metrics is None:
        shown: list[str | Metric] = [name for name in SHOWN if name in frame]
        others = [name for name in METRICS if name in frame and name not in shown]
        if not others:
            return shown, []
        return shown, [f"In the table, not on this page: {', '.join(others)}.", ""]
    taken = {name_of(metric) for metric in metrics}
    asked = [*metrics, *[name for name in COST if name not in taken]]
    shown = [metric for metric in asked if _is_reportable(frame, metric)]
    left_out = [name_of(metric) for metric in asked if metric not in shown]
    if not left_out:
        return shown, []
    return shown, [
        f"Asked for, but no finished cell has a value or the direction is unknown: "
        f"{', '.join(left_out)}.",
        "",
    ]


def _is_reportable(frame: pd.DataFrame, metric: str | Metric) -> bool:
    """Return whether a metric has values, and its direction is known."""
    is_known = isinstance(metric, Metric) or metric in METRICS
    name = name_of(metric)
    return is_known and name in frame and bool(frame[name].notna().any())


def _scope(frame: pd.DataFrame) -> list[str]:
    """Say what was compared, and the accuracy of the classifiers."""
    lines = []
    for name in CELL:
        values = ", ".join(map(str, frame[name].unique()))
        lines.append(f"- {name}s: {values}")
    n_cells = len(frame[CELL].drop_duplicates())
    lines.append(f"- {len(frame)} counterfactuals in {n_cells} cells")
    if "accuracy" not in frame:
        return lines  # every cell failed
    accuracy = frame.groupby(["dataset", "classifier"], sort=False)["accuracy"].mean().unstack()
    table = accuracy.map("{:.3f}".format)
    return [
        *lines,
        "",
        "Test accuracy of the classifiers, mean over seeds:",
        "",
        *markdown_table(table, "data set"),
    ]


def _missing(frame: pd.DataFrame, cells: Sequence[Cell] | None) -> list[str]:
    """Say how many cells are missing; no line where none is."""
    if cells is None:
        expected = set(itertools.product(*[frame[name].unique() for name in CELL]))
    else:
        expected = {(c.dataset, c.classifier, c.explainer, c.seed) for c in cells}
    finished = set(frame[CELL].drop_duplicates().itertuples(index=False, name=None))
    missing = expected - finished
    if not missing:
        return []
    by_method = Counter(explainer for _, _, explainer, _ in missing)
    listed = ", ".join(f"{explainer} {count}" for explainer, count in sorted(by_method.items()))
    return [
        f"**Not finished: {len(missing)} of {len(expected)} cells are missing** ({listed}). Means "
        "are over the cells that are there; ranks and tests leave out each data set × classifier "
        "× seed that a method has not finished.",
        "",
    ]


def _means(frame: pd.DataFrame, metrics: Sequence[str | Metric], path: Path) -> list[str]:
    """Make the tables of means, over all data sets and for each; write them beside the page."""
    means = compute_means(frame, metrics)
    write_csv(means, path.with_suffix(".csv"))
    write_latex(means, metrics, path.with_suffix(".tex"))
    lines = [
        f"Mean {over_requests(frame, REQUEST)} [95 % bootstrap interval]. "
        "A failed request counts with its best attempt; where some have no value at all, "
        f"the share that has one is in parentheses. As tables: [{path.stem}.csv]({path.stem}.csv), "
        f"[{path.stem}.tex]({path.stem}.tex).",
        "",
        *markdown_table(method_table(means, ALL, metrics), "method"),
    ]
    datasets = list(frame["dataset"].unique())
    if len(datasets) == 1:
        return lines
    lines += ["", "## By data set"]
    for dataset in datasets:
        table = method_table(means, dataset, metrics, intervals=False)
        lines += ["", f"{dataset}:", "", *markdown_table(table, "method")]
    return lines


def _failures(frame: pd.DataFrame) -> list[str]:
    """List the cells that failed, with the last line of the reason."""
    failed = frame.query("cell_status != 'done'").drop_duplicates(CELL)
    if failed.empty:
        return ["No cell failed."]
    lines = [f"{counted(len(failed), 'cell')} failed:", ""]
    for cell in failed.itertuples():
        name = f"{cell.dataset}, {cell.classifier}, {cell.explainer}, seed {cell.seed}"
        reason = (str(cell.message).strip() or "no reason").splitlines()[-1]
        lines.append(f"- {name}: {cell.cell_status}, {reason[:200]}")
    return lines


def _comparison(frame: pd.DataFrame, metrics: Sequence[str | Metric], path: Path) -> list[str]:
    """Say for each metric whether the methods differ, and draw their ranks."""
    finished = finished_runs(frame)
    n_runs = len(finished[RUN].drop_duplicates())
    if n_runs < 2:
        return ["", "No test: fewer than two runs (data set × classifier × seed) are finished."]
    n_datasets = finished["dataset"].nunique()
    blocks: Blocks = "datasets" if n_datasets > 1 else "runs"
    lines = ["", "## Do the methods differ?", "", *_blocks_text(n_datasets), ""]
    for metric in metrics:
        runs = _p_text(friedman(frame, metric, blocks="runs"))
        text = f"{runs} runs"
        if n_datasets > 1:
            over_datasets = _p_text(friedman(frame, metric, blocks="datasets"))
            text = f"{over_datasets} data sets; {runs} runs"
        lines.append(f"- {name_of(metric)}: Friedman {text}")
    return lines + _figures(frame, metrics, path, blocks)


def _blocks_text(n_datasets: int) -> list[str]:
    """Say what the blocks of the tests are."""
    if n_datasets == 1:
        return [
            "There is one data set, so the blocks are its runs (classifier × seed). They are not "
            "independent: p is too small, and says nothing about other data sets."
        ]
    return [
        "Blocks are data sets, each with the mean over its classifiers and seeds. Runs (data set × "
        "classifier × seed) on one data set are not independent, so p over runs is too small; it "
        "is given for comparison. Ranks in the figures are over data sets."
    ]


def _p_text(test: Friedman) -> str:
    """Write the p-value of a test, and over how many blocks it is."""
    return f"p = {number_text(test.p, 2)} over {test.n_blocks}"


def _figures(
    frame: pd.DataFrame,
    metrics: Sequence[str | Metric],
    path: Path,
    blocks: Blocks,
) -> list[str]:
    """Draw the figures beside the page, and link them."""
    lines = []
    names = [name_of(metric) for metric in metrics]
    for metric, name in zip(metrics, names, strict=True):
        figure = path.with_name(f"{path.stem}_{name}.png")
        plot_critical_difference(wilcoxon_holm(frame, metric, blocks=blocks), figure)
        lines += ["", f"![Mean ranks by {name}; joined methods are not told apart]({figure.name})"]
    changed = _first_of(("sparsity", "rmse"), names)
    plausible = _first_of(("dtw_lof_inlier", "knn_distance"), names)
    if changed and plausible:
        figure = path.with_name(f"{path.stem}_pareto.png")
        plot_pareto(frame, changed, plausible, figure)
        lines += ["", f"![{changed} against {plausible}]({figure.name})"]
    if len(metrics) > 2:
        figure = path.with_name(f"{path.stem}_correlations.png")
        plot_correlations(correlations(frame, metrics), figure)
        lines += ["", f"![Which metrics agree on what is better]({figure.name})"]
    return lines


def _first_of(wanted: Sequence[str], names: Sequence[str]) -> str:
    """Return the first of the wanted metrics that is there; empty where none is."""
    return next((name for name in wanted if name in names), "")
