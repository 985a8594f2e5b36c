"""Checks that the cost is counted truly and budgets are kept."""

from __future__ import annotations

import time

import numpy as np

from ..engine.budget import Budget
from ..explainers.support.explainer import Explainer
from .cases import Case


def check_calls_are_the_rows_the_model_saw(explainer: Explainer, case: Case) -> None:
    classifier = case.classifier()
    case.fitted(explainer, classifier)
    for k in (1, 2):
        before = classifier.rows_evaluated
        result = explainer.explain(case.X, k=k, refine=k == 1)
        seen = classifier.rows_evaluated - before
        assert result.calls.sum() == seen, (
            f"calls add up to {result.calls.sum()}, the model saw {seen} rows"
        )


def check_budget_of_calls_is_kept(explainer: Explainer, case: Case) -> None:
    classifier = case.classifier()
    case.fitted(explainer, classifier)
    for share in (4, 7, 40):
        before = classifier.rows_evaluated
        budget = Budget(calls=share * len(case.X))
        result = explainer.explain(case.X, budget=budget, refine=True)
        seen = classifier.rows_evaluated - before
        assert seen <= budget.calls, f"{seen} rows asked with a budget of {budget.calls}"  # type: ignore[operator]
        assert np.array_equal(result.source, np.arange(len(case.X))), "a budget lost rows"


def check_budget_of_seconds_is_kept(explainer: Explainer, case: Case) -> None:
    case.answer(explainer)  # what is loaded at first use is no part of the time
    case.fitted(explainer)
    start = time.perf_counter()
    result = explainer.explain(case.X, budget=Budget(seconds=1e-6), refine=True)
    assert time.perf_counter() - start < 2.0, "a deadline in the past was not heeded"
    assert len(result) == len(case.X)


def check_empty_batch(explainer: Explainer, case: Case) -> None:
    result = case.fitted(explainer).explain(case.X[:0])
    assert len(result) == 0 and result.X_cf.shape == case.X[:0].shape
    assert len(result.to_frame()) == 0 and "empty" in repr(result)
