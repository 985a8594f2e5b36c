"""Isolation: an exception in one row never costs the other rows their result."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import torch
from torch import Tensor

from ..models.verdict import Verdict
from .request import OnError

T = TypeVar("T")

logger = logging.getLogger("contrafact")


@dataclass
class Isolated(Generic[T]):
    """What `isolate` returns: results by the rows they belong to, exceptions by row."""

    results: list[tuple[Tensor, T]] = field(default_factory=list)
    exceptions: dict[int, Exception] = field(default_factory=dict)


def isolate(
    work: Callable[[Tensor], T],
    n: int,
    on_error: OnError = "row",
) -> Isolated[T]:
    """Run `work` on rows 0, ..., n - 1 at once; where it raises, on halves, down to single rows.

    This is the one place that catches everything a model or method may raise.

    Parameters
    ----------
    work : function of a Tensor of row numbers
        The work to do.
    n : int
        Number of rows.
    on_error : {"row", "raise"}, default="row"
        "row": keep the exception of each row that is to blame, log its traceback and warn.
        "raise": let the first exception pass.

    Returns
    -------
    Isolated
        Results of the parts that worked, and the exceptions of the rows that did not.
    """
    done: Isolated[T] = Isolated()
    waiting = [torch.arange(n)] if n else []
    while waiting:
        rows = waiting.pop()
        try:
            done.results.append((rows, work(rows)))
        except Exception as error:
            if on_error == "raise":
                raise
            if len(rows) == 1:
                done.exceptions[int(rows[0])] = error
            else:
                middle = len(rows) // 2
                waiting += [rows[middle:], rows[:middle]]
    if done.exceptions:
        _tell(done.exceptions, n)
    return done


def describe_exception(error: Exception) -> str:
    """Describe an exception in one line."""
    return f"{type(error).__name__}: {error}"


def _tell(exceptions: dict[int, Exception], n: int) -> None:
    """Log every distinct exception with its traceback, and warn once."""
    distinct = {describe_exception(error): error for error in exceptions.values()}
    for reason, error in distinct.items():
        count = sum(describe_exception(other) == reason for other in exceptions.values())
        logger.error("%d of %d rows failed: %s", count, n, reason, exc_info=error)
    row, error = next(iter(exceptions.items()))
    warnings.warn(
        f"{len(exceptions)} of {n} rows failed; row {row}: {describe_exception(error)}",
        RuntimeWarning,
        stacklevel=6,
    )


def gather_verdicts(
    parts: list[tuple[Tensor, Verdict]],
    n: int,
    n_classes: int,
    device: torch.device,
) -> Verdict:
    """Put the verdicts of some rows in order.

    Parameters
    ----------
    parts : list of (rows, Verdict)
        The parts that were answered.
    n : int
        Number of rows in all.
    n_classes : int
        Number of classes.
    device : torch.device
        Where the verdict is to lie.

    Returns
    -------
    Verdict
        One row each; NaN and class 0 where there was no answer.
    """
    unknown = torch.full(
        (n, n_classes),
        torch.nan,
        dtype=torch.float64,
        device=device,
    )
    label = torch.zeros(n, dtype=torch.long, device=device)
    whole = Verdict(unknown, label, unknown.clone())
    for rows, part in parts:
        whole.proba[rows] = part.proba
        whole.label[rows] = part.label
        whole.score[rows] = part.score
    return whole
