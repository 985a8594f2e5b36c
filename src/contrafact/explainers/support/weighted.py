"""What Glacier and LatentCF++ share: distances in which some stretches are costly to change."""

from __future__ import annotations

import torch
from torch import Tensor

from ...engine import Batch
from ...engine.batch import target_value
from ...guides import Guide, NearestUnlikeNeighbor
from ...models.classifier import Array
from ...search import segment_ids
from .guided import GuidedExplainer
from .importance import segment_importance


class WeightedExplainer(GuidedExplainer):
    """Measures change as |x' − x| / s with a cost w per point, s the spread of each channel.

    Subclasses have the parameters `weights`, `strength` and `n_segments`.
    """

    weights: str
    strength: float
    n_segments: int

    def _make_guide(self) -> Guide:
        return NearestUnlikeNeighbor()

    def _fit(self, X: Tensor, y: Array | None) -> None:
        known = ("uniform", "local", "global", "unconstrained")
        if self.weights not in known:
            raise ValueError(f"weights must be one of {', '.join(known)}, got {self.weights!r}.")
        super()._fit(X, y)
        spread = X.transpose(0, 1).flatten(1).std(1, correction=0)
        self.scale_ = torch.where(spread > 0, spread, 1.0).reshape(-1, *[1] * (X.ndim - 2))
        width = max(1, -(-self.shape_[1] // self.n_segments))
        self.segment_ = segment_ids(self.shape_, width).to(X.device)
        if self.weights == "global":
            self.class_importance_ = self._class_importance(X)

    def _class_importance(self, X: Tensor, most: int = 50) -> Tensor:
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

    def _costs(self, batch: Batch) -> Tensor:
        """w: what each point of each instance costs to change."""
        if self.weights in ("uniform", "unconstrained"):
            return torch.ones_like(batch.x)
        if self.weights == "global":
            importance = self.class_importance_[batch.label]
        else:
            n_masks = 64
            able = batch.affords(batch.rows, n_masks).nonzero().flatten()
            importance = batch.x.new_zeros(len(batch), int(self.segment_.max()) + 1)

            def p_label(z: Tensor, which: Tensor) -> Tensor:
                return target_value(batch.ask(z, able[which]).proba, batch.label[able[which]])

            if len(able):
                importance[able] = segment_importance(
                    p_label, batch.x[able], self.segment_, n_masks
                )
        return 1 + self.strength * importance[:, self.segment_]
