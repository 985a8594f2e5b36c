"""SVCE: the most convincing instance of another class within an l_p ball, or the smallest such ball."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import torch

from ..engine import Batch, Candidates, Point, Stop, Tags, first_on_line, minimise
from ..engine.ball import Ball, ball_step
from ..engine.batch import lead, target_value
from ..guides import Guide, NearestUnlikeNeighbour
from ..models.classifier import Array
from ..models.randomness import fold_in, row_normal, row_uniform
from .guided import GuidedExplainer

Objective = Literal["logp", "margin"] | Callable[[Point], torch.Tensor]
#: the auto radius is known to within this factor
PRECISION = 1.01


class SVCE(GuidedExplainer):
    """Sparse visual counterfactuals (Boreiko, Augustin, Croce, Berens, Hein 2022).

        max over x'   log P(c | x')     subject to   ‖x' − x‖_p ≤ ε,   lo ≤ x' ≤ hi

    p = 1.5 changes few pixels, and on the object; p = 2 spreads over the background, p = 1 leaves isolated
    ones. Only adversarially robust models answer with features of the class (see `RobustTrainer`). An l_p
    ball does not care what it holds: series and rows work as well.

    Parameters
    ----------
    norm : p, from 1 to inf.
    radius : ε, or "auto": the smallest that turns the class (and reaches the confidence asked for).
    optimizer : "afw" (Auto-Frank-Wolfe, every p) or "apgd" (p = 1, 2, inf).
    n_iter, restarts : steps of a run, and runs from random points of the ball; the best counts.
    objective : "logp", "margin" (by how much the class leads), or a function of a Point to minimise.
    confidence : P(c) to reach; `explain(confidence=...)` takes precedence.
    bounds : (lo, hi) of the values, numbers or one per channel; None: the range of the reference data, per
        channel (per feature for rows).

    A model whose answers are steps has no slope to climb. With "auto", such rows stay on the line to their
    nearest unlike neighbour where the search starts, and say so in `info["fallback"]`.

    `info`: radius, norm_used, fw_gap (how much log P could still rise, to first order: 0 is stationary),
    confidence_before, confidence_after, fallback.

    Examples
    --------
    >>> result = SVCE(norm=1.5, restarts=1).fit(model, X_train, y_train).explain(X_test[:8])
    >>> result.valid.mean()
    1.0
    """

    tags = Tags(gradient=True)

    def __init__(
        self,
        norm: float = 1.5,
        radius: float | Literal["auto"] = "auto",
        optimizer: Literal["afw", "apgd"] = "afw",
        n_iter: int = 75,
        restarts: int = 5,
        objective: Objective = "logp",
        confidence: float | None = None,
        bounds: tuple[Any, Any] | None = None,
    ) -> None:
        self.norm, self.radius, self.optimizer = norm, radius, optimizer
        self.n_iter, self.restarts, self.objective = n_iter, restarts, objective
        self.confidence, self.bounds = confidence, bounds

    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [
            {"n_iter": 6, "restarts": 1},
            {"norm": 2, "radius": 2.0, "optimizer": "apgd", "n_iter": 8, "restarts": 2},
        ]

    def _make_guide(self) -> Guide:
        return NearestUnlikeNeighbour()

    def _fit(self, X: torch.Tensor, y: Array | None) -> None:
        if not 1 <= self.norm <= math.inf:
            raise ValueError(f"norm must lie between 1 and inf, got {self.norm!r}.")
        if self.optimizer not in ("afw", "apgd"):
            raise ValueError(f"optimizer must be 'afw' or 'apgd', got {self.optimizer!r}.")
        if self.optimizer == "apgd" and self.norm not in (1, 2, math.inf):
            raise ValueError(f"optimizer 'apgd' takes norm 1, 2 or inf, got {self.norm}; 'afw' takes any.")
        if self.radius != "auto" and not (isinstance(self.radius, int | float) and self.radius > 0):
            raise ValueError(f"radius must be 'auto' or a number above 0, got {self.radius!r}.")
        if not (callable(self.objective) or self.objective in ("logp", "margin")):
            raise ValueError(f"objective must be 'logp', 'margin' or a function, got {self.objective!r}.")
        if self.n_iter < 1 or self.restarts < 1:
            raise ValueError(
                f"n_iter and restarts must be at least 1, got {self.n_iter} and {self.restarts}."
            )
        super()._fit(X, y)
        by_channel = (-1, *[1] * (X.ndim - 2))
        if self.bounds is None:
            low, high = X.transpose(0, 1).flatten(1).aminmax(dim=1)
        else:
            low, high = (torch.as_tensor(b, dtype=X.dtype, device=X.device).flatten() for b in self.bounds)
        self.low_, self.high_ = (b.reshape(by_channel).expand(self.shape_).clone() for b in (low, high))
        if not bool((self.low_ < self.high_).any()):
            raise ValueError(f"bounds {self.bounds} leave no room: the lower must lie below the upper.")
        self.spread_ = float(X.flatten(1).std(0, correction=0).mean()) or 1.0

    def _explain(self, batch: Batch) -> Candidates:
        if batch.confidence is None:
            batch.confidence = self.confidence
        rows = batch.rows.repeat_interleave(batch.k)
        ball = self._ball(batch, rows)
        x_cf, gap, fallback = (self._within if self.radius != "auto" else self._smallest)(batch, rows, ball)
        p_after = torch.full((len(rows),), torch.nan, dtype=torch.float64, device=rows.device)
        able = batch.affords(rows).nonzero().flatten()
        p_after[able] = target_value(
            batch.ask(x_cf[able], rows[able]).proba.double(), batch.target[rows[able]]
        )
        used = ball.norm(x_cf)
        info = {
            "radius": used if self.radius == "auto" else torch.full_like(used, float(self.radius)),
            "norm_used": used,
            "fw_gap": gap,
            "confidence_before": target_value(batch.verdict.proba, batch.target)[rows],
            "confidence_after": p_after,
            "fallback": fallback,
        }
        return Candidates(x_cf, rows, info)

    def _ball(self, batch: Batch, rows: torch.Tensor) -> Ball:
        """Box and free places, of the data and the constraints; further counterfactuals of a row may change
        a random half of the places, so that they differ."""
        lo, hi = self.low_, self.high_
        free = torch.ones(len(rows), *self.shape_, dtype=torch.bool, device=rows.device)
        if batch.feasible is not None:
            lo, hi = torch.maximum(lo, batch.feasible.lower), torch.minimum(hi, batch.feasible.upper)
            free &= ~batch.feasible.frozen
        copy = torch.arange(len(rows), device=rows.device) - torch.searchsorted(rows, rows)
        if batch.k > 1:
            half = torch.from_numpy(row_uniform(self._seeds(batch, rows, copy), free[0].numel()) < 0.5)
            further = (copy > 0).reshape(-1, *[1] * len(self.shape_))
            free &= ~further | half.reshape(free.shape).to(rows.device)
        eps = batch.x.new_full((len(rows),), 0.0 if self.radius == "auto" else float(self.radius))
        return Ball(batch.x[rows], eps, float(self.norm), lo, hi, free)

    @staticmethod
    def _seeds(batch: Batch, rows: torch.Tensor, stream: torch.Tensor | int) -> Array:
        return fold_in(batch.seeds[rows.cpu().numpy()], torch.as_tensor(stream).cpu().numpy())

    def _random(self, batch: Batch, rows: torch.Tensor, ball: Ball, restart: int) -> torch.Tensor:
        """A point of the ball's surface in a Gaussian direction, of each row's own."""
        copy = torch.arange(len(rows), device=rows.device) - torch.searchsorted(rows, rows)
        seeds = self._seeds(batch, rows, 1000 * restart + copy)
        draws = torch.from_numpy(row_normal(seeds, ball.x0[0].numel())).to(ball.x0)
        return ball.farthest(draws.reshape(ball.x0.shape))

    def _climb(
        self, batch: Batch, rows: torch.Tensor, ball: Ball, start: torch.Tensor, tau: float | None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """One run per entry: the best point, its loss, its gap, whether it is there. None: run to the end."""
        step = ball_step(self.optimizer, ball, self.n_iter)
        optimum = minimise(
            batch,
            rows,
            start,
            lambda x, entries: batch.project(x, rows[entries]),
            self._loss,
            step,
            Stop(2.0 if tau is None else tau, 1, 0.0, self.n_iter),
            difference=0.3 * self.spread_,
        )
        there = optimum.reached & (optimum.p_target >= (tau or 0.0))
        gap = ball.gap(step.best, -step.best_gradient)
        return batch.project(optimum.code, rows), optimum.loss, gap, there

    def _loss(self, point: Point) -> torch.Tensor:
        if callable(self.objective):
            return self.objective(point)
        if self.objective == "margin":
            return -lead(point.score, point.target)
        return -target_value(point.score.log_softmax(1), point.target)

    def _within(
        self, batch: Batch, rows: torch.Tensor, ball: Ball
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The best of all restarts in the given ball, run together."""
        entry = torch.arange(len(rows), device=rows.device).repeat(self.restarts)
        many = ball.take(entry)
        start = torch.cat([self._random(batch, rows, ball, j) for j in range(self.restarts)])
        x_cf, loss, gap, there = self._climb(batch, rows[entry], many, start, batch.confidence)
        # Whoever reached the class comes before everyone who did not.
        order = (loss + torch.where(there, 0.0, 1e6)).reshape(self.restarts, -1).argmin(0)
        best = order * len(rows) + torch.arange(len(rows), device=rows.device)
        return x_cf[best], gap[best].double(), torch.zeros_like(rows, dtype=torch.bool)

    def _smallest(
        self, batch: Batch, rows: torch.Tensor, ball: Ball
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Halve the radius until no run reaches the class, then bisect; runs start from the last success.

        The line to the nearest unlike neighbour gives the first radius known to do.
        """
        tau = batch.confidence or 0.0
        best, _ = self._rescue(batch, rows, ball.x0)
        best = torch.where(ball.free, best, ball.x0)
        widest = torch.maximum((ball.hi - ball.x0).abs(), (ball.x0 - ball.lo).abs())
        high, low = ball.norm(best).to(ball.eps), torch.zeros_like(ball.eps)
        # No neighbour to begin with: the whole box.
        high = torch.where(high > 0, high, ball.norm(ball.x0 + widest).to(high))
        gap = torch.zeros(len(rows), dtype=torch.float64, device=rows.device)
        fallback = torch.ones_like(rows, dtype=torch.bool)
        start = best.clone()
        open_ = (high > 0).nonzero().flatten()
        for _ in range(40):
            open_ = open_[(low[open_] * PRECISION < high[open_]) & batch.affords(rows[open_])]
            if len(open_) == 0:
                break
            eps = torch.where(low[open_] > 0, (low[open_] * high[open_]).sqrt(), high[open_] / 2)
            there = self._try(batch, rows, ball, open_, eps, start, gap, tau)
            won = open_[there]
            low[open_[~there]] = eps[~there]
            if len(won):
                best[won] = first_on_line(batch, rows[won], start[won])[1]
                high[won] = torch.minimum(ball.take(won).norm(best[won]).to(high), eps[there])
                start[won] = best[won]
                fallback[won] = False
            # A radius of almost nothing that fails too: the model has no slope here.
            open_ = open_[eps > 1e-4 * high[open_]]
        return best, gap, fallback

    def _try(
        self,
        batch: Batch,
        rows: torch.Tensor,
        ball: Ball,
        open_: torch.Tensor,
        eps: torch.Tensor,
        start: torch.Tensor,
        gap: torch.Tensor,
        tau: float,
    ) -> torch.Tensor:
        """Does a run in a ball of radius eps reach the class? First from `start`, where successes are put."""
        there = torch.zeros(len(open_), dtype=torch.bool, device=rows.device)
        for restart in range(self.restarts):
            todo = (~there).nonzero().flatten()
            if len(todo) == 0:
                break
            which = open_[todo]
            small = Ball(ball.x0[which], eps[todo], ball.p, ball.lo, ball.hi, ball.free[which])
            if restart == 0:
                share = (eps[todo] / small.norm(start[which]).clamp_min(1e-30)).clamp_max(1.0).to(eps)
                begin = torch.lerp(
                    small.x0, start[which], share.reshape(-1, *[1] * len(self.shape_)).to(small.x0)
                )
            else:
                begin = self._random(batch, rows[which], small, restart)
            x_cf, _, gaps, done = self._climb(batch, rows[which], small, begin, tau)
            start[which[done]], gap[which[done]] = x_cf[done], gaps[done].double()
            there[todo[done]] = True
        return there
