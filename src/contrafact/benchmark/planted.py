"""Planted truth: data whose class hangs on one known place, a rule that decides, and its smallest edits.

The rule is a matched filter. With a template s that may stand in any of p places that do not overlap,

    z_i(x) = ⟨s, x at place i⟩,     "present" where max_i z_i(x) > b,  else "absent".

So what is smallest is known exactly, in any l_q norm, with q* the dual one (1/q + 1/q* = 1):

    to "present", fill the place that is nearest to b:   min_i (b − z_i) / ‖s‖_q*
    to "absent", clear every place above b:              ‖ (max(z_i − b, 0) / ‖s‖_q*)_i ‖_q
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from scipy.ndimage import gaussian_filter
from torch import Tensor

from ..data.dataset import Dataset
from ..engine.result import Counterfactuals
from ..metrics.metric import as_array
from ..models.classifier import Array, Classifier, as_classifier

Norm = Literal[1, 2, "inf"]
CLASSES = ("absent", "present")
#: changes this small beside the largest of their row are the rounding of a method, not its answer
ROUNDING = 1e-6


class MatchedFilter(torch.nn.Module):
    """Logits (−g, g) with g = sharpness · (max_i z_i(x) − b) / b.

    filters : (places, *instance), the template at each place, 0 elsewhere.
    """

    def __init__(self, filters: Array, threshold: float, sharpness: float = 5.0) -> None:
        super().__init__()
        self.filters = torch.nn.Parameter(torch.from_numpy(filters).double(), requires_grad=False)
        self.threshold, self.sharpness = threshold, sharpness

    def forward(self, x: Tensor) -> Tensor:
        z = x.flatten(1) @ self.filters.flatten(1).T
        g = self.sharpness * (z.amax(1) - self.threshold) / self.threshold
        return torch.stack([-g, g], 1)


@dataclass(frozen=True, eq=False)
class Planted:
    """Data with a planted cause.

    dataset : labeled by the rule, without exception.
    model : the rule itself, differentiable; explain this one to compare with what is smallest.
    template : s, in the shape of one place.
    places : (p, *instance) masks of where it may stand.
    threshold : b.
    """

    dataset: Dataset
    model: Classifier
    template: Array
    places: Array
    threshold: float

    def smallest_edit(self, X: Any, norm: Norm = 2) -> Array:
        """δ of least l_q norm that brings every instance to the boundary of the other class, shaped like X.

        The class turns just beyond it: `X + (1 + 1e-6) * δ`. For norm 1, one value moves in every place that
        has to; for "inf", all move by the same.
        """
        X = np.asarray(X, dtype=np.float64)
        share = _steepest(self.template.ravel(), norm)
        gap = self._gaps(X)
        delta = np.zeros((len(X), self.places[0].size))
        for i, place in enumerate(self.places):
            delta[:, place.ravel()] += gap[:, i : i + 1] * share
        return delta.reshape(X.shape)

    def smallest(self, X: Any, norm: Norm = 2) -> Array:
        """The least l_q norm of a change of class, one per instance."""
        order = np.inf if norm == "inf" else norm
        return np.asarray(
            np.linalg.norm(self.smallest_edit(X, norm).reshape(len(X), -1), order, axis=1)
        )

    def region(self, X: Any) -> Array:
        """Mask of the places that the smallest edit changes: where the cause is, or is nearest to being."""
        X = np.asarray(X)
        moved = self._gaps(X) != 0
        return np.asarray((moved @ self.places.reshape(len(self.places), -1)).reshape(X.shape))

    def _gaps(self, X: Array) -> Array:
        """What z_i has to change by, (n, places)."""
        flat = X.reshape(len(X), -1).astype(np.float64)
        z = np.stack([flat[:, place.ravel()] @ self.template.ravel() for place in self.places], 1)
        nearest = np.arange(z.shape[1]) == z.argmax(1)[:, None]
        wanted = np.where(z.max(1, keepdims=True) > self.threshold, z > self.threshold, nearest)
        return np.where(wanted, self.threshold - z, 0.0)


def planted_series(
    n: int = 200,
    length: int = 128,
    *,
    channels: int = 1,
    width: int = 16,
    places: int = 1,
    background: Literal["noise", "smooth"] = "noise",
    noise: float = 0.5,
    random_state: int = 0,
) -> Planted:
    """Series whose class is whether a wave of `width` steps stands in one of `places` in the first channel.

    Parameters
    ----------
    n : instances, half of them for training; the classes alternate.
    places : with one, the rule is linear; with more, the wave stands in any one of them.
    background : white noise, or noise smoothed along time; its standard deviation is `noise`, that of the
        wave is 1 where it stands in full.

    Examples
    --------
    >>> planted = planted_series(40, 64, places=2)
    >>> X = planted.dataset.X_test
    >>> turned = planted.model.predict(X + (1 + 1e-6) * planted.smallest_edit(X))
    >>> bool((turned != planted.dataset.y_test).all())
    True
    """
    starts = _starts(length, width, places, "length")
    masks = np.zeros((places, channels, length), dtype=bool)
    for i, start in enumerate(starts):
        masks[i, 0, start : start + width] = True
    return _plant(
        "planted series", "series", n, _wave(width), masks, background, noise, random_state
    )


def planted_images(
    n: int = 200,
    size: int = 16,
    *,
    channels: int = 1,
    width: int = 4,
    places: int = 1,
    background: Literal["noise", "smooth"] = "noise",
    noise: float = 0.5,
    random_state: int = 0,
) -> Planted:
    """Images of size × size whose class is whether a patch of width × width stands in one of `places`.

    The places lie on the diagonal of the first channel. Parameters are those of `planted_series`.

    Examples
    --------
    >>> planted = planted_images(40)
    >>> int(planted.region(planted.dataset.X_test)[0].sum())
    16
    """
    starts = _starts(size, width, places, "size")
    masks = np.zeros((places, channels, size, size), dtype=bool)
    for i, start in enumerate(starts):
        masks[i, 0, start : start + width, start : start + width] = True
    patch = np.outer(np.ones(width), _wave(width))
    return _plant("planted images", "image", n, patch, masks, background, noise, random_state)


def localization(result: Counterfactuals, planted: Planted) -> pd.DataFrame:
    """How well the values that changed, C, match the planted region R, one row per counterfactual.

        iou = |C ∩ R| / |C ∪ R|,     precision = |C ∩ R| / |C|,     recall = |C ∩ R| / |R|

    All are better the larger. A value counts as changed from a millionth of the row's largest change on.
    Nothing changed is nothing found: 0. NaN where the instance was in its target class from the start, so
    that nothing had to change.
    """
    X, X_cf = (as_array(x).astype(np.float64) for x in (result.X, result.X_cf))
    moved = np.abs(X_cf - X).reshape(len(result), -1)
    changed = moved > ROUNDING * moved.max(1, keepdims=True)
    region = planted.region(X).reshape(len(result), -1)
    both, either = (changed & region).sum(1), (changed | region).sum(1)
    table = pd.DataFrame(
        {
            "iou": both / either,
            "precision": both / np.maximum(changed.sum(1), 1),
            "recall": both / region.sum(1),
        }
    )
    return table.mask(pd.Series(result.status == "already_target"))


def optimality_gap(result: Counterfactuals, planted: Planted, norm: Norm = 2) -> Array:
    """‖x' − x‖ over the least that changes the rule's class: 1 is best, and nothing is below.

    Infinite where the rule does not call x' other than x; NaN where the instance was in its target class from
    the start.
    """
    X, X_cf = (as_array(x).astype(np.float64) for x in (result.X, result.X_cf))
    order = np.inf if norm == "inf" else norm
    moved = np.linalg.norm((X_cf - X).reshape(len(X), -1), order, axis=1)
    turned = planted.model.predict(_lifted(X_cf, planted)) != planted.model.predict(
        _lifted(X, planted)
    )
    gap = np.where(turned, moved / planted.smallest(X, norm), np.inf)
    return np.where(result.status == "already_target", np.nan, gap)


def _lifted(X: Array, planted: Planted) -> Array:
    return X.reshape(len(X), *planted.places.shape[1:])


def _plant(
    name: str,
    modality: str,
    n: int,
    template: Array,
    masks: Array,
    background: str,
    noise: float,
    random_state: int,
) -> Planted:
    """Background without any of the template, and of it α_i at place i: α ∈ [0.75, 1.25] at one place of the
    instances that are "present", α ∈ [−0.25, 0.25] everywhere else; b is at α = 0.5."""
    if n < 4:
        raise ValueError(f"n must be at least 4, two of each class, got {n}.")
    if background not in ("noise", "smooth"):
        raise ValueError(f"background must be 'noise' or 'smooth', got {background!r}.")
    rng = np.random.default_rng(random_state)
    X = rng.normal(size=(n, *masks.shape[1:]))
    if background == "smooth":
        axes = masks.ndim - 2
        X = gaussian_filter(X, sigma=(0, 0, *[3.0] * axes), mode="wrap")
        X = X / X.std()
    X *= noise
    present = np.arange(n) // 2 % 2 == 1
    alpha = rng.uniform(-0.25, 0.25, size=(n, len(masks)))
    where = rng.integers(len(masks), size=n)
    alpha[present, where[present]] = rng.uniform(0.75, 1.25, size=int(present.sum()))
    s = template.ravel()
    filters = np.zeros(masks.shape)
    for i, place in enumerate(masks):
        filters[i][place] = s
        values = X[:, place]
        X[:, place] = values + np.outer(alpha[:, i] - values @ s / (s @ s), s)
    threshold = 0.5 * float(s @ s)
    y = np.array(CLASSES)[present.astype(int)]
    data = Dataset(name, modality, X[::2], y[::2], X[1::2], y[1::2])
    model = as_classifier(MatchedFilter(filters, threshold), classes=CLASSES)
    return Planted(data, model, template, masks, threshold)


def _wave(width: int) -> Array:
    """One period of a sine of standard deviation 1, sampled where it is nowhere 0."""
    return np.asarray(np.sqrt(2) * np.sin(2 * np.pi * (np.arange(width) + 0.25) / width))


def _starts(length: int, width: int, places: int, name: str) -> Array:
    """First steps of places that are spread evenly and do not overlap."""
    if width < 2 or places < 1 or places * width > length:
        raise ValueError(
            f"places={places} of width={width} do not fit into {name}={length}; accepted: a width of at "
            f"least 2, at least one place, and places × width of at most {name}."
        )
    return np.asarray((np.arange(places) * length + (length - places * width) // 2) // places)


def _steepest(s: Array, norm: Norm) -> Array:
    """The edit of least norm that raises ⟨s, ·⟩ by 1."""
    if norm == 2:
        return np.asarray(s / (s @ s))
    if norm == 1:
        largest = np.abs(s).argmax()
        return np.asarray(np.where(np.arange(len(s)) == largest, 1 / s[largest], 0.0))
    if norm == "inf":
        return np.asarray(np.sign(s) / np.abs(s).sum())
    raise ValueError(f"norm must be 1, 2 or 'inf', got {norm!r}.")
