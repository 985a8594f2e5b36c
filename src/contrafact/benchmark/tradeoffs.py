"""Trade-offs between metrics: dominated methods, weighted scores, agreement of metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from ..metrics import Metric
from ..models.classifier import Array
from ..validation import Integer, ListOf, Real, Satisfies, check_parameters
from .blocks import (
    TABLE_RULES,
    block_means,
    direction_of,
    known_block_means,
    name_of,
    ranks,
)

_WEIGHT = Real(at_least=0)

RULES = {
    "metrics": ListOf(TABLE_RULES["metric"], "metrics, by name or as Metric objects"),
    "weights": Satisfies(
        lambda weights: (
            isinstance(weights, Mapping)
            and all(isinstance(name, str) for name in weights)
            and all(_WEIGHT.accepts(weight) for weight in weights.values())
            and any(weights.values())
        ),
        "{metric: weight}, none negative, one positive",
    ),
    "draws": Integer(at_least=1, at_most=10**7),
    "concentration": Real(above=0),
    "random_state": Integer(at_least=0),
}


def pareto_front(
    frame: pd.DataFrame,
    metrics: Sequence[str | Metric],
    *,
    failed_worst: bool = True,
) -> pd.DataFrame:
    """Find the methods that no other method dominates.

    One method dominates another if it is at least as good in all metrics and better in one. One
    that has no score in a whole block dominates none that has.

    Parameters
    ----------
    frame : DataFrame
        A benchmark's table, one row per counterfactual.
    metrics : sequence of str or Metric
        Different metrics, at least one.
    failed_worst : bool, default=True
        Counterfactuals that are not valid get the worst score of their block.

    Returns
    -------
    DataFrame
        One row per method: the mean of every metric over blocks, those of `block_means`, and
        `on_front`.

    Examples
    --------
    >>> table = pd.DataFrame({"dataset": "toy", "classifier": "net", "seed": 0, "instance": 0,
    ...                       "explainer": [*"abc"], "l2": [1, 2, 3], "sparsity": [0.5, 0.1, 0.2]})
    >>> pareto_front(table, ["l2", "sparsity"])["on_front"].to_dict()
    {'a': True, 'b': True, 'c': False}
    """
    _check_different(metrics)
    means = {}
    sign = []
    failed: set[str] = set()
    for metric in metrics:
        by_block = _scored_blocks(frame, metric, failed_worst)
        means[name_of(metric)] = by_block.mean()
        known = known_block_means(frame, metric, failed_worst=failed_worst)
        failed |= set(known.columns[known.isna().any()])
        sign.append(1 if direction_of(metric) == "min" else -1)
    table = pd.DataFrame(means)
    loss = table.to_numpy() * sign  # (methods, metrics)
    one = loss[:, None]
    other = loss[None]
    dominates = (one <= other).all(axis=2) & (one < other).any(axis=2)
    # What stands in for a block without a score is no reason to prefer the method.
    has_failed = table.index.isin(failed)
    dominates &= ~has_failed[:, None] | has_failed
    is_dominated = dominates.any(axis=0)
    return table.assign(on_front=np.logical_not(is_dominated))


def scalarize(
    frame: pd.DataFrame,
    weights: Mapping[str, float],
    *,
    failed_worst: bool = True,
) -> pd.Series[float]:
    """Compute one weighted score for every method:  Σ_m w_m u_m,   Σ w = 1.

    u_m is the share of the way from the worst to the best method's mean of metric m in a block,
    averaged over blocks; where all are equal it is 1, without any score in a block 0. So the score
    depends on which methods are compared, and on the weights: see `sensitivity`.

    Parameters
    ----------
    frame : DataFrame
        A benchmark's table, one row per counterfactual.
    weights : mapping of str to float
        The weight of each metric, none negative, one positive.
    failed_worst : bool, default=True
        Counterfactuals that are not valid get the worst score of their block.

    Returns
    -------
    Series
        Scores in [0, 1] by method, best first.

    Examples
    --------
    >>> table = pd.DataFrame({"dataset": "toy", "classifier": "net", "seed": 0, "instance": 0,
    ...                       "explainer": [*"abc"], "l2": [1, 2, 3]})
    >>> scalarize(table, {"l2": 1}).to_dict()
    {'a': 1.0, 'b': 0.5, 'c': 0.0}
    """
    w = _normalized(weights)
    utility = _utilities(frame, weights, failed_worst)
    score = pd.Series(utility.to_numpy() @ w, index=utility.index, name="score")
    return score.sort_values(ascending=False, kind="stable")


def sensitivity(
    frame: pd.DataFrame,
    weights: Mapping[str, float],
    *,
    draws: int = 2000,
    concentration: float = 10.0,
    random_state: int = 0,
    failed_worst: bool = True,
) -> pd.DataFrame:
    """Measure how far the order of `scalarize` depends on the weights.

    Weights are drawn from Dirichlet(concentration · w).

    Parameters
    ----------
    frame : DataFrame
        A benchmark's table, one row per counterfactual.
    weights : mapping of str to float
        The weight of each metric, none negative, one positive.
    draws : int, default=2000
        How many weightings are tried.
    concentration : float, default=10.0
        The larger, the nearer they stay to the weights given; their standard deviation is
        √(w (1 − w) / (concentration + 1)).
    random_state : int, default=0
        Seed of the draws.
    failed_worst : bool, default=True
        Counterfactuals that are not valid get the worst score of their block.

    Returns
    -------
    DataFrame
        By method, best first: `score`, `wins` (share of the draws in which it comes first; ties
        share), `mean_rank`, `best_rank` and `worst_rank`.

    Examples
    --------
    >>> table = pd.DataFrame({"dataset": "toy", "classifier": "net", "seed": 0, "instance": 0,
    ...                       "explainer": [*"abc"], "l2": [1, 2, 3]})
    >>> sensitivity(table, {"l2": 1})["wins"].to_dict()
    {'a': 1.0, 'b': 0.0, 'c': 0.0}
    """
    options = {"draws": draws, "concentration": concentration, "random_state": random_state}
    check_parameters("sensitivity", RULES, options)
    w = _normalized(weights)
    utility = _utilities(frame, weights, failed_worst)
    rng = np.random.default_rng(random_state)
    is_used = w > 0
    drawn = np.zeros((draws, len(w)))
    drawn[:, is_used] = rng.dirichlet(concentration * w[is_used], draws)
    scores = drawn @ utility.to_numpy().T  # (draws, methods)
    scores = np.round(scores, 12)  # equal methods stay equal
    rank = stats.rankdata(-scores, axis=1)
    is_first = scores == scores.max(axis=1, keepdims=True)
    wins = is_first / is_first.sum(axis=1, keepdims=True)
    table = pd.DataFrame(
        {
            "score": utility.to_numpy() @ w,
            "wins": wins.mean(axis=0),
            "mean_rank": rank.mean(axis=0),
            "best_rank": rank.min(axis=0),
            "worst_rank": rank.max(axis=0),
        },
        index=utility.index,
    )
    return table.sort_values("score", ascending=False, kind="stable")


def correlations(
    frame: pd.DataFrame,
    metrics: Sequence[str | Metric],
    *,
    failed_worst: bool = True,
) -> pd.DataFrame:
    """Compute Spearman's correlation between metrics: whether they order the methods alike.

    Ranks are those within a block, so that easy and hard data sets make no correlation of their
    own; 1 is best for every metric, so +1 is agreement on what is better whatever the directions.

    Parameters
    ----------
    frame : DataFrame
        A benchmark's table, one row per counterfactual.
    metrics : sequence of str or Metric
        Different metrics, at least one.
    failed_worst : bool, default=True
        Counterfactuals that are not valid get the worst score of their block.

    Returns
    -------
    DataFrame of shape (metrics, metrics)
        Correlations; NaN where a metric never differs.

    Examples
    --------
    >>> table = pd.DataFrame({"dataset": "toy", "classifier": "net", "seed": 0, "instance": 0,
    ...                       "explainer": [*"abc"], "l2": [1, 2, 3], "sparsity": [0.5, 0.4, 0.1]})
    >>> float(correlations(table, ["l2", "sparsity"]).loc["l2", "sparsity"])
    -1.0
    """
    _check_different(metrics)
    columns = {
        name_of(metric): ranks(frame, metric, blocks="runs", failed_worst=failed_worst).stack()
        for metric in metrics
    }
    return pd.DataFrame(columns).corr()


def _check_different(metrics: Sequence[str | Metric]) -> None:
    """Raise where the metrics are no list of different ones."""
    check_parameters("table of a benchmark", RULES, {"metrics": metrics})
    names = [name_of(metric) for metric in metrics]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"metrics must be different metrics, at least one, got {names}.")


def _normalized(weights: Mapping[str, float]) -> Array:
    """Return the weights, divided by their sum; raise where they are no weights."""
    check_parameters("table of a benchmark", RULES, {"weights": weights})
    w = np.array(list(weights.values()), dtype=float)
    return np.asarray(w / w.sum())


def _utilities(
    frame: pd.DataFrame,
    metrics: Mapping[str, float],
    failed_worst: bool,
) -> pd.DataFrame:
    """Return u of every method (rows) and metric (columns), as in `scalarize`."""
    utility = {}
    for name in metrics:
        means = _scored_blocks(frame, name, failed_worst)
        is_known = known_block_means(frame, name, failed_worst=failed_worst).notna()
        low = means.min(axis=1)
        high = means.max(axis=1)
        if direction_of(name) == "min":
            best, worst = low, high
        else:
            best, worst = high, low
        span = (best - worst).where(high > low)
        share = means.sub(worst, axis=0).div(span, axis=0)
        utility[name] = share.fillna(1.0).where(is_known, 0.0).mean()
    return pd.DataFrame(utility)


def _scored_blocks(frame: pd.DataFrame, metric: str | Metric, failed_worst: bool) -> pd.DataFrame:
    """Return the block means of a metric; raise where there are none."""
    means = block_means(frame, metric, failed_worst=failed_worst)
    if len(means) == 0:
        raise ValueError(f"the metric {name_of(metric)!r} has no score in any block of frame.")
    return means
