"""Glacier: the nearest counterfactual under a metric that makes some stretches costly to change."""

from __future__ import annotations

from typing import Any, Literal

import torch

from ..engine import (
    Batch,
    Candidates,
    Point,
    SteepestDescent,
    Stop,
    Tags,
    minimise,
    segment_ids,
    smallest_level,
)
from ..engine.batch import target_value
from ..guides import Guide, NearestUnlikeNeighbour
from ..models.classifier import Array
from .guided import GuidedExplainer
from .importance import segment_importance

LINE_LEVELS = 2**10
FELT_OUT_SHARE = 5


class Glacier(GuidedExplainer):
    """Locally constrained gradient counterfactuals (Wang, Samsten, Miliou, Mochaourab, Papapetrou 2024).

        minimise over δ   mean w·(δ/s)²     subject to   P(c | x + δ) ≥ τ

    with s the standard deviation of each channel and w the cost of changing a point. While P < τ the search
    steps down the margin loss (τ − P)₊², once there down the distance, each step of length `lr` in the metric
    of w: it slides along the boundary toward the nearest point. A fixed weight between both terms instead
    would stop short of τ or overshoot it. Last, the edit shrinks to the smallest multiple the model accepts.

    Models without gradients are felt out by finite differences over segments, in a fifth of the steps. Rows
    that this does not turn take the straight line to their nearest unlike neighbour, and say so in
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
    ) -> None:
        self.weights, self.strength, self.n_segments = weights, strength, n_segments
        self.tau, self.lr, self.max_iter, self.patience = tau, lr, max_iter, patience

    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [{"max_iter": 30, "patience": 5, "lr": 0.1}, {"weights": "local", "max_iter": 20, "lr": 0.1}]

    def _make_guide(self) -> Guide:
        return NearestUnlikeNeighbour()

    def _fit(self, X: torch.Tensor, y: Array | None) -> None:
        known = ("uniform", "local", "global", "unconstrained")
        if self.weights not in known:
            raise ValueError(f"weights must be one of {', '.join(known)}, got {self.weights!r}.")
        super()._fit(X, y)
        spread = X.transpose(0, 1).flatten(1).std(1, correction=0)
        self.scale_ = torch.where(spread > 0, spread, 1.0)[:, None]
        width = max(1, -(-self.shape_[1] // self.n_segments))
        self.segment_ = segment_ids(self.shape_, width).to(X.device)
        if self.weights == "global":
            self.class_importance_ = self._class_importance(X)

    def _class_importance(self, X: torch.Tensor, most: int = 50) -> torch.Tensor:
        """Mean importance over (up to `most`) reference rows of each class, (classes, segments)."""
        label = self.guide_.candidate_class_
        n_classes = len(self.classifier_.classes)
        importance = X.new_zeros(n_classes, int(self.segment_.max()) + 1)
        for c in range(n_classes):
            rows = X[label == c][:most]
            if len(rows):
                ask = lambda z, which, c=c: self.classifier_.evaluate(z).proba[:, c]  # noqa: E731
                importance[c] = segment_importance(ask, rows, self.segment_).mean(0)
        return importance / importance.amax(1, keepdim=True).clamp_min(1e-12)

    def _explain(self, batch: Batch) -> Candidates:
        rows = batch.rows.repeat_interleave(batch.k)
        w = self._costs(batch)[rows]
        exact = batch.classifier.differentiable
        # One δ per point where gradients are free, one per segment where every direction costs model rows.
        segment = segment_ids(self.shape_, 1).to(rows.device) if exact else self.segment_

        def moved(theta: torch.Tensor, entries: torch.Tensor) -> torch.Tensor:
            return batch.project(batch.x[rows[entries]] + self.scale_ * theta[:, segment], rows[entries])

        def objective(point: Point) -> torch.Tensor:
            short = (self.tau - point.p_target).clamp_min(0)
            distance = (w[point.entries] * point.theta[:, segment].square()).flatten(1).mean(1)
            rest = torch.zeros_like(distance) if self.weights == "unconstrained" else distance
            # Any point outside is worse than every point inside: the best iterate is the nearest valid one.
            return torch.where(short > 0, short.square() + 1e6, rest)

        n_parameters = int(segment.max()) + 1
        cost = w.new_zeros(len(rows), n_parameters).index_add_(1, segment.flatten(), w.flatten(1))
        # A step that is felt out costs dozens of model rows: a few have to do.
        share = 1 if exact else FELT_OUT_SHARE
        patience = 1 if self.weights == "unconstrained" else -(-self.patience // share)
        stop = Stop(self.tau, patience, 0.0, -(-self.max_iter // share), consecutive=False)
        optimum = minimise(
            batch,
            rows,
            self._starts(batch, n_parameters),
            moved,
            objective,
            SteepestDescent(self.lr, cost / cost.mean(1, keepdim=True)),
            stop,
            difference=0.3,
        )
        x_cf, fallback = self._shorten(
            batch, rows, moved(optimum.theta, torch.arange(len(rows), device=rows.device))
        )
        info = {
            "weights": w,
            "iterations": optimum.iterations,
            "converged": optimum.converged,
            "fallback": fallback,
        }
        return Candidates(x_cf, rows, info)

    def _costs(self, batch: Batch) -> torch.Tensor:
        """w: what each point of each instance costs to change."""
        if self.weights in ("uniform", "unconstrained"):
            return torch.ones_like(batch.x)
        if self.weights == "global":
            importance = self.class_importance_[batch.label]
        else:
            n_masks = 64
            able = batch.affords(batch.rows, n_masks).nonzero().flatten()
            importance = batch.x.new_zeros(len(batch), int(self.segment_.max()) + 1)

            def p_label(z: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
                return target_value(batch.ask(z, able[which]).proba, batch.label[able[which]])

            if len(able):
                importance[able] = segment_importance(p_label, batch.x[able], self.segment_, n_masks)
        return 1 + self.strength * importance[:, self.segment_]

    def _starts(self, batch: Batch, size: int) -> torch.Tensor:
        """θ = 0 for the first counterfactual of an instance, random nearby starts for further ones."""
        theta = batch.x.new_zeros(len(batch), batch.k, size)
        if batch.k > 1:
            theta[:, 1:] = batch.uniform((batch.k - 1) * size).reshape(len(batch), batch.k - 1, size) - 0.5
        return theta.flatten(0, 1)

    def _shorten(
        self, batch: Batch, rows: torch.Tensor, x_cf: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The smallest multiple of each edit that the model accepts; where none is, the line to a guide."""

        def line_to(end: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
            def point(level: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
                s = (level.to(end) / LINE_LEVELS).reshape(-1, 1, 1)
                return batch.project(torch.lerp(batch.x[rows[which]], end[which], s), rows[which])

            return smallest_level(batch, rows, point, LINE_LEVELS)[1]

        x_cf = line_to(x_cf, rows)
        fallback = torch.zeros(len(rows), dtype=torch.bool, device=rows.device)
        asked = batch.affords(rows).nonzero().flatten()
        verdict = batch.ask(x_cf[asked], rows[asked])
        astray = asked[verdict.label != batch.target[rows[asked]]]
        if len(astray):
            target = self.classifier_.classes[batch.target[rows[astray]].cpu().numpy()]
            guides, index = self.guide_.guide(batch.x[rows[astray]], target, confidence=batch.confidence)
            astray, guides = astray[index[:, 0] >= 0], guides[index[:, 0] >= 0, 0]
            x_cf[astray] = line_to(guides, rows[astray])
            fallback[astray] = True
        return x_cf, fallback
