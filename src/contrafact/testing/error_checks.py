"""Check that bad input is refused clearly and that a bad row leaves the others alone."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from ..engine.result import Counterfactuals
from ..explainers.support.explainer import Explainer
from .case_models import FailingModel
from .cases import Case
from .checks import check

#: The row on which models fail.
BAD_ROW = 3


def assert_refused(work: Callable[[], Any], *words: str) -> None:
    """Assert that a call raises a ValueError or TypeError whose message contains the words.

    Parameters
    ----------
    work : function without arguments
        The call.
    *words : str
        What the message must mention.
    """
    try:
        work()
    except (ValueError, TypeError) as error:
        missing = [word for word in words if word not in str(error)]
        assert not missing, f"the error does not mention {missing}: {error}"
        return
    raise AssertionError(f"no error was raised, expected one that mentions {words}")


@check("one_model")
def check_unfitted_refused(explainer: Explainer, case: Case) -> None:
    """Check that explaining before fitting is an error that mentions fit."""
    assert_refused(lambda: explainer.explain(case.X), "fit")


@check("one_model")
def check_nan_refused(explainer: Explainer, case: Case) -> None:
    """Check that NaN in X is an error that names the row, in fit and in explain."""
    case.fit(explainer)
    X = case.X.copy()
    X.reshape(len(X), -1)[2, 1] = np.nan
    y = case.labels[np.arange(len(X)) % 3]
    assert_refused(lambda: explainer.explain(X), "X[2]", "NaN")
    assert_refused(
        lambda: explainer.fit(case.classifier(), X, y, modality=case.modality),
        "NaN",
    )


@check("one_model")
def check_inf_refused(explainer: Explainer, case: Case) -> None:
    """Check that an infinite value in X is an error that names the row."""
    case.fit(explainer)
    X = case.X.copy()
    X.reshape(len(X), -1)[1, 0] = -np.inf
    assert_refused(lambda: explainer.explain(X), "X[1]", "inf")


@check("one_model")
def check_wrong_shape_refused(explainer: Explainer, case: Case) -> None:
    """Check that instances of another shape than at fit are errors, and so are missing labels."""
    case.fit(explainer)
    assert_refused(lambda: explainer.explain(case.X[..., :-1]), "shape")
    assert_refused(lambda: explainer.explain(np.zeros(())), "shape")
    assert_refused(
        lambda: explainer.fit(case.classifier(), case.X_reference, case.y_reference[:-1]),
        "y",
    )


@check("one_model")
def check_unknown_target_refused(explainer: Explainer, case: Case) -> None:
    """Check that a target that is no class, or a wrong number of targets, is an error."""
    case.fit(explainer)
    assert_refused(lambda: explainer.explain(case.X, target="nowhere"), "nowhere", "'a'")
    assert_refused(lambda: explainer.explain(case.X, target=case.labels[:2]), "target", "2")


@check("one_model")
def check_one_class_reference_refused(explainer: Explainer, case: Case) -> None:
    """Check that reference data of one class are an error where the method needs several."""
    if not explainer.tags.reference:
        return
    rows = case.y_reference == case.labels[0]
    assert_refused(
        lambda: explainer.fit(
            case.classifier(),
            case.X_reference[rows],
            case.y_reference[rows],
            modality=case.modality,
        ),
        "one class",
    )


@check("one_model")
def check_bad_options_refused(explainer: Explainer, case: Case) -> None:
    """Check that options of explain are checked, and errors name the option."""
    case.fit(explainer)
    not_a_budget: Any = 10
    not_constraints: Any = {"lower": 0}
    assert_refused(lambda: explainer.explain(case.X, k=0), "k", "0")
    assert_refused(lambda: explainer.explain(case.X, confidence=1.5), "confidence", "1.5")
    assert_refused(lambda: explainer.explain(case.X, budget=not_a_budget), "budget")
    assert_refused(lambda: explainer.explain(case.X, constraints=not_constraints), "constraints")


@check("one_model")
def check_failed_fit_keeps_the_old_one(explainer: Explainer, case: Case) -> None:
    """Check that after a fit that failed, the previous fit is still in place."""
    before = case.explain(explainer)
    assert_refused(
        lambda: explainer.fit(case.classifier(), case.X_reference, case.y_reference[:-1]),
        "y",
    )
    after = explainer.explain(case.X)
    np.testing.assert_array_equal(after.X_cf, before.X_cf)


@check("one_model")
def check_bad_row_does_not_spoil_others(explainer: Explainer, case: Case) -> None:
    """Check that a row on which the model fails is an error row and changes no other row."""
    good = np.arange(len(case.X)) != BAD_ROW
    without = None
    for raises in (True, False):
        _fit_to_failing_model(explainer, case, raises)
        result = _explain_failing(explainer, case.X)
        if without is None:  # both models give the same for the good rows
            without = _explain_failing(explainer, case.X[good])
        assert result.status[BAD_ROW] == "error", "the bad row is not an error row"
        assert result.message[BAD_ROW], "the bad row has no message"
        assert not result.valid[BAD_ROW]
        assert np.array_equal(result.status[good], without.status), "other rows changed status"
        np.testing.assert_allclose(result.X_cf[good], without.X_cf, atol=2e-3)


@check("one_model")
def check_on_error_raise(explainer: Explainer, case: Case) -> None:
    """Check that an exception of the model is raised, or kept with its row, as asked."""
    _fit_to_failing_model(explainer, case, raises=True)
    X = case.X[BAD_ROW - 1 : BAD_ROW + 1]
    try:
        _explain_failing(explainer, X, on_error="raise")
    except RuntimeError as error:
        assert FailingModel.message in str(error), f"another exception was raised: {error!r}"
    else:
        raise AssertionError("on_error='raise' did not raise the exception of the model")

    result: Any = _explain_failing(explainer, X, on_error="row")
    bad = result.source == 1
    assert set(result.status[bad]) == {"error"}, "on_error='row' gives no error row"
    assert set(result.exceptions) == {1}, f"exceptions of rows {sorted(result.exceptions)}"
    kept = result.exceptions[1]
    assert isinstance(kept, RuntimeError), f"{kept!r} is not the exception of the model"
    assert FailingModel.message in str(kept), f"{kept!r} is not the exception of the model"


def _fit_to_failing_model(explainer: Explainer, case: Case, raises: bool) -> None:
    """Fit to the case's model, made to fail on the bad row."""
    model = FailingModel(case.classifier(), case.X[BAD_ROW], raises)
    failing = replace(case, model=model)
    with _expected_failures():
        case.fit(explainer, failing.classifier())


def _explain_failing(explainer: Explainer, X: Any, **options: Any) -> Counterfactuals:
    """Explain instances of which some fail on purpose."""
    with _expected_failures():
        return explainer.explain(X, random_state=0, **options)


@contextmanager
def _expected_failures() -> Iterator[None]:
    """Suppress warnings and log entries about rows that fail on purpose."""
    logger = logging.getLogger("contrafact")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            yield
    finally:
        logger.setLevel(level)
