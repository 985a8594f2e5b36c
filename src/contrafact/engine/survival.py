"""The stated probability that a retrained model agrees with a counterfactual."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..models.classifier import Array

#: Prior of the share of retrained models that agree: Beta(a, b), Jeffreys' a = b = 1/2.
PRIOR_AGREE = 0.5
PRIOR_DISAGREE = 0.5


def survival_probability(votes: Any, size: Any) -> Array:
    """Compute how likely a retrained model agrees, from the votes of a committee.

    The posterior mean of the share p of retrained models that put x' in the target class,

        p ~ Beta(a, b),    votes | p ~ Binomial(size, p)
        E[p | votes] = (a + votes) / (a + b + size)

    It assumes that a retrained model is exchangeable with the members: made in the same way, from
    the same data. Surrogates, or models of other kinds, are not; for them the number says how
    likely one more such model agrees. Nor does it know that x' was selected to convince the
    members: a and b are where a study of models that no search saw corrects for that.

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
    >>> survival_probability([3, 2, 0, -1], 3).tolist()
    [0.875, 0.625, 0.125, nan]
    """
    votes = np.asarray(votes, dtype=np.float64)
    mean = (PRIOR_AGREE + votes) / (PRIOR_AGREE + PRIOR_DISAGREE + np.asarray(size))
    return np.where(votes < 0, np.nan, mean)
