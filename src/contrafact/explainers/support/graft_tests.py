"""What a believable edit has to pass: no jump or kink, and the class survives small noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ...engine import Tasks
from ...models.verdict import Verdict, lead
from ...numerics import channel_correlations
from ...numerics.differences import RealDifferences

#: added to probabilities, so that no answer is infinitely far from the decision
LEAST_PROBABILITY = 0.01
#: by how much a correlation may leave the range of real ones
SLACK = 1e-6
#: stream of random numbers
NOISE_STREAM = 17


def log_lead(verdict: Verdict, target: Tensor) -> Tensor:
    """Return by how much log P(target) leads, (n,): bounded, and above 0 in the target class."""
    return lead((verdict.proba + LEAST_PROBABILITY).log(), target)


@dataclass(frozen=True)
class LooksReal:
    """Accept edits of series that show nothing at their edges that real series do not show there.

    That is no jump, no kink and, of several channels, no correlation outside the range of real
    series, unless the instance has it itself.

    Parameters
    ----------
    limits : RealDifferences
        What real series do from step to step.
    lowest, highest : Tensor of shape (channels, channels)
        Range of the correlations between channels.
    """

    limits: RealDifferences
    lowest: Tensor
    highest: Tensor

    @classmethod
    def of(cls, X: Tensor) -> LooksReal:
        """Learn from reference series (n, channels, length) what is real."""
        correlation = channel_correlations(X)
        return cls(robust_limits(X), correlation.amin(0), correlation.amax(0))

    def passes(self, tasks: Tasks, x_cf: Tensor) -> Tensor:
        """Find the edits that look real."""
        seam = self.limits.seam(x_cf, tasks.x)
        kink = self.limits.kink(x_cf, tasks.x)
        passes: Tensor = (seam <= 1) & (kink <= 1)
        if x_cf.shape[1] > 1:
            passes &= self._correlations_are_real(x_cf, tasks.x)
        return passes

    def _correlations_are_real(self, x_cf: Tensor, x: Tensor) -> Tensor:
        own = channel_correlations(x)
        lowest = torch.minimum(self.lowest, own)
        highest = torch.maximum(self.highest, own)
        correlation = channel_correlations(x_cf)
        # A little slack: another batch may sum the same series in another order.
        above = correlation >= lowest - SLACK
        below = correlation <= highest + SLACK
        real: Tensor = (above & below).flatten(1).all(1)
        return real


def robust_limits(X: Tensor) -> RealDifferences:
    """Return what real series do from step to step, not led astray by a few odd recordings.

    The 99 % quantile, but at most six times what nine in ten series stay below.

    Parameters
    ----------
    X : Tensor of shape (n, channels, length)
        Reference series.

    Returns
    -------
    RealDifferences
        The limits.
    """
    usual = RealDifferences.of(X)
    common = RealDifferences.of(X, quantile=0.9)
    return RealDifferences(
        torch.minimum(usual.first, 6 * common.first),
        torch.minimum(usual.second, 6 * common.second),
    )


@dataclass(frozen=True)
class NoiseProbe:
    """What became of candidates under noise.

    Parameters
    ----------
    share : Tensor of float64, shape (n,)
        Share of draws that stay in the target class.
    survived : Tensor of bool, shape (n,)
        Whether these are enough.
    lead : Tensor of float64, shape (n, draws)
        Lead of log P(target) in each draw.
    """

    share: Tensor
    survived: Tensor
    lead: Tensor


@dataclass(frozen=True)
class SurvivesNoise:
    """Accept candidates that stay in the target class when small noise is added.

        x' + σ · s · ε,   ε normal, s the standard deviation of the reference

    The draws belong to the instance: they are the same for all its candidates.

    Parameters
    ----------
    scale : Tensor that broadcasts against one instance
        s.
    sigma : float
        σ.
    draws : int
        Draws per candidate.
    least : int
        Draws that have to stay in the class.
    """

    scale: Tensor
    sigma: float
    draws: int
    least: int

    def passes(self, tasks: Tasks, x_cf: Tensor) -> Tensor:
        """Find the candidates that survive."""
        return self.probe(tasks, x_cf).survived

    def probe(self, tasks: Tasks, x_cf: Tensor) -> NoiseProbe:
        """Ask the model about noisy copies of one candidate per task.

        Parameters
        ----------
        tasks : Tasks
            What the candidates are for.
        x_cf : Tensor of shape (n, *shape)
            The candidates.

        Returns
        -------
        NoiseProbe
            How many copies stay in the target class, and by how much.
        """
        repeated = tasks.repeat(self.draws)
        number = torch.arange(self.draws, device=tasks.row.device).repeat(len(tasks))
        noise = repeated.normal(math.prod(tasks.shape), number, stream=NOISE_STREAM)
        noise = noise.view(repeated.x.shape) * (self.sigma * self.scale)
        noisy = x_cf.repeat_interleave(self.draws, dim=0) + noise
        verdict = repeated.ask(noisy, remember=False)
        stays = (verdict.label == repeated.target).view(-1, self.draws)
        leads = log_lead(verdict, repeated.target).view(-1, self.draws)
        return NoiseProbe(stays.double().mean(1), stays.sum(1) >= self.least, leads)
