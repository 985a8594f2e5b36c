"""Trials of a few methods on a handful of rows, by a softmax bandit."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.ndimage import label

from ..engine import Budget, Constraints, Counterfactuals
from ..engine.instances import Modality
from ..engine.result import as_numpy
from ..models.classifier import Array
from .support.explainer import Explainer

#: how much better a method has to do to be tried e times as often
TEMPERATURE = 0.1
#: trials, on average, of a method
TRIALS_PER_METHOD = 4
#: model rows that one trial may take
CALLS_PER_TRIAL = 2_000
#: model rows that the metric `noise_survival` takes at most: 20 draws, and some models are asked
#: twice about a row, for the class and for the probabilities
NOISE_CALLS = 40
#: model rows below which no further trial is begun
LEAST_CALLS = 20 + NOISE_CALLS


@dataclass(frozen=True)
class Trial:
    """Hold what one method did with one row.

    Attributes
    ----------
    method : str
        Its name.
    row : int
        Position of the instance.
    valid : bool
        Whether the class was reached; the reward is 0 where not.
    change : float
        Share of the values that changed.
    stretches : int
        Separate places that changed: runs along time, regions of an image, or columns.
    survival : float
        Share of draws of noise, 5 % of the reference's standard deviation, that leave the class as
        it is.
    calls : int
        Model rows asked for by the method.
    reward : float
        The weighted mean of 1 − change, 1 / stretches and survival.
    """

    method: str
    row: int
    valid: bool
    change: float
    stretches: int
    survival: float
    calls: int
    reward: float


def try_methods(
    methods: Sequence[Explainer],
    model: Any,
    reference: tuple[Any, Any],
    instances: Any,
    weights: Mapping[str, float],
    *,
    modality: Modality,
    constraints: Constraints | None = None,
    budget: Budget | None = None,
    random_state: int = 0,
) -> list[Trial]:
    """Try methods on rows: each once, then those that did well more often.

    The next method is drawn with probability ∝ exp(mean reward / 0.1), and goes on with its next
    row; all go through the rows in the same order.

    Parameters
    ----------
    methods : sequence of Explainer
        The methods, not fitted; each is fitted when it is tried first.
    model : object
        The trained model.
    reference : tuple of X and y
        What to fit them to.
    instances : array of shape (n, ...) or data frame
        The rows to try them on.
    weights : mapping of str to float
        Weights of "change", "stretches" and "survival".
    modality : {"series", "image", "row"}
        The kind of data.
    constraints : Constraints, optional
        Limits that the counterfactuals have to keep.
    budget : Budget, optional
        Limits of all trials together, noise included; to fit a method comes on top of the calls.
        Default: 20 seconds.
    random_state : int, default=0
        Seed of the draws.

    Returns
    -------
    list of Trial
        In the order in which they were made; at least one of each method within the budget.
    """
    limit = Budget(seconds=20.0) if budget is None else budget
    left = math.inf if limit.calls is None else float(limit.calls)
    end = math.inf if limit.seconds is None else time.perf_counter() + limit.seconds
    rng = np.random.RandomState(random_state % 2**32)
    trials: list[Trial] = []
    tried: list[list[Trial]] = [[] for _ in methods]
    most = min(TRIALS_PER_METHOD, len(instances)) * len(methods)
    while len(trials) < most and left >= LEAST_CALLS and time.perf_counter() < end:
        arm = _next_arm(tried, len(instances), rng)
        method = methods[arm]
        if not tried[arm]:
            method.fit(model, *reference, modality=modality)
        row = len(tried[arm])
        here = Budget(
            calls=int(min(CALLS_PER_TRIAL, left - NOISE_CALLS)),
            seconds=None if end == math.inf else max(end - time.perf_counter(), 1e-3),
        )
        one = take_rows(instances, [row])
        result = method.explain(one, constraints=constraints, budget=here)
        trial = _judge(method, result, row, weights, reference[0], model)
        left -= trial.calls + (NOISE_CALLS if trial.valid else 0)
        tried[arm].append(trial)
        trials.append(trial)
    return trials


def _next_arm(tried: list[list[Trial]], n_rows: int, rng: np.random.RandomState) -> int:
    """Choose a method: first one that was not tried, then by the softmax of the mean rewards."""
    fresh = [arm for arm, trials in enumerate(tried) if not trials]
    if fresh:
        return fresh[0]
    open_ = [arm for arm, trials in enumerate(tried) if len(trials) < n_rows]
    mean = np.array([np.mean([trial.reward for trial in tried[arm]]) for arm in open_])
    chance = np.exp((mean - mean.max()) / TEMPERATURE)
    return int(rng.choice(open_, p=chance / chance.sum()))


def _judge(
    method: Explainer,
    result: Counterfactuals,
    row: int,
    weights: Mapping[str, float],
    X: Any,
    model: Any,
) -> Trial:
    """Measure the first counterfactual of a row."""
    change = float(result.changed_fraction[0])
    stretches = _count_stretches(as_numpy(result.changed)[0], method)
    valid = bool(result.valid[0])
    survival = 0.0
    if valid:
        scores = result.evaluate(["noise_survival"], X, model=model)
        survival = float(scores["noise_survival"].iloc[0])
    parts = {
        "change": 1 - change,
        "stretches": 1 / max(1, stretches),
        "survival": survival,
    }
    total = sum(weights.values())
    reward = sum(weight * parts[name] for name, weight in weights.items()) / total
    return Trial(
        method=type(method).__name__,
        row=row,
        valid=valid,
        change=change,
        stretches=stretches,
        survival=survival,
        calls=int(result.calls.sum()),
        reward=reward if valid else 0.0,
    )


def _count_stretches(changed: Array, method: Explainer) -> int:
    """Count runs along time in all channels, connected regions of an image, or columns."""
    if method.modality_ == "row":
        return int(changed.sum())
    changed = changed.reshape(method.shape_)
    if method.modality_ == "image":
        return int(label(changed.any(axis=0))[1])
    return sum(int(label(channel)[1]) for channel in changed)


def take_rows(X: Any, rows: Sequence[int] | Array) -> Any:
    """Return some rows of an array, or of a data frame of pandas or polars."""
    return getattr(X, "iloc", X)[rows]
