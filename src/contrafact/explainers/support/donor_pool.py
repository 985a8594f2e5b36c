"""Donors: reference rows that are good examples of the class that the model puts them in."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...data import disagreeing_rows
from ...engine import Tasks
from ...guides.guide import to_numpy
from ...models.classifier import Array, Classifier
from ...models.verdict import Verdict, lead
from .feasible_guides import FoundGuides
from .graft_tests import LEAST_PROBABILITY, log_lead
from .slopes_toward import discriminant_slopes, log_odds_gradient, scaled_slopes

#: neighbors that have to agree with a donor's class
N_NEIGHBORS = 5
#: a class keeps at least this many donors
LEAST_DONORS = 3
#: P(target) that is asked for at most, where typical rows of a class have more: rows that a model
#: was trained on have a P close to 1, which a retrained model does not need to see to agree
LARGEST_GOAL = 0.6


def evenly_by_class(label: Tensor, most: int) -> Tensor:
    """Choose at most so many rows, evenly over the rows of each class.

    A class with fewer rows than its share keeps all of them.

    Parameters
    ----------
    label : Tensor of int, shape (n,)
        Class of each row.
    most : int
        Rows to choose at most, unless there are more classes.

    Returns
    -------
    Tensor of int
        The rows, ascending; all of them where there are no more than `most`.

    Examples
    --------
    >>> evenly_by_class(torch.tensor([0, 0, 0, 1, 0, 0, 0]), 4).tolist()
    [0, 3, 4]
    """
    if len(label) <= most:
        return torch.arange(len(label))
    label = label.cpu()
    classes = label.unique().tolist()
    share = max(1, most // len(classes))
    chosen = []
    for c in classes:
        own = (label == c).nonzero().flatten()
        count = min(share, len(own))
        chosen.append(own[torch.arange(count) * len(own) // count])
    return torch.cat(chosen).sort().values


def good_donors(
    X: Tensor,
    labels: Array | None,
    verdict: Verdict,
    classes: Array,
) -> Tensor:
    """Choose the reference rows that may be donors.

    Rows whose neighbors disagree with their label, and rows whose label is not the model's class,
    are left out, as long as a class keeps three rows.

    Parameters
    ----------
    X : Tensor of shape (n, *shape)
        Reference rows.
    labels : array of shape (n,) or None
        Their labels; default: the model's classes.
    verdict : Verdict
        What the model says of them.
    classes : array of shape (classes,)
        The classes of the model.

    Returns
    -------
    Tensor of int
        The rows.
    """
    label = verdict.label.cpu()
    p_own = verdict.proba.cpu().double().gather(1, label[:, None])[:, 0]
    doubtful = torch.zeros(len(X), dtype=torch.bool)
    k = min(N_NEIGHBORS, len(X) - 1)
    if k >= 1:
        given = label.numpy() if labels is None else labels
        doubtful |= torch.from_numpy(disagreeing_rows(to_numpy(X), given, k).mask)
    if labels is not None:
        doubtful |= torch.from_numpy(classes[label.numpy()] != labels)
    for c in label.unique().tolist():
        own = (label == c).nonzero().flatten()
        kept = own[~doubtful[own]]
        if len(kept) < LEAST_DONORS:
            surest = own[p_own[own].argsort(descending=True, stable=True)]
            doubtful[surest[:LEAST_DONORS]] = False
    return (~doubtful).nonzero().flatten()


@dataclass(frozen=True)
class WayToDonors:
    """How the lead of the target changes on the way to donors.

    Parameters
    ----------
    slope : Tensor of float64, shape (n, donors, *shape)
        Derivative of the lead with respect to each value.
    lead : Tensor of float64, shape (n, donors)
        Lead at the donors.
    """

    slope: Tensor
    lead: Tensor


@dataclass(frozen=True)
class DonorKnowledge:
    """What the model says of donors, and how its answer changes on the way to them.

    Parameters
    ----------
    proba : Tensor of shape (m, classes)
        The model's probabilities for the donors.
    slopes : Tensor of shape (m, *shape)
        Gradient of the log-odds of each donor's class, where the model has gradients; else by
        `class_slopes`.
    class_slopes : Tensor of shape (classes, classes, *shape)
        Direction that separates two classes.
    """

    proba: Tensor
    slopes: Tensor | None
    class_slopes: Tensor

    @classmethod
    def of(cls, classifier: Classifier, X: Tensor, verdict: Verdict) -> DonorKnowledge:
        """Ask the model about the donors X (m, *shape)."""
        slopes = None
        if classifier.differentiable:
            slopes = log_odds_gradient(classifier, X, verdict.label)
        n_classes = len(classifier.classes)
        class_slopes = discriminant_slopes(X, verdict.label, n_classes)
        return cls(verdict.proba, slopes, class_slopes)

    def typical_confidence(self, quantile: float) -> Tensor:
        """Return a quantile of P(c) among the donors of each class c, (classes,)."""
        label = self.proba.argmax(1)
        goals = torch.zeros(self.proba.shape[1], dtype=torch.float64, device=label.device)
        for c in label.unique().tolist():
            p_own = self.proba[label == c, c].double()
            goals[c] = p_own.quantile(quantile).clamp(max=LARGEST_GOAL)
        return goals

    def way_to(self, tasks: Tasks, donors: FoundGuides) -> WayToDonors:
        """Return how the target's lead changes on the way to each donor.

        Slopes are the mean of the gradients at both ends, or the direction that separates the
        classes, scaled so that the whole way predicts the donor's own lead. Costs one model row
        where the model has gradients and the budget allows it.

        Parameters
        ----------
        tasks : Tasks
            The instances.
        donors : FoundGuides
            The donors of each, by their number here.

        Returns
        -------
        WayToDonors
            Slopes and leads.
        """
        index = donors.index.clamp(min=0)
        apart = self.class_slopes[tasks.target, tasks.label][:, None]
        # A model may use a value otherwise than this rule of thumb, but hardly against it.
        helps = apart * (donors.x - tasks.x[:, None]) > 0
        slope = torch.where(helps, apart, 0.0)
        if self.slopes is not None:
            able = tasks.affords()
            slope[able] = self._mean_slopes(tasks.take(able), index[able])
        proba = (self.proba[index] + LEAST_PROBABILITY).log().flatten(0, 1)
        target = tasks.target.repeat_interleave(index.shape[1])
        donor_lead = lead(proba, target).view(index.shape)
        here_lead = log_lead(tasks.before, tasks.target)
        slope = scaled_slopes(tasks, donors.x, slope, donor_lead, here_lead)
        return WayToDonors(slope, donor_lead)

    def _mean_slopes(self, tasks: Tasks, index: Tensor) -> Tensor:
        """Return the mean of the gradients at the instances and at their donors."""
        assert self.slopes is not None
        at_donors = self.slopes[index].double()
        if len(tasks) == 0:
            return at_donors
        here = log_odds_gradient(tasks.classifier, tasks.x, tasks.target)
        tasks.oracle.charge(tasks.row)
        return 0.5 * (here.double()[:, None] + at_donors)
