"""Advise the norm of visual counterfactuals from how far a model lets them go."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from ..engine.request import RULES as REQUEST_RULES
from ..models import Ensemble, as_classifier
from ..models.classifier import Array, Classifier
from ..nn.reading import read
from ..validation import Real, Satisfies, check_parameters
from .svce import SVCE


def _are_norms(value: object) -> bool:
    """Return whether the value is a sequence of different norms."""
    if not isinstance(value, tuple | list) or len(value) == 0:
        return False
    return all(SVCE.rules["norm"].accepts(p) for p in value) and len(set(value)) == len(value)


RULES = {
    "norms": Satisfies(_are_norms, "a sequence of different numbers from 1 to 100, or inf,"),
    "least_gain": Real(at_least=0),
    "confidence": REQUEST_RULES["confidence"],
    "n_iter": SVCE.rules["n_iter"],
    "bounds": SVCE.rules["bounds"],
    "random_state": REQUEST_RULES["random_state"],
}


@dataclass(frozen=True)
class NormAdvice:
    """Hold a norm for `SVCE`, and what was measured.

    Parameters
    ----------
    norm : float
        The norm that is advised.
    gain : dict of float to float
        For each norm, how many times farther the model lets counterfactuals go than the reference.
    trusted : bool
        Whether the gain of that norm reaches `least_gain`; else look at the images with doubt.
    """

    norm: float
    gain: dict[float, float]
    trusted: bool


def advise_norm(
    model: Any,
    X: ArrayLike | Tensor,
    y: ArrayLike | Tensor,
    reference: Any,
    norms: Sequence[float] = (1, 1.5, 2, math.inf),
    *,
    least_gain: float = 2.0,
    confidence: float | None = None,
    n_iter: int = 20,
    bounds: tuple[Any, Any] | None = None,
    random_state: int = 0,
) -> NormAdvice:
    """Advise the norm for `SVCE`: the sparsest in which a model is clearly more robust than usual.

        r_p(f, x) = radius of the smallest l_p counterfactual of x that SVCE finds for f
        gain_p = median over x of r_p(model, x) / r_p(reference, x)

    The smallest p with gain_p >= least_gain is advised, as a small p changes few values; where
    there is none, the p of the largest gain. A model that was trained against attacks in one norm
    may be no harder to change in another than a plain one, and its counterfactuals there are noise.

    Parameters
    ----------
    model : model
        Anything that `as_classifier` takes.
    X : array-like of shape (n, ...)
        Instances, 24 or more; those that both models get right count.
    y : array-like of shape (n,)
        Their labels.
    reference : model
        A model of the same data, trained without attacks, e.g. by `fit_classifier`.
    norms : sequence of float, default=(1, 1.5, 2, inf)
        The norms to choose from.
    least_gain : float, default=2.0
        The gain that a norm should reach.
    confidence : float, optional
        P(target) that counterfactuals reach; default: they change the class.
    n_iter : int, default=20
        Steps of a run of SVCE.
    bounds : tuple, optional
        (low, high) of the values; default: the range of X.
    random_state : int, default=0
        Seed of the searches.

    Returns
    -------
    NormAdvice
        The norm, the gains, and whether the norm's reaches `least_gain`.

    Raises
    ------
    ValueError
        If data, labels or an option cannot be used, or no instance is explained on both models.

    Examples
    --------
    >>> import contrafact as cf
    >>> smooth = cf.fit_classifier("mlp", X_train, y_train, max_epochs=20, weight_decay=30.0)
    >>> plain = cf.fit_classifier("mlp", X_train, y_train, max_epochs=20)
    >>> advice = advise_norm(smooth, X_test[:24], plain.predict(X_test[:24]), plain, (1, 2))
    >>> advice.norm in (1, 2), len(advice.gain)
    (True, 2)
    """
    given = {
        "norms": norms,
        "least_gain": least_gain,
        "confidence": confidence,
        "n_iter": n_iter,
        "bounds": bounds,
        "random_state": random_state,
    }
    check_parameters("advise_norm", RULES, given)
    X, labels = read(X, y, "X", "y")
    models = [as_classifier(model), as_classifier(reference)]
    for classifier in models:
        classifier.infer_classes(X, labels)
    right = np.all([classifier.predict(X) == labels for classifier in models], axis=0)
    if not right.any():
        raise ValueError(f"model and reference must have rows of X right, got none of {len(X)}.")
    x = X[right]
    ensemble = Ensemble(models)
    runner_up = np.argsort(ensemble.predict_proba(x), axis=1)[:, -2]
    target = np.asarray(ensemble.classes)[runner_up]

    def radii(classifier: Classifier, p: float) -> Array:
        explainer = SVCE(norm=p, n_iter=n_iter, restarts=1, bounds=bounds, levels=None)
        explainer.fit(classifier, X, labels)
        result = explainer.explain(
            x, target=target, confidence=confidence, random_state=random_state
        )
        return np.where(result.valid, result.info["norm_used"], np.nan)

    gain = {p: _median_ratio(*(radii(classifier, p) for classifier in models)) for p in norms}
    return choose(gain, least_gain)


def choose(gain: dict[float, float], least_gain: float) -> NormAdvice:
    """Return the smallest norm of enough gain; where there is none, that of the largest gain.

    Parameters
    ----------
    gain : dict of float to float
        The gain of each norm.
    least_gain : float
        The gain that a norm should reach.

    Returns
    -------
    NormAdvice
        The norm.
    """
    enough = [p for p in gain if gain[p] >= least_gain]
    norm = min(enough) if enough else max(gain, key=gain.__getitem__)
    return NormAdvice(norm, gain, bool(enough))


def _median_ratio(own: Array, plain: Array) -> float:
    """Return the median of own / plain over rows that have both."""
    both = np.isfinite(own) & np.isfinite(plain) & (plain > 0)
    if not both.any():
        raise ValueError("X must hold rows that are explained on model and reference, got none.")
    return float(np.median(own[both] / plain[both]))
