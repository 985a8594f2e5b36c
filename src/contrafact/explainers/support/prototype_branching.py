"""Prove small changes of prototype models with local metrics to be the smallest, or nearly so.

Branch and bound, in l2. Prototypes j whose single conditions prove them too far are left out. For
the others all conditions together have a dual (`prototypes/joint_bounds.py`), whose solution is
the smallest change itself where there is no gap. Where there is one, the ball ‖δ‖ ≤ R of what could
still be shorter is cut into boxes along the axes v_1, ..., v_m of least curvature of the dual. In a
box, l ≤ vᵀδ ≤ u is one more quadratic condition, (vᵀδ − l)(vᵀδ − u) ≤ 0, which bends the dual
upward: the narrower the box, the smaller its gap. The least bound of all boxes is the bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ...prototypes.joint_bounds import Conditions, DualPoint, Strips, maximize_dual
from ...prototypes.pair_bounds import PairBounds
from .displacements import choose_shortest, length
from .prototype_linearization import first_inside, look
from .prototype_problem import MARGINS, Problems, Prototypes, Solutions

#: a problem is closed when its bound is below the shortest δ by no more than this share
CLOSE = 5e-7
#: axes along which boxes are cut
MAX_AXES = 6
#: cuts in a row, and open boxes of a problem, after which it is left as it is
MAX_ROUNDS = 30
MAX_BOXES = 256
#: least share of a box on either side of a cut
LEAST_SIDE = 0.2
#: bisections of the way from a dual solution to a point inside
BISECTIONS = 50
#: numbers in the matrices of the problems, and of the boxes of one, that are worked on at once
MAX_NUMBERS = 2**22
MAX_NUMBERS_OF_BOXES = 2**20


def close_gaps(
    prototypes: Prototypes,
    problems: Problems,
    found: Solutions,
    cutoff: Tensor,
    lead: float = 0.0,
    margin: float = MARGINS[0],
) -> Solutions:
    """Raise lower bounds, and shorten displacements, until they meet.

    Parameters
    ----------
    prototypes : Prototypes
        With one metric each.
    problems : Problems
        What was solved.
    found : Solutions
        Displacements and lower bounds so far.
    cutoff : Tensor of shape (n,)
        Lengths (l2) beyond which no displacement of a problem matters.
    lead : float, default=0
        By how much nearer prototype j has to be, in squared distances.
    margin : float, default=1e-11
        Share of the distances by which the lead is exceeded, for rounding.

    Returns
    -------
    Solutions
        The shortest displacements found, and the bounds.
    """
    delta = found.delta.clone()
    bound = found.lower_bound.clone()
    cutoff = torch.minimum(cutoff, length(delta, "l2").nan_to_num(torch.inf))
    is_open = bound < (1 - CLOSE) * cutoff
    pairs = PairBounds.of(prototypes.w, prototypes.omega, 2)
    for rows in is_open.nonzero().flatten().split(max(1, MAX_NUMBERS // problems.x.shape[1] ** 2)):
        search = _Search(
            prototypes, pairs, problems.take(rows), delta[rows], cutoff[rows], lead, margin
        )
        raised = search.run()
        delta[rows] = search.delta
        bound[rows] = torch.maximum(bound[rows], raised)
    return replace(found, delta=delta, lower_bound=bound)


@dataclass(frozen=True)
class _Boxes:
    """Parts of the balls of some problems.

    problem : (b,), the problem of each box.
    low, high : (b, m), its sides along the axes of the problem.
    multipliers : (b, K + strips), of the dual, to start from.
    bound : (b,), the squared distance that is proved for it.
    delta : (b, D), where its dual has its minimum.
    """

    problem: Tensor
    low: Tensor
    high: Tensor
    multipliers: Tensor
    bound: Tensor
    delta: Tensor

    def take(self, which: Tensor) -> _Boxes:
        return _Boxes(**{name: values[which] for name, values in vars(self).items()})


class _Search:
    """The state of some problems: shortest displacement, radius that matters, bound."""

    def __init__(
        self,
        prototypes: Prototypes,
        pairs: PairBounds,
        problems: Problems,
        delta: Tensor,
        radius: Tensor,
        lead: float,
        margin: float,
    ) -> None:
        self.prototypes = prototypes
        self.problems = problems
        self.delta = delta.clone()
        self.radius = radius.clone()
        self.lead = lead
        self.margin = margin
        d = pairs.distances(problems.x)
        rival = prototypes.others(problems.j)
        # What lies this far inside is still inside after rounding.
        self.slack = 2 * margin * d.amax(1, keepdim=True) * rival
        free = (problems.lower < problems.upper).double()
        slope = pairs.slopes(problems.x)
        everything = torch.arange(len(problems))
        g = slope[everything, problems.j][:, None] - slope
        r = d.gather(1, problems.j[:, None]) - d + lead
        self.conditions = Conditions(
            metric=pairs.metric,
            j=problems.j,
            g=g * rival[..., None] * free[:, None],
            r=torch.where(rival, r, 0.0) + self.slack,
            rival=rival,
            free=free,
            strips=_touched_sides(problems, delta),
        )

    def run(self) -> Tensor:
        """Solve the duals, then cut boxes where they leave a gap; returns the bounds."""
        everything = torch.arange(len(self.problems))
        dual = maximize_dual(self.conditions, self._enough(everything))
        bound = self._without_slack(dual, everything)
        self._shorten(everything, dual.delta)
        left = (self._is_open(bound, everything) & self.radius.isfinite()).nonzero().flatten()
        if len(left):
            at_left = torch.minimum(self._cut(left, dual), self.radius[left] ** 2)
            bound[left] = torch.maximum(bound[left], at_left)
        return bound.clamp_min(0).sqrt()

    def _enough(self, rows: Tensor) -> Tensor:
        """Return the squared bounds that end the search of a problem."""
        return self.radius[rows] ** 2 * (1 + 1e-9)

    def _is_open(self, bound: Tensor, rows: Tensor) -> Tensor:
        return bound.clamp_min(0).sqrt() < (1 - CLOSE) * self.radius[rows]

    def _without_slack(self, dual: DualPoint, rows: Tensor) -> Tensor:
        """Return what a dual proves of the problem without the margin."""
        slack = self.slack[rows]
        return dual.value - (dual.multipliers[:, : slack.shape[1]] * slack).sum(1)

    def _shorten(self, rows: Tensor, delta: Tensor) -> None:
        """Take displacements, or what is inside on the way from there, where they are shorter."""
        problems = self.problems.take(rows)
        delta = delta.clamp(problems.lower, problems.upper)
        known = self.delta[rows]
        inside = look(self.prototypes, problems, delta, self.lead, self.margin).inside
        has_way = ~inside & known.isfinite().all(1)
        delta[has_way] = first_inside(
            self.prototypes,
            problems.take(has_way),
            delta[has_way],
            known[has_way],
            self.lead,
            self.margin,
            BISECTIONS,
        )
        shorter = length(delta, "l2") < length(known, "l2").nan_to_num(torch.inf)
        better = ((inside | has_way) & shorter)[:, None]
        # Several boxes of a problem may have one.
        chosen, _ = choose_shortest(torch.where(better, delta, torch.nan), "l2", group=rows, k=1)
        self.delta[rows[chosen]] = delta[chosen]
        size = length(self.delta, "l2").nan_to_num(torch.inf)
        self.radius = torch.minimum(self.radius, size)

    def _cut(self, rows: Tensor, dual: DualPoint) -> Tensor:
        """Cut the balls of some problems into boxes; returns their squared bounds."""
        conditions = self.conditions.take(rows)
        _, axes = torch.linalg.eigh(conditions.curvature(dual.multipliers[rows]))
        axes = axes[:, :, :MAX_AXES].transpose(1, 2).contiguous()  # (rows, m, D)
        reach = self.radius[rows, None].expand(-1, axes.shape[1])
        nothing = torch.zeros_like(reach)
        boxes = _Boxes(
            problem=torch.arange(len(rows)),
            low=-reach,
            high=reach.clone(),
            multipliers=torch.cat([dual.multipliers[rows], nothing], 1),
            bound=self._without_slack(dual, torch.arange(len(self.problems)))[rows],
            delta=dual.delta[rows],
        )
        most = max(1, min(MAX_BOXES, MAX_NUMBERS_OF_BOXES // axes.shape[2] ** 2))
        proved = torch.full((len(rows),), torch.inf, dtype=torch.float64)
        for _ in range(MAX_ROUNDS):
            boxes = self._solve(rows, axes, self._halves(rows, axes, boxes))
            is_open = self._is_open(boxes.bound, rows[boxes.problem])
            crowd = torch.bincount(boxes.problem[is_open], minlength=len(rows))
            goes_on = is_open & (crowd[boxes.problem] <= most)
            ended = boxes.take(~goes_on)
            proved = proved.scatter_reduce(0, ended.problem, ended.bound, "amin")
            boxes = boxes.take(goes_on)
            if len(boxes.problem) == 0:
                break
        return proved.scatter_reduce(0, boxes.problem, boxes.bound, "amin")

    def _solve(self, rows: Tensor, axes: Tensor, boxes: _Boxes) -> _Boxes:
        """Solve the duals of boxes."""
        of = rows[boxes.problem]
        strips = Strips.between(axes[boxes.problem], boxes.low, boxes.high)
        conditions = self.conditions.take(of).within(strips)
        dual = maximize_dual(conditions, self._enough(of), boxes.multipliers)
        self._shorten(of, dual.delta)
        # A part of a box is at least as far as the box.
        bound = torch.maximum(self._without_slack(dual, of), boxes.bound)
        return replace(boxes, multipliers=dual.multipliers, bound=bound, delta=dual.delta)

    def _halves(self, rows: Tensor, axes: Tensor, boxes: _Boxes) -> _Boxes:
        """Cut every box in two across the axis along which its dual is flattest, for its width.

        An open box has a dual that is flat in one direction u: H u = 0. The gap is what δ may move
        along it within the box.
        """
        strips = Strips.between(axes[boxes.problem], boxes.low, boxes.high)
        conditions = self.conditions.take(rows[boxes.problem]).within(strips)
        _, vectors = torch.linalg.eigh(conditions.curvature(boxes.multipliers))
        along = torch.einsum("bmd,bd->bm", strips.v, vectors[:, :, 0])
        axis = (along * (boxes.high - boxes.low)).abs().argmax(1, keepdim=True)
        low, high = boxes.low.gather(1, axis), boxes.high.gather(1, axis)
        place = torch.einsum("bmd,bd->bm", strips.v, boxes.delta).gather(1, axis)
        side = LEAST_SIDE * (high - low)
        place = torch.minimum(torch.maximum(place, low + side), high - side)
        lower = replace(boxes, high=boxes.high.scatter(1, axis, place))
        upper = replace(boxes, low=boxes.low.scatter(1, axis, place))
        return _Boxes(
            **{
                name: torch.cat([values, getattr(upper, name)])
                for name, values in vars(lower).items()
            }
        )


def _touched_sides(problems: Problems, delta: Tensor) -> Strips:
    """Make conditions of the sides of the box that displacements touch."""
    free = problems.lower < problems.upper
    near = 1e-9 * (1 + delta.abs())
    above = free & (delta >= problems.upper - near)
    below = free & (delta <= problems.lower + near)
    touched = above | below
    most = int(touched.sum(1).max()) if len(touched) else 0
    columns = touched.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, :most]
    is_side = touched.gather(1, columns)
    sign = torch.where(above, 1.0, -1.0).double().gather(1, columns) * is_side
    edge = torch.where(above, problems.upper, -problems.lower).gather(1, columns)
    v = torch.zeros(len(delta), most, delta.shape[1], dtype=torch.float64)
    v.scatter_(2, columns[..., None], sign[..., None])
    b = 0.5 * is_side.double()
    return Strips(v, torch.zeros_like(b), b, torch.where(is_side, -edge, 0.0))
