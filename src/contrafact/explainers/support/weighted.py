"""Base class of Glacier and LatentCF++: distances in which some stretches are costly to change."""

from __future__ import annotations

import torch
from torch import Tensor
from typing_extensions import override

from ...engine import Tasks
from ...models.classifier import Array
from ...models.verdict import target_value
from ...numerics import broadcast_rows, ceil_div
from ...search.segments import count_segments, segment_ids
from .guided import FallbackExplainer
from .importance import segment_importance

#: random masks by which the importance of segments is measured, one model row each
N_MASKS = 64
#: reference rows per class over which importance is averaged, at most
MOST_ROWS = 50


class WeightedExplainer(FallbackExplainer):
    """Measure change as |x' − x| / s with a cost w per point, s the spread of each channel.

    Subclasses have the parameters `weights`, `strength` and `n_segments`.
    """

    weights: str
    strength: float
    n_segments: int

    @override
    def _fit(self, X: Tensor, y: Array | None) -> None:
        super()._fit(X, y)
        spread = X.transpose(0, 1).flatten(1).std(1, correction=0)  # (channels,)
        spread = torch.where(spread > 0, spread, 1.0)
        self.scale_ = broadcast_rows(spread, X[0])
        width = max(1, ceil_div(self.shape_[1], self.n_segments))
        self.segment_ = segment_ids(self.shape_, width).to(X.device)
        if self.weights == "global":
            self.class_importance_ = self._class_importance(X)

    def _class_importance(self, X: Tensor) -> Tensor:
        """Average importance over reference rows of each class, (classes, segments)."""
        label = self.guide_.candidate_class_
        n_classes = len(self.classifier_.classes)
        importance = X.new_zeros(n_classes, count_segments(self.segment_))
        for column in range(n_classes):
            rows = X[label == column][:MOST_ROWS]

            def p_class(z: Tensor, which: Tensor, column: int = column) -> Tensor:
                return self.classifier_.evaluate(z).proba[:, column]

            if len(rows):
                importance[column] = segment_importance(p_class, rows, self.segment_).mean(0)
        return importance / importance.amax(1, keepdim=True).clamp_min(1e-12)

    def _costs(self, tasks: Tasks) -> Tensor:
        """Return w, what each point costs to change, (n, *shape)."""
        if self.weights in ("uniform", "unconstrained"):
            return torch.ones_like(tasks.x)
        instances = tasks.per_instance()
        if self.weights == "global":
            importance = self.class_importance_[instances.label]
        else:
            importance = self._local_importance(instances)
        w = 1 + self.strength * importance[:, self.segment_]
        return tasks.from_instances(w)

    def _local_importance(self, tasks: Tasks) -> Tensor:
        """Measure the importance of segments for each instance, (n, segments)."""
        importance = tasks.x.new_zeros(len(tasks), count_segments(self.segment_))
        able = tasks.affords(N_MASKS)
        asking = tasks.take(able)

        def p_label(z: Tensor, which: Tensor) -> Tensor:
            masked = asking.take(which)
            return target_value(masked.ask(z).proba, masked.label)

        if len(asking):
            importance[able] = segment_importance(
                p_label,
                asking.x,
                self.segment_,
                N_MASKS,
            )
        return importance
