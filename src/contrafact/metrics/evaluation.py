"""Metrics by name, and a table of their scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..engine.result import Counterfactuals
from .base import NEEDS, Metric, is_labelled
from .basic import BASIC

METRICS: dict[str, type[Metric]] = {metric.name: metric for metric in BASIC}


def evaluate(
    result: Counterfactuals,
    metrics: str | Metric | Sequence[str | Metric] | None = None,
    reference: Any = None,
) -> pd.DataFrame:
    """Score every counterfactual, failures included.

    Parameters
    ----------
    metrics : names or `Metric` instances; None for all whose needs are met.
    reference : rows to compare with, `X` or `(X, y)`.

    Returns
    -------
    One row per counterfactual, in order: `source`, `status`, then a column for each metric.
    """
    available = _available(reference)
    if metrics is None:
        chosen = [kind() for kind in METRICS.values() if kind.needs <= available]
    else:
        asked = [metrics] if isinstance(metrics, str | Metric) else metrics
        chosen = [_metric(metric) for metric in asked]
    columns: dict[str, Any] = {"source": result.source, "status": result.status}
    for metric in chosen:
        if metric.name in columns:
            raise ValueError(f"Two columns would be called {metric.name!r}; ask for it once.")
        missing = metric.needs - available
        if missing:
            hints = " and ".join(NEEDS.get(need, need) for need in sorted(missing - {"reference"} or missing))
            raise ValueError(f"The metric {metric.name!r} needs more than the result: pass {hints}.")
        columns[metric.name] = _scores(metric, result, reference)
    return pd.DataFrame(columns)


def list_metrics() -> pd.DataFrame:
    """Every metric by name: its direction, what it needs, what it means."""
    return pd.DataFrame(
        {
            "name": name,
            "direction": kind.direction,
            "needs": ", ".join(sorted(kind.needs)),
            "meaning": (kind.__doc__ or "").strip().partition("\n")[0],
        }
        for name, kind in METRICS.items()
    )


def _available(reference: Any) -> frozenset[str]:
    if reference is None:
        return frozenset()
    return frozenset({"reference", "labels"} if is_labelled(reference) else {"reference"})


def _metric(metric: str | Metric) -> Metric:
    if isinstance(metric, Metric):
        return metric
    if not isinstance(metric, str):
        raise TypeError(f"A metric is a name or an instance of Metric, got {metric!r}.")
    if metric not in METRICS:
        raise ValueError(f"The metric {metric!r} is unknown. Known: {', '.join(METRICS)}.")
    return METRICS[metric]()


def _scores(metric: Metric, result: Counterfactuals, reference: Any) -> np.ndarray[Any, Any]:
    scores = np.asarray(metric.compute(result, reference), dtype=float)
    if scores.shape != (len(result),):
        raise ValueError(
            f"The metric {metric.name!r} gave shape {scores.shape} for {len(result)} counterfactuals. "
            "Accepted: one number for each."
        )
    return scores
