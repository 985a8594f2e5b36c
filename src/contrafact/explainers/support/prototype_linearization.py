"""Small changes that bring an instance nearest to a prototype with a metric of its own.

The points nearer to one prototype than to others form a curved set then. It is linearized again and
again, which ends at a point that no small change improves. The conditions taken one by one, pair of
prototypes by pair, bound how much shorter a change could be.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...geometry import nearest_point
from ...geometry.dual_problem import Norm
from ...prototypes.pair_bounds import PairBounds
from .displacements import length
from .prototype_problem import MARGINS, Problems, Prototypes, Solutions

#: linearizations of a problem
MAX_TURNS = 40
#: bisections of the way to the anchor
BISECTIONS = 20
#: a step is kept if it shortens δ by this share
LEAST_GAIN = 1e-7
#: a search ends when steps of this share of the way no longer help
LEAST_SHARE = 1e-3


def solve_linearized(
    prototypes: Prototypes,
    problems: Problems,
    norm: Norm,
    lead: float = 0.0,
    margin: float = MARGINS[0],
) -> Solutions:
    """Solve problems for local metrics by sequential linearization.

    Parameters
    ----------
    prototypes : Prototypes
        With one metric each.
    problems : Problems
        What to solve.
    norm : {"l1", "l2"}
        What is to be short.
    lead : float, default=0
        By how much nearer prototype j has to be, in squared distances.
    margin : float, default=1e-11
        Share of the distances by which the lead is exceeded, for rounding.

    Returns
    -------
    Solutions
        Displacements that no small change improves, with lower bounds by single conditions.
    """
    search = _Linearization(prototypes, problems, norm, lead, margin)
    return search.run()


@dataclass(frozen=True)
class View:
    """Where some displacements have led.

    inside : (n,), whether x + δ is nearest to prototype j, with lead and margin.
    room : (n, K), d_k − d_j less lead and margin; 1 for prototypes of the class itself.
    image : (n, K, rank), Ω_k (x + δ − w_k).
    """

    inside: Tensor
    room: Tensor
    image: Tensor


def look(
    prototypes: Prototypes,
    problems: Problems,
    delta: Tensor,
    lead: float,
    margin: float,
) -> View:
    """Compute the distances to prototypes with a metric each at displacements (n, D)."""
    assert prototypes.omega is not None
    away = (problems.x + delta)[:, None] - prototypes.w  # (n, K, D)
    image = torch.einsum("krd,nkd->nkr", prototypes.omega, away)
    distance = image.square().sum(2)
    own = distance.gather(1, problems.j[:, None])
    slack = margin * distance.amax(1, keepdim=True)
    room = distance - own - lead - slack
    room = torch.where(prototypes.others(problems.j), room, 1)
    inside = (room >= -slack / 2).all(1)
    return View(inside, room, image)


def first_inside(
    prototypes: Prototypes,
    problems: Problems,
    delta: Tensor,
    anchor: Tensor,
    lead: float,
    margin: float,
    bisections: int = BISECTIONS,
) -> Tensor:
    """Find the first displacement that is inside on the way from `delta` to `anchor`."""
    low = torch.zeros_like(delta[:, :1])
    high = torch.ones_like(delta[:, :1])
    high[look(prototypes, problems, delta, lead, margin).inside] = 0
    for _ in range(bisections):
        middle = (low + high) / 2
        trial = torch.lerp(delta, anchor, middle)
        inside = look(prototypes, problems, trial, lead, margin).inside[:, None]
        low = torch.where(inside, low, middle)
        high = torch.where(inside, middle, high)
    return torch.lerp(delta, anchor, high)


class _Linearization:
    """The state of all problems: displacement, anchor inside the set, share of the next step."""

    def __init__(
        self,
        prototypes: Prototypes,
        problems: Problems,
        norm: Norm,
        lead: float,
        margin: float,
    ) -> None:
        assert prototypes.omega is not None
        self.prototypes = prototypes
        self.omega = prototypes.omega
        self.problems = problems
        self.norm = norm
        self.lead = lead
        self.margin = margin
        goal = prototypes.w[problems.j]
        self.anchor = _into_box(goal - problems.x, problems)
        self.share = torch.ones_like(problems.x[:, :1])
        self.everything = torch.arange(len(problems))
        unmoved = _into_box(torch.zeros_like(problems.x), problems)
        self.delta = self._bring_back(unmoved, self.everything)

    def run(self) -> Solutions:
        """Linearize until no step helps."""
        open_ = self.everything
        for _ in range(MAX_TURNS):
            if len(open_) == 0:
                break
            open_ = self._turn(open_)
        inside = self._look(self.delta, self.everything).inside
        outside = ~inside[:, None]
        return Solutions(
            delta=self.delta.masked_fill(outside, torch.nan),
            lower_bound=self._lower_bound(),
            infeasible=torch.zeros_like(inside),
        )

    def _lower_bound(self) -> Tensor:
        """Bound the shortest δ by the conditions taken one by one, each of which is exact in l2.

        An l1 norm is no less than the l2 norm.
        """
        bounds = PairBounds.of(self.prototypes.w, self.omega, 2)
        x = self.problems.x
        d = bounds.distances(x)
        slope = bounds.slopes(x)
        lowest = torch.zeros_like(x[:, 0])
        for j in self.problems.j.unique().tolist():
            rows = (self.problems.j == j).nonzero().flatten()
            others = self.prototypes.owner != self.prototypes.owner[j]
            k = others.nonzero().flatten()
            pairs = bounds.quadratic(slope[rows], d[rows], torch.full_like(k, j), k, self.lead)
            lowest[rows] = pairs.amax(1)
        return lowest

    def _turn(self, open_: Tensor) -> Tensor:
        """Move the open problems once; return those still open.

        The solution of the linear problem is brought back inside, toward the anchor. If it is not
        shorter then, the linearization was trusted too far: the next step is shorter.
        """
        z = self.delta[open_]
        share = self.share[open_]
        view = self._look(z, open_)
        inside = view.inside
        is_inside = inside[:, None]
        goal = self._linear_solution(z, view, open_)
        step = torch.lerp(z, goal, share)
        trial = torch.where(is_inside, step, goal)
        trial[inside] = self._bring_back(
            trial[inside],
            open_[inside],
        )

        size = length(trial, self.norm)
        size_before = length(z, self.norm)
        is_shorter = size < (1 - LEAST_GAIN) * size_before
        moves = ~inside | is_shorter
        moves = moves[:, None]
        moved = torch.where(moves, trial, z)
        longer = (2 * share).clamp_max(1)
        share = torch.where(moves, longer, share / 4)
        anchor = torch.where(is_inside, self.anchor[open_], moved)
        self.delta[open_] = moved
        self.share[open_] = share
        self.anchor[open_] = anchor
        is_open = share[:, 0] > LEAST_SHARE
        return open_[is_open]

    def _look(self, delta: Tensor, which: Tensor) -> View:
        """Compute distances at displacements of some problems."""
        return look(self.prototypes, self.problems.take(which), delta, self.lead, self.margin)

    def _bring_back(self, delta: Tensor, which: Tensor) -> Tensor:
        """Find the first point inside on the way to the anchor."""
        problems = self.problems.take(which)
        anchor = self.anchor[which]
        return first_inside(self.prototypes, problems, delta, anchor, self.lead, self.margin)

    def _linear_solution(self, z: Tensor, view: View, which: Tensor) -> Tensor:
        """Solve the problems with d_j − d_k linear at z; z itself where there is no solution."""
        problems = self.problems.take(which)
        is_other = self.prototypes.others(problems.j)
        slope = 2 * torch.einsum(
            "krd,nkr->nkd",
            self.omega,
            view.image,
        )
        j = problems.j[:, None, None]
        j = j.expand(-1, 1, slope.shape[2])
        difference = slope.gather(1, j) - slope
        A = difference * is_other[..., None]
        at_z = A @ z[..., None]
        found = nearest_point(
            torch.zeros_like(z),
            A,
            view.room + at_z[..., 0],
            self.norm,
            bounds=(problems.lower, problems.upper),
        )
        return torch.where(found.delta.isfinite(), found.delta, z)


def _into_box(delta: Tensor, problems: Problems) -> Tensor:
    return delta.clamp(problems.lower, problems.upper)
