"""Search for the most convincing instance of a class within an l_p ball."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ...engine import Tasks
from ...models.verdict import lead
from ...search import Optimum, Point, Stop, minimize
from ...search.ball import Ball
from ...search.ball_steps import BallStep, ball_step

Objective = Literal["logp", "margin"] | Callable[[Point], Tensor]
#: P(target) that no point reaches: a search that aims at it runs to the end
UNREACHABLE = 2.0


@dataclass(frozen=True)
class BallSearch:
    """Minimize a loss within balls, from given or random points.

    Parameters
    ----------
    optimizer : {"afw", "apgd"}
        Auto-Frank-Wolfe or APGD.
    n_iter : int
        Steps of a run.
    objective : {"logp", "margin"} or function
        log P(c), by how much the class leads, or a function of a Point to minimize.
    difference : float
        Width of finite differences, for models without gradients.
    """

    optimizer: Literal["afw", "apgd"]
    n_iter: int
    objective: Objective
    difference: float

    def from_random_points(
        self,
        tasks: Tasks,
        ball: Ball,
        numbers: range,
        tau: float | None,
    ) -> tuple[Tensor, Tensor]:
        """Run from several random points; a run that reached the class is better than others.

        Parameters
        ----------
        tasks : Tasks
            What to find counterfactuals for.
        ball : Ball
            One for each task.
        numbers : range
            Numbers of the runs, which their random points depend on.
        tau : float or None
            P(c) at which a run may end; None: all steps are taken.

        Returns
        -------
        x_cf : Tensor of shape (n, *shape)
            The best point of each task.
        reached : Tensor of bool, shape (n,)
            Whether it is in its class.
        """
        n = len(tasks)
        position = torch.arange(n, device=tasks.row.device)
        runs = position.repeat(len(numbers))
        start = torch.cat([_random_point(tasks, ball, number) for number in numbers])
        x_cf, loss, reached = self.climb(tasks.take(runs), ball.take(runs), start, tau)
        loss = loss.reshape(len(numbers), n)
        reached = reached.reshape(len(numbers), n)
        best_reached = torch.where(reached, loss, torch.inf).argmin(0)
        best = torch.where(reached.any(0), best_reached, loss.argmin(0))
        return x_cf[best * n + position], reached.any(0)

    def climb(
        self,
        tasks: Tasks,
        ball: Ball,
        start: Tensor,
        tau: float | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run once per task.

        Parameters
        ----------
        tasks : Tasks
            What to find counterfactuals for.
        ball : Ball
            One for each task.
        start : Tensor of shape (n, *shape)
            Points of the balls.
        tau : float or None
            P(c) at which a run may end; None: all steps are taken.

        Returns
        -------
        x_cf : Tensor of shape (n, *shape)
            The best points.
        loss : Tensor of shape (n,)
            Their losses.
        reached : Tensor of bool, shape (n,)
            Whether they are in their class at tau.
        """
        step = ball_step(self.optimizer, ball, self.n_iter)
        found = self._minimize(
            tasks,
            start,
            step,
            UNREACHABLE if tau is None else tau,
            self.n_iter,
        )
        reached = found.reached & (found.p_target >= (tau or 0.0))
        return tasks.project(found.code), found.loss, reached

    def certificate(self, tasks: Tasks, ball: Ball, x_cf: Tensor) -> tuple[Tensor, Tensor]:
        """Return Frank-Wolfe gap and P(c) at the counterfactuals; NaN where the budget is spent."""
        step = ball_step("afw", ball, 1)
        found = self._minimize(tasks, x_cf, step, UNREACHABLE, 1)
        asked = found.iterations > 0
        gap = ball.gap(x_cf, -step.best_gradient)
        p_target = torch.where(asked, found.p_target, torch.nan)
        return torch.where(asked, gap, torch.nan), p_target

    def loss(self, point: Point) -> Tensor:
        """Compute the loss of one candidate per task, (n,)."""
        if callable(self.objective):
            return self.objective(point)
        if self.objective == "margin":
            return -lead(point.score, point.tasks.target)
        return -point.log_p_target

    def _minimize(
        self,
        tasks: Tasks,
        start: Tensor,
        step: BallStep,
        tau: float,
        n_iter: int,
    ) -> Optimum:
        stop = Stop(tau, patience=1, tolerance=0.0, max_iter=n_iter)
        return minimize(
            tasks,
            start,
            Tasks.project,
            self.loss,
            step,
            stop,
            difference=self.difference,
        )


def _random_point(tasks: Tasks, ball: Ball, number: int) -> Tensor:
    """Return a point of the ball's surface in a Gaussian direction, of each task's own."""
    direction = tasks.normal(math.prod(tasks.shape), 1000 * number + tasks.rank)
    return ball.farthest(direction.reshape(ball.x0.shape))
