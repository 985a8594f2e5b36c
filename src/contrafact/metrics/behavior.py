"""Behavior of the model between x and x': the effect of the edits, and of their importance map."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from typing_extensions import override

from ..engine.result import Counterfactuals
from ..models.classifier import Array
from ..numerics.randomness import row_seeds, row_uniform
from .inputs import MetricInputs, ask_variants, classifier_of
from .metric import Metric, flat_arrays, flat_changed, flat_values, instance_shape, part_of_value
from .validity import flipped


class Controllability(Metric):
    """Share of partial reversals of the edit that bring the class of x back; 0 where it never left.

    10 % to 50 % of the changed values are set back, in 10 random orders.
    """

    name = "controllability"
    direction = "max"
    needs = frozenset({"model"})
    shares = (0.1, 0.2, 0.3, 0.4, 0.5)
    n_orders = 10

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        classifier = classifier_of(inputs.model, "model", result)
        x, x_cf = flat_values(result)
        changed = flat_changed(result)
        part = part_of_value(result)
        # Rows of equal content draw equal orders, wherever they stand.
        seeds = row_seeds(x, 0, row_seeds(x_cf, 0))
        n_changed = changed.sum(axis=1, keepdims=True)
        n_reverted = np.rint(n_changed * np.array(self.shares))  # (n, shares)
        n_reverted = np.maximum(1, n_reverted)

        def revert(rows: Array) -> Array:
            keys = row_uniform(seeds[rows], self.n_orders * changed.shape[1])
            keys = keys.reshape(len(rows), self.n_orders, -1)
            keys = np.where(changed[rows, None], keys, np.inf)
            rank = _rank(keys)[:, :, None]  # (rows, orders, 1, d)
            count = n_reverted[rows, None, :, None]  # (rows, 1, shares, 1)
            before = x[rows, None, None]
            after = x_cf[rows, None, None]
            is_reverted = (rank < count)[..., part]
            return np.where(is_reverted, before, after)

        n_variants = self.n_orders * len(self.shares)
        labels, _ = ask_variants(classifier, result, revert, n_variants)
        is_back = labels == result.labels[:, None]
        return np.where(flipped(result), is_back.mean(axis=1), 0.0)


class _Replacement(Metric):
    """Mean P(c) on the way from x to x', the changed values in the order of their importance."""

    needs = frozenset({"model", "saliency"})
    tables = False  # the maps of methods are over arrays
    n_steps = 20
    #: −1 for the most important first, 1 for the least
    sign: ClassVar[int]

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        classifier = classifier_of(inputs.model, "model", result)
        x, x_cf = flat_arrays(result)
        changed = flat_changed(result)
        importance = _importance(result)
        keys = np.where(changed, self.sign * importance, np.inf)
        n_changed = changed.sum(axis=1, keepdims=True)
        shares = np.linspace(0, 1, self.n_steps + 1)
        n_replaced = np.rint(n_changed * shares)  # (n, steps + 1)

        def replace(rows: Array) -> Array:
            rank = _rank(keys[rows])[:, None]  # (rows, 1, d)
            count = n_replaced[rows, :, None]  # (rows, steps + 1, 1)
            is_replaced = changed[rows, None] & (rank < count)
            before = x[rows, None]
            after = x_cf[rows, None]
            return np.where(is_replaced, after, before)

        _, p_target = ask_variants(classifier, result, replace, self.n_steps + 1)
        trapezoids = p_target[:, 1:] + p_target[:, :-1]
        area = trapezoids.mean(axis=1) / 2
        has_no_map = np.isnan(importance).any(axis=1)
        return np.where(has_no_map, np.nan, area)


class PerturbationAUC(_Replacement):
    """Mean P(c) as the changed values of x are replaced by those of x', most important first.

    The area under the curve over the share replaced, in 20 steps; importance is the map in the
    result's `info`. Where a method copies a guide, these are the guide's values. The map is
    faithful where this lies above `perturbation_auc_reversed`. NaN where a row has no map.
    """

    name = "perturbation_auc"
    direction = "max"
    sign = -1


class PerturbationAUCReversed(_Replacement):
    """As `perturbation_auc`, least important first; less is better.

    A small area says that the values of little importance were not needed.
    """

    name = "perturbation_auc_reversed"
    direction = "min"
    sign = 1


BEHAVIOR: tuple[type[Metric], ...] = (Controllability, PerturbationAUC, PerturbationAUCReversed)


def _rank(keys: Array) -> Array:
    """Return the rank of every key along the last axis, from 0; the first of equal keys is less."""
    order = keys.argsort(axis=-1, kind="stable")
    return np.asarray(order.argsort(axis=-1))


def _importance(result: Counterfactuals) -> Array:
    """Return the importance map, (n, d); a map over time serves all channels."""
    name = "saliency" if "saliency" in result.info else "importance"
    values = result.info[name].astype(float)
    n, *map_shape = values.shape
    shape = instance_shape(result)
    missing_axes = [1] * (len(shape) - len(map_shape))
    values = values.reshape(n, *missing_axes, *map_shape)
    whole = np.broadcast_to(values, (len(result), *shape))
    return whole.reshape(len(result), int(np.prod(shape)))
