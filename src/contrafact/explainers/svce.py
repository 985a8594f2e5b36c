"""SVCE: the most convincing instance of another class within an l_p ball, or the smallest such ball."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor

from ..engine import Batch, Candidates, Tags
from ..engine.batch import lead, place_in_row, target_value
from ..guides import Guide, NearestUnlikeNeighbor
from ..models.classifier import Array
from ..numerics.randomness import fold_in, row_normal, row_uniform
from ..search import Optimum, Point, Stop, first_on_line, minimize
from ..search.ball import Ball, BallStep, ball_step
from .support.guided import GuidedExplainer

Objective = Literal["logp", "margin"] | Callable[[Point], Tensor]
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
    objective : "logp", "margin" (by how much the class leads), or a function of a Point to minimize.
    confidence : P(c) to reach; `explain(confidence=...)` takes precedence.
    bounds : (lo, hi) of the values, numbers or one per channel; None: the range of the reference data, per
        channel (per feature for rows).

    A model whose answers are steps has no slope to climb. With "auto", such rows stay on the line to their
    nearest unlike neighbor where the search starts, and say so in `info["fallback"]`.

    `info`: radius, norm_used, fw_gap (how much the objective could still rise in that ball, to first
    order; 0 is stationary), confidence_before, confidence_after, fallback.

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
        return NearestUnlikeNeighbor()

    def _fit(self, X: Tensor, y: Array | None) -> None:
        if not 1 <= self.norm <= math.inf:
            raise ValueError(f"norm must lie between 1 and inf, got {self.norm!r}.")
        if self.optimizer not in ("afw", "apgd"):
            raise ValueError(f"optimizer must be 'afw' or 'apgd', got {self.optimizer!r}.")
        if self.optimizer == "apgd" and self.norm not in (1, 2, math.inf):
            raise ValueError(
                f"optimizer 'apgd' takes norm 1, 2 or inf, got {self.norm}; 'afw' takes any."
            )
        if self.radius != "auto" and (
            isinstance(self.radius, bool | str) or not 0 < self.radius < math.inf
        ):
            raise ValueError(
                f"radius must be 'auto' or a finite number above 0, got {self.radius!r}."
            )
        if self.confidence is not None and not 0 < self.confidence < 1:
            raise ValueError(
                f"confidence must lie strictly between 0 and 1, got {self.confidence!r}."
            )
        if not (callable(self.objective) or self.objective in ("logp", "margin")):
            raise ValueError(
                f"objective must be 'logp', 'margin' or a function, got {self.objective!r}."
            )
        if self.n_iter < 1 or self.restarts < 1:
            raise ValueError(
                f"n_iter and restarts must be at least 1, got {self.n_iter} and {self.restarts}."
            )
        super()._fit(X, y)
        n = X.shape[1]
        if self.bounds is None:
            low, high = X.transpose(0, 1).flatten(1).aminmax(dim=1)
        else:
            low, high = (
                torch.as_tensor(b, dtype=X.dtype, device=X.device).flatten() for b in self.bounds
            )
            if len(low) not in (1, n) or len(high) not in (1, n) or not bool((low < high).all()):
                raise ValueError(
                    "bounds must be (lower, upper), lower below upper, each a number or one per channel "
                    f"({n}); got {self.bounds}."
                )
        by_channel = (-1, *[1] * (X.ndim - 2))
        self.low_, self.high_ = (
            b.reshape(by_channel).expand(self.shape_).clone() for b in (low, high)
        )
        self.spread_ = float(X.flatten(1).std(0, correction=0).mean()) or 1.0

    def _explain(self, batch: Batch) -> Candidates:
        if batch.confidence is None:
            batch.confidence = self.confidence
        rows = batch.rows.repeat_interleave(batch.k)
        ball = self._ball(batch, rows)
        x_cf, fallback = (self._within if self.radius != "auto" else self._smallest)(
            batch, rows, ball
        )
        used = ball.norm(x_cf)
        ball = replace(ball, eps=torch.maximum(ball.eps, used.to(ball.eps)))
        gap, p_after = self._certificate(batch, rows, ball, x_cf)
        info = {
            "radius": ball.eps.double(),
            "norm_used": used,
            "fw_gap": gap,
            "confidence_before": target_value(batch.verdict.proba, batch.target)[rows],
            "confidence_after": p_after,
            "fallback": fallback,
        }
        return Candidates(x_cf, rows, info)

    def _ball(self, batch: Batch, rows: Tensor) -> Ball:
        """Box and free places, of the data and the constraints; further counterfactuals of a row may change
        a random half of the places, so that they differ."""
        lo, hi = self.low_, self.high_
        free = torch.ones(len(rows), *self.shape_, dtype=torch.bool, device=rows.device)
        if batch.feasible is not None:
            lo, hi = (
                torch.maximum(lo, batch.feasible.lower),
                torch.minimum(hi, batch.feasible.upper),
            )
            free &= ~batch.feasible.frozen
        copy = place_in_row(rows)
        if batch.k > 1:
            half = torch.from_numpy(
                row_uniform(self._seeds(batch, rows, copy), free[0].numel()) < 0.5
            )
            further = (copy > 0).reshape(-1, *[1] * len(self.shape_))
            free &= ~further | half.reshape(free.shape).to(rows.device)
        eps = batch.x.new_full((len(rows),), 0.0 if self.radius == "auto" else float(self.radius))
        return Ball(batch.x[rows], eps, float(self.norm), lo, hi, free)

    @staticmethod
    def _seeds(batch: Batch, rows: Tensor, stream: Tensor | int) -> Array:
        return fold_in(batch.seeds[rows.cpu().numpy()], torch.as_tensor(stream).cpu().numpy())

    def _random(self, batch: Batch, rows: Tensor, ball: Ball, restart: int) -> Tensor:
        """A point of the ball's surface in a Gaussian direction, of each row's own."""
        copy = place_in_row(rows)
        seeds = self._seeds(batch, rows, 1000 * restart + copy)
        draws = torch.from_numpy(row_normal(seeds, ball.x0[0].numel())).to(ball.x0)
        return ball.farthest(draws.reshape(ball.x0.shape))

    def _climb(
        self, batch: Batch, rows: Tensor, ball: Ball, start: Tensor, tau: float | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """One run per entry: the best point, its loss, and whether it is there. tau None: run to the end."""
        step = ball_step(self.optimizer, ball, self.n_iter)
        optimum = self._minimize(batch, rows, start, step, 2.0 if tau is None else tau, self.n_iter)
        there = optimum.reached & (optimum.p_target >= (tau or 0.0))
        return batch.project(optimum.code, rows), optimum.loss, there

    def _certificate(
        self, batch: Batch, rows: Tensor, ball: Ball, x_cf: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Frank-Wolfe gap and P(c) at the counterfactuals themselves; NaN where the budget is spent."""
        step = ball_step("afw", ball, 1)
        optimum = self._minimize(batch, rows, x_cf, step, 2.0, 1)
        asked = optimum.iterations > 0
        gap = ball.gap(x_cf, -step.best_gradient)
        return torch.where(asked, gap, torch.nan), torch.where(asked, optimum.p_target, torch.nan)

    def _minimize(
        self, batch: Batch, rows: Tensor, start: Tensor, step: BallStep, tau: float, n_iter: int
    ) -> Optimum:
        def decode(x: Tensor, entries: Tensor) -> Tensor:
            return batch.project(x, rows[entries])

        stop = Stop(tau, 1, 0.0, n_iter)
        return minimize(
            batch, rows, start, decode, self._loss, step, stop, difference=0.3 * self.spread_
        )

    def _loss(self, point: Point) -> Tensor:
        if callable(self.objective):
            return self.objective(point)
        if self.objective == "margin":
            return -lead(point.score, point.target)
        return -target_value(point.score.log_softmax(1), point.target)

    def _within(self, batch: Batch, rows: Tensor, ball: Ball) -> tuple[Tensor, Tensor]:
        """The best of all restarts in the given ball."""
        x_cf, _ = self._restarts(batch, rows, ball, range(self.restarts), batch.confidence)
        return x_cf, torch.zeros_like(rows, dtype=torch.bool)

    def _restarts(
        self, batch: Batch, rows: Tensor, ball: Ball, numbers: range, tau: float | None
    ) -> tuple[Tensor, Tensor]:
        """Runs from several random points, together: the best of each row, and whether it is there.

        Whoever reached the class comes before everyone who did not.
        """
        everyone = torch.arange(len(rows), device=rows.device)
        entry = everyone.repeat(len(numbers))
        start = torch.cat([self._random(batch, rows, ball, j) for j in numbers])
        x_cf, loss, there = self._climb(batch, rows[entry], ball.take(entry), start, tau)
        loss, there = loss.reshape(len(numbers), -1), there.reshape(len(numbers), -1)
        among_those = torch.where(there, loss, torch.inf).argmin(0)
        best = torch.where(there.any(0), among_those, loss.argmin(0))
        return x_cf[best * len(rows) + everyone], there.any(0)

    def _smallest(self, batch: Batch, rows: Tensor, ball: Ball) -> tuple[Tensor, Tensor]:
        """Halve the radius until no run reaches the class, then bisect; runs start from the last success.

        The line to the nearest unlike neighbor gives the first radius known to do.
        """
        best, fallback = self._rescue(batch, rows, ball.x0)
        best = torch.where(ball.free, best, ball.x0)
        low, open_ = torch.zeros_like(ball.eps), torch.arange(len(rows), device=rows.device)
        # Where no neighbor will do, all that is known to hold an answer, if there is one, is the whole box.
        widest = torch.maximum((ball.hi - ball.x0).abs(), (ball.x0 - ball.lo).abs())
        high = ball.norm(ball.x0 + widest).to(ball.eps)
        asked = open_[batch.affords(rows)]
        known = asked[batch.accepts(batch.ask(best[asked], rows[asked]), rows[asked])]
        high[known] = ball.take(known).norm(best[known]).to(high)
        while True:
            open_ = open_[(low[open_] * PRECISION < high[open_]) & batch.affords(rows[open_])]
            if len(open_) == 0:
                return best, fallback
            eps = torch.where(low[open_] > 0, (low[open_] * high[open_]).sqrt(), high[open_] / 2)
            small = replace(ball.take(open_), eps=eps)
            x_cf, there = self._try(batch, rows[open_], small, best[open_])
            won = open_[there]
            low[open_[~there]] = eps[~there]
            if len(won):
                best[won] = first_on_line(batch, rows[won], x_cf[there])[1]
                high[won] = torch.minimum(ball.take(won).norm(best[won]).to(high), eps[there])
                fallback[won] = False

    def _try(self, batch: Batch, rows: Tensor, ball: Ball, best: Tensor) -> tuple[Tensor, Tensor]:
        """Does a run in this ball reach the class? One from the way to the best so far, then the others."""
        tau = batch.confidence or 0.0
        share = (ball.eps / ball.norm(best).clamp_min(1e-30)).clamp_max(1.0).to(best)
        start = torch.lerp(ball.x0, best, share.reshape(-1, *[1] * len(self.shape_)))
        x_cf, _, there = self._climb(batch, rows, ball, start, tau)
        todo = (~there).nonzero().flatten()
        if len(todo) and self.restarts > 1:
            x_cf[todo], there[todo] = self._restarts(
                batch, rows[todo], ball.take(todo), range(1, self.restarts), tau
            )
        return x_cf, there
