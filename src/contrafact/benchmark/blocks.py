"""Scores by block: means and ranks of the methods where they had the same task.

A benchmark's table has one row per counterfactual: `dataset`, `classifier`, `explainer`, `seed`,
`instance`, and a column for each metric. A block is one data set × classifier × seed: what all
methods have in common. Which way is better comes from the metric's class. Nothing is averaged over
successes only: a score that is missing, infinite or of a counterfactual that is not valid counts as
the worst score of its block. Instances that were in their target class from the start count like
all others, with their change of zero.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..metrics import Metric, list_metrics

BLOCK = ["dataset", "classifier", "seed"]
INSTANCE = [*BLOCK, "instance"]
KEYS = [*INSTANCE, "explainer"]


def block_means(
    frame: pd.DataFrame,
    metric: str | Metric,
    *,
    failed_worst: bool = True,
) -> pd.DataFrame:
    """Compute the mean score of every method in every block.

    Where a method has no usable score for an instance, the worst score that any row has in that
    block stands in; so too where it has none in the whole block. Instances and blocks without any
    score at all are left out.

    Parameters
    ----------
    frame : DataFrame
        A benchmark's table, one row per counterfactual.
    metric : str or Metric
        A metric's name, or a `Metric` that filled the column of its name.
    failed_worst : bool, default=True
        Scores of counterfactuals that are not valid are not usable. Otherwise their best attempt is
        measured, and a method that returns the instance has the smallest distance of all.

    Returns
    -------
    DataFrame of shape (blocks, methods)
        Means; the methods are sorted by name.

    Raises
    ------
    ValueError
        Where a column is missing.
    """
    means, _ = _block_means(frame, metric, failed_worst)
    return means


def known_block_means(
    frame: pd.DataFrame,
    metric: str | Metric,
    *,
    failed_worst: bool = True,
) -> pd.DataFrame:
    """Compute the block means, with NaN where a method has no usable score in a whole block.

    Parameters
    ----------
    frame, metric, failed_worst
        As for `block_means`.

    Returns
    -------
    DataFrame of shape (blocks, methods)
        Means; NaN is worse than any.
    """
    means, is_known = _block_means(frame, metric, failed_worst)
    return means.where(is_known)


def ranks(
    frame: pd.DataFrame,
    metric: str | Metric,
    *,
    failed_worst: bool = True,
) -> pd.DataFrame:
    """Rank the methods in every block: 1 is best, ties share, missing is worst.

    Parameters
    ----------
    frame : DataFrame
        A benchmark's table, one row per counterfactual.
    metric : str or Metric
        A metric's name, or a `Metric` that filled the column of its name.
    failed_worst : bool, default=True
        Counterfactuals that are not valid get the worst score of their block.

    Returns
    -------
    DataFrame of shape (blocks, methods)
        Ranks from 1 to the number of methods.

    Examples
    --------
    >>> table = pd.DataFrame({"dataset": "toy", "classifier": "net", "seed": [0, 0, 0, 1, 1, 1],
    ...                       "explainer": [*"abcabc"], "instance": 0})
    >>> table["l2"] = [3, 1, 1, 2, 4, np.nan]
    >>> ranks(table, "l2").to_numpy().tolist()
    [[3.0, 1.5, 1.5], [1.0, 2.0, 3.0]]
    """
    means = known_block_means(frame, metric, failed_worst=failed_worst)
    return rank_means(means, metric)


def rank_means(means: pd.DataFrame, metric: str | Metric) -> pd.DataFrame:
    """Rank the columns of every row, the best first; NaN is last.

    Parameters
    ----------
    means : DataFrame of shape (blocks, methods)
        As `known_block_means` returns them.
    metric : str or Metric
        Tells the direction.

    Returns
    -------
    DataFrame of shape (blocks, methods)
        Ranks; ties share.
    """
    less_is_better = direction_of(metric) == "min"
    return means.rank(axis=1, ascending=less_is_better, na_option="bottom")


def name_of(metric: str | Metric) -> str:
    """Return the column of a metric."""
    return metric if isinstance(metric, str) else metric.name


def direction_of(metric: str | Metric) -> str:
    """Return "min" or "max", as the metric's class says."""
    if isinstance(metric, Metric):
        return metric.direction
    known = list_metrics().set_index("name")["direction"]
    if metric not in known:
        raise ValueError(
            f"The metric {metric!r} is unknown. Known: {', '.join(known.index)}. Pass an instance "
            "of Metric for one of your own."
        )
    return str(known[metric])


def _block_means(
    frame: pd.DataFrame,
    metric: str | Metric,
    failed_worst: bool,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the block means, and the mask of those where the method has a usable score."""
    name = name_of(metric)
    direction = direction_of(metric)
    _check_columns(frame, [*KEYS, name])
    score = frame[name].astype(float)
    score = score.where(np.isfinite(score))
    worst = _worst_scores(frame, score, direction)
    if failed_worst and "valid" in frame:
        score = score.where(frame["valid"].astype(float) == 1)
    # k counterfactuals of one instance are one score, and one failure among them is a failure.
    grouped = score.groupby([frame[key] for key in KEYS])
    is_complete = grouped.count() == grouped.size()
    by_request = grouped.mean().where(is_complete)
    table = by_request.unstack("explainer")
    methods = sorted(frame["explainer"].unique())
    table = table.reindex(columns=pd.Index(methods, name="explainer"))
    table = table.loc[worst.index]  # (instances, methods)
    filled = table.apply(lambda column: column.fillna(worst))
    means = filled.groupby(BLOCK).mean()
    is_known = table.groupby(BLOCK).count() > 0
    return means, is_known


def _worst_scores(
    frame: pd.DataFrame,
    score: pd.Series[float],
    direction: str,
) -> pd.Series[float]:
    """Return the worst score of the block of every instance that has a score by any method."""
    by_block = score.groupby([frame[key] for key in BLOCK])
    worst = by_block.transform("max" if direction == "min" else "min")
    instance = [frame[key] for key in INSTANCE]
    has_scores = score.groupby(instance).count() > 0
    by_instance = worst.groupby(instance).first()
    return by_instance.where(has_scores).dropna()


def _check_columns(frame: pd.DataFrame, names: list[str]) -> None:
    """Raise where a column is missing."""
    missing = [name for name in names if name not in frame]
    if missing:
        raise ValueError(
            f"frame has no column {', '.join(map(repr, missing))}. "
            f"Columns: {', '.join(map(str, frame))}."
        )
