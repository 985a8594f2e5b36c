"""Predict what grafts do to the lead of the target, and learn from every answer."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .graft_tests import LEAST_PROBABILITY
from .graft_trials import Grafts

#: the largest lead there is
LARGEST_LEAD = math.log(1 + 1 / LEAST_PROBABILITY)
#: answers that a first-order prediction is worth
PRIOR_WEIGHT = 1.0
#: smallest expected error of a prediction
LEAST_SPREAD = 0.15


class LeadPredictions:
    """Predict the lead of the target after each graft.

    The first guess is the mean of two: first order, bounded as leads are, and the share that is
    grafted of the way to the donor's lead.

        prior_i = ½ L tanh((before + gain_i) / L) + ½ (before + size_i (donor's lead − before))

    It is corrected by the errors e_j of the first guesses about the grafts j that the model was
    asked about:

        m_i = prior_i + Σ_j s_ij e_j / (λ + Σ_j s_ij)

    where s_ij is the share of values that i and j have in common, less where they come from other
    donors.

    Parameters
    ----------
    grafts : Grafts
        The grafts of n tasks.
    before : Tensor of float64, shape (n,)
        Lead of the target without a graft.
    gains : Tensor of shape (n, v, w)
        First-order prediction of what each graft adds to it.
    donor_lead : Tensor of shape (n, v)
        Lead of the target in the donor of each variant.

    Attributes
    ----------
    prior : Tensor of shape (n, v, w)
        The first guesses.
    spread : Tensor of float64, shape (n,)
        Expected error of the predictions of each task.
    """

    def __init__(
        self,
        grafts: Grafts,
        before: Tensor,
        gains: Tensor,
        donor_lead: Tensor,
    ) -> None:
        self.grafts = grafts
        here = before[:, None, None].to(gains)
        self._gains = gains
        first_order = LARGEST_LEAD * torch.tanh((here + gains) / LARGEST_LEAD)
        on_the_way = here + (donor_lead[:, :, None].to(gains) - here) * grafts.sizes().to(gains)
        self.prior = 0.5 * (first_order + on_the_way)
        self.spread = 0.5 * before.abs() + 0.5
        self._kinship = grafts.kinship().to(gains)
        self._error_sum = torch.zeros_like(gains)
        self._weight_sum = torch.zeros_like(gains)

    def of(self, task: Tensor) -> Tensor:
        """Return the lead expected after each graft of some tasks, (a, v, w)."""
        return self.prior[task] + self._error_sum[task] / (PRIOR_WEIGHT + self._weight_sum[task])

    def first_order_gains(self, task: Tensor) -> Tensor:
        """Return what each graft of some tasks adds to the lead to first order, bounded, (a, v, w).

        For sums of small grafts, whose share of the way to a donor says little.
        """
        return LARGEST_LEAD * torch.tanh(self._gains[task] / LARGEST_LEAD)

    def learn(
        self,
        task: Tensor,
        variant: Tensor,
        cut: Tensor,
        answered: Tensor,
        lead: Tensor,
    ) -> None:
        """Correct the predictions by answers.

        Parameters
        ----------
        task : Tensor of int, shape (a,)
            The tasks.
        variant, cut : Tensor of int, shape (a, k)
            The grafts asked about.
        answered : Tensor of bool, shape (a, k)
            Those that there is an answer for.
        lead : Tensor of shape (a, k)
            The answers: the lead of the target.
        """
        graft = (task[:, None], variant, cut)
        prior = self.prior[graft]
        correction = self._error_sum[graft] / (PRIOR_WEIGHT + self._weight_sum[graft])
        surprise = lead - prior - correction
        mean_square = (surprise.square() * answered).sum(1) / answered.sum(1).clamp(min=1)
        seen = answered.any(1)
        spread = 0.5 * self.spread[task] + 0.5 * mean_square.sqrt()
        self.spread[task[seen]] = spread[seen].clamp_min(LEAST_SPREAD).to(self.spread)

        error = lead - prior
        similarity = self.grafts.similarity(cut).to(error)  # (a, k, w)
        kinship = self._kinship[variant] * answered[..., None]  # (a, k, v)
        weighted = kinship * error[..., None]
        self._error_sum[task] += torch.einsum("akv,akw->avw", weighted, similarity)
        self._weight_sum[task] += torch.einsum("akv,akw->avw", kinship, similarity)
