"""Glacier: the nearest counterfactual under a metric that makes some stretches costly to change."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from ..engine import Batch, Candidates, Tags
from ..models.classifier import Array
from ..nn.autoencoders import Autoencoder
from ..search import Point, SteepestDescent, Stop, first_on_line, minimize, segment_ids
from ..search.gradient_loop import Decode
from .support.latent_space import LatentSpace
from .support.weighted import WeightedExplainer

FELT_OUT_SHARE = 5


class Glacier(WeightedExplainer):
    """Locally constrained gradient counterfactuals (Wang, Samsten, Miliou, Mochaourab, Papapetrou 2024).

        minimize over δ   mean w·(δ/s)²     subject to   P(c | x + δ) ≥ τ

    with s the standard deviation of each channel and w the cost of changing a point. While P < τ the search
    steps down the margin loss (τ − P)₊², once there down the distance, each step of length `lr` in the metric
    of w: it slides along the boundary toward the nearest point. A fixed weight between both terms instead
    would stop short of τ or overshoot it. Last, the edit shrinks to the smallest multiple the model accepts.

    Models without gradients are felt out by finite differences over segments, in a fifth of the steps. Rows
    that this does not turn take the straight line to their nearest unlike neighbor, and say so in
    `info["fallback"]`.

    Parameters
    ----------
    weights : "uniform" (w = 1); "local" (segments that matter for this instance's class are costly); "global"
        (segments that matter for its class in the reference data); "unconstrained" (w = 1, and the first
        crossing will do).
    strength : w = 1 + strength · importance, for "local" and "global".
    n_segments : segments along time, for importance and for models without gradients.
    tau : the target probability to reach.
    lr : length of a step, as root mean square of δ/s.
    max_iter, patience : limit of steps, and of steps after first reaching the target.
    autoencoder : move the code of an autoencoder instead of the series: x' = x + D(z + δ) − D(z), steps in
        spreads of the code. A trained one, or "cnn" / "lstm" to be trained at fit for up to `max_epochs`.

    `info`: weights (per point), iterations, converged, fallback.

    Examples
    --------
    >>> result = Glacier(weights="local").fit(model, X_train, y_train).explain(X_test[:8])
    >>> result.valid.mean()
    1.0
    """

    tags = Tags(modalities=("series",), gradient=True)

    def __init__(
        self,
        weights: Literal["uniform", "local", "global", "unconstrained"] = "uniform",
        strength: float = 100.0,
        n_segments: int = 16,
        tau: float = 0.5,
        lr: float = 0.02,
        max_iter: int = 300,
        patience: int = 40,
        autoencoder: Autoencoder | Literal["cnn", "lstm"] | None = None,
        max_epochs: int = 500,
    ) -> None:
        self.weights, self.strength, self.n_segments = weights, strength, n_segments
        self.tau, self.lr, self.max_iter, self.patience = tau, lr, max_iter, patience
        self.autoencoder, self.max_epochs = autoencoder, max_epochs

    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [
            {"max_iter": 30, "patience": 5, "lr": 0.1},
            {"weights": "local", "max_iter": 20, "lr": 0.1},
            {"autoencoder": "cnn", "max_epochs": 2, "max_iter": 20, "lr": 0.3},
        ]

    def _fit(self, X: Tensor, y: Array | None) -> None:
        super()._fit(X, y)
        if self.autoencoder is not None:
            self.latent_ = LatentSpace.fit(self.autoencoder, X, self.max_epochs)

    def _explain(self, batch: Batch) -> Candidates:
        tau = max(self.tau, batch.confidence or 0.0)
        rows = batch.rows.repeat_interleave(batch.k)
        w = self._costs(batch)[rows]
        exact = batch.classifier.differentiable
        decode, cost = (self._in_input if self.autoencoder is None else self._in_latent)(
            batch, rows, w, exact
        )

        def objective(point: Point) -> Tensor:
            short = (tau - point.p_target).clamp_min(0)
            delta = (point.x_cf - batch.x[rows[point.entries]]) / self.scale_
            distance = (w[point.entries] * delta.square()).flatten(1).mean(1)
            rest = torch.zeros_like(distance) if self.weights == "unconstrained" else distance
            # Any point outside is worse than every point inside: the best iterate is the nearest valid one.
            return torch.where(short > 0, short.square() + 1e6, rest)

        # A step that is felt out costs dozens of model rows: a few have to do.
        share = 1 if exact else FELT_OUT_SHARE
        patience = 1 if self.weights == "unconstrained" else -(-self.patience // share)
        stop = Stop(tau, patience, 0.0, -(-self.max_iter // share), consecutive=False)
        start = self._starts(batch, cost.shape[1])
        step = SteepestDescent(self.lr, cost / cost.mean(1, keepdim=True))
        optimum = minimize(batch, rows, start, decode, objective, step, stop, difference=0.3)
        end = decode(optimum.code, torch.arange(len(rows), device=rows.device))
        x_cf, fallback = self._rescue(batch, rows, first_on_line(batch, rows, end)[1])
        info = {
            "weights": w,
            "iterations": optimum.iterations,
            "converged": optimum.converged,
            "fallback": fallback,
        }
        return Candidates(x_cf, rows, info)

    def _in_input(
        self, batch: Batch, rows: Tensor, w: Tensor, exact: bool
    ) -> tuple[Decode, Tensor]:
        """θ is δ/s: one value per point where gradients are free, per segment where directions cost rows."""
        segment = segment_ids(self.shape_, 1).to(rows.device) if exact else self.segment_

        def moved(theta: Tensor, entries: Tensor) -> Tensor:
            return batch.project(
                batch.x[rows[entries]] + self.scale_ * theta[:, segment], rows[entries]
            )

        size = int(segment.max()) + 1
        return moved, w.new_zeros(len(rows), size).index_add_(1, segment.flatten(), w.flatten(1))

    def _in_latent(
        self, batch: Batch, rows: Tensor, w: Tensor, exact: bool
    ) -> tuple[Decode, Tensor]:
        """θ moves the code, in its spreads; no direction of the code is dearer than another."""
        z = self.latent_.encode(batch.x[rows])
        decode = self.latent_.decoder(batch, rows, z, residual=True)

        def moved(theta: Tensor, entries: Tensor) -> Tensor:
            return decode(z[entries] + (self.latent_.spread * theta).to(z.dtype), entries)

        return moved, w.new_ones(len(rows), z.shape[1])

    def _starts(self, batch: Batch, size: int) -> Tensor:
        """θ = 0 for the first counterfactual of an instance, random nearby starts for further ones."""
        theta = batch.x.new_zeros(len(batch), batch.k, size)
        if batch.k > 1:
            theta[:, 1:] = (
                batch.uniform((batch.k - 1) * size).reshape(len(batch), batch.k - 1, size) - 0.5
            )
        return theta.flatten(0, 1)
