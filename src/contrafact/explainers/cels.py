"""CELS: a learned saliency map says which stretches of the nearest unlike neighbor to copy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ..engine import Batch, Candidates, Tags
from ..engine.batch import lead
from ..guides import Guide
from ..numerics.randomness import fold_in, row_seeds, row_uniform
from ..search import Adam, Optimum, Point, Stop, accepted_from, grow_mask, minimize, segment_ids
from .support.guided import GuidedExplainer, Guides, Kind, Metric, guide_of


class CELS(GuidedExplainer):
    """Counterfactuals via learned saliency maps (Li, Bahri, Boubrahimi, Hamdi, IEEE BigData 2023).

        x' = x·(1 − θ) + n·θ,     θ ∈ [0, 1]^(channels × length),   n the nearest unlike neighbor of x

        minimize over θ   g·(1 − P(c | x'))  +  a·mean|θ|  +  b·mean|θ_{t+1} − θ_t|^β

    by Adam; then θ, scaled to [0, 1], is cut at `threshold` and the stretches above it are copied from n.
    Where cutting undoes the flip, the cut moves down θ's own values to the smallest mask that flips: the full
    mask is n itself, which the model puts in c, so a valid answer always exists once a guide does.

    Models without gradients are explored in segments of the mask: by finite differences where their answers
    are smooth, else by growing the mask from the segments with the largest gain.

    Parameters
    ----------
    g, a, b, beta : weights of reaching the target, of few and of smooth edits; exponent of smoothness.
    lr, max_iter : Adam's step in θ and its limit.
    tau, patience, tolerance : stop at P(c) ≥ tau for `patience` steps, or when the loss moves less there.
    threshold : where the scaled map is cut.
    init : "small" starts θ at U(0, 0.01), "uniform" at U(0, 1).
    binarize : False keeps the soft blend (Info-CELS, 2025).
    shared_mask : True learns one map for all channels (default: one per channel, M-CELS, 2024).
    guide : n: the nearest unlike "neighbor", "cluster" mean, "prototype" (GLVQ) or "median" (Median LVQ).
    metric : "euclidean" or "dtw", for the neighbor and the median.
    n_segments : segments explored in models without gradients.

    `info`: saliency, mask, guide_index, iterations, converged, target_prob and loss before the cut,
    mask_density.

    Examples
    --------
    >>> result = CELS().fit(model, X_train, y_train).explain(X_test[:8], refine=True)
    >>> result.valid.mean()
    1.0
    """

    tags = Tags(modalities=("series",), gradient=True)

    def __init__(
        self,
        g: float = 0.7,
        a: float = 0.6,
        b: float = 0.5,
        beta: float = 3.0,
        lr: float = 0.1,
        max_iter: int = 500,
        tau: float = 0.5,
        patience: int = 30,
        tolerance: float = 1e-4,
        threshold: float = 0.5,
        init: Literal["small", "uniform"] = "small",
        binarize: bool = True,
        shared_mask: bool = False,
        guide: Kind = "neighbor",
        metric: Metric = "euclidean",
        n_segments: int = 16,
    ) -> None:
        self.g, self.a, self.b, self.beta = g, a, b, beta
        self.lr, self.max_iter = lr, max_iter
        self.tau, self.patience, self.tolerance = tau, patience, tolerance
        self.threshold, self.init, self.binarize, self.shared_mask = (
            threshold,
            init,
            binarize,
            shared_mask,
        )
        self.guide, self.metric, self.n_segments = guide, metric, n_segments

    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [
            {"max_iter": 40, "patience": 5},
            {"max_iter": 40, "patience": 5, "binarize": False, "shared_mask": True},
        ]

    def _make_guide(self) -> Guide:
        if self.init not in ("small", "uniform"):
            raise ValueError(f"init must be 'small' or 'uniform', got {self.init!r}.")
        if not 0 <= self.threshold < 1:
            raise ValueError(f"threshold must lie in [0, 1), got {self.threshold}.")
        return guide_of(self.guide, self.metric)

    def _explain(self, batch: Batch) -> Candidates:
        guides = self._guides(batch)
        found = self._saliency(batch, guides)
        mask, x_cf = (self._cut if self.binarize else self._soften)(batch, guides, found.code)
        info = {
            "saliency": found.code.expand(-1, *self.shape_),
            "mask": mask.expand(-1, *self.shape_),
            "guide_index": guides.index,
            "iterations": found.iterations,
            "converged": found.converged,
            "target_prob": found.p_target,
            "loss": found.loss,
            "mask_density": (mask > 0).double().flatten(1).mean(1),
        }
        return Candidates(x_cf, guides.rows, info)

    # --- learning the map -----------------------------------------------------------------------------------

    def _saliency(self, batch: Batch, guides: Guides) -> Optimum:
        everyone = torch.arange(len(guides.rows), device=batch.x.device)
        if batch.classifier.differentiable:
            return self._learn(batch, guides, segment_ids(self.shape_, 1, shared=self.shared_mask))
        segment = self._segments(self.n_segments).to(batch.x.device)
        smooth = self._is_smooth(batch, guides, segment)
        found = Optimum.start(batch.x.new_zeros(len(everyone), *self.shape_))
        for part, explore in ((everyone[smooth], self._feel), (everyone[~smooth], self._grow)):
            if len(part):
                found.put(part, explore(batch, guides.take(part), segment))
        return found

    def _learn(
        self,
        batch: Batch,
        guides: Guides,
        segment: Tensor,
        patience: int | None = None,
        start: Tensor | None = None,
    ) -> Optimum:
        """Descend on the map, one value of θ per segment; `start` is a map (entries, *shape) to begin at."""
        n_segments = int(segment.max()) + 1
        if start is None:
            draws = row_uniform(self._scale_free_seeds(batch, guides), n_segments)
            theta = torch.from_numpy(draws).to(batch.x) * (0.01 if self.init == "small" else 1.0)
        else:
            sums = start.new_zeros(len(start), n_segments).index_add_(
                1, segment.flatten(), start.flatten(1)
            )
            theta = sums / torch.bincount(segment.flatten(), minlength=n_segments)

        def blend(theta: Tensor, entries: Tensor) -> Tensor:
            rows = guides.rows[entries]
            return batch.project(
                torch.lerp(batch.x[rows], guides.x[entries], theta[:, segment]), rows
            )

        optimum = minimize(
            batch,
            guides.rows,
            theta,
            blend,
            lambda point: self._loss(point, segment),
            Adam(self.lr),
            Stop(self.tau, patience or self.patience, self.tolerance, self.max_iter),
            clamp=(0.0, 1.0),
        )
        return replace(optimum, code=optimum.code[:, segment])

    def _loss(self, point: Point, segment: Tensor) -> Tensor:
        theta = point.theta[:, segment]
        budget = theta.abs().flatten(1).mean(1)
        smoothness = theta.diff(dim=-1).abs().pow(self.beta).flatten(1).mean(1)
        return self.g * (1 - point.p_target) + self.a * budget + self.b * smoothness

    def _scale_free_seeds(
        self, batch: Batch, guides: Guides
    ) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """Seeds from the order of an instance's values: other units give the same map; one seed per guide."""
        order = batch.x[guides.rows].flatten(1).argsort(dim=1, stable=True).cpu().numpy()
        occurrence = torch.arange(len(guides.rows)) - torch.searchsorted(
            guides.rows.cpu(), guides.rows.cpu()
        )
        return fold_in(row_seeds(order, int(batch.seed)), occurrence.numpy())

    # --- models without gradients ---------------------------------------------------------------------------

    def _segments(self, count: int) -> Tensor:
        channels, length = self.shape_
        per_channel = count if self.shared_mask else max(2, count // channels)
        return segment_ids(self.shape_, max(1, -(-length // per_channel)), shared=self.shared_mask)

    def _feel(self, batch: Batch, guides: Guides, segment: Tensor) -> Optimum:
        """From coarse to fine: half as many segments until the class turns, then all, from there."""
        coarse = self._segments(-(-self.n_segments // 2)).to(segment.device)
        start = self._learn(batch, guides, coarse, patience=1).code
        return self._learn(batch, guides, segment, start=start)

    def _is_smooth(self, batch: Batch, guides: Guides, segment: Tensor, h: float = 0.02) -> Tensor:
        """Does doubling a small change of a segment double the answer? Steps do not, slopes do."""
        n_segments, count = int(segment.max()) + 1, len(guides.rows)
        smooth = torch.zeros(count, dtype=torch.bool, device=batch.x.device)
        able = batch.affords(guides.rows, 1 + 2 * n_segments).nonzero().flatten()
        if len(able) == 0:
            return smooth
        steps = torch.cat(
            [torch.zeros(1, n_segments), h * torch.eye(n_segments), 2 * h * torch.eye(n_segments)]
        )
        theta = (0.5 + steps).to(batch.x).repeat(len(able), 1)
        entry = able.repeat_interleave(len(steps))
        x_cf = torch.lerp(batch.x[guides.rows[entry]], guides.x[entry], theta[:, segment])
        verdict = batch.ask(batch.project(x_cf, guides.rows[entry]), guides.rows[entry])
        value = lead(verdict.score, batch.target[guides.rows[entry]]).reshape(len(able), -1)
        once, twice = (value[:, 1:] - value[:, :1]).tensor_split(2, dim=1)
        proportional = (twice - 2 * once).abs() <= 0.25 * twice.abs()
        smooth[able] = (proportional & (twice != 0)).double().mean(1) >= 0.75
        return smooth

    def _grow(self, batch: Batch, guides: Guides, segment: Tensor) -> Optimum:
        """Copied segments are salient above 1/2, the earlier the more; the others by their gain below it."""
        copied_in, alone = grow_mask(batch, guides.rows, guides.x, segment)
        low, high = alone.amin(1, keepdim=True), alone.amax(1, keepdim=True)
        by_gain = 0.5 * (alone - low) / (high - low).clamp_min(1e-12)
        by_turn = 1 - 0.5 * copied_in / copied_in.shape[1]
        theta = torch.where(copied_in >= 0, by_turn, by_gain).to(batch.x)
        found = Optimum.start(theta[:, segment])
        found.iterations[:], found.converged[:] = (copied_in >= 0).sum(1), True
        found.loss[:], found.p_target[:] = torch.nan, torch.nan  # nothing was descended on
        return found

    # --- from the map to the edit ---------------------------------------------------------------------------

    def _cut(self, batch: Batch, guides: Guides, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Copy where the scaled map exceeds the threshold, or a little more where that does not flip."""
        theta = theta[:, :1] if self.shared_mask else theta
        flat = theta.flatten(1)
        low, high = flat.amin(1, keepdim=True), flat.amax(1, keepdim=True)
        scaled = (flat - low) / (high - low).clamp_min(1e-12)
        rank = (
            scaled.argsort(dim=1, descending=True, stable=True).argsort(dim=1).reshape(theta.shape)
        )
        above = (scaled > self.threshold).sum(1).clamp_min(1)

        def copied(level: Tensor, which: Tensor) -> Tensor:
            rows = guides.rows[which]
            mask = rank[which] < level.reshape(-1, 1, 1)
            return batch.project(torch.where(mask, guides.x[which], batch.x[rows]), rows)

        level, x_cf = accepted_from(batch, guides.rows, copied, above, flat.shape[1])
        return rank < level.reshape(-1, 1, 1), x_cf

    def _soften(
        self, batch: Batch, guides: Guides, theta: Tensor, top: int = 64
    ) -> tuple[Tensor, Tensor]:
        """The soft blend itself; where it falls short, θ rises toward 1 until the model accepts."""

        def lifted(level: Tensor, which: Any) -> Tensor:
            share = (level.to(theta) / top).reshape(-1, 1, 1)
            return theta[which] + share * (1 - theta[which])

        def raised(level: Tensor, which: Tensor) -> Tensor:
            rows = guides.rows[which]
            blend = torch.lerp(batch.x[rows], guides.x[which], lifted(level, which))
            return batch.project(blend, rows)

        level, x_cf = accepted_from(batch, guides.rows, raised, torch.zeros_like(guides.rows), top)
        return lifted(level, slice(None)), x_cf
