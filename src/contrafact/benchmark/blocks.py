"""Scores by block: means and ranks of the methods where they had the same task.

A benchmark's table has one row per counterfactual: `dataset`, `classifier`, `explainer`, `seed`,
`instance`, and a column for each metric. A run is one data set × classifier × seed: what all
methods have in common. The blocks of a test are data sets, each with the mean over its runs, or the
runs themselves; those of one data set are not independent. Which way is better comes from the
metric's class. Nothing is averaged over successes only: a score that is missing, infinite or of a
counterfactual that is not valid counts as the worst score of its run. A run that some method has
not finished is left out for all. Instances that were in their target class from the start count
like all others, with their change of zero.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from ..metrics import Metric, list_metrics
from ..models.classifier import Array
from ..validation import Boolean, Instance, OneOf, Rule, Satisfies, check_parameters

#: what the blocks of a comparison are
Blocks = Literal["datasets", "runs"]

RUN = ["dataset", "classifier", "seed"]
INSTANCE = [*RUN, "instance"]
KEYS = [*INSTANCE, "explainer"]
#: columns that tell blocks apart
BLOCK_KEYS = {"datasets": ["dataset"], "runs": RUN}
#: blocks in words
BLOCK_WORDS: dict[Blocks, str] = {"datasets": "data sets", "runs": "data set × classifier × seed"}

#: what functions of a benchmark's table accept
TABLE_RULES: dict[str, Rule] = {
    "frame": Instance(pd.DataFrame, "a DataFrame"),
    "metric": Satisfies(
        lambda metric: isinstance(metric, (str, Metric)), "the name of a metric or a Metric"
    ),
    "blocks": OneOf(*BLOCK_KEYS),
    "failed_worst": Boolean(),
}


def block_means(
    frame: pd.DataFrame,
    metric: str | Metric,
    *,
    blocks: Blocks = "runs",
    failed_worst: bool = True,
) -> pd.DataFrame:
    """Compute the mean score of every method in every block.

    Where a method has no usable score for an instance, the worst score that any row has in that
    run stands in; so too where it has none in the whole run. Instances and blocks without any score
    at all are left out, and runs that some method has not finished.

    Parameters
    ----------
    frame : DataFrame
        A benchmark's table, one row per counterfactual.
    metric : str or Metric
        A metric's name, or a `Metric` that filled the column of its name.
    blocks : {"runs", "datasets"}, default="runs"
        One row for each data set × classifier × seed, or the mean of these for each data set.
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
    means, _ = _block_means(frame, metric, blocks, failed_worst)
    return means


def known_block_means(
    frame: pd.DataFrame,
    metric: str | Metric,
    *,
    blocks: Blocks = "runs",
    failed_worst: bool = True,
) -> pd.DataFrame:
    """Compute the block means, with NaN where a method has no usable score in a whole block.

    Parameters
    ----------
    frame, metric, blocks, failed_worst
        As for `block_means`.

    Returns
    -------
    DataFrame of shape (blocks, methods)
        Means; NaN is worse than any.
    """
    means, is_known = _block_means(frame, metric, blocks, failed_worst)
    return means.where(is_known)


def ranks(
    frame: pd.DataFrame,
    metric: str | Metric,
    *,
    blocks: Blocks = "datasets",
    failed_worst: bool = True,
) -> pd.DataFrame:
    """Rank the methods in every block: 1 is best, ties share, no score is worst.

    Parameters
    ----------
    frame : DataFrame
        A benchmark's table, one row per counterfactual.
    metric : str or Metric
        A metric's name, or a `Metric` that filled the column of its name.
    blocks : {"datasets", "runs"}, default="datasets"
        Rank by data set, after averaging over classifiers and seeds, or in every data set ×
        classifier × seed.
    failed_worst : bool, default=True
        Counterfactuals that are not valid get the worst score of their run.

    Returns
    -------
    DataFrame of shape (blocks, methods)
        Ranks from 1 to the number of methods.

    Examples
    --------
    >>> table = pd.DataFrame({"dataset": [*"AAABBB"], "classifier": "net", "seed": 0,
    ...                       "explainer": [*"abcabc"], "instance": 0})
    >>> table["l2"] = [3, 1, 1, 2, 4, np.nan]
    >>> ranks(table, "l2").to_numpy().tolist()
    [[3.0, 1.5, 1.5], [1.0, 2.0, 3.0]]
    """
    means = known_block_means(frame, metric, blocks=blocks, failed_worst=failed_worst)
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


def comparison_size(table: Array, blocks: Blocks) -> tuple[int, int]:
    """Return the size of a comparison, and refuse one of nothing.

    Parameters
    ----------
    table : ndarray of shape (blocks, methods)
        Means or ranks.
    blocks : {"datasets", "runs"}
        What the blocks are.

    Returns
    -------
    n_blocks, n_methods : int
        N and k, both at least 2.

    Raises
    ------
    ValueError
        With fewer than two methods or two blocks.
    """
    n_blocks, n_methods = table.shape
    if n_blocks < 2 or n_methods < 2:
        what = BLOCK_WORDS[blocks]
        hint = ""
        if blocks == "datasets":
            hint = f' blocks="runs" compares over {BLOCK_WORDS["runs"]}, which are not independent.'
        raise ValueError(
            f"A comparison needs at least 2 methods and 2 blocks ({what}), "
            f"got {n_methods} and {n_blocks}.{hint}"
        )
    return n_blocks, n_methods


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


def finished_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the runs that every method in the table has finished, failed or not.

    Parameters
    ----------
    frame : DataFrame
        A benchmark's table, one row per counterfactual.

    Returns
    -------
    DataFrame
        The rows, in their order.
    """
    n_methods = frame["explainer"].nunique()
    by_run = frame.groupby(RUN)["explainer"]
    return frame[by_run.transform("nunique") == n_methods]


def _block_means(
    frame: pd.DataFrame,
    metric: str | Metric,
    blocks: Blocks,
    failed_worst: bool,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the block means, and the mask of those where the method has a usable score."""
    values = {"frame": frame, "metric": metric, "blocks": blocks, "failed_worst": failed_worst}
    check_parameters("table of a benchmark", TABLE_RULES, values)
    name = name_of(metric)
    direction = direction_of(metric)
    _check_columns(frame, [*KEYS, name])
    methods = sorted(frame["explainer"].unique())
    frame = finished_runs(frame)
    score = _as_scores(frame, name)
    score = score.where(np.isfinite(score))
    worst = _worst_scores(frame, score, direction)
    if failed_worst and "valid" in frame:
        score = score.where(_as_scores(frame, "valid") == 1)
    elif failed_worst and "status" in frame:
        score = score.where(frame["status"].isin(("valid", "already_target")))
    # k counterfactuals of one instance are one score, and one failure among them is a failure.
    grouped = score.groupby([frame[key] for key in KEYS])
    is_complete = grouped.count() == grouped.size()
    by_request = grouped.mean().where(is_complete)
    table = by_request.unstack("explainer")
    table = table.reindex(columns=pd.Index(methods, name="explainer"))
    table = table.loc[worst.index]  # (instances, methods)
    filled = table.apply(lambda column: column.fillna(worst))
    by_run = filled.groupby(RUN).mean()
    keys = BLOCK_KEYS[blocks]
    means = by_run.groupby(keys).mean()
    is_known = table.groupby(keys).count() > 0
    return means.apply(_without_rounding, axis=1, raw=True), is_known


def _without_rounding(means: Array) -> Array:
    """Round the means of a block to 12 digits of the largest, so that equal sums are equal."""
    largest = np.nanmax(np.abs(means))
    if not largest > 0:
        return means
    digits = 11 - int(np.floor(np.log10(largest)))
    if abs(digits) > 300:  # such powers of ten are no floats
        return means
    return np.asarray(np.round(means * 10.0**digits) / 10.0**digits)


def _as_scores(frame: pd.DataFrame, name: str) -> pd.Series[float]:
    """Return a column of numbers; one read from a file may hold True, False and None."""
    try:
        return frame[name].astype(float)
    except (TypeError, ValueError):
        raise ValueError(
            f"column {name!r} of frame has dtype {frame[name].dtype}. Accepted: real numbers."
        ) from None


def _worst_scores(
    frame: pd.DataFrame,
    score: pd.Series[float],
    direction: str,
) -> pd.Series[float]:
    """Return the worst score of the run of every instance that has a score by any method."""
    by_run = score.groupby([frame[key] for key in RUN])
    worst = by_run.transform("max" if direction == "min" else "min")
    instance = [frame[key] for key in INSTANCE]
    has_scores = score.groupby(instance).count() > 0
    by_instance = worst.groupby(instance).first()
    return by_instance.where(has_scores).dropna()


def _check_columns(frame: pd.DataFrame, names: list[str]) -> None:
    """Raise where a column is missing, or a key has no value."""
    missing = [name for name in names if name not in frame]
    # A run that broke down has a row without an instance.
    gaps = [name for name in RUN if name in frame and frame[name].isna().any()]
    if gaps:
        raise ValueError(
            f"column {gaps[0]!r} of frame has missing values. Accepted: data set, classifier and "
            "seed of every row."
        )
    if missing:
        raise ValueError(
            f"frame has no column {', '.join(map(repr, missing))}. "
            f"Columns: {', '.join(map(str, frame))}."
        )
