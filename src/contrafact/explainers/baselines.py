"""Floors: the trivial answers that every method has to beat."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from ..engine import Batch, Candidates
from ..guides import Guide, NearestUnlikeCluster, NearestUnlikeNeighbor
from ..search import first_on_line, segment_ids, smallest_level
from .support.guided import GuidedExplainer, Metric


class NearestUnlike(GuidedExplainer):
    """The nearest unlike neighbor itself: another series of the target class, nothing made up.

    Parameters
    ----------
    metric : "euclidean" or "dtw" (series only).
    diverse : with k > 1, neighbors that differ from each other.

    Examples
    --------
    >>> result = NearestUnlike().fit(model, X_train, y_train).explain(X_test[:8])
    >>> result.valid.mean()
    1.0
    """

    def __init__(self, metric: Metric = "euclidean", diverse: bool = False) -> None:
        self.metric, self.diverse = metric, diverse

    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [{}, {"diverse": True}]

    def _make_guide(self) -> Guide:
        return NearestUnlikeNeighbor(self.metric, diverse=self.diverse)

    def _explain(self, batch: Batch) -> Candidates:
        guides = self._guides(batch)
        return Candidates(
            batch.project(guides.x, guides.rows), guides.rows, {"guide_index": guides.index}
        )


class LineSearch(GuidedExplainer):
    """The first point of the target class on the straight line to a guide, by bisection.

        x'(s) = x + s·(n − x),   smallest s the model accepts

    Parameters
    ----------
    toward : "neighbor" (nearest unlike neighbor) or "mean" (of the rows the model puts in the class).
    metric : "euclidean" or "dtw", for the neighbor.
    steps : bisections; s is found to within 2^−steps.

    Examples
    --------
    >>> result = LineSearch().fit(model, X_train, y_train).explain(X_test[:8])
    >>> result.valid.mean()
    1.0
    """

    def __init__(
        self,
        toward: Literal["neighbor", "mean"] = "neighbor",
        metric: Metric = "euclidean",
        steps: int = 10,
    ) -> None:
        self.toward, self.metric, self.steps = toward, metric, steps

    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [{}, {"toward": "mean"}]

    def _make_guide(self) -> Guide:
        if self.toward not in ("neighbor", "mean"):
            raise ValueError(f"toward must be 'neighbor' or 'mean', got {self.toward!r}.")
        if not 1 <= self.steps <= 50:
            raise ValueError(f"steps must lie between 1 and 50, got {self.steps}.")
        return (
            NearestUnlikeCluster() if self.toward == "mean" else NearestUnlikeNeighbor(self.metric)
        )

    def _explain(self, batch: Batch) -> Candidates:
        guides = self._guides(batch)
        share, x_cf = first_on_line(batch, guides.rows, guides.x, self.steps)
        return Candidates(x_cf, guides.rows, {"guide_index": guides.index, "step": share})


class RandomMask(GuidedExplainer):
    """Segments of the guide copied in random order, as few as turn the class.

    What masks learned by a method must beat: the same blend, with chance choosing the places.

    Parameters
    ----------
    n_segments : segments along time (series), along each side (images); rows are copied value by value.
    metric : "euclidean" or "dtw".

    Examples
    --------
    >>> result = RandomMask().fit(model, X_train, y_train).explain(X_test[:8], random_state=1)
    >>> result.valid.mean()
    1.0
    """

    def __init__(self, n_segments: int = 20, metric: Metric = "euclidean") -> None:
        self.n_segments, self.metric = n_segments, metric

    def _make_guide(self) -> Guide:
        if self.n_segments < 2:
            raise ValueError(f"n_segments must be at least 2, got {self.n_segments}.")
        return NearestUnlikeNeighbor(self.metric)

    def _explain(self, batch: Batch) -> Candidates:
        guides = self._guides(batch)
        width = 1 if batch.modality == "row" else -(-self.shape_[-1] // self.n_segments)
        segment = segment_ids(self.shape_, width).to(batch.x.device)
        n_segments = int(segment.max()) + 1
        rank = batch.uniform(n_segments).argsort(1).argsort(1)

        def copied(level: Tensor, which: Tensor) -> Tensor:
            rows = guides.rows[which]
            early = rank[rows] < level[:, None]
            return batch.project(
                torch.where(early[:, segment], guides.x[which], batch.x[rows]), rows
            )

        level, x_cf = smallest_level(batch, guides.rows, copied, n_segments)
        return Candidates(
            x_cf, guides.rows, {"guide_index": guides.index, "segments_copied": level}
        )


class RandomTarget(GuidedExplainer):
    """A random reference row that the model puts in the target class.

    Examples
    --------
    >>> result = RandomTarget().fit(model, X_train, y_train).explain(X_test[:8], random_state=1)
    >>> result.valid.mean()
    1.0
    """

    def _make_guide(self) -> Guide:
        return NearestUnlikeNeighbor()

    def _explain(self, batch: Batch) -> Candidates:
        priority = batch.uniform(len(self.guide_.candidates_))
        member = self.guide_.candidate_class_ == batch.target[:, None]
        if batch.confidence is not None:
            firm = member & (self.guide_.candidate_proba_.T[batch.target] >= batch.confidence)
            member = torch.where(firm.any(1, keepdim=True), firm, member)
        order = priority.masked_fill(~member, torch.inf).argsort(1)[:, : batch.k]
        rows, slot = member.gather(1, order).nonzero(as_tuple=True)
        index = order[rows, slot]
        self._tell_short(batch, member.sum(1))
        return Candidates(
            batch.project(self.guide_.candidates_[index], rows), rows, {"guide_index": index}
        )
