"""Checks that constraints hold exactly and that k is honest."""

from __future__ import annotations

import numpy as np

from ..engine.constraints import Constraints
from ..explainers.support.explainer import Explainer
from .cases import Case


def check_bounds_hold(explainer: Explainer, case: Case) -> None:
    if "bounds" not in explainer.tags.constraints:
        return
    lower, upper = float(case.X.min()) - 0.05, float(case.X.max()) - 0.1
    result = case.fitted(explainer).explain(
        case.X, constraints=Constraints(lower=lower, upper=upper)
    )
    moved = result.X_cf[result.status != "already_target"]
    assert (moved >= lower).all() and (moved <= upper).all(), "values outside the bounds"


def check_frozen_holds(explainer: Explainer, case: Case) -> None:
    if "frozen" not in explainer.tags.constraints:
        return
    frozen = np.zeros(case.X.shape[1:], bool)
    frozen.reshape(-1)[: frozen.size // 3] = True
    result = case.fitted(explainer).explain(case.X, constraints=Constraints(frozen=frozen))
    assert np.array_equal(result.X_cf[:, frozen], result.X[:, frozen]), "frozen values changed"
    refined = explainer.explain(case.X, constraints=Constraints(frozen=frozen), refine=True)
    assert np.array_equal(refined.X_cf[:, frozen], refined.X[:, frozen]), (
        "refine changed frozen values"
    )


def check_slope_limit_holds(explainer: Explainer, case: Case) -> None:
    if case.modality != "series" or "max_step" not in explainer.tags.constraints:
        return
    limit = 0.8
    result = case.fitted(explainer).explain(
        case.X, constraints=Constraints(max_step=limit), refine=True
    )
    moved = result.X_cf[(result.status != "already_target") & (result.status != "infeasible")]
    assert (np.abs(np.diff(moved.astype(np.float64), axis=-1)) <= limit).all(), (
        "steps above max_step"
    )


def check_impossible_is_infeasible(explainer: Explainer, case: Case) -> None:
    if "frozen" not in explainer.tags.constraints:
        return
    everything = Constraints(frozen=np.ones(case.X.shape[1:], bool))
    result = case.fitted(explainer).explain(case.X, constraints=everything)
    assert (result.status == "infeasible").all(), (
        f"status {set(result.status)} although everything is frozen"
    )
    assert all(result.message), "an infeasible row gives no reason"
    assert np.array_equal(result.X_cf, case.X)


def check_k_distinct_or_told(explainer: Explainer, case: Case) -> None:
    k = 3
    result = case.fitted(explainer).explain(case.X, k=k, random_state=0)
    assert np.array_equal(np.unique(result.source), np.arange(len(case.X))), (
        "an instance has no row"
    )
    assert (np.diff(result.source) >= 0).all(), "rows are not in the order of the instances"
    for i in range(len(case.X)):
        mine = result[result.source == i]
        flat = mine.X_cf.reshape(len(mine), -1)
        assert len(np.unique(flat, axis=0)) == len(flat) <= k, (
            f"instance {i}: equal or too many counterfactuals"
        )
        assert len(mine) == k or all(mine.message), (
            f"instance {i}: {len(mine)} of {k} rows and no message"
        )


def check_confidence_is_aimed_for(explainer: Explainer, case: Case) -> None:
    case.fitted(explainer)
    result = explainer.explain(case.X, confidence=0.7, refine=True)
    short = result.valid & (result.status == "valid") & (result.target_proba[:, 1] < 0.7)
    assert all(result.message[short]), "a row below the confidence asked for does not say so"
