"""NativeGuide: a window of the nearest unlike neighbor, or a blend with it along the warping path."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ..engine import Batch, Candidates, Tags
from ..guides import Guide
from ..guides.guide import to_numpy
from ..models.classifier import Array
from ..search import best_known, segment_ids, smallest_level
from .support.guided import GuidedExplainer, Guides, Kind, Metric, guide_of
from .support.importance import activation_gain, averages_over_time, copy_gain


class NativeGuide(GuidedExplainer):
    """Instance-based counterfactuals for series (Delaney, Greene, Keane, ICCBR 2021).

    With n the nearest unlike neighbor of x, in one of three modes:

    - "window": x' is x with a window of n copied in, over all channels, the shortest that the model accepts.
      A window lies where the sum of the importance g_t is largest; g_t is what copying the segment around t
      alone does to the lead of the target.
    - "cam": the same, with g_t by class activation, in torch networks that average over time before their
      last layer; other models are explored as in "window".
    - "blend": a weighted barycenter of x and n under dynamic time warping. Along the optimal warping path
      (i_1, j_1), (i_2, j_2), …

          time (1 − β)·i_p + β·j_p,     value (1 − β)·x[i_p] + β·n[j_p]

      minimizes (1 − β)·dtw(x', x) + β·dtw(x', n) over series of any length; x' is this curve at the times
      0, 1, 2, …, with the smallest β that the model accepts. β = 0 is x, β = 1 is n.

    Lengths and weights are found by bisection, for all instances together. Where nothing shorter does, x' is
    n itself, which the model puts in the target class: with a guide there is always an answer.

    Parameters
    ----------
    mode : "window", "blend" or "cam".
    guide : n: the nearest unlike "neighbor", "cluster" mean, "prototype" (GLVQ) or "median" (Median LVQ).
    metric : "euclidean" or "dtw", for the neighbor and the median.
    n_segments : segments whose importance is measured; one model row each.
    steps : bisections of the blend; β is found to within 2^−steps.

    `info`: guide_index; for windows window_start and window_length (of what was changed) and importance
    (per time step); for blends weight (β).

    Examples
    --------
    >>> result = NativeGuide().fit(model, X_train, y_train).explain(X_test[:8])
    >>> result.valid.mean()
    1.0
    """

    tags = Tags(modalities=("series",))

    def __init__(
        self,
        mode: Literal["window", "blend", "cam"] = "window",
        guide: Kind = "neighbor",
        metric: Metric = "euclidean",
        n_segments: int = 20,
        steps: int = 10,
    ) -> None:
        self.mode, self.guide, self.metric = mode, guide, metric
        self.n_segments, self.steps = n_segments, steps

    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [{}, {"mode": "blend"}, {"mode": "cam"}]

    def _make_guide(self) -> Guide:
        if self.mode not in ("window", "blend", "cam"):
            raise ValueError(f"mode must be 'window', 'blend' or 'cam', got {self.mode!r}.")
        if self.n_segments < 2:
            raise ValueError(f"n_segments must be at least 2, got {self.n_segments}.")
        if not 1 <= self.steps <= 50:
            raise ValueError(f"steps must lie between 1 and 50, got {self.steps}.")
        return guide_of(self.guide, self.metric)

    def _fit(self, X: Tensor, y: Array | None) -> None:
        super()._fit(X, y)
        self.activation_ = self.mode == "cam" and averages_over_time(self.classifier_, X[:1])

    def _explain(self, batch: Batch) -> Candidates:
        guides = self._guides(batch)
        x_cf, info = (self._blend if self.mode == "blend" else self._window)(batch, guides)
        if batch.feasible is not None:  # within the constraints a guide may leave its class
            x_cf = best_known(batch, guides.rows, x_cf)
        return Candidates(x_cf, guides.rows, {"guide_index": guides.index, **info})

    # --- windows --------------------------------------------------------------------------------------------

    def _importance(self, batch: Batch, guides: Guides) -> Tensor:
        """g, (entries, length); where nothing makes a difference, where x and n differ most."""
        if self.activation_:
            gain = activation_gain(batch, guides.rows, guides.x)
        else:
            width = -(-self.shape_[-1] // self.n_segments)
            segment = segment_ids(self.shape_, width, shared=True).to(batch.x.device)
            gain = copy_gain(batch, guides.rows, guides.x, segment)[:, segment[0]]
        difference = (guides.x - batch.x[guides.rows]).abs().sum(1)
        tie_break = difference / difference.amax(1, keepdim=True).clamp_min(
            torch.finfo(difference.dtype).tiny
        )
        return gain + 1e-9 * tie_break

    def _window(self, batch: Batch, guides: Guides) -> tuple[Tensor, dict[str, Tensor]]:
        importance = self._importance(batch, guides)
        length = importance.shape[1]
        before = torch.nn.functional.pad(importance.cumsum(1), (1, 0))
        time = torch.arange(length, device=batch.x.device)

        def copied(level: Tensor, which: Tensor) -> Tensor:
            rows, end = guides.rows[which], time + level[:, None]
            within = before[which].gather(1, end.clamp(max=length)) - before[which, :-1]
            start = within.masked_fill(end > length, -torch.inf).argmax(1)[:, None]
            window = ((time >= start) & (time < start + level[:, None]))[:, None]
            return batch.project(torch.where(window, guides.x[which], batch.x[rows]), rows)

        _, x_cf = smallest_level(batch, guides.rows, copied, length, top_accepted=True)
        changed = (x_cf != batch.x[guides.rows]).any(1)
        start, from_end = changed.int().argmax(1), changed.flip(1).int().argmax(1)
        span = torch.where(changed.any(1), length - from_end - start, 0)
        return x_cf, {"window_start": start, "window_length": span, "importance": importance}

    # --- blends ---------------------------------------------------------------------------------------------

    def _blend(self, batch: Batch, guides: Guides) -> tuple[Tensor, dict[str, Tensor]]:
        top = 2**self.steps
        path = torch.from_numpy(warping_paths(to_numpy(batch.x[guides.rows]), to_numpy(guides.x)))
        path = path.to(batch.x.device)

        def blended(level: Tensor, which: Tensor) -> Tensor:
            rows = guides.rows[which]
            curve = barycenter(batch.x[rows], guides.x[which], path[which], level.to(batch.x) / top)
            return batch.project(curve, rows)

        level, x_cf = smallest_level(batch, guides.rows, blended, top, top_accepted=True)
        return x_cf, {"weight": level.double() / top}


def warping_paths(x: Array, n: Array) -> Array:
    """Optimal paths of dynamic time warping, (m, 2·length − 1, 2): pairs (i, j), the last one repeated."""
    from aeon.distances import dtw_alignment_path

    length = x.shape[-1]
    paths = np.full((len(x), 2 * length - 1, 2), length - 1)
    for one, a, b in zip(paths, x, n, strict=True):
        pairs = dtw_alignment_path(a, b)[0]
        one[: len(pairs)] = pairs
    return paths


def barycenter(x: Tensor, n: Tensor, path: Tensor, beta: Tensor) -> Tensor:
    """The weighted average of x and n along their warping paths, read off at whole time steps."""
    channels, length = x.shape[1:]
    i, j = path.unbind(2)
    time = torch.lerp(i.to(x), j.to(x), beta[:, None])
    grid = torch.arange(length, device=x.device).to(x).expand(len(x), -1).contiguous()
    right = torch.searchsorted(time.contiguous(), grid, right=True).clamp(1, time.shape[1] - 1)
    t0, t1 = time.gather(1, right - 1), time.gather(1, right)
    share = ((grid - t0) / (t1 - t0).clamp_min(torch.finfo(x.dtype).tiny)).clamp(0, 1)

    def value(p: Tensor) -> Tensor:
        of_x, of_n = (of.gather(1, p)[:, None].expand(-1, channels, -1) for of in (i, j))
        return torch.lerp(x.gather(2, of_x), n.gather(2, of_n), beta[:, None, None])

    return torch.lerp(value(right - 1), value(right), share[:, None])
