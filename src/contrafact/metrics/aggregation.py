"""From scores per counterfactual to one line per metric, over all requests."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..models.classifier import Array
from ..validation import Instance, Integer, brief, check_parameters
from .evaluation import METRICS, RENAMED
from .metric import Metric
from .scores import OTHER_COLUMNS, Scores

#: resampling counts held at once, which bounds memory
MAX_ELEMENTS = 2**23

_RULES = {
    "frame": Instance(pd.DataFrame, "a DataFrame of scores"),
    "n_resamples": Integer(at_least=1, at_most=10**7),
    "random_state": Integer(at_least=0),
}


def aggregate(
    frame: pd.DataFrame,
    by: str | Sequence[str] = (),
    *,
    request: str | Sequence[str] = "source",
    metrics: Metric | Sequence[Metric] = (),
    n_resamples: int = 2000,
    random_state: int = 0,
) -> pd.DataFrame:
    """Compute the mean of every metric over all requests, with coverage and a bootstrap interval.

    A request is one instance explained: its counterfactuals are averaged first, so each request
    weighs the same. Every request counts:

    - one that failed, with its best attempt;
    - one that was in its target class from the start (status `already_target`), with its change of
      zero; `n_already` says how many these are;
    - one without a value (NaN) lowers the coverage.

    Requests are resampled, so counterfactuals of one instance stay together.

    Every column with numbers has to be accounted for, so that no score is dropped silently: it is a
    metric, or in `by` or `request`, or one of the other columns that `evaluate`,
    `Counterfactuals.to_frame` and benchmark tables have. Other columns are labels, and are ignored
    where they hold no numbers.

    Parameters
    ----------
    frame : Scores or DataFrame
        Scores as `evaluate` returns them; several may be joined, with columns that tell them apart.
    by : str or sequence of str, default=()
        Columns to aggregate within, e.g. "method".
    request : str or sequence of str, default="source"
        Columns that tell one request from another within a group, e.g. ["dataset", "source"].
    metrics : Metric or sequence of Metric, default=()
        Definitions of metrics that the frame does not know. Needed for metrics of one's own where
        the frame was read from a file; a `Scores` object knows those that it was made with.
    n_resamples : int, default=2000
        Number of bootstrap samples.
    random_state : int, default=0
        Seed of the bootstrap.

    Returns
    -------
    DataFrame
        Indexed by `by` and "metric": `direction`, `mean` (of a metric of 0 and 1: the rate), `low`
        and `high` of the 95 % interval, `coverage` (share of requests that have a value), `n`
        (requests), `n_already` (requests among these that were in their target class from the
        start; missing where the frame has no column `status`).

    Raises
    ------
    ValueError
        Where a column is missing, given twice, or holds numbers and is not accounted for.

    References
    ----------
    Efron: Bootstrap methods: another look at the jackknife. Annals of Statistics 7, 1979.
    https://doi.org/10.1214/aos/1176344552

    Examples
    --------
    >>> frame = pd.DataFrame({"source": [0, 1, 2, 3], "valid": [1.0, 1.0, 0.0, 1.0]})
    >>> frame["status"] = ["valid", "already_target", "invalid", "valid"]
    >>> table = aggregate(frame)
    >>> table.loc["valid", ["direction", "mean", "coverage", "n", "n_already"]].tolist()
    ['max', 0.75, 1.0, 4, 1]
    """
    options = {"frame": frame, "n_resamples": n_resamples, "random_state": random_state}
    check_parameters("aggregate", _RULES, options)
    for name, columns in (("by", by), ("request", request)):
        if not isinstance(columns, str | Sequence):
            raise TypeError(f"{name} must be a column or a list of them, got {brief(columns)}.")
    by = [by] if isinstance(by, str) else list(by)
    request = [request] if isinstance(request, str) else list(request)
    if not request:
        raise ValueError("request must name at least one column, got none.")
    _check_columns(frame, "by", by)
    _check_columns(frame, "request", request)
    if by and frame.empty:
        raise ValueError("The frame has no rows, so there is nothing to aggregate by.")
    directions = _directions(frame, [*by, *request], metrics)
    names = list(directions)
    # A table read from a file may hold True, False and None.
    table = pd.DataFrame(frame).astype(dict.fromkeys(names, float))
    groups: Any = [((), table)]
    if by:
        groups = table.groupby(by, sort=False, dropna=False)
    parts = []
    for key, group in groups:
        part = _aggregate_group(group, request, names, n_resamples, random_state)
        part.insert(1, "direction", list(directions.values()))
        for position, (column, value) in enumerate(zip(by, key, strict=True)):
            part.insert(position, column, value)
        parts.append(part)
    whole = pd.concat(parts, ignore_index=True)
    return whole.set_index([*by, "metric"])


def _aggregate_group(
    group: pd.DataFrame,
    request: list[str],
    names: list[str],
    n_resamples: int,
    random_state: int,
) -> pd.DataFrame:
    """Aggregate one group: a row per metric."""
    requests = group.groupby(request, sort=False, dropna=False)
    values = requests[names].mean().to_numpy(float)  # (requests, metrics)
    n = len(values)
    mean, low, high = bootstrap(values, n_resamples, random_state)
    n_known = (~np.isnan(values)).sum(axis=0)
    n_already: Any = pd.NA
    if "status" in group:
        already = (group["status"] == "already_target").rename("already")
        keys = [group[name] for name in request]
        by_request = already.groupby(keys, sort=False, dropna=False).any()
        n_already = int(by_request.sum())
    return pd.DataFrame(
        {
            "metric": names,
            "mean": mean,
            "low": low,
            "high": high,
            "coverage": n_known / max(n, 1),
            "n": n,
            "n_already": pd.array([n_already] * len(names), dtype="Int64"),
        }
    )


def bootstrap(
    values: Array,
    n_resamples: int = 2000,
    random_state: int = 0,
    level: float = 0.95,
) -> tuple[Array, Array, Array]:
    """Compute means of columns and their percentile intervals; NaN is no value.

        mean* = Σ_i w_i v_i / Σ_i w_i,    w ~ Multinomial(n, 1/n) over rows that have a value

    The rows are drawn from all, with and without a value, so that the interval takes uncertain
    coverage into account.

    Parameters
    ----------
    values : ndarray of shape (n, m)
        One row per request, one column per metric.
    n_resamples : int, default=2000
        Number of samples.
    random_state : int, default=0
        Seed.
    level : float, default=0.95
        Share of the samples within the interval.

    Returns
    -------
    mean, low, high : ndarrays of shape (m,)
        NaN where a column has no value.
    """
    n, m = values.shape
    if n == 0:
        undefined = np.full(m, np.nan)
        return undefined, undefined, undefined
    known = np.nan_to_num(values)
    is_known = (~np.isnan(values)).astype(float)
    rng = np.random.default_rng(random_state)
    evenly = np.full(n, 1 / n)
    samples = [np.empty((0, m))]
    step = max(1, MAX_ELEMENTS // n)
    for start in range(0, n_resamples, step):
        size = min(step, n_resamples - start)
        w = rng.multinomial(n, evenly, size=size)  # (samples, n)
        w = w.astype(float)
        samples.append(_divide(w @ known, w @ is_known))
    means = np.concatenate(samples)
    ends = np.full((2, m), np.nan)
    has_values = is_known.any(axis=0)
    quantiles = [(1 - level) / 2, (1 + level) / 2]
    ends[:, has_values] = np.nanquantile(means[:, has_values], quantiles, axis=0)
    mean = _divide(known.sum(axis=0), is_known.sum(axis=0))
    return mean, ends[0], ends[1]


def _divide(total: Array, count: Array) -> Array:
    """Divide; NaN where the count is 0."""
    undefined = np.full(total.shape, np.nan)
    return np.asarray(np.divide(total, count, out=undefined, where=count > 0))


def _check_columns(frame: pd.DataFrame, argument: str, declared: list[Any]) -> None:
    """Raise where a declared column is missing, or a column is there twice."""
    columns = list(frame.columns)
    for name in declared:
        if name not in columns:
            known = ", ".join(map(str, columns))
            raise ValueError(
                f"{argument}: the frame has no column {brief(name)}. Columns: {known}."
            )
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise ValueError(f"The frame has two columns {twice[0]!r}; rename or drop one of them.")


def _directions(
    frame: pd.DataFrame,
    declared: list[str],
    metrics: Metric | Sequence[Metric],
) -> dict[Any, str]:
    """Return the direction of every column that is a metric; raise where a column is unknown."""
    definitions: dict[Any, Metric | type[Metric]] = dict(METRICS)
    definitions.update({old: METRICS[new] for old, new in RENAMED.items()})
    if isinstance(frame, Scores):
        definitions.update(frame.metrics)
    given = [metrics] if isinstance(metrics, Metric) else metrics
    if not isinstance(given, Sequence):
        raise TypeError(f"metrics must be instances of Metric, got {brief(metrics)}.")
    for metric in given:
        if not isinstance(metric, Metric):
            raise TypeError(f"metrics must be instances of Metric, got {metric!r}.")
        definitions[metric.name] = metric
    directions: dict[Any, str] = {}
    unknown = []
    for name in frame:
        if name in declared:
            continue
        if name in definitions:
            directions[name] = definitions[name].direction
        elif name not in OTHER_COLUMNS and _holds_numbers(frame[name]):
            unknown.append(name)
    if unknown:
        raise ValueError(
            f"aggregate does not know the column {', '.join(map(repr, unknown))}, which holds "
            "numbers. If it is a metric, pass its definition, as in metrics=[MyMetric()] (tables "
            "read from a file, and plain DataFrames, do not know a metric of your own). If it "
            "tells results or requests apart, name it in by or request. Otherwise drop it."
        )
    return directions


def _holds_numbers(column: pd.Series[Any]) -> bool:
    """Return whether a column has numbers or truth values among its values, or no values at all.

    Text, dates and other things are labels. A column of objects without any value may be a metric
    that was nowhere defined, as Parquet returns it.
    """
    if pd.api.types.is_numeric_dtype(column.dtype):
        return True
    if column.dtype != object and not isinstance(column.dtype, pd.CategoricalDtype):
        return False
    values = column.dropna().tolist()
    if not values:
        return True
    return any(isinstance(value, numbers.Number | np.bool_) for value in values)
