"""What a result says about the committee: who agrees, at what cost, and what follows from it."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from ..models.classifier import Array
from .isolation import describe_exception, isolate
from .oracle import Oracle
from .survival import survival_probability

#: Entries of `Counterfactuals.info` of every request with a committee, and what each means.
COMMITTEE_KEYS = {
    "committee_votes": "members of the committee that put x' in the target class; -1: not known",
    "committee_size": "members of the committee",
    "committee_calls": "rows that the members were asked about",
    "survival": "probability that a retrained model agrees, see engine/survival.py",
}


def count_votes(oracle: Oracle, row: Tensor, final: Array) -> Array | None:
    """Ask the committee about the arrays as they are returned.

    Parameters
    ----------
    oracle : Oracle
        The request.
    row : Tensor of shape (n,)
        Instance of each array.
    final : array of shape (n, *shape)
        The arrays.

    Returns
    -------
    array of int, shape (n,), or None
        Members that agree, -1 where a member broke down, which is an error of the row. None where
        the request has no committee.
    """
    if oracle.committee is None:
        return None
    x = oracle.classifier.as_input(final)
    answers = isolate(
        lambda entries: oracle.votes(x[entries], row[entries]),
        len(final),
        oracle.request.on_error,
    )
    votes = np.full(len(final), -1)
    for entries, count in answers.results:
        votes[entries.numpy()] = count.cpu().numpy()
    for entry, error in answers.exceptions.items():
        reason = f"a member of the committee failed: {describe_exception(error)}"
        oracle.states.fail(row[entry : entry + 1], reason, error)
    return votes


def committee_info(votes: Array, size: int, calls: Array) -> dict[str, Array]:
    """Return what `info` says about the committee.

    Parameters
    ----------
    votes : array of int, shape (n,)
        Members that agree with each counterfactual.
    size : int
        Members of the committee.
    calls : array of int, shape (n,)
        Rows that the members were asked about for each counterfactual.

    Returns
    -------
    dict of str to array
        One entry for each of `COMMITTEE_KEYS`.
    """
    values = (votes, np.full(len(votes), size), calls, survival_probability(votes, size))
    return dict(zip(COMMITTEE_KEYS, values, strict=True))
