"""Planted data: the class depends on one known place, by a rule whose smallest edits are known.

The rule is a matched filter. With a template s that may stand in any of p places that do not
overlap,

    z_i(x) = ⟨s, x at place i⟩,     "present" where max_i z_i(x) > b,  else "absent".

So the smallest edit is known exactly, in any l_q norm, with q* the dual one (1/q + 1/q* = 1):

    to "present", fill the place that is nearest to b:   min_i (b − z_i) / ‖s‖_q*
    to "absent", clear every place above b:              ‖ (max(z_i − b, 0) / ‖s‖_q*)_i ‖_q
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.ndimage import gaussian_filter

from ..data.arrays import finite_array
from ..data.dataset import Dataset
from ..models.adapters import as_classifier
from ..models.classifier import Array, Classifier
from ..validation import Integer, OneOf, Real, check_parameters
from .matched_filter import MatchedFilter

Norm = Literal[1, 2, "inf"]
CLASSES = ("absent", "present")

RULES = {
    # two of each class at least
    "n": Integer(at_least=4, at_most=10**6),
    "length": Integer(at_least=2, at_most=10**6),
    "size": Integer(at_least=2, at_most=10**6),
    "channels": Integer(at_least=1, at_most=10**6),
    "width": Integer(at_least=2, at_most=10**6),
    "places": Integer(at_least=1, at_most=10**6),
    "background": OneOf("noise", "smooth"),
    "noise": Real(at_least=0),
    "random_state": Integer(at_least=0),
    "norm": OneOf(1, 2, "inf"),
}


@dataclass(frozen=True, eq=False)
class Planted:
    """Hold data with a planted cause, and the rule that labels them.

    Parameters
    ----------
    dataset : Dataset
        Labeled by the rule, without exception.
    model : Classifier
        The rule itself, differentiable; explain this one to compare with the smallest edit.
    template : ndarray
        s, in the shape of one place.
    places : ndarray of bool, shape (p, *instance)
        Masks of where the template may stand.
    threshold : float
        b.

    Examples
    --------
    >>> planted = planted_series(40, 64)
    >>> planted.places.shape
    (1, 1, 64)
    """

    dataset: Dataset
    model: Classifier
    template: Array
    places: Array
    threshold: float

    def smallest_edit(self, X: Any, norm: Norm = 2) -> Array:
        """Compute δ of least l_q norm that brings every instance to the class boundary.

        The class turns just beyond it: `X + (1 + 1e-6) * δ`. For norm 1, one value moves in every
        place that has to; for "inf", all move by the same.

        Parameters
        ----------
        X : array of shape (n, *instance)
            Instances.
        norm : {1, 2, "inf"}, default=2
            q.

        Returns
        -------
        ndarray of float64, shaped like X
            δ.
        """
        check_parameters("Planted.smallest_edit", RULES, {"norm": norm})
        X = self._read(X)
        unit_edit = _unit_edit(self.template.ravel(), norm)
        gaps = self._gaps(X)
        delta = np.zeros(X.shape).reshape(len(X), -1)
        for place, gap in zip(self.places, gaps.T, strict=True):
            delta[:, place.ravel()] += np.outer(gap, unit_edit)
        return delta.reshape(X.shape)

    def smallest(self, X: Any, norm: Norm = 2) -> Array:
        """Compute the least l_q norm of a change of class.

        Parameters
        ----------
        X : array of shape (n, *instance)
            Instances.
        norm : {1, 2, "inf"}, default=2
            q.

        Returns
        -------
        ndarray of shape (n,)
            The norm of `smallest_edit`.
        """
        delta = self.smallest_edit(X, norm)
        delta = delta.reshape(len(delta), -1)
        return np.asarray(np.linalg.norm(delta, order_of(norm), axis=1))

    def region(self, X: Any) -> Array:
        """Return the mask of the places that the smallest edit changes.

        Parameters
        ----------
        X : array of shape (n, *instance)
            Instances.

        Returns
        -------
        ndarray of bool, shaped like X
            Where the template is, or is nearest to being.
        """
        X = self._read(X)
        is_edited = self._gaps(X) != 0  # (n, places)
        mask = is_edited @ self.places.reshape(len(self.places), -1)
        return np.asarray(mask.reshape(X.shape))

    def _read(self, X: Any) -> Array:
        """Return instances as an array of the shape of the planted ones."""
        array = finite_array(X, "X", ("n", *self.places.shape[1:]))
        if len(array) == 0:
            raise ValueError(f"X has shape {array.shape}. Accepted: one instance or more.")
        return array.astype(np.float64)

    def _gaps(self, X: Array) -> Array:
        """Return what z_i has to change by, (n, places)."""
        flat = X.reshape(len(X), -1)
        s = self.template.ravel()
        by_place = [flat[:, place.ravel()] @ s for place in self.places]
        z = np.stack(by_place, axis=1)  # (n, places)
        largest = z.argmax(axis=1)[:, None]
        is_nearest = np.arange(z.shape[1]) == largest
        is_above = z > self.threshold
        is_present = is_above.any(axis=1, keepdims=True)
        has_to_change = np.where(is_present, is_above, is_nearest)
        return np.where(has_to_change, self.threshold - z, 0.0)


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
    """Make series whose class is whether a wave stands in one of some places of the first channel.

    Parameters
    ----------
    n : int, default=200
        Instances, half of them for training; the classes alternate.
    length : int, default=128
        Time steps.
    channels : int, default=1
        Channels; the wave stands in the first.
    width : int, default=16
        Time steps of the wave.
    places : int, default=1
        With one, the rule is linear; with more, the wave stands in any one of them.
    background : {"noise", "smooth"}, default="noise"
        White noise, or noise smoothed along time.
    noise : float, default=0.5
        Standard deviation of the background; that of the wave is 1 where it stands in full.
    random_state : int, default=0
        Seed.

    Returns
    -------
    Planted
        The data, and the rule that labels them.

    Examples
    --------
    >>> planted = planted_series(40, 64, places=2)
    >>> X = planted.dataset.X_test
    >>> turned = planted.model.predict(X + (1 + 1e-6) * planted.smallest_edit(X))
    >>> bool((turned != planted.dataset.y_test).all())
    True
    """
    check_parameters("planted_series", RULES, locals())
    starts = _starts(length, width, places, "length")
    masks = np.zeros((places, channels, length), dtype=bool)
    for mask, start in zip(masks, starts, strict=True):
        mask[0, start : start + width] = True
    return _plant(
        "planted series",
        "series",
        n,
        _wave(width),
        masks,
        background,
        noise,
        random_state,
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
    """Make images whose class is whether a patch stands in one of some places.

    The places lie on the diagonal of the first channel.

    Parameters
    ----------
    n : int, default=200
        Instances, half of them for training; the classes alternate.
    size : int, default=16
        Height and width of the images, in pixels.
    channels : int, default=1
        Channels; the patch stands in the first.
    width : int, default=4
        Height and width of the patch, in pixels.
    places : int, default=1
        With one, the rule is linear; with more, the patch stands in any one of them.
    background : {"noise", "smooth"}, default="noise"
        White noise, or noise smoothed along both axes.
    noise : float, default=0.5
        Standard deviation of the background; that of the patch is 1 where it stands in full.
    random_state : int, default=0
        Seed.

    Returns
    -------
    Planted
        The data, and the rule that labels them.

    Examples
    --------
    >>> planted = planted_images(40)
    >>> int(planted.region(planted.dataset.X_test)[0].sum())
    16
    """
    check_parameters("planted_images", RULES, locals())
    starts = _starts(size, width, places, "size")
    masks = np.zeros((places, channels, size, size), dtype=bool)
    for mask, start in zip(masks, starts, strict=True):
        mask[0, start : start + width, start : start + width] = True
    patch = np.outer(np.ones(width), _wave(width))
    return _plant(
        "planted images",
        "image",
        n,
        patch,
        masks,
        background,
        noise,
        random_state,
    )


def order_of(norm: Norm) -> float:
    """Return the order of a norm as NumPy takes it."""
    return np.inf if norm == "inf" else norm


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
    """Plant the template into a background, and label the instances by the rule, b at α = 0.5."""
    rng = np.random.default_rng(random_state)
    shape = (n, *masks.shape[1:])
    X = noise * _unit_background(rng, shape, background)
    is_present = np.arange(n) // 2 % 2 == 1
    alpha = _amplitudes(rng, is_present, len(masks))

    s = template.ravel()
    energy = s @ s
    filters = np.zeros(masks.shape)
    for i, place in enumerate(masks):
        filters[i][place] = s
        values = X[:, place]  # (n, size of a place)
        # Replace what the background has of the template by α times the template.
        missing = alpha[:, i] - values @ s / energy
        X[:, place] = values + np.outer(missing, s)
    threshold = 0.5 * float(energy)
    y = np.where(is_present, "present", "absent")
    data = Dataset(
        name,
        modality,
        X_train=X[::2],
        y_train=y[::2],
        X_test=X[1::2],
        y_test=y[1::2],
    )
    model = as_classifier(MatchedFilter(filters, threshold), classes=CLASSES)
    return Planted(data, model, template, masks, threshold)


def _unit_background(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    kind: str,
) -> Array:
    """Draw noise, (n, channels, ...), white or smoothed; its standard deviation is 1."""
    X = rng.normal(size=shape)
    if kind == "noise":
        return X
    widths = [3.0] * (len(shape) - 2)
    X = gaussian_filter(X, sigma=(0, 0, *widths), mode="wrap")
    return np.asarray(X / X.std())


def _amplitudes(
    rng: np.random.Generator,
    is_present: Array,
    n_places: int,
) -> Array:
    """Draw how much of the template stands at each place, α of shape (n, places).

    α ∈ [0.75, 1.25] at one place of the instances that are "present", α ∈ [−0.25, 0.25] everywhere
    else.
    """
    n = len(is_present)
    alpha = rng.uniform(-0.25, 0.25, size=(n, n_places))
    place = rng.integers(n_places, size=n)
    n_present = int(is_present.sum())
    place_of_present = place[is_present]
    alpha[is_present, place_of_present] = rng.uniform(0.75, 1.25, size=n_present)
    return alpha


def _wave(width: int) -> Array:
    """Return one period of a sine of standard deviation 1, sampled where it is nowhere 0."""
    phase = 2 * np.pi * (np.arange(width) + 0.25) / width
    return np.asarray(np.sqrt(2) * np.sin(phase))


def _starts(
    length: int,
    width: int,
    places: int,
    name: str,
) -> Array:
    """Return the first steps of places that are spread evenly and do not overlap."""
    if places * width > length:
        raise ValueError(
            f"places={places} of width={width} do not fit into {name}={length}; accepted: "
            f"places × width of at most {name}."
        )
    free = length - places * width
    spread = np.arange(places) * length
    return np.asarray((spread + free // 2) // places)


def _unit_edit(s: Array, norm: Norm) -> Array:
    """Return the edit of least norm that raises ⟨s, ·⟩ by 1."""
    if norm == 2:
        return np.asarray(s / (s @ s))
    if norm == 1:
        largest = np.abs(s).argmax()
        edit = np.zeros(len(s))
        edit[largest] = 1 / s[largest]
        return edit
    return np.asarray(np.sign(s) / np.abs(s).sum())
