"""The answers of a model about some rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from ..validation import Integer, brief, check_parameters

#: How far from 1 a row of probabilities may sum, since some services round theirs.
SUM_TOLERANCE = 0.05


@dataclass(frozen=True)
class Verdict:
    """Hold the answers of a model about m rows.

    Parameters
    ----------
    proba : Tensor of shape (m, classes)
        The model's own probabilities.
    label : Tensor of shape (m,)
        Index of the class the model decides for.
    score : Tensor of shape (m, classes)
        What a search may increase: log-probabilities, or the decision function where the model has
        one and its probabilities are step functions.

    Examples
    --------
    >>> verdict = Verdict.of_proba(torch.tensor([[0.25, 0.75], [0.5, 0.5]]))
    >>> verdict.label
    tensor([1, 0])
    """

    proba: Tensor
    label: Tensor
    score: Tensor

    def __getitem__(self, rows: Tensor) -> Verdict:
        return Verdict(
            self.proba[rows],
            self.label[rows],
            self.score[rows],
        )

    def is_finite(self) -> Tensor:
        """Return the mask of the rows whose probabilities and scores are all finite."""
        return self.proba.isfinite().all(1) & self.score.isfinite().all(1)

    def all_finite(self) -> bool:
        """Return whether all probabilities and scores are finite."""
        return all_finite(self.proba + self.score)

    def where(self, mask: Tensor, other: Verdict) -> Verdict:
        """Keep the rows of a mask and take the others from another verdict.

        Parameters
        ----------
        mask : Tensor of bool, shape (m,)
            True for rows to keep.
        other : Verdict
            About as many rows.

        Returns
        -------
        Verdict
            The combined answers.
        """
        return Verdict(
            torch.where(mask[:, None], self.proba, other.proba),
            torch.where(mask, self.label, other.label),
            torch.where(mask[:, None], self.score, other.score),
        )

    @staticmethod
    def concat(parts: Sequence[Verdict]) -> Verdict:
        """Join verdicts about successive rows.

        Parameters
        ----------
        parts : sequence of Verdict
            At least one, all with the same classes.

        Returns
        -------
        Verdict
            About the rows of all parts, in this order.
        """
        if len(parts) == 1:
            return parts[0]
        return Verdict(
            torch.cat([part.proba for part in parts]),
            torch.cat([part.label for part in parts]),
            torch.cat([part.score for part in parts]),
        )

    @staticmethod
    def of_proba(proba: Tensor) -> Verdict:
        """Make the verdict of a model that decides for its most probable class.

        Parameters
        ----------
        proba : Tensor of shape (m, classes)
            Probabilities; NaN stands for a row that failed.

        Returns
        -------
        Verdict
            With log-probabilities as score, in float64.
        """
        if not _is_dense(proba, 2) or not proba.is_floating_point():
            raise TypeError(f"proba must be a tensor of floats (m, classes), got {brief(proba)}.")
        proba = proba.double()
        return Verdict(proba, proba.argmax(1), finite_log(proba))

    @staticmethod
    def of_label(label: Tensor, n_classes: int) -> Verdict:
        """Make the verdict of a model that gives labels only.

        Parameters
        ----------
        label : Tensor of shape (m,)
            Index of the class of each row.
        n_classes : int
            Number of classes.

        Returns
        -------
        Verdict
            With probability 1 for the class of the label.
        """
        rules = {"n_classes": Integer(at_least=1, at_most=10**6)}
        check_parameters("Verdict.of_label", rules, {"n_classes": n_classes})
        if not _is_dense(label, 1) or label.dtype != torch.int64:
            raise TypeError(f"label must be a tensor of int64 (m,), got {brief(label)}.")
        if bool(((label < 0) | (label >= n_classes)).any()):
            raise ValueError(
                f"label must be at least 0 and below n_classes={n_classes}, got {brief(label)}."
            )
        proba = one_hot(label, n_classes).double()
        return Verdict(proba, label, finite_log(proba))


def _is_dense(value: Any, ndim: int) -> bool:
    """Return whether a value is a tensor of so many axes that holds all its values."""
    if not isinstance(value, Tensor) or value.ndim != ndim:
        return False
    return value.layout == torch.strided and not value.is_meta


def check_probabilities(proba: Tensor) -> None:
    """Refuse rows that cannot be probabilities; NaN may stand for a row that failed."""
    values = proba.cpu().numpy()
    wrong = (values < 0).any(1) | (abs(values.sum(1) - 1) > SUM_TOLERANCE)
    if not wrong.any():
        return
    example = values[wrong][0].tolist()
    raise ValueError(
        "The model must give probabilities, one column per class, that sum to 1, "
        f"but a row is {example} (sum {sum(example):.3g}); apply a softmax to scores."
    )


def all_finite(tensor: Tensor) -> bool:
    """Return whether all numbers of a tensor are finite."""
    # A finite sum implies finite numbers; only a sum that is not finite needs a closer look.
    return math.isfinite(tensor.sum().item()) or bool(tensor.isfinite().all())


def finite_log(proba: Tensor) -> Tensor:
    """Return log p, finite also at p = 0."""
    smallest = torch.finfo(proba.dtype).tiny
    return proba.clamp_min(smallest).log()


def target_value(values: Tensor, target: Tensor) -> Tensor:
    """Pick the target's value in every row.

    Parameters
    ----------
    values : Tensor of shape (n, classes)
        Probabilities or scores.
    target : Tensor of shape (n,)
        Column to pick.

    Returns
    -------
    Tensor of shape (n,)
        values[j, target[j]].
    """
    return values.gather(1, target[:, None])[:, 0]


def lead(values: Tensor, target: Tensor) -> Tensor:
    """Compute how far the target's value is above the best of the other classes.

    Parameters
    ----------
    values : Tensor of shape (n, classes)
        Probabilities or scores.
    target : Tensor of shape (n,)
        Column of the target.

    Returns
    -------
    Tensor of shape (n,)
        Positive where the target leads.
    """
    column = target[:, None]
    others = values.scatter(1, column, -torch.inf).amax(1)
    return values.gather(1, column)[:, 0] - others
