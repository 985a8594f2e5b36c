"""Isolation: one bad row never loses the others."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from ..models.classifier import Verdict

T = TypeVar("T")


def isolate(work: Callable[[Tensor], T], n: int) -> tuple[list[tuple[Tensor, T]], dict[int, str]]:
    """Run `work` on rows 0…n−1 at once; where it raises, on halves, down to the rows that are to blame.

    This is the one place that catches everything a model or method may raise: the error of a bad row is told
    in the result, and the other rows get theirs.
    """
    done: list[tuple[Tensor, T]] = []
    failures: dict[int, str] = {}
    waiting = [torch.arange(n)] if n else []
    while waiting:
        rows = waiting.pop()
        try:
            done.append((rows, work(rows)))
        except Exception as error:
            if len(rows) == 1:
                failures[int(rows[0])] = f"{type(error).__name__}: {error}"
            else:
                waiting += [rows[len(rows) // 2 :], rows[: len(rows) // 2]]
    if failures:
        row, reason = next(iter(failures.items()))
        warnings.warn(
            f"{len(failures)} of {n} rows failed; row {row}: {reason}", RuntimeWarning, stacklevel=5
        )
    return done, failures


def gather(
    parts: list[tuple[Tensor, Verdict]], n: int, n_classes: int, device: torch.device
) -> Verdict:
    """Verdicts of the parts that answered, in order; NaN and class 0 for the rest."""
    unknown = torch.full((n, n_classes), torch.nan, dtype=torch.float64, device=device)
    whole = Verdict(unknown, torch.zeros(n, dtype=torch.long, device=device), unknown.clone())
    for rows, part in parts:
        whole.proba[rows], whole.label[rows], whole.score[rows] = part.proba, part.label, part.score
    return whole
