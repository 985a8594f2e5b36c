"""The metrics of the page: which ones, what they are called there, and how they are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..engine.result import Counterfactuals
from ..metrics import Reference, aggregate, evaluate, list_metrics
from .captions import PLACES
from .grammar import plural
from .words import MISSING, number_text, over_instances, percent_text, probability_text


@dataclass(frozen=True)
class PageMetric:
    """A metric as the page shows it.

    Parameters
    ----------
    name : str
        Name of the metric in `contrafact.metrics`.
    text : function of float to str
        How a value is written.
    label : str, optional
        What the page calls it, where it has another name in the sentences of the page.
    for_instances : bool, default=True
        Whether it is listed for each instance; not where the page shows the same value already.
    """

    name: str
    text: Callable[[float], str]
    label: str = ""
    for_instances: bool = True


PAGE_METRICS = (
    PageMetric(
        "valid",
        percent_text,
        for_instances=False,
    ),
    PageMetric(
        "target_confidence",
        probability_text,
        label="P(target)",
        for_instances=False,
    ),
    PageMetric(
        "sparsity",
        percent_text,
        label="changed",
    ),
    PageMetric("visible_change", percent_text, label="changed visibly"),
    PageMetric("segments", number_text),
    PageMetric("l2", number_text),
    PageMetric("linf", number_text),
    PageMetric("lof", number_text),
    PageMetric("knn_distance", number_text),
    PageMetric(
        "calls",
        number_text,
        label="model rows",
    ),
    PageMetric("seconds", number_text),
)


@dataclass(frozen=True)
class MethodMeans:
    """Means of the metrics over the instances of one method's result.

    Parameters
    ----------
    mean : dict of str to float
        By the name of the metric; counterfactuals of one instance are averaged first.
    direction : dict of str to str
        By the name of the metric: "min" where less is better, "max" where more is.
    over : str
        Over how many instances, and how many of them were already in the target class.
    """

    mean: dict[str, float]
    direction: dict[str, str]
    over: str


def page_scores(result: Counterfactuals, known: Reference | None) -> pd.DataFrame:
    """Compute the metrics of the page for every row.

    Parameters
    ----------
    result : Counterfactuals
        The result.
    known : Reference or None
        Reference data; metrics that need some are left out without it.

    Returns
    -------
    DataFrame
        One row per counterfactual, a column for each metric.
    """
    metrics = list_metrics().set_index("name").loc[[metric.name for metric in PAGE_METRICS]]
    fits = metrics["modalities"].str.contains(result.modality)
    possible = fits & ((metrics["needs"] == "") | (known is not None))
    return evaluate(result, list(metrics.index[possible]), known)


def shown_metrics(scores: pd.DataFrame) -> list[PageMetric]:
    """Return the metrics of the page that were computed."""
    return [metric for metric in PAGE_METRICS if metric.name in scores]


def method_means(result: Counterfactuals, scores: pd.DataFrame) -> MethodMeans:
    """Average the metrics of one method over its instances, failed ones included.

    Parameters
    ----------
    result : Counterfactuals
        The result, with at least one row.
    scores : DataFrame
        Its scores, as `page_scores` gives them.

    Returns
    -------
    MethodMeans
        The means, and what they are over.
    """
    table = aggregate(scores, n_resamples=1)
    already = result.status == "already_target"
    return MethodMeans(
        mean={str(name): float(value) for name, value in table["mean"].items()},
        direction={str(name): str(value) for name, value in table["direction"].items()},
        over=over_instances(
            len(np.unique(result.source)),
            len(np.unique(result.source[already])),
        ),
    )


def metric_label(metric: PageMetric, kind: str) -> str:
    """Return what the page calls a metric.

    Parameters
    ----------
    metric : PageMetric
        The metric.
    kind : str
        Of the data: the places of change are stretches, regions, features or columns.

    Returns
    -------
    str
        As in "changed".
    """
    if metric.name == "segments":
        return f"{plural(PLACES[kind])} changed"
    return metric.label or metric.name


def metric_definitions() -> dict[str, str]:
    """Return the definition of every metric of the page, which begins with its name."""
    meaning = list_metrics().set_index("name")["meaning"]
    return {
        metric.name: f"{metric.name}: {meaning[metric.name]}".replace("NaN", MISSING)
        for metric in PAGE_METRICS
    }
