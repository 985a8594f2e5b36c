"""Search for the smallest l_p ball that holds an instance of a class.

Every step moves within a ball whose radius changes with it: the radius shrinks while points are
accepted and grows while they are not. Radius and step size change less and less.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

import torch
from torch import Tensor

from ...engine import Tasks
from ...search.ball import PROJECTED, Ball
from ...search.ball_steps import Optimizer, descent_step
from ...search.gradients import ModelGradient, with_temperature
from .ball_race import Run, Start, runs_together, start_of

#: where the runs of the first round start: on the line to the nearest guide, at guides that differ
#: from it and from each other, and at random points. Points of the class that are nearest in l1 lie
#: in several places, with no way from one to the other; for p > 1 random points do more.
STARTS: tuple[Start, ...] = (
    "gaussian",
    "gaussian",
    "line",
    "guide",
    "gaussian",
    "gaussian",
    "gaussian",
    "guide",
)
STARTS_L1: tuple[Start, ...] = (
    "gaussian",
    "gaussian",
    "line",
    "line",
    "guide",
    "guide",
    "guide",
    "guide",
)
#: steps of each run of the first round, and of the best run after it, in units of n_iter
FIRST_ROUND = 0.6
LAST_ROUND = 2.0
#: change of the radius at the end of a run, as a share of it
PRECISION = 0.003


@dataclass(frozen=True)
class Pace:
    """How fast a run starts; both numbers decay by a cosine.

    Parameters
    ----------
    step : float
        Step size of Frank-Wolfe; half the step of projected gradients, in radii.
    radius : float
        Change of the radius, as a share of it.
    """

    step: float
    radius: float

    #: step size at the end
    LAST_STEP = 0.02

    def at(self, progress: float) -> tuple[float, float]:
        """Return step size and change of the radius when a share of the run is done."""
        high = (1 + math.cos(math.pi * progress)) / 2
        step = self.LAST_STEP + high * (self.step - self.LAST_STEP)
        return step, PRECISION + high * (self.radius - PRECISION)


FIRST_PACE = Pace(0.4, 0.25)
LAST_PACE = Pace(0.25, 0.1)


def choose_runs(optimizer: str, p: float, count: int) -> list[Run]:
    """Return the runs to start with.

    Parameters
    ----------
    optimizer : {"auto", "afw", "apgd"}
        Which optimizers may race.
    p : float
        The norm.
    count : int
        How many runs.

    Returns
    -------
    list of Run
        Optimizers in turns; those that start at a guide are numbered by their guides.
    """
    optimizers: list[Optimizer] = ["afw", "apgd"]
    if optimizer != "auto":
        optimizers = [name for name in optimizers if name == optimizer]
    starts = STARTS_L1 if p == 1 else STARTS
    runs = []
    for i, start in enumerate(starts[:count]):
        number = starts[:i].count("guide") if start == "guide" else i
        runs.append(Run(optimizers[i % len(optimizers)], start, number))
    if optimizer == "auto" and count == len(STARTS) and p not in PROJECTED:
        runs[-1] = runs[-1]._replace(optimizer="apgd-l2")
    return runs


def batches(runs: list[Run], ball: Ball) -> Iterator[list[Run]]:
    """Iterate over runs of one optimizer that are made together; large arrays take turns."""
    size = runs_together(ball)
    for _, group in groupby(sorted(runs), key=lambda run: run.optimizer):
        same = list(group)
        for first in range(0, len(same), size):
            yield same[first : first + size]


@dataclass(frozen=True)
class BallDescent:
    """Shrink balls around instances for as long as they hold an answer.

    Parameters
    ----------
    model : ModelGradient
        Loss and gradient.
    optimizer : {"auto", "afw", "apgd"}
        Which steps may race.
    n_iter, restarts : int
        Steps of a run, and how many runs there are: one and a half times as many, at most eight,
        since most are short.
    """

    model: ModelGradient
    optimizer: Literal["auto", "afw", "apgd"]
    n_iter: int
    restarts: int

    def runs(self, p: float) -> list[Run]:
        """Return the runs of the first round."""
        count = min(len(STARTS), 1 + self.restarts + self.restarts // 2)
        return choose_runs(self.optimizer, p, count)

    def run(
        self,
        tasks: Tasks,
        ball: Ball,
        best: Tensor,
        radius: Tensor,
        guides: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Find smaller balls than the ones known.

        Parameters
        ----------
        tasks : Tasks
            What to find counterfactuals for.
        ball : Ball
            Center, norm and box; the radii do not matter.
        best : Tensor of shape (n, *shape)
            The points known, where some runs start.
        radius : Tensor of shape (n,)
            Their distance, or that of the farthest corner of the box where they are not accepted.
        guides : Tensor of shape (n, m, *shape) or None
            Instances of the class that differ from each other, one for each run that starts at one;
            without them these start at random points.

        Returns
        -------
        best : Tensor of shape (n, *shape)
            The nearest points found, else those known.
        radius : Tensor of shape (n,)
            Their distance, smaller than before where there are any.
        """
        tasks = with_temperature(tasks)
        known = replace(ball, eps=radius)
        runs = self.runs(ball.p)
        optimizers = sorted({run.optimizer for run in runs})
        nearest = best.clone()
        least = radius.clone()
        winner = torch.zeros_like(tasks.rank)
        each = max(1, round(FIRST_ROUND * self.n_iter))
        for batch in batches(runs, ball):
            optimizer = batch[0].optimizer
            x, eps = self._best_of(tasks, known, best, guides, batch, each)
            closer = eps < least
            nearest[closer] = x[closer]
            least[closer] = eps[closer]
            winner[closer] = optimizers.index(optimizer)
        last = max(1, round(LAST_ROUND * self.n_iter))
        for i, optimizer in enumerate(optimizers):
            which = (winner == i).nonzero().flatten()
            if len(which) == 0:
                continue
            start = nearest[which]
            nearest[which], least[which] = self._shrink(
                tasks.take(which),
                ball.take(which),
                start,
                start,
                least[which],
                optimizer,
                last,
                LAST_PACE,
            )
        return nearest, least

    def _best_of(
        self,
        tasks: Tasks,
        known: Ball,
        best: Tensor,
        guides: Tensor | None,
        runs: list[Run],
        n_iter: int,
    ) -> tuple[Tensor, Tensor]:
        """Make runs of one optimizer together; return the nearest points and their distances."""
        n = len(tasks)
        task = torch.arange(n, device=tasks.row.device)
        copies = task.repeat(len(runs))
        start = []
        radius = []
        for run in runs:
            if run.start == "guide" and guides is not None:
                guide = torch.where(known.free, guides[:, run.number], known.x0)
                start.append(known.clip(guide))
                # Cut off at the radius known, it would be in the place of the nearest guide.
                radius.append(torch.full_like(known.eps, torch.inf))
            else:
                start.append(start_of(run, tasks, known, best))
                radius.append(known.eps)
        x, eps = self._shrink(
            tasks.take(copies),
            known.take(copies),
            torch.cat(start),
            best[copies],
            torch.cat(radius),
            runs[0].optimizer,
            n_iter,
            FIRST_PACE,
        )
        least, number = eps.reshape(len(runs), n).min(0)
        return x[number * n + task], least

    def _shrink(
        self,
        tasks: Tasks,
        ball: Ball,
        start: Tensor,
        best: Tensor,
        radius: Tensor,
        optimizer: Optimizer,
        n_iter: int,
        pace: Pace,
    ) -> tuple[Tensor, Tensor]:
        """Make one run per task; return the nearest accepted points and their distances."""
        best = best.clone()
        radius = radius.clone()
        tau = tasks.confidence or 0.0
        position = torch.arange(len(tasks), device=tasks.row.device)
        x = start
        for t in range(n_iter):
            able = tasks.affords(self.model.cost(best))
            if not bool(able.any()):
                break
            now = self.model.evaluate(tasks.take(able), x[able], t)
            # The deadline may leave no time for some; where the model has no answer, a run ends.
            usable = now.is_usable()
            left = able.nonzero().flatten()[: len(usable)][usable]
            if len(left) < len(tasks):
                tasks, ball, position = tasks.take(left), ball.take(left), position[left]
            x = tasks.project(now.code[usable])
            gradient = now.gradient[usable]
            reached = (now.reached & (now.p_target >= tau))[usable]
            distance = ball.norm(x).to(radius)
            closer = reached & (distance < radius[position])
            best[position[closer]] = x[closer]
            radius[position[closer]] = distance[closer]
            step, change = pace.at(t / n_iter)
            eps = distance * torch.where(reached, 1 - change, 1 + change)
            # The next point has to be nearer than the best in any case.
            eps = torch.minimum(eps, radius[position] * (1 - PRECISION / 3))
            x = _move(replace(ball, eps=eps), x, gradient, optimizer, step)
        return best, radius


def _move(ball: Ball, x: Tensor, gradient: Tensor, optimizer: Optimizer, size: float) -> Tensor:
    """Take a step into the ball."""
    if optimizer == "afw":
        return ball.retract(torch.lerp(x, ball.farthest(-gradient), size))
    step = descent_step(ball, x, gradient, 2 * size * ball.eps, steepest=optimizer == "apgd")
    return ball.bring_in(step.add_(x))
