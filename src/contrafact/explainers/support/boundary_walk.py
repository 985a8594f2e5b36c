"""Walk along the decision boundary by few finite differences, for models without gradients."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ...engine import Tasks
from ...numerics import broadcast_rows
from ...search import smallest_level
from ...search.ball import Ball
from ...search.gradient_loop import SPARE
from ...search.gradients import ModelGradient, with_temperature

#: gradients that are estimated at most
MAX_GRADIENTS = 8
#: rounds without a smaller radius after which a task is done
PATIENCE = 4
#: levels of the radius that are told apart
LEVELS = 256


def walk_boundary(
    tasks: Tasks,
    ball: Ball,
    best: Tensor,
    model: ModelGradient,
) -> tuple[Tensor, Tensor]:
    """Find a smaller radius that holds an answer than that of the best one known.

    Every round estimates the gradient at the best point and adds it to those before, which
    averages out the noise of few directions. The points of the balls farthest down the sum are a
    line of candidates; bisection finds the smallest radius that is accepted. Answers that are steps
    have no slope to follow: such tasks are done after the first rounds.

    Parameters
    ----------
    tasks : Tasks
        What to find counterfactuals for.
    ball : Ball
        Center, norm and box; the radii do not matter.
    best : Tensor of shape (n, *shape)
        Points that are accepted.
    model : ModelGradient
        Loss and gradient, by finite differences.

    Returns
    -------
    best : Tensor of shape (n, *shape)
        The points with the smallest radius found.
    improved : Tensor of bool, shape (n,)
        Where it is smaller than before.
    """
    best = best.clone()
    radius = ball.norm(best).to(ball.eps)
    slope = torch.zeros_like(best)
    failures = torch.zeros_like(tasks.rank)
    improved = torch.zeros_like(tasks.rank, dtype=torch.bool)
    tasks = with_temperature(tasks)
    position = torch.arange(len(tasks), device=tasks.row.device)
    for t in range(MAX_GRADIENTS):
        position = position[failures[position] < PATIENCE]
        position = position[tasks.take(position).affords(model.cost(best) + SPARE)]
        if len(position) == 0:
            break
        asking = tasks.take(position)
        now = model.evaluate(asking, best[position], t)
        position = position[: len(now.loss)]  # the deadline may leave no time for the others
        slope[position] += _unit(now.gradient)
        shorter, accepted = _along(
            tasks.take(position), ball.take(position), slope[position], radius[position]
        )
        failures[position] = torch.where(accepted, 0, failures[position] + 1)
        won = position[accepted]
        best[won] = shorter[accepted]
        radius[won] = ball.take(won).norm(best[won]).to(radius)
        improved[won] = True
    return best, improved


def _unit(gradient: Tensor) -> Tensor:
    """Scale gradients to length 1; one that is 0 everywhere, or no number, stays 0."""
    length = gradient.flatten(1).norm(dim=1)
    usable = length.isfinite() & (length > 0)
    scaled = gradient / broadcast_rows(torch.where(usable, length, 1.0), gradient)
    return torch.where(broadcast_rows(usable, gradient), scaled, 0.0)


def _along(tasks: Tasks, ball: Ball, slope: Tensor, radius: Tensor) -> tuple[Tensor, Tensor]:
    """Return the answer of the smallest radius below the known ones, and where there is any."""
    entry = torch.arange(len(tasks), device=radius.device)
    tasks = tasks.attach(slope=slope, radius=radius, entry=entry)

    def farthest(tasks: Tasks, level: Tensor) -> Tensor:
        eps = tasks["radius"] * level.to(radius) / LEVELS
        around = replace(ball.take(tasks["entry"]), eps=eps)
        return tasks.project(around.farthest(-tasks["slope"]))

    level, x_cf = smallest_level(tasks, farthest, LEVELS - 1)
    accepted = level < LEVELS - 1
    return x_cf, accepted & (ball.norm(x_cf).to(radius) < radius)
