"""Metrics by name, and a table of their scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..engine.result import Counterfactuals
from ..models.classifier import Array
from .behavior import BEHAVIOR
from .counterfactual_sets import SETS
from .distance import DISTANCE
from .economy import ECONOMY
from .inputs import MetricInputs, Reference
from .metric import Metric
from .plausibility import PLAUSIBILITY
from .stability import STABILITY
from .validity import COST, VALIDITY

METRICS: dict[str, type[Metric]] = {
    metric.name: metric
    for dimension in (VALIDITY, DISTANCE, ECONOMY, PLAUSIBILITY, SETS, BEHAVIOR, STABILITY, COST)
    for metric in dimension
}


def evaluate(
    result: Counterfactuals,
    metrics: str | Metric | Sequence[str | Metric] | None = None,
    reference: Any = None,
    *,
    model: Any = None,
    explainer: Any = None,
    other_model: Any = None,
    autoencoder: Any = None,
) -> pd.DataFrame:
    """Score every counterfactual, failures included.

    Parameters
    ----------
    metrics : names or `Metric` instances; None for all that can be computed with what is given. Metrics that
        ask a model or an explainer again take their time.
    reference : rows to compare with: `X`, `(X, y)`, a Dataset (its training part), or a `Reference`, which
        several results can share.
    model : the model that was explained; default: the explainer's.
    explainer : the fitted explainer.
    other_model : a model for the same classes that was trained independently.
    autoencoder : a fitted Autoencoder, or the name of one to fit to the reference.

    Returns
    -------
    One row per counterfactual, in order: `source`, `status`, then a column for each metric. Its `attrs` tell:
    "direction", whether less ("min") or more ("max") of a metric is better; "left_out", why a metric was not
    computed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> import contrafact as cf
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=500).fit(X, y)
    >>> result = cf.NearestUnlike().fit(model, X, y).explain(X[:5], target=1)
    >>> frame = evaluate(result, reference=(X, y), model=model)
    >>> frame["valid"].tolist(), frame.attrs["left_out"]["dtw"]
    ([1.0, 1.0, 1.0, 1.0, 1.0], 'is for series data; this result holds row data')
    """
    known = None if reference is None else Reference.read(reference, result)
    given = MetricInputs(known, model, explainer, other_model, autoencoder)
    chosen, left_out = _choose(metrics, result, given)
    columns: dict[str, Any] = {"source": result.source, "status": result.status}
    for metric in chosen:
        if metric.name in columns:
            raise ValueError(f"Two columns would be called {metric.name!r}; ask for it once.")
        columns[metric.name] = _scores(metric, result, given)
    frame = pd.DataFrame(columns)
    frame.attrs = {
        "direction": {metric.name: metric.direction for metric in chosen},
        "left_out": left_out,
    }
    return frame


def list_metrics() -> pd.DataFrame:
    """Every metric by name: its direction, what it needs, the data it is for, what it means."""
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


def _choose(
    metrics: str | Metric | Sequence[str | Metric] | None,
    result: Counterfactuals,
    given: MetricInputs,
) -> tuple[list[Metric], dict[str, str]]:
    """The metrics to compute, and why others are left out; one that was asked for is never left out."""
    if metrics is None:
        every = [kind() for kind in METRICS.values()]
        left_out = {metric.name: metric.lacks(result, given) for metric in every}
        left_out = {name: reason for name, reason in left_out.items() if reason}
        return [metric for metric in every if metric.name not in left_out], left_out
    asked = [metrics] if isinstance(metrics, str | Metric) else metrics
    chosen = [_metric(metric) for metric in asked]
    for metric in chosen:
        reason = metric.lacks(result, given)
        if reason:
            raise ValueError(f"The metric {metric.name!r} {reason}.")
    return chosen, {}


def _metric(metric: str | Metric) -> Metric:
    if isinstance(metric, Metric):
        return metric
    if not isinstance(metric, str):
        raise TypeError(f"A metric is a name or an instance of Metric, got {metric!r}.")
    if metric not in METRICS:
        raise ValueError(f"The metric {metric!r} is unknown. Known: {', '.join(METRICS)}.")
    return METRICS[metric]()


def _scores(metric: Metric, result: Counterfactuals, given: MetricInputs) -> Array:
    scores = np.asarray(metric.compute(result, given), dtype=float)
    if scores.shape != (len(result),):
        raise ValueError(
            f"The metric {metric.name!r} gave shape {scores.shape} for {len(result)} counterfactuals. "
            "Accepted: one number for each."
        )
    return scores
