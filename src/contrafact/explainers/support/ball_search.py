"""Search for the most convincing instance of a class within an l_p ball."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ...engine import Tasks
from ...models.verdict import lead
from ...search import Optimum, Point, Stop, minimize
from ...search.ball import Ball
from ...search.ball_steps import Optimizer, ball_steps
from ...search.gradients import ModelGradient, with_temperature
from ...search.steps import Step

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

    def take(self, which: Tensor | slice) -> Found:
        """Return the results of some tasks."""
        return Found(self.x_cf[which], self.loss[which], self.reached[which])

    def join(self, other: Found) -> Found:
        """Return these results and others."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Found(*(torch.cat(pair) for pair in pairs))

    def order(self) -> Tensor:
        """Return the positions of the results, the best first."""
        by_loss = self.loss.argsort(stable=True)
        return by_loss[(~self.reached[by_loss]).long().argsort(stable=True)]


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
        optimizers: Sequence[Optimizer],
        n_iter: int,
        tau: float | None,
        resumed: bool = True,
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
        optimizers : sequence of {"afw", "apgd", "apgd-l2"}
            The steps of each task; tasks of the same steps stand in a row.
        n_iter : int
            How many.
        tau : float or None
            P(c) at which a run may end; None: all steps are taken.
        resumed : bool, default=True
            Whether the points are those of earlier runs.

        Returns
        -------
        Found
            The best points.
        """
        step = ball_steps(optimizers, ball, n_iter, start if resumed else None)
        found = self._minimize(tasks, start, step, UNREACHABLE if tau is None else tau, n_iter)
        reached = found.reached & (found.p_target >= (tau or 0.0))
        return Found(tasks.project(found.code), found.loss, reached)

    def certificate(self, tasks: Tasks, ball: Ball, x_cf: Tensor) -> tuple[Tensor, Tensor]:
        """Return Frank-Wolfe gap and P(c) at the counterfactuals; NaN where the budget is spent."""
        model = self.gradient(tasks)
        able = tasks.affords(model.cost(x_cf))
        gap, p_target = tasks.x.new_full((2, len(tasks)), torch.nan, dtype=torch.float64)
        if not bool(able.any()):
            return gap, p_target
        asking = with_temperature(tasks.take(able))
        now = model.evaluate(asking, x_cf[able], 0)
        asked = able.nonzero().flatten()[: len(now.loss)]
        gap[asked] = ball.take(asked).gap(now.code, -now.gradient)
        p_target[asked] = now.p_target
        return gap, p_target

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
        step: Step,
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
