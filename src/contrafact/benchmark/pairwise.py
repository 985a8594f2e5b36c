"""Which methods differ over the data sets or runs of a benchmark: tests of every pair."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

from ..metrics import Metric
from ..models.classifier import Array
from ..validation import Integer, Real, check_parameters
from .blocks import (
    Blocks,
    comparison_size,
    direction_of,
    known_block_means,
    name_of,
    rank_means,
    ranks,
)
from .cliques import find_cliques

RULES = {
    "n_methods": Integer(at_least=2),
    "n_blocks": Integer(at_least=2),
    "alpha": Real(above=0, below=1),
}


@dataclass(frozen=True)
class Comparison:
    """Hold which methods can be told apart.

    Parameters
    ----------
    metric : str
        What was compared.
    test : str
        By which test.
    alpha : float
        At which level.
    n_blocks : int
        Over how many blocks.
    mean_ranks : Series
        By method, best first; 1 is best.
    pairs : DataFrame
        One row per pair: `a`, `b`, `p` (corrected), `different`.
    cliques : list of tuple of str
        The largest groups of methods of which no two are told apart, best first, each of two or
        more.
    critical_difference : float or None
        Of mean ranks, where the test has one.
    blocks : {"datasets", "runs"}
        What the blocks are.
    """

    metric: str
    test: str
    alpha: float
    n_blocks: int
    mean_ranks: pd.Series[float]
    pairs: pd.DataFrame
    cliques: list[tuple[str, ...]]
    critical_difference: float | None = None
    blocks: Blocks = "datasets"


def nemenyi(
    frame: pd.DataFrame,
    metric: str | Metric,
    alpha: float = 0.05,
    *,
    blocks: Blocks = "datasets",
    failed_worst: bool = True,
) -> Comparison:
    """Test every pair of methods by Nemenyi's test.

    Two methods differ where their mean ranks differ by more than

        CD = q √(k (k+1) / (6 N))

    with √2 q the (1 − α) point of the studentized range of k normals.

    Parameters
    ----------
    frame : DataFrame
        A benchmark's table, one row per counterfactual.
    metric : str or Metric
        A metric's name, or a `Metric` that filled the column of its name.
    alpha : float, default=0.05
        Level of the test.
    blocks : {"datasets", "runs"}, default="datasets"
        Compare over data sets, each with the mean over its classifiers and seeds, or over every
        data set × classifier × seed. Runs on one data set are not independent: over them, p is too
        small.
    failed_worst : bool, default=True
        Counterfactuals that are not valid get the worst score of their run.

    Returns
    -------
    Comparison
        Mean ranks, pairs and cliques, with the critical difference.

    References
    ----------
    Demšar: Statistical comparisons of classifiers over multiple data sets. Journal of Machine
    Learning Research 7, 2006.

    Examples
    --------
    >>> float(critical_difference(5, 10, alpha=0.05).round(3))
    1.929
    """
    check_parameters("nemenyi", RULES, {"alpha": alpha})
    r = ranks(frame, metric, blocks=blocks, failed_worst=failed_worst)
    N, k = comparison_size(r.to_numpy(), blocks)
    limit = critical_difference(k, N, alpha)
    mean_ranks = _mean_ranks(r)
    pairs = _all_pairs(mean_ranks)
    first = pairs["a"].map(mean_ranks)
    second = pairs["b"].map(mean_ranks)
    gap = (first - second).abs().to_numpy()
    standard_error = np.sqrt(k * (k + 1) / (12 * N))
    pairs["p"] = stats.studentized_range.sf(gap / standard_error, k, np.inf)
    pairs["different"] = gap > limit
    return Comparison(
        metric=name_of(metric),
        test="Nemenyi",
        alpha=alpha,
        n_blocks=N,
        mean_ranks=mean_ranks,
        pairs=pairs,
        cliques=find_cliques(list(mean_ranks.index), pairs),
        critical_difference=float(limit),
        blocks=blocks,
    )


def critical_difference(
    n_methods: int,
    n_blocks: int,
    alpha: float = 0.05,
) -> np.float64:
    """Compute Nemenyi's critical difference of mean ranks; the equation is that of `nemenyi`.

    Parameters
    ----------
    n_methods : int
        k.
    n_blocks : int
        N.
    alpha : float, default=0.05
        Level of the test.

    Returns
    -------
    float
        CD.
    """
    values = {"n_methods": n_methods, "n_blocks": n_blocks, "alpha": alpha}
    check_parameters("critical_difference", RULES, values)
    q = stats.studentized_range.ppf(1 - alpha, n_methods, np.inf) / np.sqrt(2)
    scale = np.sqrt(n_methods * (n_methods + 1) / (6 * n_blocks))
    return np.float64(q * scale)


def wilcoxon_holm(
    frame: pd.DataFrame,
    metric: str | Metric,
    alpha: float = 0.05,
    *,
    blocks: Blocks = "datasets",
    failed_worst: bool = True,
) -> Comparison:
    """Test every pair of methods by Wilcoxon's signed-rank test, p-values corrected by Holm.

    Blocks where two methods are equal count as in Pratt's variant. A method that is missing in a
    block loses it by more than any other difference.

    Parameters
    ----------
    frame : DataFrame
        A benchmark's table, one row per counterfactual.
    metric : str or Metric
        A metric's name, or a `Metric` that filled the column of its name.
    alpha : float, default=0.05
        Level of the test.
    blocks : {"datasets", "runs"}, default="datasets"
        Compare over data sets, each with the mean over its classifiers and seeds, or over every
        data set × classifier × seed. Runs on one data set are not independent: over them, p is too
        small.
    failed_worst : bool, default=True
        Counterfactuals that are not valid get the worst score of their run.

    Returns
    -------
    Comparison
        Mean ranks, pairs and cliques.

    References
    ----------
    Wilcoxon: Individual comparisons by ranking methods. Biometrics Bulletin 1, 1945.
    https://doi.org/10.2307/3001968

    Pratt: Remarks on zeros and ties in the Wilcoxon signed rank procedures. Journal of the American
    Statistical Association 54, 1959. https://doi.org/10.1080/01621459.1959.10501526

    Examples
    --------
    >>> table = pd.DataFrame({"dataset": [*"AABBCC"], "classifier": "net", "seed": 0,
    ...                       "explainer": [*"ababab"], "instance": 0, "l2": [1, 2, 1, 3, 2, 4]})
    >>> wilcoxon_holm(table, "l2").mean_ranks.to_dict()
    {'a': 1.0, 'b': 2.0}
    """
    check_parameters("wilcoxon_holm", RULES, {"alpha": alpha})
    means = known_block_means(frame, metric, blocks=blocks, failed_worst=failed_worst)
    N, _ = comparison_size(means.to_numpy(), blocks)
    mean_ranks = _mean_ranks(rank_means(means, metric))
    loss = means if direction_of(metric) == "min" else -means
    loss = loss.fillna(np.inf)
    pairs = _all_pairs(mean_ranks)
    losses = {method: column.to_numpy() for method, column in loss.items()}
    p = [_signed_rank(losses[a], losses[b]) for a, b in pairs.to_numpy()]
    pairs["p"] = holm(np.array(p))
    pairs["different"] = pairs["p"] < alpha
    return Comparison(
        metric=name_of(metric),
        test="Wilcoxon-Holm",
        alpha=alpha,
        n_blocks=N,
        mean_ranks=mean_ranks,
        pairs=pairs,
        cliques=find_cliques(list(mean_ranks.index), pairs),
        blocks=blocks,
    )


def holm(p: Array) -> Array:
    """Correct p-values for multiple testing by Holm's method.

    p₍ᵢ₎ · (m − i + 1), in the order of the p-values never falling, at most 1.

    Parameters
    ----------
    p : ndarray of shape (m,)
        p-values.

    Returns
    -------
    ndarray of shape (m,)
        Corrected p-values, in the same order.

    References
    ----------
    Holm: A simple sequentially rejective multiple test procedure. Scandinavian Journal of
    Statistics 6, 1979.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p)
    factor = np.arange(len(p), 0, -1)
    rising = np.maximum.accumulate(p[order] * factor)
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(rising, 1)
    return corrected


def _mean_ranks(r: pd.DataFrame) -> pd.Series[float]:
    """Average the ranks of every method, best first."""
    return r.mean().sort_values(kind="stable").rename("mean_rank")


def _all_pairs(mean_ranks: pd.Series[float]) -> pd.DataFrame:
    """List every pair of methods, in columns `a` and `b`."""
    return pd.DataFrame(combinations(mean_ranks.index, 2), columns=["a", "b"])


def _signed_rank(a: Array, b: Array) -> float:
    """Return the p-value of Wilcoxon's test; 1 where a and b are equal everywhere."""
    difference = np.zeros(len(a))
    np.subtract(a, b, out=difference, where=a != b)  # ∞ − ∞ is no difference
    if not difference.any():
        return 1.0
    return float(stats.wilcoxon(difference, zero_method="pratt").pvalue)
