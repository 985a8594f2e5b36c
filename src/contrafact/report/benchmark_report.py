"""A benchmark in words, tables and figures: one Markdown file, its pictures beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..benchmark import correlations, friedman, wilcoxon_holm
from ..metrics import aggregate, list_metrics
from .statistics_plots import plot_correlations, plot_critical_difference, plot_pareto

if TYPE_CHECKING:
    import pandas as pd

SHOWN = (
    "valid",
    "sparsity",
    "rmse",
    "segments",
    "dtw_lof_inlier",
    "knn_distance",
    "calls",
    "seconds",
)
BLOCK = ["dataset", "classifier", "seed"]


def write_benchmark(
    frame: pd.DataFrame, path: str | Path, metrics: Sequence[str] | None = None
) -> Path:
    """Write what a benchmark's table says: aggregates with coverage, failures, tests, figures.

    Parameters
    ----------
    frame : the table of `Benchmark.run` or `Benchmark.results`.
    path : a .md file; figures are written beside it.
    metrics : columns to report; default: those of a short list that are there.
    """
    path = Path(path)
    if frame.empty:
        raise ValueError("The table is empty: no cell is finished yet.")
    shown = [name for name in (SHOWN if metrics is None else metrics) if name in frame]
    lines = ["# Benchmark", "", *_grid(frame), "", *_table(frame, shown), "", *_failures(frame)]
    if frame["explainer"].nunique() > 1 and frame[BLOCK].drop_duplicates().shape[0] > 1:
        lines += _tests(frame, shown, path)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _grid(frame: pd.DataFrame) -> list[str]:
    parts = {
        name: ", ".join(map(str, frame[name].unique()))
        for name in ("dataset", "classifier", "explainer", "seed")
    }
    accuracy = frame.groupby(["dataset", "classifier"], sort=False)["accuracy"].mean().unstack()
    return [
        *(f"- {name}s: {values}" for name, values in parts.items()),
        f"- {len(frame)} counterfactuals in {frame[[*BLOCK, 'explainer']].drop_duplicates().shape[0]} cells",
        "",
        "Test accuracy of the classifiers, mean over seeds:",
        "",
        *_markdown(accuracy.map("{:.3f}".format), "data set"),
    ]


def _table(frame: pd.DataFrame, metrics: list[str]) -> list[str]:
    """Mean with its interval, and the coverage where it is not complete."""
    import pandas as pd

    found = aggregate(frame, "explainer", request=[*BLOCK, "source"])
    directions = list_metrics().set_index("name")["direction"]
    table = pd.DataFrame(index=frame["explainer"].unique())
    for name in metrics:
        arrow = "↑" if directions.get(name) == "max" else "↓"
        cells = []
        for explainer in table.index:
            line = found.loc[(explainer, name)]
            text = f"{line['mean']:.3g} [{line['low']:.3g}, {line['high']:.3g}]"
            cells.append(text if line["coverage"] == 1 else f"{text} ({line['coverage']:.0%})")
        table[f"{name} {arrow}"] = cells
    return [
        "Mean over all requests [95 % bootstrap interval]. A failed request counts with its best attempt; "
        "where some have no value at all, the share that has one is in parentheses.",
        "",
        *_markdown(table, "method"),
    ]


def _failures(frame: pd.DataFrame) -> list[str]:
    failed = frame[frame["cell_status"] != "done"].drop_duplicates([*BLOCK, "explainer"])
    if failed.empty:
        return ["No cell failed."]
    told = [
        f"- {line.dataset}, {line.classifier}, {line.explainer}, seed {line.seed}: {line.cell_status}, "
        f"{str(line.message).strip().splitlines()[-1][:200]}"
        for line in failed.itertuples()
    ]
    return [f"{len(failed)} cells failed:", "", *told]


def _tests(frame: pd.DataFrame, metrics: list[str], path: Path) -> list[str]:
    lines = ["", "## Do they differ?", ""]
    for name in metrics:
        test = friedman(frame, name)
        lines.append(f"- {name}: Friedman p = {test.p:.2g} over {test.n_blocks} blocks")
    for name in metrics:
        figure = path.with_name(f"{path.stem}_{name}.png")
        plot_critical_difference(wilcoxon_holm(frame, name), figure)
        lines += ["", f"![Mean ranks by {name}; joined methods are not told apart]({figure.name})"]
    places = [name for name in ("sparsity", "rmse") if name in metrics][:1]
    believable = [name for name in ("dtw_lof_inlier", "knn_distance") if name in metrics][:1]
    if places and believable:
        figure = path.with_name(f"{path.stem}_pareto.png")
        plot_pareto(frame, places[0], believable[0], figure)
        lines += ["", f"![{places[0]} against {believable[0]}]({figure.name})"]
    if len(metrics) > 2:
        figure = path.with_name(f"{path.stem}_correlations.png")
        plot_correlations(correlations(frame, metrics), figure)
        lines += ["", f"![Which metrics agree on what is better]({figure.name})"]
    return lines


def _markdown(table: pd.DataFrame, corner: str) -> list[str]:
    head = [corner, *map(str, table.columns)]
    rows = [
        [str(name), *map(str, values)]
        for name, values in zip(table.index, table.to_numpy(), strict=True)
    ]
    escaped = [
        [cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in [head, *rows]
    ]
    return [
        f"| {' | '.join(escaped[0])} |",
        f"|{'---|' * len(head)}",
        *(f"| {' | '.join(row)} |" for row in escaped[1:]),
    ]
