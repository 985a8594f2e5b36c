"""Baselines: trivial answers that every method has to beat."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor
from typing_extensions import override

from ..engine import Candidates, Tasks
from ..guides import Guide, NearestUnlikeCluster, NearestUnlikeNeighbor
from ..numerics import ceil_div
from ..search import first_on_line, smallest_level
from ..search.segments import count_segments, task_segments
from ..validation import Boolean, Integer, OneOf
from .support.feasible_guides import feasible_guides
from .support.guided import (
    METRIC_RULE,
    OLD_GUIDE_NAMES,
    FallbackExplainer,
    GuidedExplainer,
    Metric,
)

#: numbers drawn at once; more instances are worked on in turn
MAX_DRAWS = 2**22


class NearestUnlike(GuidedExplainer):
    """Return the nearest unlike neighbor itself: a reference row of the target class.

    Parameters
    ----------
    metric : {"euclidean", "dtw"}, default="euclidean"
        Distance; "dtw" for series only.
    diverse : bool, default=False
        With k > 1, neighbors that differ from each other.

    Examples
    --------
    >>> result = NearestUnlike().fit(model, X_train, y_train).explain(X_test[:8])
    >>> result.valid.mean()
    1.0
    """

    rules = {"metric": METRIC_RULE, "diverse": Boolean()}
    info_keys = {"guide_index": "reference row of the neighbor"}

    def __init__(self, metric: Metric = "euclidean", diverse: bool = False) -> None:
        self.metric = metric
        self.diverse = diverse

    @override
    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [{}, {"diverse": True}]

    @override
    def _make_guide(self) -> Guide:
        return NearestUnlikeNeighbor(self.metric, diverse=self.diverse)

    @override
    def _explain(self, tasks: Tasks) -> Candidates:
        return tasks.candidates(tasks.project(tasks.guide), guide_index=tasks.guide_index)


class LineSearch(GuidedExplainer):
    """Return the first point of the target class on the straight line to a guide, by bisection.

        x'(s) = x + s · (n − x),   smallest s the model accepts

    Parameters
    ----------
    toward : {"neighbor", "mean"}, default="neighbor"
        n: the nearest unlike neighbor, or the mean of the rows the model puts in the class.
    metric : {"euclidean", "dtw"}, default="euclidean"
        Distance of the neighbor.
    steps : int, default=10
        Bisections; s is found to within 2^-steps.

    Examples
    --------
    >>> result = LineSearch().fit(model, X_train, y_train).explain(X_test[:8])
    >>> result.valid.mean()
    1.0
    """

    rules = {
        "toward": OneOf("neighbor", "mean"),
        "metric": METRIC_RULE,
        "steps": Integer(at_least=1, at_most=50),
    }
    old_values = {"toward": OLD_GUIDE_NAMES}
    info_keys = {"guide_index": "reference row of the guide", "step": "s"}

    def __init__(
        self,
        toward: Literal["neighbor", "mean"] = "neighbor",
        metric: Metric = "euclidean",
        steps: int = 10,
    ) -> None:
        self.toward = toward
        self.metric = metric
        self.steps = steps

    @override
    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [{}, {"toward": "mean"}]

    @override
    def _make_guide(self) -> Guide:
        if self.toward == "mean":
            return NearestUnlikeCluster()
        return NearestUnlikeNeighbor(self.metric)

    @override
    def _explain(self, tasks: Tasks) -> Candidates:
        share, x_cf = first_on_line(tasks, tasks.guide, self.steps)
        return tasks.candidates(x_cf, guide_index=tasks.guide_index, step=share)


class RandomMask(GuidedExplainer):
    """Copy segments of the guide in random order, as few as change the class.

    Masks learned by a method have to beat this: the same edit with the places chosen at random.

    Parameters
    ----------
    n_segments : int, default=20
        Segments along time (series) or along each side (images); rows are copied value by value.
    metric : {"euclidean", "dtw"}, default="euclidean"
        Distance of the neighbor.

    Examples
    --------
    >>> result = RandomMask().fit(model, X_train, y_train).explain(X_test[:8], random_state=1)
    >>> result.valid.mean()
    1.0
    """

    rules = {"n_segments": Integer(at_least=2, at_most=100_000), "metric": METRIC_RULE}
    info_keys = {
        "guide_index": "reference row of the neighbor",
        "segments_copied": "number of segments copied",
    }

    def __init__(self, n_segments: int = 20, metric: Metric = "euclidean") -> None:
        self.n_segments = n_segments
        self.metric = metric

    @override
    def _make_guide(self) -> Guide:
        return NearestUnlikeNeighbor(self.metric)

    @override
    def _explain(self, tasks: Tasks) -> Candidates:
        width = 1 if tasks.modality == "row" else ceil_div(tasks.shape[-1], self.n_segments)
        segment = task_segments(tasks, width)
        n_segments = count_segments(segment)
        random_order = tasks.uniform(n_segments).argsort(1)

        def copy_first(tasks: Tasks, level: Tensor) -> Tensor:
            copied = tasks["place"] < level[:, None]
            return tasks.project(torch.where(copied[:, segment], tasks.guide, tasks.x))

        tasks = tasks.attach(place=random_order.argsort(1))
        level, x_cf = smallest_level(tasks, copy_first, n_segments)
        return tasks.candidates(
            x_cf,
            guide_index=tasks.guide_index,
            segments_copied=level,
        )


class RandomTarget(FallbackExplainer):
    """Return a random reference row that the model puts in the target class.

    Examples
    --------
    >>> result = RandomTarget().fit(model, X_train, y_train).explain(X_test[:8], random_state=1)
    >>> result.valid.mean()
    1.0
    """

    info_keys = {"guide_index": "the reference row"}

    @override
    def _explain(self, tasks: Tasks) -> Candidates:
        # Every instance draws one number for each reference row.
        at_once = max(1, MAX_DRAWS // len(self.guide_.candidates_))
        choose = self._choose if tasks.space is None else self._choose_rows
        parts = tasks.per_instance().split(at_once)
        return Candidates.concat([choose(part) for part in parts])

    def _choose(self, instances: Tasks) -> Candidates:
        """Return random reference rows of the class."""
        is_member = self._members(instances)
        self._tell_shortage(instances, is_member.sum(1))
        priority = instances.uniform(len(self.guide_.candidates_))
        order = priority.masked_fill(~is_member, torch.inf).argsort(1)
        chosen = order[:, : instances.k]
        position, slot = is_member.gather(1, chosen).nonzero(as_tuple=True)
        index = chosen[position, slot]
        tasks = instances.take(position)
        return tasks.candidates(tasks.project(self.guide_.candidates_[index]), guide_index=index)

    def _choose_rows(self, instances: Tasks) -> Candidates:
        """Return random rows of a table that are of the class within the constraints."""
        priority = instances.uniform(len(self.guide_.candidates_))
        guides = feasible_guides(instances, self.guide_, instances.k, priority=priority)
        self._tell_shortage(instances, guides.found.sum(1))
        position, slot = guides.found.nonzero(as_tuple=True)
        tasks = instances.take(position)
        index = guides.index[position, slot]
        return tasks.candidates(guides.x[position, slot], guide_index=index)

    def _members(self, tasks: Tasks) -> Tensor:
        """Return which reference rows are in the target class, confidently where there are such."""
        member = self.guide_.candidate_class_ == tasks.target[:, None]
        if tasks.confidence is None:
            return member
        p_target = self.guide_.candidate_proba_.T[tasks.target]
        firm = member & (p_target >= tasks.confidence)
        return torch.where(firm.any(1, keepdim=True), firm, member)
