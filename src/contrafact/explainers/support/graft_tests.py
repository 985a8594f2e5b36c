"""What a believable edit has to pass: no jump or kink, and the class survives small noise."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...engine import Tasks
from ...models.verdict import Verdict, lead
from ...numerics.differences import RealDifferences

#: added to probabilities, so that no answer is infinitely far from the decision
LEAST_PROBABILITY = 0.01
#: stream of random numbers
NOISE_STREAM = 17


def log_lead(verdict: Verdict, target: Tensor) -> Tensor:
    """Return by how much log P(target) leads, (n,): bounded, and above 0 in the target class."""
    return lead((verdict.proba + LEAST_PROBABILITY).log(), target)


@dataclass(frozen=True)
class LooksReal:
    """Accept edits of series without a jump or kink that real series do not show at that place.

    Parameters
    ----------
    limits : RealDifferences
        What real series do.
    """

    limits: RealDifferences

    def passes(self, tasks: Tasks, x_cf: Tensor) -> Tensor:
        """Find the edits whose seam and kink ratios are at most 1."""
        seam = self.limits.seam(x_cf, tasks.x)
        kink = self.limits.kink(x_cf, tasks.x)
        return (seam <= 1) & (kink <= 1)


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
        noise = repeated.normal(tasks.x[0].numel(), number, stream=NOISE_STREAM)
        noise = noise.view(repeated.x.shape) * (self.sigma * self.scale)
        noisy = x_cf.repeat_interleave(self.draws, dim=0) + noise
        verdict = repeated.ask(noisy, remember=False)
        stays = (verdict.label == repeated.target).view(-1, self.draws)
        leads = log_lead(verdict, repeated.target).view(-1, self.draws)
        return NoiseProbe(stays.double().mean(1), stays.sum(1) >= self.least, leads)
