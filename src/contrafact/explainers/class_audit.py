"""Audit of one class: what a model adds to turn any instance into it, from many counterfactuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np

from ..engine import Counterfactuals
from ..engine.request import RULES as REQUEST_RULES
from ..models import Classifier, as_classifier
from ..models.classifier import Array
from ..numerics import ceil_div
from ..validation import Instance, Integer, Nothing, Satisfies, brief, check_parameters
from .graft import Graft
from .support.explainer import Explainer
from .support.suspicion import suspicion_by_window, window_means
from .svce import SVCE

RULES = {
    "target": Satisfies(lambda value: isinstance(value, str | bytes | Number), "one label"),
    "window": Nothing() | Integer(at_least=1),
    "n_regions": Integer(at_least=1),
    "explainer": Nothing() | Instance(Explainer),
    "random_state": REQUEST_RULES["random_state"],
}
#: one in so many places of an instance counts as one of its most changed
ONE_IN = 20
#: how many regions an audit prints
MOST_REGIONS = 5


@dataclass(frozen=True)
class Region:
    """A window of the input.

    Parameters
    ----------
    top, left : int
        First row and column.
    height, width : int
        Number of rows and columns.
    frequency : float
        How often its places are among the most changed, mean over them.
    mean_change : float
        Mean change of its places.
    """

    top: int
    left: int
    height: int
    width: int
    frequency: float
    mean_change: float

    def overlap(self, other: Region) -> int:
        """Return the number of places that both cover."""
        bottom = min(self.top + self.height, other.top + other.height)
        right = min(self.left + self.width, other.left + other.width)
        top = max(self.top, other.top)
        left = max(self.left, other.left)
        height = max(bottom - top, 0)
        width = max(right - left, 0)
        return height * width


@dataclass(frozen=True)
class ClassAudit:
    """Hold what counterfactuals into one class have in common.

    Parameters
    ----------
    target : label
        The class.
    n : int
        How many instances of other classes were to be turned into it.
    valid : float
        Share of them that reached it; the maps are made of these.
    mean_change : array of shape (height, width)
        Mean of x' − x over counterfactuals and channels. A series has height 1.
    frequency : array of shape (height, width)
        Share of counterfactuals in which a place is among the most changed twentieth.
    regions : list of Region
        Windows that do not overlap, the most frequently changed first.
    result : Counterfactuals
        The counterfactuals themselves.
    suspicion : float
        From 0 to 1: how far the class is recognized by a mark; the largest over all windows. See
        `class_audit`.
    suspect : Region
        The window that it is the largest of.
    """

    target: Any
    n: int
    valid: float
    mean_change: Array
    frequency: Array
    regions: list[Region]
    result: Counterfactuals
    suspicion: float
    suspect: Region

    @property
    def place(self) -> str:
        """Where the suspect window lies, in words."""
        return self._place(self.suspect)

    def __repr__(self) -> str:
        method = self.result.provenance.get("method", "unknown method")
        label = np.asarray(self.target).item()  # a NumPy scalar as the plain value it is
        asked = f"{self.n} instances of other classes by {method}, {self.valid:.0%} reached it"
        found = [
            f"  {self._place(region)}: frequency {region.frequency:.0%}, "
            f"mean change {region.mean_change:+.3g}"
            for region in self.regions[:MOST_REGIONS]
        ]
        more = len(self.regions) - MOST_REGIONS
        if more > 0:
            found.append(f"  … and {more} more in regions")
        return "\n".join([f"<ClassAudit of {brief(label)}: {asked}", *found]) + ">"

    def _place(self, region: Region) -> str:
        """Say where a region lies: the time steps of a series, rows and columns of an image."""
        columns = f"{region.left}…{region.left + region.width - 1}"
        if len(self.frequency) == 1:
            return f"t = {columns}"
        return f"rows {region.top}…{region.top + region.height - 1}, columns {columns}"


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
    """Turn instances of all other classes into `target`, and map where the changes gather.

    A region that nearly every counterfactual changes in the same way is what the model takes for
    the class: its shape, or a mark that only came with it in the training data. `suspicion` tells
    these apart. It is the largest over all windows W of S(W) · A(W):

        S(W) = Σ_{p in W} ‖ mean_i δ_ip / ‖δ_i‖ ‖²,  δ_i = x'_i − x_i, p the places
        A(W) = P(x_W ≈ m_W | x in the class) · P(x in the class | x_W ≈ m_W)

    m is the median of the instances that the model puts in the class; ≈ allows a mean difference
    of a twentieth of the range. S is 1 where all changes are the same and lie within W; A is 1
    where all members are copies of each other in W, and no others are. Features of objects vary
    from start to start and from member to member; a mark does neither. X has to carry the mark to
    show it: audit with training data.

    Parameters
    ----------
    model : object
        Anything `as_classifier` takes.
    X : array or tensor
        Images or series. Those that the model already puts in the target class are left out of the
        maps; the others are compared with them for `suspicion`.
    target : label
        The class to audit.
    window : int, optional
        Side of a region; default: a sixth of the larger side, at least 2.
    n_regions : int, default=5
        Regions to report at most.
    explainer : Explainer, optional
        How to find the counterfactuals; fitted to `model` and `X` if it is not fitted. Default:
        SVCE with p = 1.5 and a confidence of 0.9, or Graft for models without gradients.
    random_state : int, default=0
        Seed of the explainer.

    Returns
    -------
    ClassAudit
        Maps, regions and the counterfactuals.

    Raises
    ------
    ValueError
        If X holds rows, or no instance reached the class.

    See Also
    --------
    audit_classes : Audit every class and rank them by suspicion.

    Examples
    --------
    >>> audit = class_audit(model, X_test[:20], "1")
    >>> audit.regions[0].frequency > 0.1
    True
    """
    check_parameters("class_audit", RULES, locals())
    explainer = fit_for_audit(explainer, model, X)
    result = explainer.explain(X, target, random_state=random_state)
    audit = summarize_changes(
        result, target, explainer.shape_, result.X, result.labels, window, n_regions
    )
    if audit is None:
        n = int((result.status != "already_target").sum())
        raise ValueError(f"None of the {n} instances reached {target!r}; there is nothing to map.")
    return audit


def default_explainer(classifier: Classifier) -> Explainer:
    """Return how counterfactuals of an audit are found: by gradients where there are any."""
    if classifier.differentiable:
        return SVCE(n_iter=30, restarts=1, confidence=0.9)
    return Graft(level="smallest")


def fit_for_audit(explainer: Explainer | None, model: Any, X: Any) -> Explainer:
    """Return the explainer of an audit, fitted; refuse rows, which have no places to map."""
    if explainer is None:
        model = as_classifier(model)
        explainer = default_explainer(model)
    if not hasattr(explainer, "classifier_"):
        explainer.fit(model, X)
    if explainer.modality_ == "row":
        raise ValueError(
            "X holds rows; class_audit maps images and series, where neighbors belong together."
        )
    return explainer


def summarize_changes(
    result: Counterfactuals,
    target: Any,
    shape: tuple[int, ...],
    images: Any,
    labels: Array,
    window: int | None,
    n_regions: int,
) -> ClassAudit | None:
    """Map the changes into a class.

    Parameters
    ----------
    result : Counterfactuals
        Of one counterfactual for each instance, toward `target`.
    target : label
        The class.
    shape : tuple of int
        Shape of an instance, with its channels.
    images : array or tensor of shape (m, ...)
        The instances that members of the class are compared with others in.
    labels : array of shape (m,)
        Their classes.
    window, n_regions : int
        As in `class_audit`.

    Returns
    -------
    ClassAudit or None
        None where the class was never reached.
    """
    is_other = result.status != "already_target"
    turned = is_other & result.valid
    if not turned.any():
        return None
    delta = _by_places(result.X_cf - result.X, shape)[turned]
    mean_change = delta.mean((0, 1))
    frequency = _most_changed(delta).mean(0)
    if window is None:
        larger_side = max(frequency.shape)
        window = max(2, ceil_div(larger_side, 6))
    height, width = (min(window, side) for side in frequency.shape)
    suspicion = suspicion_by_window(
        delta, _by_places(images, shape), labels == target, height, width
    )
    corner = np.unravel_index(suspicion.argmax(), suspicion.shape)
    return ClassAudit(
        target=target,
        n=int(is_other.sum()),
        valid=float(turned.sum() / is_other.sum()),
        mean_change=mean_change,
        frequency=frequency,
        regions=_find_regions(frequency, mean_change, window, n_regions),
        result=result,
        suspicion=float(suspicion[corner]),
        suspect=_region_at(corner, frequency, mean_change, height, width),
    )


def _by_places(values: Any, shape: tuple[int, ...]) -> Array:
    """Bring values to (n, channels, height, width); a series has height 1."""
    places: Array = np.asarray(values, dtype=np.float64).reshape(-1, *shape)
    return places[:, :, None] if len(shape) == 2 else places


def _region_at(
    corner: Sequence[Any], frequency: Array, mean_change: Array, height: int, width: int
) -> Region:
    """Describe the window whose top left corner is given."""
    top, left = (int(index) for index in corner)
    inside = (slice(top, top + height), slice(left, left + width))
    return Region(
        top,
        left,
        height,
        width,
        frequency=float(frequency[inside].mean()),
        mean_change=float(mean_change[inside].mean()),
    )


def _most_changed(delta: Array) -> Array:
    """Mark the places that change most in each counterfactual, (n, height, width)."""
    size = np.abs(delta).sum(1)
    flat = size.reshape(len(size), -1)
    count = max(1, round(flat.shape[1] / ONE_IN))
    ordered = np.partition(flat, -count, axis=1)
    least = ordered[:, -count]
    is_large = size >= least[:, None, None]
    marked: Array = is_large & (size > 0)
    return marked


def _find_regions(frequency: Array, mean_change: Array, side: int, n: int) -> list[Region]:
    """Find the n windows of the highest mean frequency, best first, without overlap."""
    height = min(side, frequency.shape[0])
    width = min(side, frequency.shape[1])
    score = window_means(frequency, height, width)
    found: list[Region] = []
    while len(found) < n and score.max() > 0:
        best = np.unravel_index(score.argmax(), score.shape)
        region = _region_at(best, frequency, mean_change, height, width)
        found.append(region)
        top, left = region.top, region.left
        rows = slice(max(0, top - height + 1), top + height)
        columns = slice(max(0, left - width + 1), left + width)
        score[rows, columns] = 0
    return found
