"""Check that the cost is counted and that budgets are kept."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ..engine.budget import Budget
from ..explainers.support.explainer import Explainer
from .cases import Case
from .checks import check

#: Requests whose costs are compared with what the model saw; other checks make them as well, so
#: that they cost nothing here.
COUNTED: tuple[dict[str, Any], ...] = (
    {},
    {"refine": "minimal"},
    {"refine": "believable"},
    {"k": 3, "random_state": 0},
)


@check("every_model")
def check_calls_are_the_rows_the_model_saw(explainer: Explainer, case: Case) -> None:
    """Check that `calls` sums to the number of rows that the model evaluated."""
    for options in COUNTED:
        result, seen = case.explain_counted(explainer, **options)
        counted = result.calls.sum()
        assert counted == seen, f"calls add up to {counted}, the model saw {seen} rows"


@check("every_model")
def check_budget_of_calls_is_kept(explainer: Explainer, case: Case) -> None:
    """Check that no more rows are evaluated than the budget has calls."""
    for share in (4, 7, 40):
        calls = share * len(case.X)
        budget = Budget(calls=calls)
        result, seen = case.explain_counted(explainer, budget=budget, refine=True)
        assert seen <= calls, f"{seen} rows asked with a budget of {calls}"
        assert np.array_equal(result.source, np.arange(len(case.X))), "a budget lost rows"


@check("two_models")
def check_budget_of_seconds_is_kept(explainer: Explainer, case: Case) -> None:
    """Check that a time budget ends the search, and every instance has a row."""
    case.fit(explainer)
    seconds: list[float] = []
    # What is loaded at first use, and what else the machine does, is no part of the time.
    while len(seconds) < 3 and min(seconds, default=2.0) >= 2.0:
        start = time.perf_counter()
        result = explainer.explain(case.X, budget=Budget(seconds=1e-6), refine=True)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 2.0, f"{min(seconds):.1f} s with a deadline in the past"
    assert len(result) == len(case.X)


@check("one_model")
def check_empty_batch(explainer: Explainer, case: Case) -> None:
    """Check that a request without instances gives a result without rows."""
    nothing = case.X[:0]
    result = case.fit(explainer).explain(nothing)
    assert len(result) == 0
    assert result.X_cf.shape == nothing.shape
    assert len(result.to_frame()) == 0
    assert "empty" in repr(result)
