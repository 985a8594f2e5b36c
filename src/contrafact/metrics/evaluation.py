"""The metrics by name, and the function that computes them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..deprecation import warn_renamed
from ..engine.result import Counterfactuals
from ..models.classifier import Array
from ..validation import Instance, brief, check_parameters
from .behavior import BEHAVIOR
from .counterfactual_sets import SETS
from .distance import DISTANCE
from .economy import ECONOMY
from .inputs import MetricInputs
from .metric import Metric
from .plausibility import PLAUSIBILITY
from .realism import REALISM
from .reference import Reference
from .scores import OTHER_COLUMNS, Scores
from .stability import STABILITY
from .validity import COST, VALIDITY

METRICS: dict[str, type[Metric]] = {
    metric.name: metric
    for dimension in (
        VALIDITY,
        DISTANCE,
        ECONOMY,
        PLAUSIBILITY,
        REALISM,
        SETS,
        BEHAVIOR,
        STABILITY,
        COST,
    )
    for metric in dimension
}

#: names that were changed; the old ones work for one more version
RENAMED = {"noise_validity": "noise_survival"}


def evaluate(
    result: Counterfactuals,
    metrics: str | Metric | Sequence[str | Metric] | None = None,
    reference: Any = None,
    *,
    model: Any = None,
    explainer: Any = None,
    other_model: Any = None,
    other_models: Sequence[Any] = (),
    autoencoder: Any = None,
) -> Scores:
    """Score every counterfactual, failures included.

    Parameters
    ----------
    result : Counterfactuals
        n counterfactuals.
    metrics : str, Metric or sequence of these, optional
        Names or `Metric` instances. Default: all that can be computed with what is passed. Metrics
        that ask a model or an explainer again take their time.
    reference : array, tuple (X, y), Dataset or Reference, optional
        Rows to compare with, of the shape of the instances. Of a Dataset, the training part is
        taken; a `Reference` can be shared by several results.
    model : object, optional
        The model that was explained; default: the explainer's.
    explainer : object, optional
        The fitted explainer.
    other_model : object, optional
        A model for the same classes that was trained independently.
    other_models : sequence of object, default=()
        Models for the same classes, for instance the same one trained again with other seeds.
    autoencoder : Autoencoder or str, optional
        A fitted Autoencoder, or the name of one to fit to the reference.

    Returns
    -------
    Scores of n rows
        A DataFrame with one row per counterfactual, in order: `source`, `status`, then a column of
        floats for each metric. Its `metrics` are their definitions, its `left_out` says why a
        metric was not computed.

    Raises
    ------
    ValueError
        Where a metric that was asked for is unknown or can't be computed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> import contrafact as cf
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=500).fit(X, y)
    >>> result = cf.NearestUnlike().fit(model, X, y).explain(X[:5], target=1)
    >>> scores = evaluate(result, reference=(X, y), model=model)
    >>> scores["valid"].tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    >>> scores.left_out["dtw"]
    'is for series data; this result holds row data'
    """
    check_parameters("evaluate", {"result": Instance(Counterfactuals)}, {"result": result})
    known = None if reference is None else Reference.read(reference, result)
    inputs = MetricInputs(
        known, model, explainer, other_model, autoencoder, other_models=other_models
    )
    if metrics is None:
        chosen, left_out = _all_possible(result, inputs)
    else:
        chosen = _asked_for(metrics, result, inputs)
        left_out = {}
    columns: dict[str, Any] = {"source": result.source, "status": result.status}
    for metric in chosen:
        columns[metric.name] = _compute(metric, result, inputs)
    return Scores.from_columns(columns, chosen, left_out)


def list_metrics() -> pd.DataFrame:
    """List every metric by name.

    Returns
    -------
    DataFrame
        One row per metric: `name`, `direction`, `needs` (what it takes besides the result),
        `modalities` (the data it is for), `meaning` (its definition in one line).

    Examples
    --------
    >>> list_metrics().set_index("name").loc["l1", "meaning"]
    "Σ |x' − x|."
    """
    return pd.DataFrame(
        {
            "name": name,
            "direction": kind.direction,
            "needs": ", ".join(sorted(kind.needs)),
            "modalities": ", ".join(kind.modalities),
            "meaning": (kind.__doc__ or "").strip().partition("\n")[0],
        }
        for name, kind in METRICS.items()
    )


def _all_possible(
    result: Counterfactuals, inputs: MetricInputs
) -> tuple[list[Metric], dict[str, str]]:
    """Return the metrics that can be computed, and why the others can't."""
    possible = []
    left_out = {}
    for kind in METRICS.values():
        metric = kind()
        reason = metric.lacks(result, inputs)
        if reason:
            left_out[metric.name] = reason
        else:
            possible.append(metric)
    return possible, left_out


def _asked_for(
    metrics: str | Metric | Sequence[str | Metric],
    result: Counterfactuals,
    inputs: MetricInputs,
) -> list[Metric]:
    """Return the metrics that were asked for; raise where one can't be computed."""
    asked = [metrics] if isinstance(metrics, str | Metric) else metrics
    if not isinstance(asked, Sequence):
        raise TypeError(
            f"metrics must be names or instances of Metric, one or several; got {brief(metrics)}."
        )
    chosen: list[Metric] = []
    taken = set()
    for metric in map(_as_metric, asked):
        if metric.name in taken:
            raise ValueError(f"Two columns would be called {metric.name!r}; ask for it once.")
        if metric.name in OTHER_COLUMNS:
            raise ValueError(
                f"A metric can't be called {metric.name!r}: tables of results have a column of "
                f"that name. Reserved: {', '.join(sorted(OTHER_COLUMNS))}."
            )
        reason = metric.lacks(result, inputs)
        if reason:
            raise ValueError(f"The metric {metric.name!r} {reason}.")
        chosen.append(metric)
        taken.add(metric.name)
    return chosen


def _as_metric(metric: str | Metric) -> Metric:
    """Return a metric itself, or the one of a name."""
    if isinstance(metric, Metric):
        return metric
    if not isinstance(metric, str):
        raise TypeError(
            f"metrics must be names or instances of Metric, one or several; got {brief(metric)}."
        )
    if metric in RENAMED:
        warn_renamed(f"The metric {metric!r}", repr(RENAMED[metric]), stacklevel=5)
        metric = RENAMED[metric]
    if metric not in METRICS:
        raise ValueError(f"The metric {metric!r} is unknown. {_suggestion(metric)}")
    return METRICS[metric]()


def _suggestion(name: str) -> str:
    """Name the metrics that are called alike, or all."""
    close = difflib.get_close_matches(name.lower(), METRICS)
    if close:
        return f"Did you mean {' or '.join(map(repr, close))}? metrics takes names of list_metrics."
    return f"Known: {', '.join(METRICS)}; metrics takes these names."


def _compute(
    metric: Metric,
    result: Counterfactuals,
    inputs: MetricInputs,
) -> Array:
    """Compute one column; raise where it does not have one number per counterfactual."""
    scores = np.asarray(metric.compute(result, inputs), dtype=float)
    if scores.shape != (len(result),):
        raise ValueError(
            f"The metric {metric.name!r} gave shape {scores.shape} for {len(result)} "
            "counterfactuals. Accepted: one number for each."
        )
    return scores
