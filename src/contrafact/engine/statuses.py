"""Status and message of every counterfactual."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..models.classifier import Array
from .oracle import Oracle
from .row_states import State

STATUSES = ("valid", "already_target", "invalid", "infeasible", "budget", "error")


def describe_statuses(
    oracle: Oracle,
    source: Array,
    reached: Array,
    moved: Array,
    p_target: Array,
    votes: Array | None = None,
    repeats: Array | None = None,
) -> tuple[Array, Array]:
    """Say what became of each counterfactual, and why.

    Parameters
    ----------
    oracle : Oracle
        The request with the state of every instance.
    source : array of int, shape (n,)
        Instance of each counterfactual.
    reached : array of bool, shape (n,)
        Whether the model puts it in the target class.
    moved : array of bool, shape (n,)
        Whether it differs from its instance.
    p_target : array of float, shape (n,)
        P(target) of each counterfactual.
    votes : array of int, shape (n,), optional
        Members of the committee that agree with each; None where there is no committee.
    repeats : array of int, shape (n,), optional
        Number, from 1, of an earlier option of the row that changes the same columns; 0: none does.

    Returns
    -------
    status, message : array of str, shape (n,)
        One of `STATUSES`, and the reason; empty where there is nothing to add.
    """
    counts = np.bincount(source, minlength=len(oracle.states.reason))
    agreeing = [None] * len(source) if votes is None else votes.tolist()
    earlier = [0] * len(source) if repeats is None else repeats.tolist()
    entries = [
        _describe(oracle, row, int(counts[row]), is_reached, is_moved, p, in_favor, same_as)
        for row, is_reached, is_moved, p, in_favor, same_as in zip(
            source.tolist(),
            reached.tolist(),
            moved.tolist(),
            p_target.tolist(),
            agreeing,
            earlier,
            strict=True,
        )
    ]
    status = np.array([entry[0] for entry in entries], dtype="U14")
    message = np.array([entry[1] for entry in entries], dtype=str)
    return status, message


def _describe(
    oracle: Oracle,
    row: int,
    count: int,
    is_reached: bool,
    is_moved: bool,
    p_target: float,
    votes: int | None,
    same_as: int,
) -> tuple[str, str]:
    state = State(oracle.states.state[row])
    reason = oracle.states.reason[row]
    if state == State.FAILED:
        return "error", reason
    if state == State.DONE and is_reached and not is_moved:
        return "already_target", ""
    if is_reached:
        return "valid", "; ".join(_shortfalls(oracle, row, count, p_target, votes, same_as))
    best = f"best P({_target_name(oracle, row)}) = {p_target:.2f}"
    if state == State.EXHAUSTED:
        return "budget", f"{oracle.states.shortage[row]}; {best}"
    if state == State.REFUSED:
        return "infeasible", reason
    remark = f"; {oracle.states.remark[row]}" if oracle.states.remark[row] else ""
    limits = "" if oracle.feasible_set is None else oracle.feasible_set.describe()
    if limits:
        return "infeasible", f"not reached with {limits}; {best}{remark}"
    return "invalid", f"not reached; {best}{remark}"


def _shortfalls(
    oracle: Oracle,
    row: int,
    count: int,
    p_target: float,
    votes: int | None,
    same_as: int,
) -> Iterator[str]:
    """Say what a valid counterfactual lacks of what was asked for."""
    request = oracle.request
    reason = oracle.states.reason[row]
    shortage = oracle.states.shortage[row]
    if same_as:
        why = f": {reason}" if reason and count == request.k else ""
        yield f"the same columns as option {same_as}, with other values{why}"
    if count < request.k:
        why = reason or shortage or "no more were found"
        yield f"{count} of {request.k} counterfactuals: {why}"
    elif shortage:
        yield shortage
    if request.confidence is not None and p_target < request.confidence:
        name = _target_name(oracle, row)
        yield f"P({name}) = {p_target:.2f}, below the {request.confidence:g} asked for"
    if votes is not None and oracle.committee is not None and votes < len(oracle.committee):
        yield f"{votes} of {len(oracle.committee)} members of the committee agree"
    if oracle.states.remark[row]:
        yield oracle.states.remark[row]


def _target_name(oracle: Oracle, row: int) -> str:
    column = int(oracle.question.target[row])
    return repr(oracle.classifier.classes.tolist()[column])
