"""Wachter: gradient steps to a row of the target class, with the smallest scaled change."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from ..engine import Candidates, Tags, Tasks
from ..numerics import ceil_div
from ..search import Adam, Point, Stop, minimize
from ..search.gradient_loop import Optimum
from ..validation import Real
from .support.option_rules import COUNT, RATE, STEPS, WEIGHT
from .support.row_explainer import RowExplainer

#: a step by finite differences costs dozens of model rows: so many rows are spent on steps,
DIFFERENCE_ROWS = 1000
#: over half as many values of λ, from so many times `factor` on,
LATER = 2
#: and each step is so many times longer
LONGER = 3
#: directions of the finite differences
N_DIRECTIONS = 32
#: width of the finite differences, in scales: wide enough to exchange a category
DIFFERENCE = 0.75
#: steps in the target class after which a search ends
PATIENCE = 10


class Wachter(RowExplainer):
    """Move an instance down the gradient until the model decides for the target.

        minimize over x'    λ · (1 − P(c | x'))² + Σ_j d_j(x', x)

    by Adam, from x' = x. d_j is the change of column j in units of its scale (in arrays the median
    absolute deviation), and 1 for another category. λ is raised by `factor` until the model decides
    for c: the smallest λ that does gives the smallest change.

    In tables the search moves in coordinates, and the model sees the nearest row: gradients are
    those of that row, and a category is exchanged when another one has become larger. In models
    without gradients finite differences are used, with fewer and longer steps, and fewer values
    of λ.

    Adam leaves small changes where the absolute value asks for none. So columns are given back one
    by one as long as the model stays with c, then as much of the change of numbers as it allows.
    Instances for which the search fails take the straight line to their nearest unlike neighbor,
    reported in `info["fallback"]`. With k > 1 the searches start near x, and options give back
    first what the ones before them change.

    Parameters
    ----------
    strength : float, default=1
        λ at the start.
    factor : float, default=4
        What λ is raised by.
    max_rounds : int, default=6
        Values of λ that are tried.
    learning_rate : float, default=0.1
        Adam's step, in scales.
    max_iter : int, default=50
        Most steps for each λ; fewer with finite differences, by what a step costs.

    References
    ----------
    Wachter, Mittelstadt, Russell: Counterfactual explanations without opening the black box:
    automated decisions and the GDPR. Harvard Journal of Law & Technology 31(2), 2018.
    https://doi.org/10.48550/arXiv.1711.00399

    Examples
    --------
    >>> result = Wachter().fit(model, X_train[:, 0], y_train).explain(X_test[:8, 0])
    >>> result.valid.mean()
    1.0
    """

    tags = Tags(modalities=("row",), gradient=True)
    rules = {
        "strength": WEIGHT,
        "factor": Real(above=1, at_most=1e6),
        "max_rounds": COUNT,
        "learning_rate": RATE,
        "max_iter": STEPS,
    }
    info_keys = {
        "iterations": "steps taken",
        "strength": "the last λ",
        "differs": "whether it changes another set of columns than the options before it",
        "fallback": "whether it lies on the line to the nearest unlike neighbor",
    }

    def __init__(
        self,
        strength: float = 1.0,
        factor: float = 4.0,
        max_rounds: int = 6,
        learning_rate: float = 0.1,
        max_iter: int = 50,
    ) -> None:
        self.strength = strength
        self.factor = factor
        self.max_rounds = max_rounds
        self.learning_rate = learning_rate
        self.max_iter = max_iter

    @override
    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [
            {"max_iter": 15, "max_rounds": 3, "learning_rate": 0.2},
            {"max_iter": 10, "max_rounds": 2, "strength": 10.0, "learning_rate": 0.3},
        ]

    @override
    def _explain(self, tasks: Tasks) -> Candidates:
        found, strength = self._descend(tasks)
        x_cf = self._move(tasks, found.code)
        accepted = tasks.accepted(x_cf)
        instances = tasks.per_instance()
        pool = x_cf.reshape(len(instances), tasks.k, -1)
        first = tasks.rank == 0
        return self._finish(
            instances,
            pool,
            accepted.reshape(len(instances), tasks.k),
            iterations=found.iterations[first],
            strength=strength[first],
        )

    def _move(self, tasks: Tasks, theta: Tensor) -> Tensor:
        """Return x + s θ, within the constraints."""
        step = theta if tasks.space is not None else theta / self.parts_.weight
        return tasks.project(tasks.x + step)

    def _descend(self, tasks: Tasks) -> tuple[Optimum, Tensor]:
        """Minimize with ever larger λ; returns where each task ended, and its λ, (n,)."""
        max_iter, max_rounds = self.max_iter, self.max_rounds
        learning_rate, first = self.learning_rate, self.strength
        if not tasks.classifier.differentiable:
            max_rounds = ceil_div(max_rounds, 2)
            rows_per_step = 1 + 2 * min(N_DIRECTIONS, tasks.shape[0])
            affordable = DIFFERENCE_ROWS // (max_rounds * rows_per_step)
            max_iter = min(max_iter, max(1, affordable))
            learning_rate *= LONGER
            first *= self.factor**LATER

        def loss(point: Point) -> Tensor:
            distance = self.parts_.distances(point.x_cf, point.tasks.x).sum(1)
            return point.tasks["strength"] * (1 - point.p_target).square() + distance

        noise = self.learning_rate * tasks.normal(tasks.shape[0], tasks.rank)
        start = torch.where((tasks.rank > 0)[:, None], noise, 0.0)
        found = Optimum.start(start)
        strength = torch.full_like(tasks.x[:, 0], first)
        position = torch.arange(len(tasks), device=tasks.x.device)
        for turn in range(max_rounds):
            if turn > 0:
                strength[position] *= self.factor
            iterations = found.iterations[position]
            part = minimize(
                tasks.take(position).attach(strength=strength[position]),
                found.code[position],
                self._move,
                loss,
                Adam(learning_rate),
                Stop(tasks.confidence or 0.0, PATIENCE, tolerance=0.0, max_iter=max_iter),
                difference=DIFFERENCE,
                n_directions=N_DIRECTIONS,
            )
            part.iterations += iterations
            found.put(position, part)
            position = position[(~part.reached) & tasks.take(position).affords()]
            if len(position) == 0:
                break
        return found, strength
