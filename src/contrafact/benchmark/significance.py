"""Friedman's test: whether methods differ at all over the data sets or runs of a benchmark."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from ..metrics import Metric
from .blocks import Blocks, comparison_size, ranks


@dataclass(frozen=True)
class Friedman:
    """Hold the result of Friedman's test.

    The hypothesis: every order of the k methods is equally likely in each of N blocks.

    Parameters
    ----------
    statistic, p : float
        Friedman's χ² with k − 1 degrees of freedom, corrected for ties, and its p-value.
    f_statistic, f_p : float
        Iman and Davenport's F, less conservative, with k − 1 and (k − 1)(N − 1) degrees of freedom.
    n_methods, n_blocks : int
        k and N.
    blocks : {"datasets", "runs"}
        What the blocks are.
    """

    statistic: float
    p: float
    f_statistic: float
    f_p: float
    n_methods: int
    n_blocks: int
    blocks: Blocks = "datasets"


def friedman(
    frame: pd.DataFrame,
    metric: str | Metric,
    *,
    blocks: Blocks = "datasets",
    failed_worst: bool = True,
) -> Friedman:
    """Test whether the methods differ at all, with Iman and Davenport's correction.

        χ² = (k − 1) Σ_j (R_j − N (k+1)/2)² / (Σ_ij r_ij² − N k (k+1)²/4)
        F = (N − 1) χ² / (N (k − 1) − χ²)

    with r_ij the rank of method j in block i and R_j its sum; without ties, the first is the
    textbook's 12 / (N k (k+1)) Σ_j R_j² − 3 N (k+1). Methods that are equal everywhere have p = 1.

    Parameters
    ----------
    frame : DataFrame
        A benchmark's table, one row per counterfactual.
    metric : str or Metric
        A metric's name, or a `Metric` that filled the column of its name.
    blocks : {"datasets", "runs"}, default="datasets"
        Compare over data sets, each with the mean over its classifiers and seeds, or over every
        data set × classifier × seed. Runs on one data set are not independent: over them, p is too
        small.
    failed_worst : bool, default=True
        Counterfactuals that are not valid get the worst score of their run.

    Returns
    -------
    Friedman
        Both statistics and their p-values.

    Raises
    ------
    ValueError
        With fewer than two methods or two blocks.

    References
    ----------
    Friedman: The use of ranks to avoid the assumption of normality implicit in the analysis of
    variance. Journal of the American Statistical Association 32, 1937.
    https://doi.org/10.1080/01621459.1937.10503522

    Iman, Davenport: Approximations of the critical region of the Friedman statistic. Communications
    in Statistics 9, 1980. https://doi.org/10.1080/03610928008827904

    Examples
    --------
    >>> table = pd.DataFrame({"dataset": [*"AABBCC"], "classifier": "net", "seed": 0,
    ...                       "explainer": [*"ababab"], "instance": 0, "l2": [1, 2, 1, 3, 2, 4]})
    >>> friedman(table, "l2").statistic
    3.0
    """
    r = ranks(frame, metric, blocks=blocks, failed_worst=failed_worst).to_numpy()
    N, k = comparison_size(r, blocks)
    within = np.sum(r**2) - N * k * (k + 1) ** 2 / 4
    rank_sums = r.sum(axis=0)
    between = np.sum((rank_sums - N * (k + 1) / 2) ** 2)
    chi2 = (k - 1) * between / within if within > 0 else 0.0
    rest = N * (k - 1) - chi2
    all_agree = rest <= 1e-9 * N
    f = np.inf if all_agree else (N - 1) * chi2 / rest
    return Friedman(
        statistic=float(chi2),
        p=float(stats.chi2.sf(chi2, k - 1)),
        f_statistic=float(f),
        f_p=float(stats.f.sf(f, k - 1, (k - 1) * (N - 1))),
        n_methods=k,
        n_blocks=N,
        blocks=blocks,
    )
