"""A benchmark as one Markdown file with tables, tests and figures beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..benchmark import correlations, friedman, wilcoxon_holm
from ..metrics import aggregate, list_metrics
from .correlation_plots import plot_correlations
from .pareto_plots import over_requests, plot_pareto
from .rank_plots import plot_critical_difference
from .words import number_text, percent_text

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
BLOCK = ["dataset", "classifier", "seed"]
#: significant digits of means and the ends of their intervals
DIGITS = 3


def write_benchmark(
    frame: pd.DataFrame, path: str | Path, metrics: Sequence[str] | None = None
) -> Path:
    """Write a benchmark's table as a page: means with coverage, failures, tests, figures.

    Parameters
    ----------
    frame : DataFrame
        The table of `Benchmark.run` or `Benchmark.results`.
    path : str or Path
        A .md file; figures are written beside it.
    metrics : sequence of str, optional
        Columns to report; by default those of a short list that are there.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ValueError
        If the table is empty.
    """
    path = Path(path)
    if frame.empty:
        raise ValueError("The table is empty: no cell is finished yet.")
    shown = [name for name in (SHOWN if metrics is None else metrics) if name in frame]
    lines = ["# Benchmark", "", *_scope(frame), "", *_means(frame, shown), "", *_failures(frame)]
    several_methods = frame["explainer"].nunique() > 1
    several_blocks = len(frame[BLOCK].drop_duplicates()) > 1
    if several_methods and several_blocks:
        lines += _tests(frame, shown)
        lines += _figures(frame, shown, path)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _scope(frame: pd.DataFrame) -> list[str]:
    """Say what was compared, and the accuracy of the classifiers."""
    lines = []
    for name in ("dataset", "classifier", "explainer", "seed"):
        values = ", ".join(map(str, frame[name].unique()))
        lines.append(f"- {name}s: {values}")
    cells = len(frame[[*BLOCK, "explainer"]].drop_duplicates())
    lines.append(f"- {len(frame)} counterfactuals in {cells} cells")
    accuracy = frame.groupby(["dataset", "classifier"], sort=False)["accuracy"].mean().unstack()
    table = accuracy.map("{:.3f}".format)
    return [
        *lines,
        "",
        "Test accuracy of the classifiers, mean over seeds:",
        "",
        *_markdown_table(table, "data set"),
    ]


def _means(frame: pd.DataFrame, metrics: list[str]) -> list[str]:
    """Make a table of means with their intervals, and the coverage where it is not complete."""
    import pandas as pd

    request = [*BLOCK, "source"]
    found = aggregate(frame, "explainer", request=request)
    directions = list_metrics().set_index("name")["direction"]
    table = pd.DataFrame(index=frame["explainer"].unique())
    for name in metrics:
        arrow = "↑" if directions.get(name) == "max" else "↓"
        table[f"{name} {arrow}"] = [
            _interval_text(found.loc[(explainer, name)]) for explainer in table.index
        ]
    return [
        f"Mean {over_requests(frame, request)} [95 % bootstrap interval]. "
        "A failed request counts with its best attempt; where some have no value at all, "
        "the share that has one is in parentheses.",
        "",
        *_markdown_table(table, "method"),
    ]


def _interval_text(line: pd.Series[float]) -> str:
    """Write a mean, its interval, and the coverage where it is not complete."""
    mean = number_text(line["mean"], DIGITS)
    low = number_text(line["low"], DIGITS)
    high = number_text(line["high"], DIGITS)
    text = f"{mean} [{low}, {high}]"
    if line["coverage"] < 1:
        text += f" ({percent_text(line['coverage'])})"
    return text


def _failures(frame: pd.DataFrame) -> list[str]:
    """List the cells that failed, with the last line of the reason."""
    failed = frame.query("cell_status != 'done'").drop_duplicates([*BLOCK, "explainer"])
    if failed.empty:
        return ["No cell failed."]
    lines = [f"{len(failed)} cells failed:", ""]
    for cell in failed.itertuples():
        name = f"{cell.dataset}, {cell.classifier}, {cell.explainer}, seed {cell.seed}"
        reason = str(cell.message).strip().splitlines()[-1]
        lines.append(f"- {name}: {cell.cell_status}, {reason[:200]}")
    return lines


def _tests(frame: pd.DataFrame, metrics: list[str]) -> list[str]:
    """Say for each metric whether the methods differ."""
    lines = ["", "## Do the methods differ?", ""]
    for name in metrics:
        test = friedman(frame, name)
        p = number_text(test.p, 2)
        lines.append(f"- {name}: Friedman p = {p} over {test.n_blocks} blocks")
    return lines


def _figures(frame: pd.DataFrame, metrics: list[str], path: Path) -> list[str]:
    """Draw the figures beside the page, and link them."""
    lines = []
    for name in metrics:
        figure = path.with_name(f"{path.stem}_{name}.png")
        plot_critical_difference(wilcoxon_holm(frame, name), figure)
        lines += ["", f"![Mean ranks by {name}; joined methods are not told apart]({figure.name})"]
    changed = _first_of(("sparsity", "rmse"), metrics)
    plausible = _first_of(("dtw_lof_inlier", "knn_distance"), metrics)
    if changed and plausible:
        figure = path.with_name(f"{path.stem}_pareto.png")
        plot_pareto(frame, changed, plausible, figure)
        lines += ["", f"![{changed} against {plausible}]({figure.name})"]
    if len(metrics) > 2:
        figure = path.with_name(f"{path.stem}_correlations.png")
        plot_correlations(correlations(frame, metrics), figure)
        lines += ["", f"![Which metrics agree on what is better]({figure.name})"]
    return lines


def _first_of(wanted: Sequence[str], metrics: list[str]) -> str:
    """Return the first of the wanted metrics that is there; empty where none is."""
    return next((name for name in wanted if name in metrics), "")


def _markdown_table(table: pd.DataFrame, corner: str) -> list[str]:
    """Write a table in Markdown."""
    lines = [_markdown_line([corner, *table.columns]), f"|{'---|' * (table.shape[1] + 1)}"]
    for name, values in zip(
        table.index,
        table.to_numpy(),
        strict=True,
    ):
        lines.append(_markdown_line([name, *values]))
    return lines


def _markdown_line(cells: Sequence[object]) -> str:
    """Write a line of a Markdown table."""
    escaped = [str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells]
    return f"| {' | '.join(escaped)} |"
