"""Statistics over a benchmark's table: which methods differ, which are dominated, what the weights decide.

The table has one row per counterfactual: `dataset`, `classifier`, `explainer`, `seed`, `instance`, and a
column for each metric. A block is one data set × classifier × seed: what all methods have in common. Which
way is better comes from the metric's class. Nothing is averaged over survivors: a score that is missing,
infinite or of a counterfactual that is not valid counts as the worst score of its block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

from ..metrics import Metric, list_metrics
from ..models.classifier import Array

BLOCK = ["dataset", "classifier", "seed"]
KEYS = [*BLOCK, "instance", "explainer"]


@dataclass(frozen=True)
class Friedman:
    """Do the methods differ at all?  H₀: every order of the k methods is equally likely in each of N blocks.

    statistic, p : Friedman's χ² with k − 1 degrees of freedom, corrected for ties.
    f_statistic, f_p : Iman and Davenport's F, less cautious, with k − 1 and (k − 1)(N − 1) degrees of
        freedom.
    n_methods, n_blocks : k and N.
    """

    statistic: float
    p: float
    f_statistic: float
    f_p: float
    n_methods: int
    n_blocks: int


@dataclass(frozen=True)
class Comparison:
    """Which methods can be told apart.

    metric, test, alpha, n_blocks : what was compared, by which test, at which level, over how many blocks.
    mean_ranks : by method, best first; 1 is best.
    pairs : one row per pair: `a`, `b`, `p` (corrected), `different`.
    cliques : the largest groups of methods of which no two are told apart, best first, each of two or more.
    critical_difference : of mean ranks, where the test has one.
    """

    metric: str
    test: str
    alpha: float
    n_blocks: int
    mean_ranks: pd.Series[float]
    pairs: pd.DataFrame
    cliques: list[tuple[str, ...]]
    critical_difference: float | None = None


def block_means(
    frame: pd.DataFrame, metric: str | Metric, *, failed_worst: bool = True
) -> pd.DataFrame:
    """Mean score of every method (columns) in every block (rows).

    Where a method has no usable score for an instance, the worst score that any row has in that block stands
    in; so too where it has none in the whole block. Instances and blocks without any score at all are left
    out.

    Parameters
    ----------
    frame : one row per counterfactual.
    metric : a metric's name, or a `Metric` that filled the column of its name.
    failed_worst : scores of counterfactuals that are not valid are not usable. Otherwise their best attempt
        is measured, and a method that gives the instance back has the smallest distance of all.
    """
    return _blocks(frame, metric, failed_worst)[0]


def _blocks(
    frame: pd.DataFrame, metric: str | Metric, failed_worst: bool
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The block means, and the same with NaN where a method has no usable score in a block."""
    name, better = name_of(metric), direction_of(metric)
    missing = [column for column in [*KEYS, name] if column not in frame]
    if missing:
        raise ValueError(
            f"frame has no column {', '.join(map(repr, missing))}. Columns: {', '.join(map(str, frame))}."
        )
    score = frame[name].astype(float)
    score = score.where(np.isfinite(score))
    instance = [frame[key] for key in KEYS[:-1]]
    worst = score.groupby([frame[key] for key in BLOCK]).transform(
        "max" if better == "min" else "min"
    )
    worst = worst.groupby(instance).first().where(score.groupby(instance).count() > 0).dropna()
    if failed_worst and "valid" in frame:
        score = score.where(frame["valid"].astype(float) == 1)
    # k counterfactuals of one instance are one score, and one failure among them is a failure.
    grouped = score.groupby([frame[key] for key in KEYS])
    table = grouped.mean().where(grouped.count() == grouped.size()).unstack("explainer")
    table = table.reindex(columns=pd.Index(sorted(frame["explainer"].unique()), name="explainer"))
    table = table.loc[worst.index]
    filled = table.apply(lambda column: column.fillna(worst)).groupby(BLOCK).mean()
    return filled, filled.mask(table.groupby(BLOCK).count() == 0)


def ranks(frame: pd.DataFrame, metric: str | Metric, *, failed_worst: bool = True) -> pd.DataFrame:
    """Rank of every method (columns) in every block (rows): 1 is best, ties share, missing is worst.

    See `block_means` for the parameters.

    Examples
    --------
    >>> table = pd.DataFrame({"dataset": "toy", "classifier": "net", "seed": [0, 0, 0, 1, 1, 1],
    ...                       "explainer": [*"abcabc"], "instance": 0, "l2": [3, 1, 1, 2, 4, np.nan]})
    >>> ranks(table, "l2").to_numpy().tolist()
    [[3.0, 1.5, 1.5], [1.0, 2.0, 3.0]]
    """
    _, means = _blocks(frame, metric, failed_worst)
    return means.rank(axis=1, ascending=direction_of(metric) == "min", na_option="bottom")


def friedman(frame: pd.DataFrame, metric: str | Metric, *, failed_worst: bool = True) -> Friedman:
    """Friedman's test, with Iman and Davenport's correction.

        χ² = (k − 1) Σ_j (R_j − N (k+1)/2)² / (Σ_ij r_ij² − N k (k+1)²/4),   F = (N − 1) χ² / (N (k − 1) − χ²)

    with r_ij the rank of method j in block i and R_j its sum; without ties, the first is the textbook's
    12 / (N k (k+1)) Σ_j R_j² − 3 N (k+1). Methods that are equal everywhere have p = 1.
    """
    r = ranks(frame, metric, failed_worst=failed_worst).to_numpy()
    N, k = _enough(r)
    spread = (r**2).sum() - N * k * (k + 1) ** 2 / 4
    between = ((r.sum(0) - N * (k + 1) / 2) ** 2).sum()
    chi2 = (k - 1) * between / spread if spread > 0 else 0.0
    rest = N * (k - 1) - chi2
    f = (N - 1) * chi2 / rest if rest > 1e-9 * N else np.inf  # all blocks agree
    p, f_p = stats.chi2.sf(chi2, k - 1), stats.f.sf(f, k - 1, (k - 1) * (N - 1))
    return Friedman(float(chi2), float(p), float(f), float(f_p), k, N)


def nemenyi(
    frame: pd.DataFrame, metric: str | Metric, alpha: float = 0.05, *, failed_worst: bool = True
) -> Comparison:
    """Nemenyi's test: two methods differ where their mean ranks differ by more than

        CD = q √(k (k+1) / (6 N)),   q = the (1 − α) point of the studentised range of k normals, / √2

    Examples
    --------
    >>> float(critical_difference(5, 10, alpha=0.05).round(3))
    1.929
    """
    r = ranks(frame, metric, failed_worst=failed_worst)
    N, k = _enough(r.to_numpy())
    mean = _ordered(r)
    limit = critical_difference(k, N, alpha)
    pairs = pd.DataFrame(combinations(mean.index, 2), columns=["a", "b"])
    apart = np.abs(mean[pairs["a"]].to_numpy() - mean[pairs["b"]].to_numpy())
    pairs["p"] = stats.studentized_range.sf(apart / np.sqrt(k * (k + 1) / (12 * N)), k, np.inf)
    pairs["different"] = apart > limit
    return Comparison(
        name_of(metric), "Nemenyi", alpha, N, mean, pairs, _cliques(mean, pairs), float(limit)
    )


def critical_difference(n_methods: int, n_blocks: int, alpha: float = 0.05) -> np.float64:
    """Nemenyi's CD for k methods over N blocks; the equation is that of `nemenyi`."""
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie strictly between 0 and 1, got {alpha!r}.")
    q = stats.studentized_range.ppf(1 - alpha, n_methods, np.inf) / np.sqrt(2)
    return np.float64(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_blocks)))


def wilcoxon_holm(
    frame: pd.DataFrame, metric: str | Metric, alpha: float = 0.05, *, failed_worst: bool = True
) -> Comparison:
    """Wilcoxon's signed-rank test of every pair over the blocks, p-values corrected by Holm.

    Blocks where two methods are equal count as Pratt has it. A method that is missing in a block loses it by
    more than any other difference.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie strictly between 0 and 1, got {alpha!r}.")
    _, means = _blocks(frame, metric, failed_worst)
    N, _ = _enough(means.to_numpy())
    mean = _ordered(means.rank(axis=1, ascending=direction_of(metric) == "min", na_option="bottom"))
    loss = (means if direction_of(metric) == "min" else -means).fillna(np.inf)
    pairs = pd.DataFrame(combinations(mean.index, 2), columns=["a", "b"])
    raw = [
        _signed_rank(loss[a].to_numpy(), loss[b].to_numpy()) for a, b in combinations(mean.index, 2)
    ]
    pairs["p"] = holm(np.array(raw))
    pairs["different"] = pairs["p"] < alpha
    return Comparison(
        name_of(metric), "Wilcoxon-Holm", alpha, N, mean, pairs, _cliques(mean, pairs)
    )


def holm(p: Array) -> Array:
    """Holm's correction: p₍ᵢ₎ · (m − i + 1), in the order of the p-values never falling, at most 1.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p)
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1)
    return corrected


def pareto_front(
    frame: pd.DataFrame, metrics: Sequence[str | Metric], *, failed_worst: bool = True
) -> pd.DataFrame:
    """Mean of every metric (columns) for every method (rows), and `on_front`: no other method is at least as
    good in all of them and better in one.

    Means are over blocks, those of `block_means`.
    """
    _some(metrics)
    means = pd.DataFrame(
        {name_of(m): block_means(frame, m, failed_worst=failed_worst).mean() for m in metrics}
    )
    loss = means.to_numpy() * [1 if direction_of(m) == "min" else -1 for m in metrics]
    as_good = (loss[:, None] <= loss[None]).all(2)
    better = (loss[:, None] < loss[None]).any(2)
    return means.assign(on_front=np.logical_not((as_good & better).any(0)))


def scalarize(
    frame: pd.DataFrame, weights: Mapping[str, float], *, failed_worst: bool = True
) -> pd.Series[float]:
    """One score for every method, best first:  Σ_m w_m u_m,   Σ w = 1.

    u_m is the share of the way from the worst to the best method's mean of metric m in a block, averaged over
    blocks; where all are equal it is 1. So the score depends on which methods are compared, and on the
    weights: see `sensitivity`.

    Parameters
    ----------
    weights : {metric: weight}, none negative.
    """
    utility, w = _utilities(frame, weights, failed_worst)
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
    """How far the order of `scalarize` hangs on the weights, drawn from Dirichlet(concentration · w).

    Parameters
    ----------
    draws : how many weightings are tried.
    concentration : the larger, the nearer they stay to the weights given; their standard deviation is
        √(w (1 − w) / (concentration + 1)).

    Returns
    -------
    By method, best first: `score`, `wins` (share of the draws it comes first in; ties share), `mean_rank`,
    `best_rank` and `worst_rank`.
    """
    utility, w = _utilities(frame, weights, failed_worst)
    if not concentration > 0 or draws < 1:
        raise ValueError(
            f"concentration and draws must be positive, got {concentration!r} and {draws!r}."
        )
    drawn = np.zeros((draws, len(w)))
    drawn[:, w > 0] = np.random.default_rng(random_state).dirichlet(concentration * w[w > 0], draws)
    scores = np.round(drawn @ utility.to_numpy().T, 12)  # equal methods stay equal
    order = stats.rankdata(-scores, axis=1)
    first = scores == scores.max(1, keepdims=True)
    table = pd.DataFrame(
        {
            "score": utility.to_numpy() @ w,
            "wins": (first / first.sum(1, keepdims=True)).mean(0),
            "mean_rank": order.mean(0),
            "best_rank": order.min(0),
            "worst_rank": order.max(0),
        },
        index=utility.index,
    )
    return table.sort_values("score", ascending=False, kind="stable")


def correlations(
    frame: pd.DataFrame, metrics: Sequence[str | Metric], *, failed_worst: bool = True
) -> pd.DataFrame:
    """Spearman's correlation between metrics: do they put the methods in the same order?

    Ranks are those within a block, so that easy and hard data sets make no correlation of their own; 1 is
    best for every metric, so +1 is agreement on what is better whatever the directions. NaN where a metric
    never differs.
    """
    _some(metrics)
    table = {name_of(m): ranks(frame, m, failed_worst=failed_worst).stack() for m in metrics}
    return pd.DataFrame(table).corr()


def name_of(metric: str | Metric) -> str:
    """The column of a metric."""
    return metric if isinstance(metric, str) else metric.name


def direction_of(metric: str | Metric) -> str:
    """ "min" or "max", as the metric's class has it."""
    if isinstance(metric, Metric):
        return metric.direction
    known = list_metrics().set_index("name")["direction"]
    if metric not in known:
        raise ValueError(f"The metric {metric!r} is unknown. Known: {', '.join(known.index)}.")
    return str(known[metric])


def _some(metrics: Sequence[str | Metric]) -> None:
    names = [name_of(m) for m in metrics]
    if isinstance(metrics, str) or not names or len(set(names)) < len(names):
        raise ValueError(
            f"metrics must be a list of different metrics, at least one, got {metrics!r}."
        )


def _enough(table: Array) -> tuple[int, int]:
    n_blocks, n_methods = table.shape
    if n_blocks < 2 or n_methods < 2:
        raise ValueError(
            f"A comparison needs at least 2 methods and 2 blocks (dataset × classifier × seed), got "
            f"{n_methods} and {n_blocks}."
        )
    return n_blocks, n_methods


def _ordered(r: pd.DataFrame) -> pd.Series[float]:
    return r.mean().sort_values(kind="stable").rename("mean_rank")


def _utilities(
    frame: pd.DataFrame, weights: Mapping[str, float], failed_worst: bool
) -> tuple[pd.DataFrame, Array]:
    w = np.array(list(weights.values()), dtype=float)
    if not len(w) or not np.isfinite(w).all() or (w < 0).any() or w.sum() == 0:
        raise ValueError(
            f"weights must be {{metric: weight}}, none negative, one positive, got {dict(weights)}."
        )
    utility = {}
    for name in weights:
        means = block_means(frame, name, failed_worst=failed_worst)
        low, high = means.min(axis=1), means.max(axis=1)
        worst, best = (high, low) if direction_of(name) == "min" else (low, high)
        span = (best - worst).where(high > low)
        utility[name] = means.sub(worst, axis=0).div(span, axis=0).fillna(1.0).mean()
    return pd.DataFrame(utility), w / w.sum()


def _signed_rank(a: Array, b: Array) -> float:
    difference = np.zeros(len(a))
    np.subtract(a, b, out=difference, where=a != b)  # ∞ − ∞ is no difference
    if not difference.any():
        return 1.0
    return float(stats.wilcoxon(difference, zero_method="pratt").pvalue)


def _cliques(mean: pd.Series[float], pairs: pd.DataFrame) -> list[tuple[str, ...]]:
    """Largest sets of methods without a pair that differs (Bron and Kerbosch), the best first."""
    methods = list(mean.index)
    alike: dict[str, set[str]] = {method: set() for method in methods}
    for a, b in pairs.loc[~pairs["different"], ["a", "b"]].itertuples(index=False):
        alike[a].add(b)
        alike[b].add(a)
    found: list[tuple[str, ...]] = []

    def grow(clique: set[str], open_: set[str], closed: set[str]) -> None:
        if not open_ and not closed and len(clique) > 1:
            found.append(tuple(sorted(clique, key=methods.index)))
        for method in sorted(open_, key=methods.index):
            grow(clique | {method}, open_ & alike[method], closed & alike[method])
            open_, closed = open_ - {method}, closed | {method}

    grow(set(), set(methods), set())
    return sorted(found, key=lambda clique: [methods.index(method) for method in clique])
