"""Scores: the table that `evaluate` returns, together with the definitions of its metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pandas as pd
from typing_extensions import Self

from .metric import Metric

#: columns of `evaluate`, of `Counterfactuals.to_frame` and of benchmark tables that are no metrics
OTHER_COLUMNS = frozenset(
    {
        "source",
        "status",
        "label",
        "target",
        "cf_label",
        "p_before",
        "p_after",
        "changed_fraction",
        "message",
        "instance",
        "accuracy",
        "fit_seconds",
        "fit_calls",
        "cell_status",
    }
)


class Scores(pd.DataFrame):
    """Hold one row per counterfactual and a column per metric, with the metrics' definitions.

    A pandas DataFrame with the columns `source`, `status` and one for each metric. The definitions
    stay with it through selection, `copy`, `assign`, `concat`, `merge` and `join`, so that
    `aggregate` knows a user's own metrics as well. Files do not keep them: see `aggregate`.

    Where frames are joined, the result is a Scores object if the first (or left) frame is one.

    Parameters
    ----------
    data, index, columns, dtype, copy : object, optional
        As for `pandas.DataFrame`; `evaluate` makes objects of this class.

    Attributes
    ----------
    metrics : dict of str to Metric
        The metrics that were computed, by name.
    left_out : dict of str to str
        The metrics that were not computed, by name, with the reason.

    Examples
    --------
    >>> from contrafact.metrics import evaluate
    >>> import contrafact as cf
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0]])
    >>> model = lambda X: np.hstack([1 - X, X])
    >>> result = cf.Counterfactuals.from_arrays(model, X[:1], X[1:], target=1)
    >>> scores = evaluate(result, ["valid", "l1"]).assign(method="mine")
    >>> scores.metrics["l1"].direction
    'min'
    """

    _metadata: ClassVar[list[str]] = ["_definitions", "_left_out"]

    @classmethod
    def from_columns(
        cls,
        columns: Mapping[str, Any],
        metrics: Sequence[Metric],
        left_out: Mapping[str, str] | None = None,
    ) -> Self:
        """Build the table.

        Parameters
        ----------
        columns : mapping of str to array of shape (n,)
            The columns, those of the metrics among them.
        metrics : sequence of Metric
            The definitions of the columns that are metrics.
        left_out : mapping of str to str, optional
            Why other metrics were not computed.

        Returns
        -------
        Scores
            A table of n rows.
        """
        scores = cls(columns)
        scores._definitions = {metric.name: metric for metric in metrics}
        scores._left_out = dict(left_out or {})
        return scores

    @property
    def metrics(self) -> dict[str, Metric]:
        """Return the metrics that were computed, by name."""
        return dict(getattr(self, "_definitions", None) or {})

    @property
    def left_out(self) -> dict[str, str]:
        """Return why a metric was not computed, by name."""
        return dict(getattr(self, "_left_out", None) or {})

    @property
    def _constructor(self) -> type[Scores]:
        return Scores

    def __finalize__(self, other: Any, method: str | None = None, **kwargs: Any) -> Self:
        # pandas calls this after every operation that makes a new frame. What the base class does,
        # copying `_metadata`, covers operations on one frame but not on several.
        super().__finalize__(other, method=method, **kwargs)  # type: ignore[misc]
        sources = [part for part in _joined_frames(other) if isinstance(part, Scores)]
        if sources:
            self._definitions = _joined_definitions(sources)
            self._left_out = _joined_reasons(sources)
        return self


def _joined_frames(other: Any) -> list[Any]:
    """Return the frames that `concat` or `merge` joined; none for other operations.

    pandas passes an object that has them as attributes: `left` and `right`, or `objs`.
    """
    if isinstance(other, pd.DataFrame | pd.Series):
        return []
    if hasattr(other, "left") and hasattr(other, "right"):
        return [other.left, other.right]
    return list(getattr(other, "objs", []))


def _joined_definitions(tables: Sequence[Scores]) -> dict[str, Metric]:
    """Collect the definitions of several tables; raise where they contradict each other."""
    found: dict[str, Metric] = {}
    for table in tables:
        for name, metric in table.metrics.items():
            known = found.setdefault(name, metric)
            if known.direction != metric.direction:
                raise ValueError(
                    f"The tables have different metrics of the name {name!r}: of one, "
                    f"{known.direction!r} is better, of another {metric.direction!r}. "
                    "Rename one of them."
                )
    return found


def _joined_reasons(tables: Sequence[Scores]) -> dict[str, str]:
    """Collect why metrics were left out; the first reason of each is kept."""
    found: dict[str, str] = {}
    for table in tables:
        for name, reason in table.left_out.items():
            found.setdefault(name, reason)
    return found
