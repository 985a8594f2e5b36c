"""Tables of a benchmark: means by method, over all data sets and for each, in three formats."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from ..benchmark.blocks import RUN, direction_of, name_of
from ..data.writing import complete_file
from ..metrics import Metric, aggregate
from .words import number_text, percent_text

#: what one request of a method is
REQUEST = [*RUN, "source"]
#: significant digits of means and the ends of their intervals
DIGITS = 3
#: of the rows over all data sets
ALL = "all data sets"
LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def compute_means(frame: pd.DataFrame, metrics: Sequence[str | Metric]) -> pd.DataFrame:
    """Compute the mean of every metric by method, over all data sets and for each.

    Parameters
    ----------
    frame : DataFrame
        A benchmark's table, one row per counterfactual.
    metrics : sequence of str or Metric
        Columns of it.

    Returns
    -------
    DataFrame
        `dataset` ("all data sets" first), `explainer`, `metric` and the columns of `aggregate`.
    """
    names = [name_of(metric) for metric in metrics]
    status = [name for name in ("status",) if name in frame]
    used = frame[[*RUN, "source", "explainer", *status, *names]]
    own = [metric for metric in metrics if isinstance(metric, Metric)]
    whole = aggregate(used, "explainer", request=REQUEST, metrics=own).reset_index()
    whole.insert(0, "dataset", ALL)
    by_dataset = aggregate(used, ["dataset", "explainer"], request=REQUEST, metrics=own)
    return pd.concat([whole, by_dataset.reset_index()], ignore_index=True)


def method_table(
    means: pd.DataFrame,
    dataset: str,
    metrics: Sequence[str | Metric],
    *,
    intervals: bool = True,
) -> pd.DataFrame:
    """Write the means of one data set as text, methods by metrics.

    Parameters
    ----------
    means : DataFrame
        From `compute_means`.
    dataset : str
        One of its data sets, or "all data sets".
    metrics : sequence of str or Metric
        The columns, in order.
    intervals : bool, default=True
        Write the 95 % interval after each mean.

    Returns
    -------
    DataFrame of str
        An arrow after the name of a metric says which way is better.
    """
    own = means[means["dataset"] == dataset].set_index(["explainer", "metric"])
    methods = own.index.get_level_values("explainer").drop_duplicates()
    table = pd.DataFrame(index=methods.rename(None))
    for metric in metrics:
        arrow = "↑" if direction_of(metric) == "max" else "↓"
        name = name_of(metric)
        table[f"{name} {arrow}"] = [
            _mean_text(own.loc[(method, name)], intervals) for method in methods
        ]
    return table


def _mean_text(line: pd.Series[float], interval: bool) -> str:
    """Write a mean, its interval, and the coverage where it is not complete."""
    if line["coverage"] == 0:
        return "–"
    text = number_text(line["mean"], DIGITS)
    if interval:
        low = number_text(line["low"], DIGITS)
        high = number_text(line["high"], DIGITS)
        text += f" [{low}, {high}]"
    if line["coverage"] < 1:
        text += f" ({percent_text(line['coverage'])})"
    return text


def write_csv(means: pd.DataFrame, path: Path) -> None:
    """Write all means as one table, a row for each data set, method and metric.

    Parameters
    ----------
    means : DataFrame
        From `compute_means`.
    path : Path
        The .csv file.
    """
    with complete_file(path) as draft:
        means.to_csv(draft, index=False)


def write_latex(means: pd.DataFrame, metrics: Sequence[str | Metric], path: Path) -> None:
    """Write a LaTeX table over all data sets, then one for each.

    Parameters
    ----------
    means : DataFrame
        From `compute_means`.
    metrics : sequence of str or Metric
        The columns, in order.
    path : Path
        The .tex file.
    """
    parts = []
    for dataset in means["dataset"].drop_duplicates():
        table = method_table(means, dataset, metrics, intervals=False)
        parts += _latex_table(table, str(dataset))
    with complete_file(path) as draft:
        draft.write_text("\n".join(parts), encoding="utf-8")


def _latex_table(table: pd.DataFrame, caption: str) -> list[str]:
    """Write one table in LaTeX."""
    lines = [
        r"\begin{table}",
        rf"\caption{{Means, {_latex_text(caption)}}}",
        rf"\begin{{tabular}}{{l{'r' * table.shape[1]}}}",
        r"\hline",
        _latex_line(["method", *table.columns]),
        r"\hline",
    ]
    for method, values in table.iterrows():
        lines.append(_latex_line([method, *values]))
    return [*lines, r"\hline", r"\end{tabular}", r"\end{table}", ""]


def _latex_line(cells: Sequence[object]) -> str:
    """Write a line of a LaTeX table."""
    return " & ".join(_latex_text(str(cell)) for cell in cells) + r" \\"


def _latex_text(text: str) -> str:
    """Escape what has a meaning in LaTeX."""
    text = re.sub(r"[\\~^&%$#_{}]", lambda found: LATEX[found[0]], text)
    return text.replace("↑", r"$\uparrow$").replace("↓", r"$\downarrow$").replace("–", "--")


def markdown_table(table: pd.DataFrame, corner: str) -> list[str]:
    """Write a table in Markdown.

    Parameters
    ----------
    table : DataFrame
        The cells; its index is the first column.
    corner : str
        Heading of the first column.

    Returns
    -------
    list of str
        The lines.
    """
    lines = [_markdown_line([corner, *table.columns]), f"|{'---|' * (table.shape[1] + 1)}"]
    for name, values in table.iterrows():
        lines.append(_markdown_line([name, *values]))
    return lines


def _markdown_line(cells: Sequence[object]) -> str:
    """Write a line of a Markdown table."""
    escaped = [str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells]
    return f"| {' | '.join(escaped)} |"
