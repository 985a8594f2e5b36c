"""Advise the norm of visual counterfactuals from what a model withstands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike
from torch import Tensor

from ..models.classifier import Classifier
from ..validation import check_parameters
from .attacks import ATTACK_RULES, NORMS, Bounds, radii_of
from .option_rules import SEED
from .under_attack import Attack, read_differentiable

#: steps of bisection; the radius is exact to a factor of 2^(1/64)
_HALVINGS = 6
#: largest ratio of the radius to the one the search starts with
_RANGE = 1e6


@dataclass(frozen=True)
class NormAdvice:
    """The norm in which a model gained most robustness, and what was measured.

    Parameters
    ----------
    norm : float
        The norm of the largest gain.
    gain : dict of float to float
        Half radius of the model divided by that of the reference, for each norm.
    half_radius : dict of float to float
        Radius at which attacks change half of the model's correct decisions.
    reference_half_radius : dict of float to float
        That of the reference.
    """

    norm: float
    gain: dict[float, float]
    half_radius: dict[float, float]
    reference_half_radius: dict[float, float]


def advise_norm(
    model: Any,
    X: ArrayLike | Tensor,
    y: ArrayLike | Tensor,
    reference: Any,
    norms: Sequence[float] = (1, 1.5, 2, math.inf),
    *,
    steps: int = 10,
    bounds: Bounds = (0.0, 1.0),
    random_state: int = 0,
) -> NormAdvice:
    """Advise the norm for `SVCE`: the one in which a model gained most over a plain one.

        r_p(f) = radius at which l_p attacks change half of the correct decisions of f
        gain_p = r_p(model) / r_p(reference),     norm = argmax_p gain_p

    The radius of a norm says little by itself, as norms have different scales. A network of the
    same data that was trained without attacks gives the scale.

    Parameters
    ----------
    model : model
        Anything that `as_classifier` takes; it must be differentiable.
    X : array-like of shape (n, ...)
        Rows within the bounds; 100 are enough.
    y : array-like of shape (n,)
        Their labels.
    reference : model
        A model of the same classes, trained without attacks, e.g. by `fit_classifier`.
    norms : sequence of float, default=(1, 1.5, 2, inf)
        The norms to choose from.
    steps : int, default=10
        Steps of each attack.
    bounds : (float, float) or None, default=(0.0, 1.0)
        Smallest and largest value of an input; None: no limit.
    random_state : int, default=0
        Seed of the random starts; the global random state is neither read nor changed.

    Returns
    -------
    NormAdvice
        The norm, the gains and the radii.

    Raises
    ------
    TypeError
        If a model is not differentiable.
    ValueError
        If data, labels or an option cannot be used, or a model has no row right or withstands
        every attack.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> plain = LogisticRegression(C=1e3, max_iter=2000).fit(X, y)
    >>> smooth = LogisticRegression(C=0.1, max_iter=500).fit(X, y)
    >>> advice = advise_norm(smooth, X, y, plain, (1, 2), bounds=None)
    >>> advice.norm in (1, 2), advice.gain[1] > 1
    (True, True)
    """
    rules = {name: rule for name, rule in ATTACK_RULES.items() if name in ("steps", "bounds")}
    rules |= {"norms": NORMS, "random_state": SEED}
    given = {"steps": steps, "bounds": bounds, "norms": norms, "random_state": random_state}
    check_parameters("advise_norm", rules, given)
    radii: list[dict[float, float]] = []
    for name, given_model in (("model", model), ("reference", reference)):
        classifier, x, t = read_differentiable(given_model, X, y)
        right = classifier.verdict(x).label == t
        if not bool(right.any()):
            raise ValueError(f"{name} must have rows of X right, got none of {len(x)}.")
        radii.append(
            {
                norm: _half_radius(
                    classifier, x[right], t[right], norm, steps, bounds, random_state
                )
                for norm in norms
            }
        )
    own, plain = radii
    gain = {norm: own[norm] / plain[norm] for norm in norms}
    return NormAdvice(max(gain, key=gain.__getitem__), gain, own, plain)


def _half_radius(
    classifier: Classifier,
    x: Tensor,
    t: Tensor,
    norm: float,
    steps: int,
    bounds: Bounds,
    random_state: int,
) -> float:
    """Find the radius at which attacks change half of the decisions."""

    def stands(eps: float) -> bool:
        attack = Attack(norm, eps, steps, 1, bounds, random_state)
        return attack.withstood(classifier, x, t).double().mean().item() > 0.5

    (start,) = radii_of((norm,), 0.5, x)
    high = start
    while high > start / _RANGE and not stands(high):
        high /= 2
    while stands(high):
        if high > start * _RANGE:
            raise ValueError(
                f"model withstands every attack in norm {norm:g}; half of its decisions must be "
                "within reach of gradients."
            )
        high *= 2
    low = high / 2
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if stands(middle) else (low, middle)
    return low
