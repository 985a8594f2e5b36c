"""Stability: does the answer hold when the input, the counterfactual or the model is a little other?"""

from __future__ import annotations

import numpy as np

from ..engine.result import Counterfactuals
from ..models.classifier import Array
from ..numerics.randomness import row_normal, row_seeds
from .inputs import MetricInputs, ask, classifier_of
from .metric import Metric, as_array, flat


class Lipschitz(Metric):
    """Largest ‖E(x + ε) − E(x)‖ / ‖ε‖ of 3 draws ε, E the explainer asked for class c again.

    ε is normal, a hundredth of the reference's spread. E is asked with this result's `refine` and
    `confidence`, for one counterfactual, without constraints or budget. NaN where the reference does not
    vary.
    """

    name, direction, needs = "lipschitz", "min", frozenset({"explainer", "reference"})
    noise = 0.01
    n_draws = 3

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        x, _ = flat(result)
        n, m = len(x), self.n_draws + 1
        noise = self.noise * given.known().spread(result) * _draws(x, self.n_draws)
        inputs = np.concatenate([x[:, None], x[:, None] + noise], axis=1)
        options = result.provenance.get("options", {})
        again = given.explainer.explain(
            inputs.reshape(n * m, *result.X.shape[1:]),
            np.repeat(result.target, m),
            refine=options.get("refine", False),
            confidence=options.get("confidence"),
            random_state=result.provenance.get("seed"),
        )
        x_cf = as_array(again.X_cf).reshape(n, m, x.shape[1])
        step, answer = (
            np.linalg.norm(part[:, 1:] - part[:, :1], axis=2) for part in (inputs, x_cf)
        )
        return np.asarray(
            np.divide(answer, step, out=np.full(step.shape, np.nan), where=step > 0).max(1)
        )


class NoiseValidity(Metric):
    """Share of 20 draws ε for which the model says c of x' + ε.

    ε is normal, a twentieth of the reference's spread (of a feature, or of a channel's values).
    """

    name, direction, needs = "noise_validity", "max", frozenset({"model", "reference"})
    noise = 0.05
    n_draws = 20

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        classifier = classifier_of(given.model, "model", result)
        _, x_cf = flat(result)
        scale = self.noise * given.known().spread(result)

        def noisy(rows: Array) -> Array:
            return x_cf[rows, None] + scale * _draws(x_cf[rows], self.n_draws)

        labels, _ = ask(classifier, result, noisy, self.n_draws)
        return np.asarray((labels == result.target[:, None]).mean(1))


class TransferValidity(Metric):
    """1 where an independently trained model says c of x', else 0.

    Adversarial noise fools the one model it was made for; a change that explains holds for others too.
    """

    name, direction, needs = "transfer_validity", "max", frozenset({"other_model"})

    def compute(self, result: Counterfactuals, given: MetricInputs) -> Array:
        classifier = classifier_of(given.other_model, "other_model", result)
        _, x_cf = flat(result)
        labels, _ = ask(classifier, result, lambda rows: x_cf[rows, None], 1)
        return np.asarray(labels[:, 0] == result.target, dtype=float)


STABILITY: tuple[type[Metric], ...] = (Lipschitz, NoiseValidity, TransferValidity)


def _draws(x: Array, count: int) -> Array:
    """Normal numbers (n, count, d) that belong to the rows: the same wherever a row stands."""
    return row_normal(row_seeds(x, 0), count * x.shape[1]).reshape(len(x), count, x.shape[1])
