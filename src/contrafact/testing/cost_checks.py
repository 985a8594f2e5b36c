"""Check that the cost is counted and that budgets are kept."""

from __future__ import annotations

import time

import numpy as np

from ..engine.budget import Budget
from ..explainers.support.explainer import Explainer
from .cases import Case
from .checks import check


@check("every_model")
def check_calls_are_the_rows_the_model_saw(explainer: Explainer, case: Case) -> None:
    """Check that `calls` sums to the number of rows that the model evaluated."""
    classifier = case.classifier()
    case.fit(explainer, classifier)
    for k in (1, 2):
        before = classifier.rows_evaluated
        result = explainer.explain(case.X, k=k, refine=k == 1)
        seen = classifier.rows_evaluated - before
        counted = result.calls.sum()
        assert counted == seen, f"calls add up to {counted}, the model saw {seen} rows"


@check("every_model")
def check_budget_of_calls_is_kept(explainer: Explainer, case: Case) -> None:
    """Check that no more rows are evaluated than the budget has calls."""
    classifier = case.classifier()
    case.fit(explainer, classifier)
    for share in (4, 7, 40):
        calls = share * len(case.X)
        before = classifier.rows_evaluated
        result = explainer.explain(case.X, budget=Budget(calls=calls), refine=True)
        seen = classifier.rows_evaluated - before
        assert seen <= calls, f"{seen} rows asked with a budget of {calls}"
        assert np.array_equal(result.source, np.arange(len(case.X))), "a budget lost rows"


@check("two_models")
def check_budget_of_seconds_is_kept(explainer: Explainer, case: Case) -> None:
    """Check that a time budget ends the search, and every instance has a row."""
    case.explain(explainer)  # what is loaded at first use is no part of the time
    start = time.perf_counter()
    result = explainer.explain(case.X, budget=Budget(seconds=1e-6), refine=True)
    seconds = time.perf_counter() - start
    assert seconds < 2.0, f"{seconds:.1f} s with a deadline in the past"
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
