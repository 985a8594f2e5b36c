"""Behavior of the model between x and x': what do the edits do, and is the map of their importance true?"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..engine.result import Counterfactuals
from ..models.classifier import Array
from ..numerics.randomness import row_seeds, row_uniform
from .inputs import MetricInputs, ask, classifier_of
from .metric import Metric, flat, instance_shape
from .validity import flipped


class Controllability(Metric):
    """Share of partial reversals of the edit that bring the class of x back; 0 where it never left.

    10 % to 50 % of the changed values are set back, in 10 random orders.
    """

    name, direction, needs = "controllability", "max", frozenset({"model"})
    shares = (0.1, 0.2, 0.3, 0.4, 0.5)
    n_orders = 10

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        classifier = classifier_of(given.model, "model", result)
        x, x_cf = flat(result)
        changed = x != x_cf
        # Rows of equal content draw equal orders, wherever they stand.
        seeds = row_seeds(x, 0, row_seeds(x_cf, 0))
        counts = np.maximum(1, np.rint(changed.sum(1)[:, None] * np.array(self.shares)))
        variants = self.n_orders * len(self.shares)

        def reverted(rows: Array) -> Array:
            keys = row_uniform(seeds[rows], self.n_orders * x.shape[1]).reshape(
                len(rows), self.n_orders, -1
            )
            rank = np.where(changed[rows, None], keys, np.inf).argsort(-1).argsort(-1)
            back = rank[:, :, None] < counts[rows, None, :, None]
            return np.where(back, x[rows, None, None], x_cf[rows, None, None])

        labels, _ = ask(classifier, result, reverted, variants)
        back = (labels == result.labels[:, None]).mean(1)
        return np.where(flipped(result), back, 0.0)


class _Replacement(Metric):
    """P(c) on the way from x to x', the changed values in the order of their importance."""

    needs = frozenset({"model", "saliency"})
    n_steps = 20
    #: −1 for the most important first, 1 for the least
    sign: ClassVar[int]

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        classifier = classifier_of(given.model, "model", result)
        x, x_cf = flat(result)
        changed, map_ = x != x_cf, _importance(result)
        keys = np.where(changed, self.sign * map_, np.inf)
        counts = np.rint(changed.sum(1)[:, None] * np.linspace(0, 1, self.n_steps + 1))

        def replaced(rows: Array) -> Array:
            rank = keys[rows].argsort(-1, kind="stable").argsort(-1)
            new = changed[rows, None] & (rank[:, None] < counts[rows, :, None])
            return np.where(new, x_cf[rows, None], x[rows, None])

        _, p = ask(classifier, result, replaced, self.n_steps + 1)
        area = (p[:, 1:] + p[:, :-1]).mean(1) / 2
        return np.where(np.isnan(map_).any(1), np.nan, area)


class PerturbationAUC(_Replacement):
    """Mean P(c) as the changed values of x are replaced by those of x', most important first.

    The area under the curve over the share replaced, in 20 steps; importance is the map in the result's
    `info`. Where a method copies a guide, these are the guide's values. The map is faithful where this lies
    above `perturbation_auc_reversed`. NaN where a row has no map.
    """

    name, direction, sign = "perturbation_auc", "max", -1


class PerturbationAUCReversed(_Replacement):
    """As `perturbation_auc`, least important first: less is better, for then the rest was not needed."""

    name, direction, sign = "perturbation_auc_reversed", "min", 1


BEHAVIOR: tuple[type[Metric], ...] = (Controllability, PerturbationAUC, PerturbationAUCReversed)


def _importance(result: Counterfactuals) -> Array:
    """The map of importance, (n, d); one per point in time serves all channels."""
    shape = instance_shape(result)
    values = result.info["saliency" if "saliency" in result.info else "importance"].astype(float)
    values = values.reshape(len(values), *[1] * (len(shape) + 1 - values.ndim), *values.shape[1:])
    return np.broadcast_to(values, (len(result), *shape)).reshape(len(result), int(np.prod(shape)))
