"""The smallest change that reaches a confidence with three classes or more: exact, by cuts.

With u_k = d_k − d_j, linear in δ for one metric, and m_c the least u_k of class c, prototype j has
the confidence p where

    h(δ) = log Σ_c exp(−m_c/T) + log(p/(1 − p)) ≤ 0,     over the classes c other than j's.

h is convex, so each tangent is a half-space that holds the whole set: the nearest point of the
half-spaces found so far bounds the distance from below. The way from there to a point that is
certainly inside ends at one that bounds it from above; cuts are added until the two meet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from ...geometry import nearest_point
from ...geometry.dual_problem import Norm
from .displacements import length
from .prototype_problem import Problems, Prototypes, Solutions

#: most cuts of a problem
MAX_CUTS = 40
#: a problem is solved when the bounds differ by this share of the distance
CLOSE = 2e-7
#: bisections of the way inside
BISECTIONS = 50
#: by how much log-odds are exceeded, for rounding
SLACK = 1e-9


@dataclass(frozen=True)
class Confidence:
    """What P(target) is to be, and how the model computes it.

    Parameters
    ----------
    least : float
        p, the least P(target).
    temperature : float
        T of P(c) ∝ exp(−d_c/T).
    """

    least: float
    temperature: float

    @property
    def log_odds(self) -> float:
        """log(p/(1 − p))."""
        return math.log(self.least) - math.log1p(-self.least)


def solve_confident(
    prototypes: Prototypes,
    problems: Problems,
    norm: Norm,
    confidence: Confidence,
    needed: Solutions,
    enough: Solutions,
) -> Solutions:
    """Find the shortest displacements that reach a confidence, for one metric of all prototypes.

    Parameters
    ----------
    prototypes : Prototypes
        With one metric.
    problems : Problems
        What to solve.
    norm : {"l1", "l2"}
        What is shortest.
    confidence : Confidence
        What is to be reached.
    needed, enough : Solutions
        Displacements that the confidence needs, and that are certainly enough for it.

    Returns
    -------
    Solutions
        The displacements, where some are enough, and lower bounds.
    """
    delta = enough.delta.clone()
    lower = needed.lower_bound.clone()
    solvable = enough.delta.isfinite().all(1) & needed.delta.isfinite().all(1)
    rows = solvable.nonzero().flatten()
    if len(rows):
        search = _Cuts(prototypes, problems.take(rows), norm, confidence, enough.delta[rows])
        found, bound = search.run(needed.delta[rows])
        delta[rows] = found
        lower[rows] = torch.maximum(lower[rows], bound)
    return Solutions(delta, lower, needed.infeasible)


class _Cuts:
    """The half-spaces of all problems so far, and the best point inside of each."""

    def __init__(
        self,
        prototypes: Prototypes,
        problems: Problems,
        norm: Norm,
        confidence: Confidence,
        inside: Tensor,
    ) -> None:
        self.problems = problems
        self.norm = norm
        self.confidence = confidence
        self.inside = inside
        metric = torch.eye(problems.x.shape[1], dtype=torch.float64)
        if prototypes.omega is not None:
            metric = prototypes.omega.T @ prototypes.omega
        w = prototypes.w
        own = w[problems.j]
        away = problems.x[:, None] - w
        d = torch.einsum("nkd,de,nke->nk", away, metric, away)
        self.lead = d - d.gather(1, problems.j[:, None])  # u at δ = 0
        self.slope = 2 * (w - own[:, None]) @ metric  # u = lead − slope · δ
        target = prototypes.owner[problems.j]
        classes = prototypes.owner.unique()
        # (n, classes, K): which prototypes are of each class other than the target
        self.member = (prototypes.owner == classes[:, None]) & (
            classes[:, None] != target[:, None, None]
        )

    def run(self, start: Tensor) -> tuple[Tensor, Tensor]:
        """Add cuts until distances and bounds meet; returns displacements and bounds."""
        best = self.inside.clone()
        n, d = start.shape
        bound = start.new_zeros(n)
        normal = start.new_zeros(n, 0, d)
        side = start.new_zeros(n, 0)
        open_ = torch.arange(n)
        point = start
        for _ in range(MAX_CUTS):
            value, gradient = self._look(point, open_)
            closer = self._bring_inside(point, open_)
            shorter = length(closer, self.norm) < length(best[open_], self.norm)
            best[open_[shorter]] = closer[shorter]
            normal = torch.cat([normal, gradient[:, None]], 1)
            side = torch.cat([side, ((gradient * point).sum(1) - value)[:, None]], 1)
            found = nearest_point(
                torch.zeros_like(point),
                normal,
                side,
                self.norm,
                bounds=(self.problems.lower[open_], self.problems.upper[open_]),
            )
            bound[open_] = torch.maximum(bound[open_], found.lower_bound)
            size = length(best[open_], self.norm)
            left = (size - bound[open_] > CLOSE * size.clamp_min(1)) & found.delta.isfinite().all(1)
            open_ = open_[left]
            if len(open_) == 0:
                break
            point, normal, side = found.delta[left], normal[left], side[left]
        return best, bound

    def _look(self, delta: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Compute h and its gradient at displacements of some problems."""
        slope = self.slope[rows]
        u = self.lead[rows] - (slope * delta[:, None]).sum(2)  # (n, K)
        spread = u[:, None].expand(self.member[rows].shape)
        least, nearest = spread.masked_fill(~self.member[rows], torch.inf).min(2)
        scaled = -least / self.confidence.temperature
        value = scaled.logsumexp(1) + self.confidence.log_odds
        share = scaled.softmax(1)  # 0 for the target, whose least is infinite
        # Below one half, the confidence alone would not make j the nearest.
        rival, position = scaled.max(1)
        decides = (rival > value)[:, None]
        value = torch.maximum(value, rival) + SLACK
        share = torch.where(decides, one_hot(position, share.shape[1]).to(share), share)
        columns = nearest[..., None].expand(-1, -1, slope.shape[2])
        gradient = (share[..., None] * slope.gather(1, columns)).sum(1)
        return value, gradient / self.confidence.temperature

    def _bring_inside(self, delta: Tensor, rows: Tensor) -> Tensor:
        """Find the first point with h ≤ 0 on the way to one that is certainly inside."""
        goal = self.inside[rows]
        low = torch.zeros_like(delta[:, :1])
        high = torch.ones_like(low)
        at_start = self._look(delta, rows)[0] <= 0
        high[at_start] = 0
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            is_inside = (self._look(torch.lerp(delta, goal, middle), rows)[0] <= 0)[:, None]
            low = torch.where(is_inside, low, middle)
            high = torch.where(is_inside, middle, high)
        return torch.lerp(delta, goal, high)
