"""Scores against planted truth: whether the right place changed, and how much more than needed.

An instance that was in its target class from the start had nothing to change, so it has no score
here: NaN.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..engine.result import Counterfactuals, as_numpy
from ..metrics.metric import flat_arrays, flat_changed
from ..models.classifier import Array
from ..validation import Instance, check_parameters
from .planted import RULES as PLANTED_RULES
from .planted import Norm, Planted, order_of

RULES = {
    "result": Instance(Counterfactuals),
    "planted": Instance(Planted),
    "norm": PLANTED_RULES["norm"],
}


def localization(result: Counterfactuals, planted: Planted) -> pd.DataFrame:
    """Measure how well the values that changed, C, match the planted region R.

        iou = |C ∩ R| / |C ∪ R|,     precision = |C ∩ R| / |C|,     recall = |C ∩ R| / |R|

    All are better the larger. A value counts as changed as in `Counterfactuals.changed`. Where
    nothing changed, all are 0.

    Parameters
    ----------
    result : Counterfactuals
        n counterfactuals of planted instances.
    planted : Planted
        The data that they belong to.

    Returns
    -------
    DataFrame of n rows
        `iou`, `precision` and `recall`; NaN where the instance was in its target class from the
        start, so that nothing had to change.

    Examples
    --------
    >>> from contrafact.benchmark import planted_series
    >>> planted = planted_series(40, 64)
    >>> X = planted.dataset.X_test
    >>> X_cf = X + (1 + 1e-6) * planted.smallest_edit(X)
    >>> result = Counterfactuals.from_arrays(planted.model, X, X_cf)
    >>> localization(result, planted).mean().to_dict()
    {'iou': 1.0, 'precision': 1.0, 'recall': 1.0}
    """
    check_parameters("localization", RULES, {"result": result, "planted": planted})
    changed = flat_changed(result)
    region = planted.region(_instances(result, planted)).reshape(changed.shape)
    n_both = (changed & region).sum(axis=1)
    n_either = (changed | region).sum(axis=1)
    n_changed = changed.sum(axis=1)
    table = pd.DataFrame(
        {
            "iou": n_both / n_either,
            "precision": n_both / np.maximum(n_changed, 1),
            "recall": n_both / region.sum(axis=1),
        }
    )
    return table.mask(pd.Series(result.status == "already_target"))


def optimality_gap(
    result: Counterfactuals,
    planted: Planted,
    norm: Norm = 2,
) -> Array:
    """Compare the size of every change with the least that changes the rule's class.

    Parameters
    ----------
    result : Counterfactuals
        n counterfactuals of planted instances.
    planted : Planted
        The data that they belong to.
    norm : {1, 2, "inf"}, default=2
        The norm of the size.

    Returns
    -------
    ndarray of shape (n,)
        ‖x' − x‖ over the least: 1 is best, and nothing is below. Infinite where the rule does not
        call x' other than x; NaN where the instance was in its target class from the start.

    Examples
    --------
    >>> from contrafact.benchmark import planted_series
    >>> planted = planted_series(40, 64)
    >>> X = planted.dataset.X_test
    >>> X_cf = X + 2 * planted.smallest_edit(X)
    >>> result = Counterfactuals.from_arrays(planted.model, X, X_cf)
    >>> float(optimality_gap(result, planted).mean().round(6))
    2.0
    """
    check_parameters("optimality_gap", RULES, {"result": result, "planted": planted, "norm": norm})
    x, x_cf = flat_arrays(result)
    size = np.linalg.norm(x_cf - x, order_of(norm), axis=1)
    smallest = planted.smallest(_instances(result, planted), norm)
    shape = planted.places.shape[1:]
    label = planted.model.predict(x.reshape(-1, *shape))
    cf_label = planted.model.predict(x_cf.reshape(-1, *shape))
    gap = np.where(cf_label != label, size / smallest, np.inf)
    return np.where(result.status == "already_target", np.nan, gap)


def _instances(result: Counterfactuals, planted: Planted) -> Array:
    """Return the instances of a result in the shape of the planted ones."""
    X = as_numpy(result.X)
    shape = planted.places.shape[1:]
    if X[0].size != np.prod(shape):
        raise ValueError(
            f"result holds instances of shape {X.shape[1:]}, planted has {shape}; "
            "accepted: counterfactuals of planted instances."
        )
    return X.reshape(len(X), *shape)
