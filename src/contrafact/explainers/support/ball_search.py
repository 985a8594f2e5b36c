"""Search for the most convincing instance of a class within an l_p ball."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ...engine import Tasks
from ...models.verdict import lead
from ...search import Optimum, Point, Stop, minimize
from ...search.ball import Ball
from ...search.ball_steps import BallStep, Optimizer, ball_step
from ...search.gradients import ModelGradient

Objective = Literal["logp", "margin"] | Callable[[Point], Tensor]
#: P(target) that no point reaches: a search that aims at it runs to the end
UNREACHABLE = 2.0


@dataclass(frozen=True)
class Found:
    """The best point of each task so far.

    Parameters
    ----------
    x_cf : Tensor of shape (n, *shape)
        The points.
    loss : Tensor of shape (n,)
        Their losses.
    reached : Tensor of bool, shape (n,)
        Whether they are in their class at the P(c) aimed at.
    """

    x_cf: Tensor
    loss: Tensor
    reached: Tensor

    def better_than(self, other: Found) -> Tensor:
        """Return where this is better: it reached its class, or the loss is lower."""
        lower = self.loss < other.loss
        return torch.where(self.reached == other.reached, lower, self.reached)

    def put(self, which: Tensor, other: Found) -> None:
        """Take over the results of some tasks; `other` has these alone, in order."""
        for name, values in vars(other).items():
            getattr(self, name)[which] = values

    def take(self, which: Tensor) -> Found:
        """Return the results of some tasks."""
        return Found(self.x_cf[which], self.loss[which], self.reached[which])


@dataclass(frozen=True)
class BallSearch:
    """Minimize a loss within balls, from given points.

    Parameters
    ----------
    objective : {"logp", "margin"} or function
        log P(c), by how much the class leads, or a function of a Point to minimize.
    difference : float
        Width of finite differences, for models without gradients.
    """

    objective: Objective
    difference: float

    def climb(
        self,
        tasks: Tasks,
        ball: Ball,
        start: Tensor,
        optimizer: Optimizer,
        n_iter: int,
        tau: float | None,
    ) -> Found:
        """Run once per task.

        Parameters
        ----------
        tasks : Tasks
            What to find counterfactuals for.
        ball : Ball
            One for each task.
        start : Tensor of shape (n, *shape)
            Points of the balls.
        optimizer : {"afw", "apgd", "apgd-l2"}
            The steps.
        n_iter : int
            How many.
        tau : float or None
            P(c) at which a run may end; None: all steps are taken.

        Returns
        -------
        Found
            The best points.
        """
        step = ball_step(optimizer, ball, n_iter)
        found = self._minimize(tasks, start, step, UNREACHABLE if tau is None else tau, n_iter)
        reached = found.reached & (found.p_target >= (tau or 0.0))
        return Found(tasks.project(found.code), found.loss, reached)

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

    def gradient(self, tasks: Tasks) -> ModelGradient:
        """Make what evaluates the loss and its gradient."""
        return ModelGradient(tasks, Tasks.project, self.loss, difference=self.difference)

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
