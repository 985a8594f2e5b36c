"""NativeGuide: a window of the nearest unlike neighbor, or a blend along the warping path."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import pad
from typing_extensions import override

from ..engine import Candidates, Tags, Tasks
from ..guides import Guide
from ..guides.guide import to_numpy
from ..models.classifier import Array
from ..numerics import ceil_div
from ..search import best_known, segment_ids, smallest_level
from ..validation import Integer, OneOf
from .support.class_activation import activation_gain, averages_over_time
from .support.guided import (
    GUIDE_RULE,
    METRIC_RULE,
    OLD_GUIDE_NAMES,
    GuidedExplainer,
    GuideKind,
    Metric,
    make_guide,
)
from .support.importance import copy_gain
from .support.warping import barycenter, warping_paths


class NativeGuide(GuidedExplainer):
    """Copy the shortest window of a neighbor that changes the class, or blend with the neighbor.

    With n the nearest unlike neighbor of x, in one of three modes:

    - "window": x' is x with a window of n copied in, over all channels, the shortest that the model
      accepts. A window lies where the sum of the importance g_t is largest; g_t is what copying the
      segment around t alone adds to the lead of the target.
    - "cam": the same, with g_t by class activation, in torch networks that average over time before
      their last layer; other models are explored as in "window".
    - "blend": a weighted barycenter of x and n under dynamic time warping. Along the optimal
      warping path (i_1, j_1), (i_2, j_2), …

          time (1 − β) · i_p + β · j_p,     value (1 − β) · x[i_p] + β · n[j_p]

      minimizes (1 − β) · dtw(x', x) + β · dtw(x', n) over series of any length; x' is this curve at
      the times 0, 1, 2, …, with the smallest β that the model accepts. β = 0 is x, β = 1 is n.

    Lengths and weights are found by bisection. Where nothing shorter is accepted, x' is n itself,
    which the model puts in the target class.

    Parameters
    ----------
    mode : {"window", "blend", "cam"}, default="window"
        How to move toward n.
    guide : {"neighbor", "cluster", "prototype", "median"} or Guide, default="neighbor"
        What n is: a reference row, the mean of the class, a prototype of a GLVQ, or a row chosen by
        Median LVQ; or a guide of your own, such as `NearestUnlikeNeighbor(weights=...)`.
    metric : {"euclidean", "dtw"}, default="euclidean"
        Distance of the neighbor and of the median.
    n_segments : int, default=20
        Segments whose importance is measured, one model row each.
    steps : int, default=10
        Bisections of the blend; β is found to within 2^-steps.

    References
    ----------
    Delaney, Greene, Keane: Instance-based counterfactual explanations for time series
    classification. ICCBR 2021. https://doi.org/10.1007/978-3-030-86957-1_3

    Examples
    --------
    >>> result = NativeGuide().fit(model, X_train, y_train).explain(X_test[:8])
    >>> result.valid.mean()
    1.0
    """

    tags = Tags(modalities=("series",))
    rules = {
        "mode": OneOf("window", "blend", "cam"),
        "guide": GUIDE_RULE,
        "metric": METRIC_RULE,
        "n_segments": Integer(at_least=2, at_most=100_000),
        "steps": Integer(at_least=1, at_most=50),
    }
    old_values = {"guide": OLD_GUIDE_NAMES}
    info_keys = {
        "guide_index": "reference row of the neighbor",
        "window_start": "first time step that was changed (window modes)",
        "window_length": "time steps from the first to the last change (window modes)",
        "importance": "g, per time step (window modes)",
        "weight": "β (blend mode)",
    }

    def __init__(
        self,
        mode: Literal["window", "blend", "cam"] = "window",
        guide: GuideKind | Guide = "neighbor",
        metric: Metric = "euclidean",
        n_segments: int = 20,
        steps: int = 10,
    ) -> None:
        self.mode = mode
        self.guide = guide
        self.metric = metric
        self.n_segments = n_segments
        self.steps = steps

    @override
    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [{}, {"mode": "blend"}, {"mode": "cam"}]

    @override
    def _make_guide(self) -> Guide:
        return make_guide(self.guide, self.metric)

    @override
    def _fit(self, X: Tensor, y: Array | None) -> None:
        super()._fit(X, y)
        self.activation_ = self.mode == "cam" and averages_over_time(self.classifier_, X[:1])

    @override
    def _explain(self, tasks: Tasks) -> Candidates:
        x_cf, info = self._blend(tasks) if self.mode == "blend" else self._window(tasks)
        if tasks.feasible_set is not None:
            # Within the constraints a guide may leave its class.
            x_cf = best_known(tasks, x_cf)
        return tasks.candidates(x_cf, guide_index=tasks.guide_index, **info)

    # --- windows

    def _window(self, tasks: Tasks) -> tuple[Tensor, dict[str, Tensor]]:
        """Copy the shortest window that is accepted."""
        importance = self._importance(tasks)
        length = importance.shape[1]
        time = torch.arange(length, device=tasks.row.device)

        def copy_window(tasks: Tasks, width: Tensor) -> Tensor:
            """Copy, per task, the window of this width with the largest importance."""
            end = time + width[:, None]
            before_end = tasks["running_sum"].gather(1, end.clamp(max=length))
            within = before_end - tasks["running_sum"][:, :-1]
            start = within.masked_fill(end > length, -torch.inf).argmax(1)[:, None]
            window = (time >= start) & (time < start + width[:, None])
            return tasks.project(torch.where(window[:, None], tasks.guide, tasks.x))

        tasks = tasks.attach(running_sum=pad(importance.cumsum(1), (1, 0)))
        _, x_cf = smallest_level(tasks, copy_window, length, top_accepted=True)
        changed = (x_cf != tasks.x).any(1)
        start = changed.int().argmax(1)
        end = length - changed.flip(1).int().argmax(1)
        span = torch.where(changed.any(1), end - start, 0)
        return x_cf, {"window_start": start, "window_length": span, "importance": importance}

    def _importance(self, tasks: Tasks) -> Tensor:
        """Return g, (tasks, length); where nothing gains anything, where x and n differ most."""
        if self.activation_:
            gain = activation_gain(tasks)
        else:
            width = ceil_div(tasks.shape[-1], self.n_segments)
            segment = segment_ids(tasks.shape, width, shared=True).to(tasks.row.device)
            gain = copy_gain(tasks, segment)[:, segment[0]]
        difference = (tasks.guide - tasks.x).abs().sum(1)
        tiny = torch.finfo(difference.dtype).tiny
        tie_break = difference / difference.amax(1, keepdim=True).clamp_min(tiny)
        return gain + 1e-9 * tie_break

    # --- blends

    def _blend(self, tasks: Tasks) -> tuple[Tensor, dict[str, Tensor]]:
        """Blend along the warping path with the smallest weight that is accepted."""
        top = 2**self.steps
        paths = warping_paths(to_numpy(tasks.x), to_numpy(tasks.guide))

        def blend(tasks: Tasks, level: Tensor) -> Tensor:
            beta = level.to(tasks.x) / top
            return tasks.project(barycenter(tasks.x, tasks.guide, tasks["path"], beta))

        tasks = tasks.attach(path=torch.from_numpy(paths).to(tasks.row.device))
        level, x_cf = smallest_level(tasks, blend, top, top_accepted=True)
        return x_cf, {"weight": level.double() / top}
