"""The stated probability that a retrained model agrees with a counterfactual."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..models.classifier import Array

#: Prior of the share of retrained models that agree: Beta(a, b), fitted to 6,720 answers of 13
#: methods about 30 models, each shown to two retrained models (benchmarks/results/believable.md).
PRIOR_AGREE = 1.05
PRIOR_DISAGREE = 0.25


def survival_probability(votes: Any, size: Any) -> Array:
    """Compute how likely a retrained model agrees, from the votes of a committee.

    The posterior mean of the share p of retrained models that put x' in the target class,

        p ~ Beta(a, b),    votes | p ~ Binomial(size, p)
        E[p | votes] = (a + votes) / (a + b + size)

    It assumes that a retrained model is exchangeable with the members: made in the same way, from
    the same data. Surrogates, or models of other kinds, are not; for them the number says how
    likely one more such model agrees. Nor does it know that x' was selected to convince the
    members, or how firmly the model decides: a and b were fitted to what models that no search saw
    said of the answers of many methods. Answers of the level "lasting" last a little longer than
    stated.

    Parameters
    ----------
    votes : int or array of int, shape (n,)
        Members that put each counterfactual in its target class; negative: not known.
    size : int or array of int, shape (n,)
        Members of the committee.

    Returns
    -------
    array of float, shape (n,)
        The probabilities; NaN where the votes are not known.

    Examples
    --------
    >>> survival_probability([3, 2, 0, -1], 3).round(2).tolist()
    [0.94, 0.71, 0.24, nan]
    """
    votes = np.asarray(votes, dtype=np.float64)
    mean = (PRIOR_AGREE + votes) / (PRIOR_AGREE + PRIOR_DISAGREE + np.asarray(size))
    return np.where(votes < 0, np.nan, mean)
