"""Score saved results for `contrafact evaluate`, and lay the scores out as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ..data.loaders import read_parts
from ..data.table_columns import ColumnChoice
from ..data.tables import read_frame
from ..data.writing import complete_file
from ..engine import Counterfactuals
from ..metrics import aggregate, evaluate
from ..metrics.evaluation import METRICS
from ..models.labels import match_labels
from .table_inputs import is_table

#: What a metric can need, as options of the command line.
HOW_TO_PROVIDE = {
    "reference": "need --reference",
    "labels": "need --reference with labels",
    "saliency": "need a method that gives saliency, as CELS and NativeGuide do",
}
#: What a metric can need that no file holds.
NEEDS_PYTHON = {"model", "explainer", "other_model", "other_models", "autoencoder"}


@dataclass(frozen=True)
class FileScores:
    """Hold the scores of one saved result.

    Attributes
    ----------
    result : Counterfactuals
        The result that was read.
    table : pandas.DataFrame
        One row per metric: mean, direction, interval, coverage.
    left_out : dict of str to str
        Why a metric was not computed.
    """

    result: Counterfactuals
    table: pd.DataFrame
    left_out: dict[str, str]


def score_files(
    paths: Sequence[Path],
    metrics: Sequence[str] | None = None,
    reference: str | None = None,
    label: str | None = None,
) -> dict[str, FileScores]:
    """Read saved results and score them.

    Parameters
    ----------
    paths : sequence of Path
        Files written by `Counterfactuals.save`.
    metrics : sequence of str, optional
        Names of metrics; default: all that can be computed.
    reference : str, optional
        File or bundled data set to compare with.
    label : str, optional
        Label column, where the reference is a .csv.

    Returns
    -------
    dict of str to FileScores
        By the name of the file without its suffix, or by its path where two share a name.
    """
    stems = [path.stem for path in paths]
    scores = {}
    for path in paths:
        name = path.stem if stems.count(path.stem) == 1 else str(path)
        result = Counterfactuals.load(path)
        known = None if reference is None else _read_reference(reference, label, result)
        rows = evaluate(result, metrics or None, known)
        scores[name] = FileScores(result, aggregate(rows), rows.left_out)
    return scores


def _read_reference(path: str, label: str | None, result: Counterfactuals) -> Any:
    """Read reference data in the columns of the result: X, or (X, y) with labels."""
    columns = None
    if result.names is not None and result.modality == "row":
        columns = [str(name) for name in result.names]
    X: Any
    if result.table is not None and is_table(path, result.modality):
        X, y = read_frame(Path(path), ColumnChoice(label, columns, unlabeled=True))
    else:
        source = read_parts(path, label=label, modality=result.modality, columns=columns)
        X, y = source.parts[0]
    return X if y is None else (X, match_labels(y, result.classes))


def write_csv(scores: Mapping[str, FileScores], path: Path) -> None:
    """Write the tables of all results to one .csv, indexed by result and metric."""
    tables = {name: score.table for name, score in scores.items()}
    table = pd.concat(tables, names=["result", "metric"])
    with complete_file(path) as draft:
        table.to_csv(draft)


def summarize(scores: Mapping[str, FileScores]) -> dict[str, Any]:
    """Return the scores for `print_json`, by result."""
    return {
        name: {
            "method": score.result.provenance.get("method"),
            "instances": len(set(score.result.source.tolist())),
            "metrics": score.table.to_dict(orient="index"),
            "left_out": score.left_out,
        }
        for name, score in scores.items()
    }


def score_table(scores: Mapping[str, FileScores]) -> pd.DataFrame:
    """Return the table to print: with intervals for one result, side by side for several.

    Parameters
    ----------
    scores : mapping of str to FileScores
        What `score_files` returned.

    Returns
    -------
    pandas.DataFrame
        Texts, one row per metric.
    """
    tables = {name: score.table for name, score in scores.items()}
    if len(tables) == 1:
        (table,) = tables.values()
        return _single_table(table)
    return _side_by_side(tables)


def _single_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return means, intervals and coverage of one result."""
    intervals = []
    for low, high in zip(table["low"], table["high"], strict=True):
        text = _number(low) if pd.isna(low) else f"{_number(low)} … {_number(high)}"
        intervals.append(text)
    return pd.DataFrame(
        {
            "metric": table.index,
            "better": table["direction"].map(_arrow),
            "mean": [_number(value) for value in table["mean"]],
            "95 % interval": intervals,
            "coverage": [f"{value:.0%}" for value in table["coverage"]],
        }
    )


def _side_by_side(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the means of several results, one column each, over the union of their metrics."""
    direction = pd.concat([table["direction"] for table in tables.values()])
    direction = direction[~direction.index.duplicated()]
    columns: dict[str, Any] = {
        "metric": direction.index,
        "better": direction.map(_arrow).to_numpy(),
    }
    for name, table in tables.items():
        means = table["mean"].reindex(direction.index)
        columns[name] = [_number(value) for value in means]
    return pd.DataFrame(columns)


def _arrow(direction: str) -> str:
    """Return an arrow for a direction: up where more is better."""
    return "↑" if direction == "max" else "↓"


def _number(value: float) -> str:
    """Return a number with four digits, or a dash for NaN."""
    return "–" if pd.isna(value) else f"{value:.4g}"


def left_out_lines(scores: Mapping[str, FileScores]) -> list[str]:
    """Return which metrics were not computed, one line per reason."""
    names: dict[str, None] = {}  # ordered, each once
    for score in scores.values():
        names.update(dict.fromkeys(score.left_out))
    by_reason: dict[str, list[str]] = {}
    for name in names:
        reasons = [score.left_out.get(name, "") for score in scores.values()]
        by_reason.setdefault(_why_left_out(name, reasons), []).append(name)
    return [f"Left out, as they {why}: {', '.join(group)}." for why, group in by_reason.items()]


def _why_left_out(name: str, reasons: Sequence[str]) -> str:
    """Return why a metric was not computed and what would help."""
    metric = METRICS[name]
    for reason in reasons:
        if reason.startswith("is for"):
            return f"are {reason.removeprefix('is ').partition(';')[0]}"
    if metric.needs & NEEDS_PYTHON:
        return "ask a model or a method again (contrafact.metrics.evaluate in Python)"
    needs = set(metric.needs)
    if "labels" in needs:  # which come with a reference
        needs.discard("reference")
    return " and ".join(HOW_TO_PROVIDE[need] for need in sorted(needs))
