"""Glacier: the nearest counterfactual in a metric that makes some stretches costly to change."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor
from typing_extensions import override

from ..deprecation import renamed_parameters
from ..engine import Candidates, Tags, Tasks
from ..models.classifier import Array
from ..nn.autoencoders import Autoencoder
from ..numerics import ceil_div
from ..search import Point, SteepestDescent, Stop, first_on_line, minimize, segment_ids
from ..search.gradients import Decode
from ..search.segments import sum_by_segment
from ..validation import Instance, Nothing, OneOf
from .support.latent_space import LatentSpace
from .support.option_rules import COUNT, PROBABILITY, RATE, STEPS, WEIGHT
from .support.weighted import WeightedExplainer

#: a step by finite differences costs dozens of model rows: so many times fewer are taken
FEWER_STEPS = 5
#: added to the loss of points short of tau, so that any point at tau is better
OUTSIDE = 1e6


class Glacier(WeightedExplainer):
    """Slide along the decision boundary to the nearest point, in a weighted metric.

        minimize over δ   mean w · (δ / s)²     subject to   P(c | x + δ) ≥ τ

    with s the standard deviation of each channel and w the cost of changing a point. While P < τ
    the search steps down the margin loss (τ − P)₊², after that down the distance, each step of
    length `learning_rate` in the metric of w. A fixed weight between both terms would stop short of
    τ or overshoot it. Last, the edit shrinks to the smallest multiple that the model accepts at τ.

    In models without gradients finite differences over segments are used, with a fifth of the
    steps. Instances for which the search fails take the straight line to their nearest unlike
    neighbor, reported in `info["fallback"]`.

    Parameters
    ----------
    weights : {"uniform", "local", "global", "unconstrained"}, default="uniform"
        "uniform": w = 1. "local": segments that matter for this instance's class are costly.
        "global": segments that matter for its class in the reference data are costly.
        "unconstrained": w = 1, and the first crossing of the boundary is taken.
    strength : float, default=100
        w = 1 + strength · importance, for "local" and "global".
    n_segments : int, default=16
        Segments along time, for importance and for models without gradients.
    tau : float, default=0.5
        The target probability to reach.
    learning_rate : float, default=0.02
        Length of a step, as root mean square of δ / s.
    max_iter : int, default=300
        Largest number of steps.
    patience : int, default=40
        Steps after first reaching the target.
    autoencoder : Autoencoder, {"cnn", "lstm"} or None, default=None
        Move the code of an autoencoder instead of the series: x' = x + D(z + δ) − D(z), in units of
        the spread of the code. A trained one, or the kind to train at fit.
    max_epochs : int, default=500
        Largest number of epochs of that training.

    References
    ----------
    Wang, Samsten, Miliou, Mochaourab, Papapetrou: Glacier: guided locally constrained
    counterfactual explanations for time series classification. Machine Learning 2024.
    https://doi.org/10.1007/s10994-023-06502-x

    Examples
    --------
    >>> result = Glacier(weights="local").fit(model, X_train, y_train).explain(X_test[:8])
    >>> result.valid.mean()
    1.0
    """

    tags = Tags(modalities=("series",), gradient=True)
    rules = {
        "weights": OneOf("uniform", "local", "global", "unconstrained"),
        "strength": WEIGHT,
        "n_segments": COUNT,
        "tau": PROBABILITY,
        "learning_rate": RATE,
        "max_iter": STEPS,
        "patience": STEPS,
        "autoencoder": Nothing() | OneOf("cnn", "lstm") | Instance(Autoencoder),
        "max_epochs": STEPS,
    }
    info_keys = {
        "weights": "w, the cost of changing each point",
        "iterations": "steps taken",
        "converged": "whether the search stopped before the last step",
        "fallback": "whether the line to the nearest unlike neighbor was taken",
    }

    @renamed_parameters(lr="learning_rate")
    def __init__(
        self,
        weights: Literal["uniform", "local", "global", "unconstrained"] = "uniform",
        strength: float = 100.0,
        n_segments: int = 16,
        tau: float = 0.5,
        learning_rate: float = 0.02,
        max_iter: int = 300,
        patience: int = 40,
        autoencoder: Autoencoder | Literal["cnn", "lstm"] | None = None,
        max_epochs: int = 500,
    ) -> None:
        self.weights = weights
        self.strength = strength
        self.n_segments = n_segments
        self.tau = tau
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.patience = patience
        self.autoencoder = autoencoder
        self.max_epochs = max_epochs

    @override
    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [
            {"max_iter": 30, "patience": 5, "learning_rate": 0.1},
            {"weights": "local", "max_iter": 20, "learning_rate": 0.1},
            {"autoencoder": "cnn", "max_epochs": 2, "max_iter": 20, "learning_rate": 0.3},
        ]

    @override
    def _default_confidence(self) -> float:
        return self.tau

    @override
    def _fit(self, X: Tensor, y: Array | None) -> None:
        super()._fit(X, y)
        if self.autoencoder is not None:
            self.latent_ = LatentSpace.fit(self.autoencoder, X, self.max_epochs)

    @override
    def _explain(self, tasks: Tasks) -> Candidates:
        tasks = tasks.with_goal(self.tau)
        tasks = tasks.attach(w=self._costs(tasks))
        if self.autoencoder is None:
            tasks, decode, cost = self._in_input_space(tasks)
        else:
            tasks, decode, cost = self._in_latent_space(tasks)

        def loss(point: Point) -> Tensor:
            short = (point.goal - point.p_target).clamp_min(0)
            delta = (point.x_cf - point.tasks.x) / self.scale_
            distance = (point.tasks["w"] * delta.square()).flatten(1).mean(1)
            if self.weights == "unconstrained":
                distance = torch.zeros_like(distance)
            return torch.where(short > 0, short.square() + OUTSIDE, distance)

        found = minimize(
            tasks,
            self._starts(tasks, cost.shape[1]),
            decode,
            loss,
            SteepestDescent(self.learning_rate, cost / cost.mean(1, keepdim=True)),
            self._stop(tasks),
            difference=0.3,
        )
        _, x_cf = first_on_line(tasks, decode(tasks, found.code))
        x_cf, fallback = self._fall_back(tasks, x_cf)
        return tasks.candidates(
            x_cf,
            weights=tasks["w"],
            iterations=found.iterations,
            converged=found.converged,
            fallback=fallback,
        )

    def _stop(self, tasks: Tasks) -> Stop:
        fewer = 1 if tasks.oracle.classifier.differentiable else FEWER_STEPS
        return Stop(
            tau=tasks.confidence or self.tau,
            patience=1 if self.weights == "unconstrained" else ceil_div(self.patience, fewer),
            tolerance=0.0,
            max_iter=ceil_div(self.max_iter, fewer),
            consecutive=False,
        )

    def _in_input_space(self, tasks: Tasks) -> tuple[Tasks, Decode, Tensor]:
        """θ = δ / s: per point where gradients are exact, else per segment to save model rows."""
        segment = self.segment_
        if tasks.oracle.classifier.differentiable:
            segment = segment_ids(tasks.shape, 1).to(tasks.row.device)

        def move(tasks: Tasks, theta: Tensor) -> Tensor:
            return tasks.project(tasks.x + self.scale_ * theta[:, segment])

        return tasks, move, sum_by_segment(tasks["w"], segment)

    def _in_latent_space(self, tasks: Tasks) -> tuple[Tasks, Decode, Tensor]:
        """θ moves the code, in units of its spread; all directions cost the same."""
        z = self.latent_.encode(tasks.x)
        tasks = self.latent_.attach_base(tasks.attach(z=z), z, residual=True)

        def move(tasks: Tasks, theta: Tensor) -> Tensor:
            moved = tasks["z"] + (self.latent_.spread * theta).to(z.dtype)
            return self.latent_.candidates(tasks, moved, residual=True)

        return tasks, move, torch.ones_like(z).to(tasks["w"])

    def _starts(self, tasks: Tasks, size: int) -> Tensor:
        """θ = 0 for the first counterfactual of an instance, random nearby starts for others."""
        theta = tasks.x.new_zeros(len(tasks), size)
        for rank in range(1, tasks.k):
            others = tasks.rank == rank
            draws = tasks.take(others).uniform((tasks.k - 1) * size) - 0.5
            theta[others] = draws[:, (rank - 1) * size : rank * size]
        return theta
