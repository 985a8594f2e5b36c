"""Races of optimizers and starting points within an l_p ball.

No single optimizer or starting point is best for every model and norm. So several runs, each
through larger balls first, take a part of the steps, and the best one takes the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from ...engine import Tasks
from ...numerics import broadcast_rows
from ...search.ball import PROJECTED, Ball
from ...search.ball_steps import Optimizer
from .ball_search import BallSearch, Found

Start = Literal["line", "gaussian", "farthest"]
#: runs that a race starts with at most, and the steps that each of them is worth at least
MOST_RUNS = 6
STEPS_PER_RUN = 60
#: share of all steps that the first round takes
FIRST_ROUND = 0.64
#: balls that a run goes through: radius / ε, share of its steps. A larger ball has fewer places
#: where all ways lead down, and its best point is a good start in a smaller one.
BALLS = ((3.0, 0.3), (2.0, 0.3), (1.0, 0.4))
ONE_BALL = ((1.0, 1.0),)
#: how far Gaussian points lie from the center before they are brought in, in radii
FAR = 7.0
#: numbers in the arrays of runs that are made together: small ones go faster so
TOGETHER = 2**19


class Run(NamedTuple):
    """An optimizer, the kind of point it starts from, and the number of its random numbers.

    Starts are the point of the ball on the line to a guide, a Gaussian point brought into the ball,
    and the point of the ball farthest in a Gaussian direction.
    """

    optimizer: Optimizer
    start: Start
    number: int


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
        Optimizers in turns. The second two start on the line to the guide, the others at random
        points.
    """
    optimizers: list[Optimizer] = ["afw", "apgd"]
    if optimizer != "auto":
        optimizers = [name for name in optimizers if name == optimizer]
    runs = [
        Run(optimizers[i % len(optimizers)], "line" if i in (2, 3) else "gaussian", i)
        for i in range(count)
    ]
    if optimizer == "auto" and count == MOST_RUNS and p not in PROJECTED:
        runs[-1] = runs[-1]._replace(optimizer="apgd-l2")
    return runs


@dataclass(frozen=True)
class BallRace:
    """Race runs within balls.

    Parameters
    ----------
    search : BallSearch
        Makes single runs.
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
        if self.optimizer != "auto":
            # Sparse steps can't leave the vertex of an l1 ball that is farthest in a direction.
            sparse = self.optimizer == "apgd" and ball.p == 1
            start: Start = "gaussian" if sparse else "farthest"
            runs = [Run(self.optimizer, start, i) for i in range(self.restarts)]
            return self._first_round(tasks, ball, None, tau, runs, self.n_iter, ONE_BALL)[0]
        steps = self.restarts * self.n_iter
        count = min(MOST_RUNS, max(1, steps // STEPS_PER_RUN))
        runs = choose_runs("auto", ball.p, count)
        each = max(1, int(FIRST_ROUND * steps / count)) if count > 1 else steps
        found, winner = self._first_round(tasks, ball, guide, tau, runs, each, BALLS)
        left = steps - count * each
        unfinished = ~found.reached if tau is not None else torch.ones_like(found.reached)
        for optimizer in sorted({run.optimizer for run in runs}) if left else []:
            is_winner = torch.tensor([run.optimizer == optimizer for run in runs])
            which = (is_winner.to(winner.device)[winner] & unfinished).nonzero().flatten()
            if len(which) == 0:
                continue
            part = self.search.climb(
                tasks.take(which), ball.take(which), found.x_cf[which], optimizer, left, tau
            )
            better = part.better_than(found.take(which))
            found.put(which[better], part.take(better))
        return found

    def _first_round(
        self,
        tasks: Tasks,
        ball: Ball,
        guide: Tensor | None,
        tau: float | None,
        runs: list[Run],
        n_iter: int,
        balls: tuple[tuple[float, float], ...],
    ) -> tuple[Found, Tensor]:
        """Make all runs; return the best of each task, and the number of its run."""
        n = len(tasks)
        best = Found(
            ball.x0.clone(),
            ball.x0.new_full((n,), torch.inf),
            torch.zeros_like(tasks.rank, dtype=torch.bool),
        )
        winner = torch.zeros_like(tasks.rank)
        for batch in batches(runs, ball):
            copies = torch.arange(n, device=tasks.row.device).repeat(len(batch))
            around = ball.take(copies)
            asking = tasks.take(copies)
            wide = replace(ball, eps=balls[0][0] * ball.eps)
            x = torch.cat([start_of(run, tasks, wide, guide) for run in batch])
            for factor, share in balls:
                larger = replace(around, eps=factor * around.eps)
                x = x if factor == balls[0][0] else larger.bring_in(x)
                steps = max(1, round(share * n_iter))
                found = self.search.climb(asking, larger, x, batch[0].optimizer, steps, tau)
                x = found.x_cf
            for i, run in enumerate(batch):
                of_run = torch.arange(i * n, (i + 1) * n, device=tasks.row.device)
                part = found.take(of_run)
                better = part.better_than(best)
                best.put(better, part.take(better))
                winner[better] = runs.index(run)
        return best, winner


def batches(runs: list[Run], ball: Ball) -> Iterator[list[Run]]:
    """Iterate over runs of one optimizer that are made together.

    Memory does not grow with the number of runs: large arrays take turns.
    """
    size = max(1, TOGETHER // max(1, ball.x0.numel()))
    for _, group in groupby(sorted(runs), key=lambda run: run.optimizer):
        same = list(group)
        for first in range(0, len(same), size):
            yield same[first : first + size]


def start_of(run: Run, tasks: Tasks, ball: Ball, guide: Tensor | None) -> Tensor:
    """Return the points of the balls where a run starts."""
    if run.start == "line" and guide is not None:
        return ball.retract(guide)
    direction = tasks.normal(math.prod(tasks.shape), 1000 * run.number + tasks.rank)
    direction = direction.reshape(ball.x0.shape)
    if run.start == "farthest":
        return ball.farthest(direction)
    length = torch.linalg.vector_norm(direction.flatten(1), ball.p, dim=1)
    return ball.bring_in(ball.x0 + direction * broadcast_rows(FAR * ball.eps / length, direction))
