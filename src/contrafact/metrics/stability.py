"""Stability: whether the answer holds when input, counterfactual or model differ slightly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from ..engine.result import Counterfactuals, as_numpy
from ..models.classifier import Array
from ..numerics.randomness import row_normal, row_seeds
from ..validation import Real, Rule, check_parameters
from .inputs import MetricInputs, ask_variants, classifier_of
from .metric import Metric, flat_arrays, flat_values
from .table_rows import noisy_rows


class Lipschitz(Metric):
    """Largest ‖E(x + ε) − E(x)‖ / ‖ε‖ of 3 draws ε, E the explainer asked for class c again.

    ε is normal, a hundredth of the reference's spread. E is asked with this result's `refine` and
    `confidence`, for one counterfactual, without constraints or budget. NaN where the reference
    does not vary.
    """

    name = "lipschitz"
    direction = "min"
    needs = frozenset({"explainer", "reference"})
    tables = False  # between the rows of a table there are no small steps
    noise = 0.01
    n_draws = 3

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        x, _ = flat_arrays(result)
        n, d = x.shape
        n_asked = self.n_draws + 1  # the instance itself, and the draws around it
        spread = inputs.require_reference().spread(result)
        noise = self.noise * spread * _draw_normal(x, self.n_draws)
        center = x[:, None]
        asked = np.concatenate([center, center + noise], axis=1)  # (n, asked, d)

        options = result.provenance.get("options", {})
        again = inputs.explainer.explain(
            asked.reshape(n * n_asked, *result.X.shape[1:]),
            np.repeat(result.target, n_asked),
            refine=options.get("refine", False),
            confidence=options.get("confidence"),
            random_state=result.provenance.get("seed"),
        )
        answers = as_numpy(again.X_cf).reshape(n, n_asked, d)
        step = _distance_to_first(asked)
        answer_step = _distance_to_first(answers)
        undefined = np.full(step.shape, np.nan)
        ratio = np.divide(answer_step, step, out=undefined, where=step > 0)
        return np.asarray(ratio.max(axis=1))


class NoiseSurvival(Metric):
    """Share of 20 draws ε for which the model says c of x' + ε.

    ε is normal, `sigma` times the reference's standard deviation (of a feature, or of a channel's
    values), a twentieth by default. The draws depend on x' alone. In a table the numbers are moved,
    to the nearest row that the schema allows.

    Parameters
    ----------
    sigma : float, default=0.05
        Size of the noise, in units of the reference's standard deviation.

    Examples
    --------
    >>> import contrafact as cf
    >>> result = cf.NearestUnlike().fit(model, X_train, y_train).explain(X_test[:5])
    >>> scores = result.evaluate([NoiseSurvival(sigma=0.01)], X_train, model=model)
    >>> bool(scores["noise_survival"].between(0, 1).all())
    True
    """

    name = "noise_survival"
    direction = "max"
    needs = frozenset({"model", "reference"})
    n_draws = 20

    rules: ClassVar[Mapping[str, Rule]] = {"sigma": Real(above=0)}

    def __init__(self, sigma: float = 0.05) -> None:
        check_parameters(type(self).__name__, self.rules, {"sigma": sigma})
        self.sigma = sigma

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        classifier = classifier_of(inputs.model, "model", result)
        _, x_cf = flat_values(result)
        scale = self.sigma * inputs.require_reference().spread(result)
        table = result.table

        def add_noise(rows: Array) -> Array:
            center = x_cf[rows]
            noise = scale * _draw_normal(center, self.n_draws)
            if table is not None:
                return noisy_rows(table, center, noise)
            return center[:, None] + noise

        labels, _ = ask_variants(classifier, result, add_noise, self.n_draws)
        is_target = labels == result.target[:, None]
        return np.asarray(is_target.mean(axis=1))


class TransferValidity(Metric):
    """1 where an independently trained model says c of x', else 0.

    Adversarial noise fools the model that it was made for; a change that explains the class holds
    for other models too.
    """

    name = "transfer_validity"
    direction = "max"
    needs = frozenset({"other_model"})

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        return _says_target(inputs.other_model, "other_model", result)


class Survival(Metric):
    """Share of other models that say c of x'.

    With models of the same kind, trained again with other seeds or on bootstrap samples: how likely
    the answer is to outlive the next training. With models of other kinds: whether it is a property
    of the data rather than of one model.
    """

    name = "survival"
    direction = "max"
    needs = frozenset({"other_models"})

    @override
    def compute(self, result: Counterfactuals, inputs: MetricInputs) -> Array:
        votes = [
            _says_target(model, f"other_models[{position}]", result)
            for position, model in enumerate(inputs.other_models)
        ]
        return np.asarray(np.mean(votes, axis=0))


STABILITY: tuple[type[Metric], ...] = (Lipschitz, NoiseSurvival, TransferValidity, Survival)


def _says_target(model: Any, name: str, result: Counterfactuals) -> Array:
    """Return 1 where a model says c of x', else 0; `name` is the argument it was passed as."""
    classifier = classifier_of(model, name, result)
    _, x_cf = flat_values(result)

    def unchanged(rows: Array) -> Array:
        return x_cf[rows, None]

    labels, _ = ask_variants(classifier, result, unchanged, 1)
    return np.asarray(labels[:, 0] == result.target, dtype=float)


def _draw_normal(x: Array, count: int) -> Array:
    """Draw normal numbers (n, count, d) that depend on each row alone, wherever it stands."""
    n, d = x.shape
    seeds = row_seeds(x, 0)
    return row_normal(seeds, count * d).reshape(n, count, d)


def _distance_to_first(points: Array) -> Array:
    """Return the distance of every point but the first to the first; (n, m + 1, d) to (n, m)."""
    difference = points[:, 1:] - points[:, :1]
    return np.asarray(np.linalg.norm(difference, axis=2))
