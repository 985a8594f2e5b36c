"""SVCE: the most convincing instance of another class in an l_p ball, or the smallest such ball."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor
from typing_extensions import override

from ..engine import Candidates, Tags, Tasks
from ..guides import Guide, NearestUnlikeNeighbor
from ..models.classifier import Array
from ..numerics import broadcast_rows
from ..search import first_on_line
from ..search.ball import Ball
from ..search.segments import as_rows
from ..validation import Function, Integer, Nothing, OneOf, Real, Satisfies
from .support.ball_descent import BallDescent
from .support.ball_race import BallRace
from .support.ball_search import BallSearch, Found, Objective
from .support.boundary_walk import walk_boundary
from .support.guided import FallbackExplainer
from .support.level_exchanges import exchange_levels
from .support.option_rules import COUNT, PROBABILITY, STEPS
from .support.pixel_levels import MOST, Levels, PixelLevels, find_levels, round_to_levels
from .support.value_bounds import check_scale, read_bounds

#: Frank-Wolfe gap up to which a search counts as done
SMALL_GAP = 0.1
#: what the message says where it is larger
UNFINISHED = f"Frank-Wolfe gap above {SMALL_GAP}: more steps (n_iter, restarts) may convince more"
#: width of finite differences, in units of the spread of the data
DIFFERENCE = 0.3
#: guides differ from each other among this many times as many nearest reference rows of the class
GUIDE_POOL = 20


def _is_pair(value: Any) -> bool:
    """Return whether a value is a tuple or list of two."""
    return isinstance(value, tuple | list) and len(value) == 2


class SVCE(FallbackExplainer):
    """Find the most convincing instance of the target class within an l_p ball.

        max over x'   log P(c | x')     subject to   ‖x' − x‖_p ≤ ε,   low ≤ x' ≤ high

    p = 1.5 changes few pixels, and on the object; p = 2 spreads over the background, p = 1 leaves
    isolated ones. Only adversarially robust models answer with features of the class (see
    `RobustTrainer`). Series and rows work as well as images. In tables numbers move; where that
    does not do, single levels of categories are exchanged before, the one that helps most first.

    The automatic radius starts on the line to the nearest unlike neighbor, at reference rows of the
    class that differ from it, and at random points. Models without gradients are asked for few
    finite differences from the line; where the answers are steps without a slope, the instance
    stays on it, reported in `info["fallback"]`.

    Parameters
    ----------
    norm : float, default=1.5
        p, from 1 to 100, or inf.
    radius : float or "auto", default="auto"
        ε; "auto": the smallest that changes the class (and reaches the confidence asked for).
    optimizer : {"auto", "afw", "apgd"}, default="auto"
        Auto-Frank-Wolfe or APGD, from random points; "auto" races both, from points of several
        kinds and through larger balls first, and goes on with the best.
    n_iter : int, default=75
        Steps of a run.
    restarts : int, default=5
        Runs from random points of the ball, the best counts; "auto" shares out as many steps.
    objective : {"logp", "margin"} or function, default="logp"
        log P(c), by how much the class leads, or a function of a Point to minimize.
    confidence : float, optional
        P(c) to reach; `explain(confidence=...)` takes precedence.
    bounds : tuple, optional
        (low, high) of the values, numbers or one per channel; default: the range of the reference
        data, per channel (per feature for rows).
    levels : int, "auto" or None, default="auto"
        Images: values that a pixel can have, so that a counterfactual stays valid when it is saved
        as a picture. It lies on low + k / (levels − 1) (high − low), and the model is asked about
        it there; where rounding undoes the class, the change is enlarged as little as needed, if
        need be beyond a fixed radius. "auto": 256 where all pixels of the reference images lie on
        such a grid (of `bounds`; else of their range, [0, 1], [0, 255] or [-1, 1]), else None, as
        for series and rows: no rounding.

    References
    ----------
    Boreiko, Augustin, Croce, Berens, Hein: Sparse visual counterfactual explanations in image
    space. GCPR 2022. https://doi.org/10.48550/arXiv.2205.07972

    Examples
    --------
    >>> result = SVCE(norm=1.5, restarts=1).fit(model, X_train, y_train).explain(X_test[:8])
    >>> result.valid.mean()
    1.0
    """

    tags = Tags(gradient=True)
    rules = {
        "norm": Real(at_least=1, at_most=100) | OneOf(math.inf),
        "radius": OneOf("auto") | Real(above=0, at_most=1e9),
        "bounds": Nothing() | Satisfies(_is_pair, "a pair (lower, upper)"),
        "optimizer": OneOf("auto", "afw", "apgd"),
        "n_iter": STEPS,
        "restarts": COUNT,
        "objective": OneOf("logp", "margin") | Function("a point"),
        "confidence": Nothing() | PROBABILITY,
        "levels": Nothing() | OneOf("auto") | Integer(at_least=2, at_most=2**16),
    }
    info_keys = {
        "radius": "ε",
        "norm_used": "‖x' − x‖_p",
        "fw_gap": "how much the objective could still rise in the ball, to first order",
        "converged": f"whether that is at most {SMALL_GAP}; else more steps may help",
        "confidence_before": "P(c) of the instance",
        "confidence_after": "P(c) of the counterfactual",
        "fallback": "whether the line to the nearest unlike neighbor was taken",
    }

    def __init__(
        self,
        norm: float = 1.5,
        radius: float | Literal["auto"] = "auto",
        optimizer: Literal["auto", "afw", "apgd"] = "auto",
        n_iter: int = 75,
        restarts: int = 5,
        objective: Objective = "logp",
        confidence: float | None = None,
        bounds: tuple[Any, Any] | None = None,
        levels: Levels = "auto",
    ) -> None:
        self.norm = norm
        self.radius = radius
        self.optimizer = optimizer
        self.n_iter = n_iter
        self.restarts = restarts
        self.objective = objective
        self.confidence = confidence
        self.bounds = bounds
        self.levels = levels

    @override
    def _default_confidence(self) -> float | None:
        return self.confidence

    @property
    def _search(self) -> BallSearch:
        """The search within balls of given radii."""
        return BallSearch(self.objective, DIFFERENCE * self.spread_)

    @override
    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [
            {"n_iter": 6, "restarts": 1},
            {"norm": 2, "radius": 2.0, "optimizer": "apgd", "n_iter": 8, "restarts": 2},
        ]

    @override
    def _make_guide(self) -> Guide:
        guide = NearestUnlikeNeighbor(diverse=True)
        guide.pool_factor = GUIDE_POOL
        return guide

    @override
    def _fit(self, X: Tensor, y: Array | None) -> None:
        super()._fit(X, y)
        if self.bounds is None:
            low, high = X.transpose(0, 1).flatten(1).aminmax(dim=1)
        else:
            low, high = read_bounds(self.bounds, X)
            check_scale(X, high)
        self.levels_ = find_levels(self.levels, X, None if self.bounds is None else (low, high))
        self.low_ = broadcast_rows(low, X[0]).expand(self.shape_).clone()
        self.high_ = broadcast_rows(high, X[0]).expand(self.shape_).clone()
        self.spread_ = float(X.flatten(1).std(0, correction=0).mean()) or 1.0

    @override
    def _explain(self, tasks: Tasks) -> Candidates:
        ball = self._ball(tasks)
        x_cf, fallback = self._within(tasks, ball)
        if tasks.space is not None:
            x_cf, fallback = self._with_exchanges(tasks, x_cf, fallback)
            # Levels that were exchanged stay, numbers are what the ball is about.
            ball = replace(ball, x0=torch.where(ball.free, tasks.x, x_cf))
        if self.levels_ is not None:
            x_cf, fallback = self._on_levels(tasks, ball, x_cf, fallback, self.levels_)
        used = replace(ball, x0=tasks.x).norm(x_cf)
        ball = replace(ball, eps=torch.maximum(ball.eps, used.to(ball.eps)))
        gap, p_after = self._search.certificate(tasks, ball, x_cf)
        if self.radius != "auto":
            # Where a confidence was asked for and is reached, the search was done before the top.
            wanted = p_after < (tasks.confidence or torch.inf)
            tasks.remark((gap > SMALL_GAP) & wanted, UNFINISHED)
        return tasks.candidates(
            x_cf,
            radius=ball.eps.double(),
            norm_used=used,
            fw_gap=gap,
            converged=gap <= SMALL_GAP,
            confidence_before=tasks.p_target(tasks.before),
            confidence_after=p_after,
            fallback=fallback,
        )

    def _within(self, tasks: Tasks, ball: Ball) -> tuple[Tensor, Tensor]:
        """Search in balls: the points found, and where they lie on the line to a neighbor."""
        if self.radius == "auto":
            return self._smallest(tasks, ball)
        exact = tasks.classifier.differentiable
        # Finite differences are too dear for a race.
        optimizer = "afw" if self.optimizer == "auto" and not exact else self.optimizer
        race = BallRace(self._search, optimizer, self.n_iter, self.restarts)
        x_cf = torch.empty_like(tasks.x)
        for which, guides in self._by_guides(tasks, 1 if optimizer == "auto" else 0):
            guide = None if guides is None else guides[:, 0]
            x_cf[which] = self._race(race, tasks.take(which), ball.take(which), guide)
        return x_cf, torch.zeros_like(tasks.rank, dtype=torch.bool)

    def _race(self, race: BallRace, tasks: Tasks, ball: Ball, guide: Tensor | None) -> Tensor:
        """Race within balls; where no run reaches the class, go on from a smaller ball's answer."""
        found = race.run(tasks, ball, guide, tasks.confidence)
        missed = ~found.reached
        if guide is not None and bool(missed.any()):
            which = missed.nonzero().flatten()
            found.put(
                which,
                self._from_smallest(tasks.take(which), ball.take(which), found.take(which)),
            )
        return found.x_cf

    def _by_guides(self, tasks: Tasks, k: int) -> list[tuple[Tensor, Tensor | None]]:
        """Find k instances of the class for each task, to start from.

        Returns the positions of the tasks that have any, with instances (m, k, *shape), the nearest
        first and in the place of those that are missing; then the other positions, with None.
        """
        position = torch.arange(len(tasks), device=tasks.row.device)
        if k == 0 or tasks.space is not None:
            return [(position, None)]
        target = self.classifier_.classes[tasks.target.cpu().numpy()]
        x, index = self.guide_.guide(tasks.x, target, k, confidence=tasks.confidence)
        missing = index < 0
        x[missing] = x[:, :1].expand_as(x)[missing]
        none = missing[:, 0]
        parts = [(position[~none], x[~none]), (position[none], None)]
        return [(which, found) for which, found in parts if len(which)]

    def _from_smallest(self, tasks: Tasks, ball: Ball, found: Found) -> Found:
        """Start again from the answer of a smaller ball, where there is one."""
        small, _ = self._smallest(tasks, ball)
        fits = tasks.accepted(small) & (ball.norm(small) <= ball.eps)
        if bool(fits.any()):
            part = self._search.climb(
                tasks.take(fits),
                ball.take(fits),
                small[fits],
                ["apgd"] * int(fits.sum()),
                self.n_iter,
                tasks.confidence,
            )
            found.put(fits, part)
        return found

    def _with_exchanges(
        self, tasks: Tasks, x_cf: Tensor, fallback: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Exchange levels of rows of a table where numbers alone do not change the class.

        Where that does not either, the row is the first on the way to a neighbor.
        """
        x_cf = x_cf.clone()
        missed = (~tasks.accepted(x_cf)).nonzero().flatten()
        if len(missed):
            failed = tasks.take(missed)
            center = exchange_levels(failed)
            ball = self._ball(failed)
            ball = replace(
                ball,
                x0=center,
                low=torch.minimum(ball.low, center),
                high=torch.maximum(ball.high, center),
            )
            x_cf[missed], fallback[missed] = self._within(failed, ball)
        if self.radius != "auto":
            return x_cf, fallback
        x_cf, on_line = self._fall_back(tasks, x_cf)
        return x_cf, fallback | on_line

    def _on_levels(
        self, tasks: Tasks, ball: Ball, x_cf: Tensor, fallback: Tensor, levels: PixelLevels
    ) -> tuple[Tensor, Tensor]:
        """Round images to their levels; where no enlarged change does, on the way to a neighbor."""
        fixed = self.radius != "auto"
        rounded, missed = round_to_levels(tasks, ball, x_cf, levels, within=fixed)
        if fixed or len(missed) == 0:
            return rounded, fallback
        failed = tasks.take(missed)
        guides = self._find_guides(failed)
        # Enlarged MOST times, this is the neighbor itself.
        start = failed.x + (guides.x[:, 0] - failed.x) / MOST
        rounded[missed], _ = round_to_levels(failed, ball.take(missed), start, levels, within=False)
        fallback[missed] = True
        return rounded, fallback

    def _ball(self, tasks: Tasks) -> Ball:
        """Intersect the box of the data with the constraints.

        Further counterfactuals of an instance may change a random half of the values, so that they
        differ.
        """
        low = self.low_
        high = self.high_
        free = torch.ones_like(tasks.x, dtype=torch.bool)
        if tasks.feasible_set is not None:
            lower, upper, movable = tasks.feasible_set.box(tasks.x)
            low = torch.maximum(low, lower)
            high = torch.minimum(high, upper)
            free &= movable
        if tasks.space is not None:
            # What a row has is allowed, even outside of the range of the data.
            low = torch.minimum(low, tasks.x)
            high = torch.maximum(high, tasks.x)
        if tasks.k > 1:
            half = tasks.uniform(math.prod(tasks.shape), tasks.rank).reshape(free.shape) < 0.5
            free &= half | broadcast_rows(tasks.rank == 0, free)
        radius = 0.0 if self.radius == "auto" else float(self.radius)
        eps = tasks.x.new_full((len(tasks),), radius)
        return Ball(tasks.x, eps, float(self.norm), low, high, free)

    # --- the smallest ball

    def _smallest(self, tasks: Tasks, ball: Ball) -> tuple[Tensor, Tensor]:
        """Shrink the ball that the line to the nearest unlike neighbor is known to need."""
        best, fallback = self._fall_back(tasks, ball.x0)
        best = as_rows(tasks, torch.where(ball.free, best, ball.x0))
        if not tasks.classifier.differentiable:
            return self._by_differences(tasks, ball, best, fallback)
        radius = self._largest_radius(tasks, ball, best)
        model = self._search.gradient(tasks)
        descent = BallDescent(model, self.optimizer, self.n_iter, self.restarts)
        n_others = sum(run.start == "guide" for run in descent.runs(ball.p))
        found = radius.clone()
        for which, guides in self._by_guides(tasks, 1 + n_others if n_others else 0):
            # The best so far lies on the line to the nearest.
            others = None if guides is None else guides[:, 1:]
            best[which], found[which] = descent.run(
                tasks.take(which),
                ball.take(which),
                best[which],
                radius[which],
                others,
            )
        won = (found < radius).nonzero().flatten()
        fallback[won] = False
        if len(won):
            best[won] = first_on_line(tasks.take(won), best[won])[1]
        return best, fallback

    def _by_differences(
        self, tasks: Tasks, ball: Ball, best: Tensor, fallback: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Walk along the boundary from the line to the nearest unlike neighbor."""
        known = tasks.accepted(best)
        model = self._search.gradient(tasks)
        walked, improved = walk_boundary(tasks.take(known), ball.take(known), best[known], model)
        best[known] = walked
        fallback[known] &= ~improved
        return best, fallback

    def _largest_radius(self, tasks: Tasks, ball: Ball, best: Tensor) -> Tensor:
        """Return a radius known to hold an answer: that of the best so far, else the whole box."""
        widest = torch.maximum((ball.high - ball.x0).abs(), (ball.x0 - ball.low).abs())
        radius = ball.norm(ball.x0 + widest).to(ball.eps)
        known = tasks.accepted(best)
        radius[known] = ball.take(known).norm(best[known]).to(radius)
        return radius
