"""Races of optimizers and starting points within an l_p ball.

No single optimizer or starting point is best for every model and norm. So several runs, each
through larger balls first, take a part of the steps, and the best ones take the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from ...engine import Tasks
from ...numerics import broadcast_rows
from ...search.ball import PROJECTED, Ball, lengths
from ...search.ball_steps import Optimizer
from .ball_search import BallSearch, Found

Start = Literal["line", "guide", "gaussian", "farthest"]
#: runs that a race starts with at most, and the steps that each of them is worth at least
MOST_RUNS = 8
STEPS_PER_RUN = 45
#: rounds of a race: how many runs of each task take part, and which share of all steps is theirs
ROUNDS = ((MOST_RUNS, 0.5), (3, 0.5))
#: balls that a run goes through: radius / ε, share of its steps. A larger ball has fewer places
#: where all ways lead down, and its best point is a good start in a smaller one.
BALLS = ((3.0, 0.3), (2.0, 0.3), (1.0, 0.4))
ONE_BALL = ((1.0, 1.0),)
#: how far Gaussian points lie from the center before they are brought in, in radii; from afar the
#: point of an l1 ball is sparse
FAR = 7.0
FAR_L1 = 60.0
#: numbers in the arrays of runs that are made together: small ones go faster so
TOGETHER = 2**19


class Run(NamedTuple):
    """An optimizer, the kind of point it starts from, and the number of its draw or guide.

    Starts are the point of the ball on the line to a guide, another guide itself, a Gaussian point
    brought into the ball, and the point of the ball farthest in a Gaussian direction.
    """

    optimizer: Optimizer
    start: Start
    number: int


class Round(NamedTuple):
    """How many runs of each task take part, their steps, and the balls they go through."""

    runs: int
    steps: int
    balls: tuple[tuple[float, float], ...]


class Field(NamedTuple):
    """Runs at work: the task and the number of the run of each, and the best points so far."""

    task: Tensor
    run: Tensor
    found: Found

    def take(self, which: Tensor | slice) -> Field:
        """Return some of them."""
        return Field(self.task[which], self.run[which], self.found.take(which))

    def join(self, other: Field) -> Field:
        """Return these and others."""
        return Field(
            torch.cat([self.task, other.task]),
            torch.cat([self.run, other.run]),
            self.found.join(other.found),
        )

    def leaders(self, count: int) -> Field:
        """Return the best runs of each task, in the order of runs."""
        order = self.found.order()
        order = order[self.task[order].argsort(stable=True)]
        task = self.task[order]
        place = torch.arange(len(task), device=task.device) - torch.searchsorted(task, task)
        ahead = order[place < count]
        return self.take(ahead[self.run[ahead].argsort(stable=True)])


def racing_runs(p: float, count: int) -> list[Run]:
    """Return the runs that a race starts with.

    Parameters
    ----------
    p : float
        The norm.
    count : int
        How many runs.

    Returns
    -------
    list of Run
        Those of one optimizer in a row. Most are of the optimizer that is the better one for most
        models: APGD where the ball has an exact projection, else Auto-Frank-Wolfe. Two start on the
        line to the guide, the others at random points.
    """
    main: Optimizer = "apgd" if p in PROJECTED else "afw"
    rivals: dict[int, Optimizer] = (
        {1: "afw", 3: "afw"} if p in PROJECTED else {1: "apgd", 7: "apgd-l2"}
    )
    return sorted(
        Run(rivals.get(i, main), "line" if i in (2, 3) else "gaussian", i) for i in range(count)
    )


@dataclass(frozen=True)
class BallRace:
    """Race runs within balls.

    Parameters
    ----------
    search : BallSearch
        Makes runs.
    optimizer : {"auto", "afw", "apgd"}
        "auto": a race; one alone is run from random points, as often as asked.
    n_iter, restarts : int
        Their product is the number of steps of all runs.
    """

    search: BallSearch
    optimizer: Literal["auto", "afw", "apgd"]
    n_iter: int
    restarts: int

    def run(self, tasks: Tasks, ball: Ball, guide: Tensor | None, tau: float | None) -> Found:
        """Find the best point of every ball.

        Parameters
        ----------
        tasks : Tasks
            What to find counterfactuals for.
        ball : Ball
            One for each task.
        guide : Tensor of shape (n, *shape) or None
            A point of the class for each task.
        tau : float or None
            P(c) at which a run may end; None: all steps are taken.

        Returns
        -------
        Found
            The best points.
        """
        runs, rounds = self._plan(ball.p)
        entering = starts(runs, rounds[0], tasks, ball, guide)
        for i, leg in enumerate(rounds):
            survivors = rounds[i + 1].runs if i + 1 < len(rounds) else 1
            field = next(entering)
            field = self._climb(tasks, ball, field, runs, leg, tau).leaders(survivors)
            for part in entering:
                after = self._climb(tasks, ball, part, runs, leg, tau)
                field = field.join(after).leaders(survivors)
            entering = together(field, ball)
        return field.take(field.task.argsort()).found

    def _plan(self, p: float) -> tuple[list[Run], list[Round]]:
        """Return the runs and the rounds of the race."""
        if self.optimizer != "auto":
            # Sparse steps can't leave the vertex of an l1 ball that is farthest in a direction.
            sparse = self.optimizer == "apgd" and p == 1
            start: Start = "gaussian" if sparse else "farthest"
            runs = [Run(self.optimizer, start, i) for i in range(self.restarts)]
            return runs, [Round(self.restarts, self.n_iter, ONE_BALL)]
        steps = self.restarts * self.n_iter
        count = min(MOST_RUNS, max(1, steps // STEPS_PER_RUN))
        runs = racing_runs(p, count)
        if count == 1:
            return runs, [Round(1, steps, BALLS)]
        rounds: list[Round] = []
        for most, share in ROUNDS:
            m = min(most, count)
            rounds.append(Round(m, max(1, int(share * steps / m)), ONE_BALL if rounds else BALLS))
        return runs, rounds

    def _climb(
        self,
        tasks: Tasks,
        ball: Ball,
        field: Field,
        runs: list[Run],
        leg: Round,
        tau: float | None,
    ) -> Field:
        """Let runs go on, but for those of tasks that are done."""
        which = torch.arange(len(field.task), device=field.task.device)
        part = field
        if tau is not None and bool(field.found.reached.any()):
            which = which[~field.found.reached]
            part = field.take(which)
        if len(which) == 0:
            return field
        # Tasks are copied only where they have to be.
        in_order = len(which) == len(tasks) and bool((part.task.diff() > 0).all())
        asking = tasks if in_order else tasks.take(part.task)
        around = ball.take(part.task)
        optimizers = [runs[i].optimizer for i in part.run.tolist()]
        found = part.found
        for factor, share in leg.balls:
            larger = replace(around, eps=factor * around.eps)
            x = found.x_cf if factor == leg.balls[0][0] else larger.bring_in(found.x_cf)
            steps = max(1, round(share * leg.steps))
            resumed = bool(found.loss.isfinite().any())
            found = self.search.climb(asking, larger, x, optimizers, steps, tau, resumed)
        # Points of a larger ball do not count, nor does what no step was afforded for.
        ahead = ~part.found.better_than(found)
        field.found.put(which[ahead], found.take(ahead))
        return field


def starts(
    runs: list[Run], leg: Round, tasks: Tasks, ball: Ball, guide: Tensor | None
) -> Iterator[Field]:
    """Iterate over runs at their start, as many as are made together."""
    n = len(tasks)
    wide = replace(ball, eps=leg.balls[0][0] * ball.eps)
    size = runs_together(ball)
    for first in range(0, len(runs), size):
        batch = range(first, min(first + size, len(runs)))
        task = torch.arange(n, device=tasks.row.device).repeat(len(batch))
        run = torch.tensor(batch, device=tasks.row.device).repeat_interleave(n)
        x = torch.cat([start_of(runs[i], tasks, wide, guide) for i in batch])
        found = Found(x, x.new_full((len(x),), torch.inf), torch.zeros_like(task, dtype=torch.bool))
        yield Field(task, run, found)


def together(field: Field, ball: Ball) -> Iterator[Field]:
    """Iterate over runs at work, as many as are made together."""
    size = runs_together(ball) * len(ball.x0)
    for first in range(0, len(field.task), size):
        yield field.take(slice(first, first + size))


def runs_together(ball: Ball) -> int:
    """Return how many runs of every task are made together.

    Memory does not grow with the number of runs: large arrays take turns.
    """
    return max(1, TOGETHER // max(1, ball.x0.numel()))


def start_of(run: Run, tasks: Tasks, ball: Ball, guide: Tensor | None) -> Tensor:
    """Return the points of the balls where a run starts."""
    if run.start == "line" and guide is not None:
        return ball.retract(guide)
    direction = tasks.normal(math.prod(tasks.shape), 1000 * run.number + tasks.rank)
    direction = direction.reshape(ball.x0.shape)
    if run.start == "farthest":
        return ball.farthest(direction)
    far = FAR_L1 if ball.p == 1 else FAR
    length = broadcast_rows(far * ball.eps / lengths(direction, ball.p), direction)
    return ball.bring_in(direction.mul_(length).add_(ball.x0))
