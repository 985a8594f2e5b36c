"""Check that constraints hold exactly, cost no more than they must, and that k is honored."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine.constraints import Constraints
from ..engine.result import Counterfactuals
from ..explainers.support.explainer import Explainer
from ..models.classifier import Array
from .cases import Case
from .checks import check

#: A bound and a step that no value of the cases comes near to.
VAST = 1e6
#: How much longer than necessary a counterfactual may get by one frozen value. Methods that copy
#: from neighbors or walk toward them, whose ways are not the shortest, stay below it.
CORNER_FACTOR = 1.1


@check("every_model")
def check_bounds_hold(explainer: Explainer, case: Case) -> None:
    """Check that counterfactuals lie within the bounds, to the last bit."""
    if "bounds" not in explainer.tags.constraints:
        return
    lower = float(case.X.min()) - 0.05
    upper = float(case.X.max()) - 0.1  # some instances start outside
    bounds = Constraints(lower=lower, upper=upper)
    result = case.explain(explainer, constraints=bounds)
    moved = result.X_cf[result.status != "already_target"]
    assert (moved >= lower).all(), "values below the lower bound"
    assert (moved <= upper).all(), "values above the upper bound"


@check("every_model")
def check_frozen_holds(explainer: Explainer, case: Case) -> None:
    """Check that frozen values come back unchanged, with and without refinement."""
    if "frozen" not in explainer.tags.constraints:
        return
    frozen = np.zeros(case.X.shape[1:], bool)
    frozen.reshape(-1)[: frozen.size // 3] = True
    constraints = Constraints(frozen=frozen)
    for refine in (False, "minimal", "believable"):
        result = case.explain(explainer, constraints=constraints, refine=refine)
        assert np.array_equal(result.X_cf[:, frozen], result.X[:, frozen]), (
            f"frozen values changed with refine={refine!r}"
        )


@check("every_model")
def check_slope_limit_holds(explainer: Explainer, case: Case) -> None:
    """Check that no step of a counterfactual series exceeds max_step."""
    if case.modality != "series" or "max_step" not in explainer.tags.constraints:
        return
    limit = 0.8
    constraints = Constraints(max_step=limit)
    result = case.explain(explainer, constraints=constraints, refine=True)
    kept_as_given = np.isin(result.status, ("already_target", "infeasible"))
    moved = result.X_cf[~kept_as_given].astype(np.float64)
    steps = np.abs(np.diff(moved, axis=-1))
    assert (steps <= limit).all(), "steps above max_step"


@check("every_model")
def check_vacuous_constraints_change_nothing(explainer: Explainer, case: Case) -> None:
    """Check that constraints that exclude nothing give the result without constraints."""
    supported = explainer.tags.constraints
    limits: dict[str, Any] = {}
    if "bounds" in supported:
        limits["lower"] = -VAST
        limits["upper"] = VAST
    if "frozen" in supported:
        limits["frozen"] = np.zeros(case.X.shape[1:], bool)
    if "max_step" in supported and case.modality == "series":
        limits["max_step"] = VAST
    if not limits:
        return
    free = case.explain(explainer)
    limited = case.explain(explainer, constraints=Constraints(**limits))
    assert np.array_equal(limited.valid, free.valid), (
        f"valid {free.valid} became {limited.valid} with constraints that exclude nothing"
    )
    np.testing.assert_allclose(
        limited.X_cf,
        free.X_cf,
        rtol=0,
        atol=1e-6,
        err_msg="constraints that exclude nothing changed the result",
    )


@check("one_model")
def check_frozen_corner_costs_little(explainer: Explainer, case: Case) -> None:
    """Check that freezing one value lengthens the way to the target hardly more than it must.

    To first order the shortest way to the target has a length in proportion to 1 / ||w||, where w
    is the gradient of log P(target) - log P(label); without the frozen value, in proportion to
    1 / ||w without it||. For linear and prototype models this is exact.
    """
    if "frozen" not in explainer.tags.constraints:
        return
    if case.model_kind not in ("linear", "prototype"):
        return
    corner = np.zeros(case.X.shape[1:], bool)
    corner.reshape(-1)[0] = True
    free = case.explain(explainer)
    frozen = case.explain(explainer, constraints=Constraints(frozen=corner))
    necessary = _necessary_ratio(case, free, corner)

    reached = free.status == "valid"
    matters_little = necessary < CORNER_FACTOR
    lost = reached & matters_little & ~frozen.valid
    assert not lost.any(), f"a frozen value that hardly matters makes rows {lost.nonzero()} invalid"

    both = reached & frozen.valid
    if not both.any():
        return
    ratio = _length(frozen) / np.maximum(_length(free), 1e-12)
    excess = float(np.median(ratio[both] / necessary[both]))
    assert excess <= CORNER_FACTOR, (
        f"one frozen value makes counterfactuals {excess:.2f} times as long as it must"
    )


def _length(result: Counterfactuals) -> Array:
    """Return the Euclidean length of every change."""
    change = (result.X_cf - result.X).reshape(len(result), -1)
    return np.asarray(np.linalg.norm(change, axis=1))


def _necessary_ratio(case: Case, result: Counterfactuals, frozen: Array) -> Array:
    """Return how much longer the shortest way gets, per row, if some values are frozen."""
    slope = _margin_gradient(case, result)
    slope_of_free = slope[:, ~frozen.reshape(-1)]
    whole = np.linalg.norm(slope, axis=1)
    rest = np.linalg.norm(slope_of_free, axis=1)
    return np.asarray(whole / rest)


def _margin_gradient(case: Case, result: Counterfactuals, step: float = 0.01) -> Array:
    """Return d(log P(target) - log P(label)) / dx at every counterfactual, of shape (n, values)."""
    classifier = case.classifier()
    # Classes are in sorted order, as in scikit-learn.
    target = np.searchsorted(classifier.classes, result.target)
    label = np.searchsorted(classifier.classes, result.labels)
    rows = np.arange(len(result))

    def margin(flat: Array) -> Array:
        x = flat.reshape(result.X_cf.shape)
        logs = np.log(classifier.predict_proba(x) + 1e-12)
        return np.asarray(logs[rows, target] - logs[rows, label])

    flat: Array = result.X_cf.reshape(len(result), -1)
    gradient = np.empty_like(flat)
    for j in range(flat.shape[1]):
        above = flat.copy()
        below = flat.copy()
        above[:, j] += step
        below[:, j] -= step
        gradient[:, j] = (margin(above) - margin(below)) / (2 * step)
    return gradient


@check("one_model")
def check_impossible_is_infeasible(explainer: Explainer, case: Case) -> None:
    """Check that rows are infeasible, unchanged and give the reason if everything is frozen."""
    if "frozen" not in explainer.tags.constraints:
        return
    everything = Constraints(frozen=np.ones(case.X.shape[1:], bool))
    result = case.explain(explainer, constraints=everything)
    status = set(result.status)
    assert status == {"infeasible"}, f"status {status} although everything is frozen"
    assert all(result.message), "an infeasible row gives no reason"
    assert np.array_equal(result.X_cf, case.X), "an infeasible row was changed"


@check("every_model")
def check_k_distinct_or_explained(explainer: Explainer, case: Case) -> None:
    """Check that an instance has k different counterfactuals, or a message why not."""
    k = 3
    result = case.explain(explainer, k=k, random_state=0)
    instances = np.arange(len(case.X))
    assert np.array_equal(np.unique(result.source), instances), "an instance has no row"
    assert (np.diff(result.source) >= 0).all(), "rows are not in the order of the instances"
    for i in instances:
        own = result[result.source == i]
        flat = own.X_cf.reshape(len(own), -1)
        distinct = len(np.unique(flat, axis=0))
        assert distinct == len(own), f"instance {i}: equal counterfactuals"
        assert len(own) <= k, f"instance {i}: {len(own)} counterfactuals, k={k}"
        assert len(own) == k or all(own.message), (
            f"instance {i}: {len(own)} of {k} rows and no message"
        )


@check("every_model")
def check_confidence_is_aimed_for(explainer: Explainer, case: Case) -> None:
    """Check that a valid row whose P(target) is below the confidence asked for says so."""
    confidence = 0.7
    result = case.explain(explainer, confidence=confidence, refine=True)
    below = result.target_proba[:, 1] < confidence
    short = (result.status == "valid") & below
    assert all(result.message[short]), "a row below the confidence asked for does not say so"
