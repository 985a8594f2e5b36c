"""What does a model add to turn anything into one class? Many counterfactuals, one map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.functional import avg_pool2d

from ..engine import Counterfactuals
from ..explainers.support.explainer import Explainer
from ..models.classifier import Array
from .svce import SVCE


@dataclass(frozen=True)
class Region:
    """A window of the input: where it is, how often it is among the most changed, and its mean change."""

    top: int
    left: int
    height: int
    width: int
    frequency: float
    mean_change: float

    def overlap(self, other: Region) -> int:
        """Number of places both cover."""
        down = min(self.top + self.height, other.top + other.height) - max(self.top, other.top)
        across = min(self.left + self.width, other.left + other.width) - max(self.left, other.left)
        return max(down, 0) * max(across, 0)


@dataclass(frozen=True)
class ClassAudit:
    """What counterfactuals into one class have in common.

    target, n, valid : the class, how many instances were asked about, and the share that reached it.
    mean_change : (height, width) mean of x' − x over those and over channels.
    frequency : (height, width) share of them in which a place is among the most changed twentieth.
    regions : windows, the most frequently changed first; they do not overlap.
    result : the counterfactuals themselves. A series has height 1.
    """

    target: Any
    n: int
    valid: float
    mean_change: Array
    frequency: Array
    regions: list[Region]
    result: Counterfactuals


def class_audit(
    model: Any,
    X: Any,
    target: Any,
    *,
    window: int | None = None,
    n_regions: int = 5,
    explainer: Explainer | None = None,
    random_state: int = 0,
) -> ClassAudit:
    """Turn instances of all other classes into `target`, and tell where the changes gather.

    A region that nearly every counterfactual changes in the same way is what the model takes for the class:
    its shape, or a mark that only came with it in the training data.

    Parameters
    ----------
    model : anything `as_classifier` takes.
    X : images or series; those the model already puts in the target class are left out of the maps, but show
        an explainer that is fitted here what the class looks like.
    window : side of a region; None: a sixth of the larger side, at least 2.
    explainer : how to turn them, fitted or not; None: SVCE with p = 1.5 and a confidence of 0.9.

    Examples
    --------
    >>> audit = class_audit(model, X_test[:20], "1")
    >>> audit.regions[0].frequency > 0.1
    True
    """
    explainer = SVCE(n_iter=30, restarts=1, confidence=0.9) if explainer is None else explainer
    if not hasattr(explainer, "classifier_"):
        explainer.fit(model, X)
    if explainer.modality_ == "row":
        raise ValueError(
            "X holds rows; class_audit maps images and series, where neighbors belong together."
        )
    result = explainer.explain(X, target, random_state=random_state)
    moved = result.status != "already_target"
    turned = moved & result.valid
    if not turned.any():
        raise ValueError(
            f"None of the {int(moved.sum())} instances reached {target!r}; there is nothing to map."
        )
    delta = np.asarray(result.X_cf - result.X, dtype=np.float64)[turned].reshape(
        turned.sum(), *explainer.shape_
    )
    if delta.ndim == 3:
        delta = delta[:, :, None]
    size = np.abs(delta).sum(1)
    flat = size.reshape(len(size), -1)
    most = max(1, round(flat.shape[1] / 20))
    bar = np.partition(flat, -most, axis=1)[:, -most]
    frequency = ((size >= bar[:, None, None]) & (size > 0)).mean(0)
    mean_change = delta.mean((0, 1))
    side = max(2, -(-max(frequency.shape) // 6)) if window is None else window
    regions = _regions(frequency, mean_change, side, n_regions)
    return ClassAudit(
        target,
        int(moved.sum()),
        float(turned.sum() / moved.sum()),
        mean_change,
        frequency,
        regions,
        result,
    )


def _regions(
    frequency: Array,
    mean_change: Array,
    side: int,
    n: int,
) -> list[Region]:
    """The windows of the highest mean frequency, best first, none on top of another."""
    height, width = (min(side, size) for size in frequency.shape)
    score, change = (
        avg_pool2d(torch.from_numpy(m)[None, None], (height, width), stride=1)[0, 0].numpy().copy()
        for m in (frequency, mean_change)
    )
    found: list[Region] = []
    while len(found) < n and score.max() > 0:
        top, left = (int(i) for i in np.unravel_index(score.argmax(), score.shape))
        found.append(
            Region(
                top,
                left,
                height,
                width,
                float(score[top, left]),
                float(change[top, left]),
            )
        )
        score[max(0, top - height + 1) : top + height, max(0, left - width + 1) : left + width] = 0
    return found
