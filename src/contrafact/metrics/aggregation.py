"""From scores per counterfactual to one line per metric, over all requests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..models.classifier import Array
from .evaluation import METRICS

#: resampling counts held at once, which bounds memory
MAX_ELEMENTS = 2**23


def aggregate(
    frame: pd.DataFrame,
    by: str | Sequence[str] = (),
    *,
    request: str | Sequence[str] = "source",
    n_resamples: int = 2000,
    random_state: int = 0,
) -> pd.DataFrame:
    """Mean of every metric over all requests, with coverage and a bootstrap interval.

    A request is one instance explained: its counterfactuals are averaged first, so each request weighs the
    same. A request that failed counts with its best attempt; one without a value (NaN) lowers the coverage.
    Requests are resampled, so counterfactuals of one instance stay together.

    Parameters
    ----------
    frame : scores as `evaluate` gives them; several may be joined, with columns that tell them apart.
    by : columns to aggregate within, e.g. "method".
    request : columns that tell one request from another within a group, e.g. ["dataset", "source"].
    n_resamples, random_state : of the bootstrap.

    Returns
    -------
    Indexed by `by` and "metric": `direction`, `mean` (of a metric of 0 and 1: the rate), `low` and `high` of
    the 95 % interval, `coverage` (share of requests that have a value), `n` (requests).

    Examples
    --------
    >>> frame = pd.DataFrame({"source": [0, 1, 2, 3], "valid": [1.0, 1.0, 0.0, 1.0]})
    >>> table = aggregate(frame)
    >>> table["direction"].item(), table["mean"].item(), table["coverage"].item(), table["n"].item()
    ('max', 0.75, 1.0, 4)
    """
    by, request = ([names] if isinstance(names, str) else list(names) for names in (by, request))
    unknown = [name for name in (*by, *request) if name not in frame]
    if unknown:
        raise ValueError(
            f"The frame has no column {unknown[0]!r}. Columns: {', '.join(map(str, frame))}."
        )
    if by and frame.empty:
        raise ValueError("The frame has no rows, so there is nothing to aggregate by.")
    direction = {name: kind.direction for name, kind in METRICS.items()} | frame.attrs.get(
        "direction", {}
    )
    metrics = [name for name in frame if name in direction and name not in (*by, *request)]
    frame = frame.astype(
        dict.fromkeys(metrics, float)
    )  # a table read back may hold True, False and None
    groups = frame.groupby(by, sort=False, dropna=False) if by else [((), frame)]
    lines = []
    for key, group in groups:
        values = group.groupby(request, sort=False, dropna=False)[metrics].mean().to_numpy(float)
        mean, low, high = bootstrap(values, n_resamples, random_state)
        lines.append(
            pd.DataFrame(
                {
                    **dict(zip(by, key if isinstance(key, tuple) else (key,), strict=True)),
                    "metric": metrics,
                    "direction": [direction[name] for name in metrics],
                    "mean": mean,
                    "low": low,
                    "high": high,
                    "coverage": (~np.isnan(values)).sum(0) / max(len(values), 1),
                    "n": len(values),
                }
            )
        )
    return pd.concat(lines, ignore_index=True).set_index([*by, "metric"])


def bootstrap(
    values: Array, n_resamples: int = 2000, random_state: int = 0, level: float = 0.95
) -> tuple[Array, Array, Array]:
    """Means of the columns of `values` (n, m) and the ends of their percentile intervals; NaN is no value.

        mean* = Σ_i w_i v_i / Σ_i w_i,    w ~ Multinomial(n, 1/n) over rows that have a value

    The rows are drawn from all, with and without a value, so the interval knows of uncertain coverage too.
    """
    n, m = values.shape
    known, has = np.nan_to_num(values), (~np.isnan(values)).astype(float)
    if n == 0:
        return (np.full(m, np.nan),) * 3
    rng = np.random.default_rng(random_state)
    samples = [np.empty((0, m))]
    for start in range(0, n_resamples, step := max(1, MAX_ELEMENTS // n)):
        w = rng.multinomial(n, np.full(n, 1 / n), size=min(step, n_resamples - start)).astype(float)
        samples.append(_mean(w @ known, w @ has))
    means = np.concatenate(samples)
    ends = np.full((2, m), np.nan)
    seen = has.any(0)
    ends[:, seen] = np.nanquantile(means[:, seen], [(1 - level) / 2, (1 + level) / 2], axis=0)
    return _mean(known.sum(0), has.sum(0)), ends[0], ends[1]


def _mean(total: Array, count: Array) -> Array:
    return np.asarray(np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0))
